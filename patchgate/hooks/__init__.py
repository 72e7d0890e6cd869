"""The hooks: install them, answer git, and check that they run.

`pre_commit`, `commit_msg`, `reference_transaction`, `pre_push` and `pre_receive` each answer one hook.
`install`, `hooks_folder` and `doctor*` manage the hook files. `shims` has the shell scripts that git starts,
`fast` recognises ordinary changes without the full check.
"""
