"""Room 3, the wing of gates: examiners of a change.

Belongs here: one module for each gate, a pure function from a `Case` to findings, and `gate`, which holds
the order and judges. What knows more than a change is no part of that order: messages, refs, staleness, the
scope of an intent (`scope`), and a verification (`regressions`, `attribution`, `thresholds`, `abuse`,
`growth`, `verification*`): that compares two trees instead of judging one change. They are as pure. Does not:
git, files, clocks, how anything was read. Imports `change`, `verdict`, `declared`.

To add a gate: one file, one line in the order, its rules in the registry, cases.
"""
