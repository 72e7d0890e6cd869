"""The user's own commands, run against a change, and what tools write. See `docs/decisions/commands.md`.

Belongs here: what a command sees, how it is found, run and logged, how it ended and what is said of that
(`runner`), how many tests it ran and which failed (`failures`); an analysis that is run and read (`analysis`,
`metrics`, `sarif_file`, `sarif_results`, on `json_stream`), and its values (`results`). Does not: which
commands there are and in which order they run (`policy`), the tree that they run in (`git`), whether a
finding is new (`verify`), what verdict follows.
"""
