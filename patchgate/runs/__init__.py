"""Runs: components taken through their phases, and through any interruption.

`phases` decides what may start when, `timeouts` how long it may take, `fault_reading` what output shows, and
`triage` what it means. Not here: how work enters (`apply`), what is done (baselines), events (`ledger`).
"""
