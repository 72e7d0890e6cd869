"""Landing: what writes. Each write is whole or not at all.

To the working tree `apply` writes, and nothing else does: `trying`, `disk_forms`, `landing` and `recording`
are its steps, `retries` and `duplicates` what earlier attempts mean for it, `left` what a killed one leaves.
The others write below git's folder: hooks, receipts, approvals, the fast path's state, which commits were
made under an intent (`at_ref`); and `trailer` writes into the file of a message, as git lets a hook do.
"""
