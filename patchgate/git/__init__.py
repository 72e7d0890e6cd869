"""What git says a change is, and what is written to a working tree. See `docs/decisions/git.md`.

Belongs here: opening repositories, reading objects and lists, turning them into `Change` values; what is
written to a working tree and its index, whole or not at all (`transaction`, `staging`, `conversion`); the
scratch trees in which a patch is tried (`scratch`, `private_store`). `path`, `quoting` and `model` are pure
values. Does not: policy, verdicts, wording of refusals. The only home of pygit2.
"""
