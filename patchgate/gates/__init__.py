"""Room 3, the wing of gates: examiners of a change.

Belongs here: one module for each gate, a pure function from a `Case` to findings, and `gate`, which holds
the order and judges. Does not: git, files, clocks, how anything was read. Imports `change`, `verdict`,
`declared`. To add a gate: one file, one line in the order, its rules in the registry, cases.
"""
