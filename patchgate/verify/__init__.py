"""Verify: the analyses of a tree, and whether a change made something worse.

Belongs here: the verbs `analyze` and `verify`, the verification of a push (`verify_push`), how two runs are
compared and decided. Does not: how a tool is run and read (`commands`), the scope of a commit in the hooks
(`intents`). Decisions: docs/decisions/verify.md.
"""
