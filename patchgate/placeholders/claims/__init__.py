"""Claims: what a verifier says about placeholders is checked against the files.

See `docs/decisions/placeholders.md`. Belongs here: reading a verdict (`claim_reader`), finding the files that
it names (`snapshots`), choosing the tree and the policy (`claim_source`), the scan, the decision
(`claim_decision`), its record and its answer. The folder above decides what a placeholder is.
"""
