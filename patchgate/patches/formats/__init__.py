"""What models write instead of a unified diff: one module for each format, all in the table of `proposals`.

A reader turns text into the files that it changes (`proposal`), and never guesses: each anchor is in its
file exactly once, or the proposal is refused. `patches` alone calls them.
"""
