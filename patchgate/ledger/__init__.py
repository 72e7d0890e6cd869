"""The ledger: what happened here, remembered under the git common directory. See `docs/decisions/ledger.md`.

Belongs here: the permanent record of events (`ledger`, `history`, `timestamps`), the notes that a change was
accepted, the tips that were there at install and how far each branch was told of the rest (`receipts`), what
an adjudication leaves (`adjudications`), traces of internal errors (`traces`), and how secrets are masked
(`masking`). Does not: judging, git, what any of it means for a verdict. Approvals, intents and attempts keep
records of their own in their features' folders, by the same rules.

All of it lies in `<git common dir>/patchgate/`: shared by the worktrees, never tracked, out of a checkout's
reach. Recording one event is nearly all that a hook does at a push, so it loads `json`, `hashlib` and little
else, no `dataclasses`, `pathlib` or `typing`, and a clean commit loads less; a test pins it.
"""
