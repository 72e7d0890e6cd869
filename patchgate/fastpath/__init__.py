"""The boring change, recognised: what nearly every commit is, at the cost of starting Python and asking git.

Belongs here: telling that no gate can have anything to say. Does not: any rule, refusal, or word to a person.
Its module is compiled into each repository and runs there by itself, so it imports nothing that has a file.
It knows the form of files that others write (`receipts`, `told`, the pending receipt).
"""
