"""Room 0: what is proposed.

Belongs here: paths, files before and after, the grammar of patches and edits, why a hunk does not fit.
Does not: git, files, clocks, policy, wording of refusals. Everything here is pure.
Callers: every room above. Imports only `errors`.
"""
