"""The fast path: recognises the ordinary change, at the cost of starting Python and asking git.

`recognise` finds out that no gate can report anything. It is compiled into each repository and runs there
alone, so it imports nothing that has a file. `renewal` writes what it reads, from what
`policy.compiled_policy` makes; `cache_files` has the file formats.
"""
