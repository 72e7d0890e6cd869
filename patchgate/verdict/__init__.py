"""Room 1: what is said.

Belongs here: the registry of rules, findings, verdicts, their ids, and every form in which they are written.
Does not: deciding whether a change breaks a rule (`gates`), printing (`surfaces`).
Callers: every room above. Imports `change` and `errors`.
"""
