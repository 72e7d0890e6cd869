"""Read changes from git, and write to a working tree. See `docs/decisions/git.md`.

Belongs here: opening repositories, reading objects and lists into `Change` values, writing a working tree and
its index completely or not at all (`transaction`, `staging`, `conversion`), and the scratch trees in which a
patch is tried (`scratch`, `private_store`). `path`, `quoting` and `model` are pure values. Does not: policy,
verdicts, texts of refusals. Only this folder imports pygit2.
"""
