"""The hooks: install them, answer git at a commit, a ref update and a push, and see that they run.

`at_commit`, `at_ref`, `at_push` and `at_receive` answer git; `install`, `uninstall` and `doctor*` look after
the hook files; `shims` holds the shell scripts, and `fast` the recogniser of boring changes.
"""
