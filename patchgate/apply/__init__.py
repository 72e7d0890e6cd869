"""Apply a patch: judge it, run the commands in a scratch tree, write all or nothing, record the attempt.

Only `write_patch` writes to the working tree. `retries` is what earlier attempts mean for this one,
`evidence` saves the files of each attempt, `recovery` finishes or undoes what a killed attempt left.
"""
