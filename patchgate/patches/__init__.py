"""Patches and edits that are proposed: the strict grammar, hunk mismatches, fixes, the dry run, replies.

The grammar is pure. `check_patch` judges a proposal. `dry_run` compares it with what git makes of it.
"""
