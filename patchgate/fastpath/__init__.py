"""The boring change, recognised: what nearly every commit is, at the cost of starting Python and asking git.

Belongs here: telling that no gate can have anything to say. Does not: any rule, refusal, or word to a person.
Its one module is compiled into each repository and runs there by itself (`python -I -S`); nothing imports
it, and it imports nothing that has to be loaded. It knows the form of small files that others write
(`receipts`, `told`, the pending receipt); tests hold both sides together. Price of that: it is terse.
"""
