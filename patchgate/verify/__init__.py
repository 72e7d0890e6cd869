"""Verify: the analyses of a tree, and whether it got worse by this piece of work.

Belongs here: the verbs `analyze` and `verify`, the push (`push`), how two runs are compared and what follows.
Does not: how a tool is run and read (`commands`), the scope of a commit in the hooks (`intents`). Decisions:
docs/decisions/verify.md.
"""
