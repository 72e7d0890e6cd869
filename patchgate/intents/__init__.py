"""Intents: which files a piece of work declares, how that is stored, and which commits it binds.

`intent` defines an intent and matches its entries; `intent_file`, `stored_intents` and `queue` store it;
`actions` declares, renews, clears and recovers it. `worktree_intents.ScopeGate` finds the intents that bind
a change, and `scope` reports what they forbid. Decisions: docs/decisions/verify.md.
"""
