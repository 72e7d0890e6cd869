"""Run the commands and analyses of the policy, and read their output. See `docs/decisions/commands.md`.

Belongs here: how a command is found, run and logged (`runner`), which tests ran and failed (`test_results`),
how an analysis is run and read (`analysis`, `metrics_file`, `sarif_reader`, `json_stream`). Does not: which
commands there are (`policy`), their tree (`git`), whether a finding is new (`verify`), the verdict.
"""
