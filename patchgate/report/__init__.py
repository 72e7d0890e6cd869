"""The report: the registry of rules, findings, verdicts, their ids, and every output format."""
