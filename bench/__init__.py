"""Benchmarks: what patchgate costs, as ratios to what must be paid anyway. No test; nothing imports them.

`check` and `patches` print the tables of the README, `patterns` what a pattern set costs; `pairs` is the
method, `worlds` makes the repositories, `tables` prints.
"""
