"""Benchmarks: what patchgate costs, as ratios to what must be paid anyway; and what other managers let pass.

`run` makes all tables of the documentation, each of which is a module with `prepare`; `pairs` is the method,
`measurement` what one benchmark is, `worlds` makes the repositories, `tables` prints. `patterns` prints what
a pattern set costs, `git_access` what libgit2 does. `bypasses` prints the grid of ways past a gate and
`lost_work` who loses work; their cases are run by our tests too.
"""
