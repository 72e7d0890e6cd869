"""Read changes from git, and write to a working tree. See `docs/decisions/git.md`.

Belongs here: repositories, objects and lists as `Change` values, writing a working tree and its index as a
whole or not at all (`transaction`, `staging`), scratch trees (`scratch`). `path`, `quoting` and `model` are
pure. Does not: policy, verdicts, texts of refusals. Only this folder imports pygit2.
"""
