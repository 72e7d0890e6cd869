"""Intents: what a piece of work declares, what becomes of the declaration, and which commits it binds.

What an intent is says `intent`, how it is stored `intent_form`, `intents` and `store`; `verbs` has the verbs.
Who asks which intents bind makes a `commits.ScopeGate`; `scope` says what it finds. Decisions:
docs/decisions/verify.md.
"""
