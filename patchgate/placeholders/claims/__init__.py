"""Claims: what a verifier says of work is held against the files. See `docs/decisions/placeholders.md`.

Belongs here: reading a verdict (`request`), which files its words mean and what can be read of them
(`snapshots`), what is judged and by whose policy (`judged`), the adjudication itself, its record, its answer
as JSON. What a placeholder looks like says the scanner in the folder above.
"""
