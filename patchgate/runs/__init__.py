"""Runs: components taken through their phases, and through any interruption.

`phases` decides what may start when, `timeouts` how long it may take, `triage` what a fault means. Does not:
how work enters (`apply`), what is done (baselines, in `components`), what happened (the ledger).
Only `cli` imports from here.
"""
