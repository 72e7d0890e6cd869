"""Patches and edits that are proposed: the strict grammar, diagnosis, fixes, the dry run, agents' replies.

The grammar and its diagnosis are pure. `patches`, `proposed` and `trial` compare what a proposal says with
what git makes of it.
"""
