"""Apply a patch: judge it, try it in a scratch tree, write it whole or not at all, record the attempt.

Only `landing` writes to the working tree. `retries` is what earlier attempts mean for this one, `evidence`
is what is kept of each attempt, `left` what lies there of attempts that ended or were killed.
"""
