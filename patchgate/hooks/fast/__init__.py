"""The boring change, recognised: what nearly every commit is, at the cost of starting Python and asking git.

`recognise` tells that no gate can have anything to say. It is compiled into each repository and runs there by
itself, so it imports nothing that has a file. It knows the form of files that others write (`receipts`, the
pending receipt). The other modules make what it reads (`prepare`, `suspicion`) and name it (`files`).
"""
