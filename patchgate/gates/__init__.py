"""Room 3, the wing of gates: examiners of a change.

Belongs here: one module for each gate, a pure function from a `Case` to findings, and `gate`, which holds
the order and judges. What knows more than a change is no part of that order: messages, refs, staleness, the
scope of an intent (`scope`), and a verification (`regressions`, `attribution`, `thresholds`, `abuse`,
`growth`, `verification*`): that compares two trees instead of judging one change. They are as pure. So are
the scanner of placeholders (`placeholder_matches`, and what it asks: `placeholder_words`, with
`placeholder_values` and `placeholder_places`, `placeholder_brackets`, `text_kinds`, `python_bodies`,
`other_bodies`) and what is made of claims: `claim_scan` reads through a snapshot that it is handed,
`claim_walk` knows what is passed by, `claims` decides, `claim_reasons` says why, `claim_words` and
`other_failures` know what a verifier's sentences claim (`placeholder_names`: in which words).
Does not: git, files, clocks, how anything was read. Imports `change`, `verdict`, `declared`.

To add a gate: one file, one line in the order, its rules in the registry, cases.
"""
