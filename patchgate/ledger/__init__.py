"""The ledger: the record of what happened in a repository. See `docs/decisions/ledger.md`.

Belongs here: the permanent record of events (`ledger`, `history`, `timestamps`), the receipts of accepted
changes and the announced tips (`receipts`), adjudications, traces of internal errors, and the masking of
secrets. Not: decisions, git, and what any of it means for a verdict. Approvals, intents and attempts have
their own records in their features' folders.

All files are in `<git common dir>/patchgate/`: shared by the worktrees, never tracked. A push does little
more than record one event, so recording loads `json`, `hashlib` and little else, and neither `dataclasses`,
`pathlib` nor `typing`. A test checks this.
"""
