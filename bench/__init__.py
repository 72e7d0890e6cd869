"""Benchmarks: what patchgate costs, as ratios to what must be paid anyway; and what other managers let pass.

`check`, `patches` and `hooks` print the tables of the page on speed, `patterns` what a pattern set costs;
`pairs` is the method, `worlds` makes the repositories, `tables` prints. `bypasses` prints the grid of ways
past a gate; its cases (`bypass_cases`, `bypass_place`, `bypass_managers`) are run by our tests too, nothing
else here is. `components`, `verify`, `compare` and `claims` print what components, verifications and claims
cost.
"""
