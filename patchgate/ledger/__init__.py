"""The ledger: the record of what happened in a repository. See `docs/decisions/ledger.md`.

Belongs here: the events, receipts, announced tips, adjudications, traces of internal errors, the masking of
secrets; all files are in `<git common dir>/patchgate/`. Does not: decisions, git. Recording an event loads
`json`, `hashlib` and little else; a test checks this.
"""
