"""Room 5: the verbs. They gather, judge, act and record.

Belongs here: what a command does, from opened repository to `Report`. Does not: arguments, exit codes,
printing (`surfaces`). Within the room the arrows are hold -> land -> judge; `tell` only reads.
"""
