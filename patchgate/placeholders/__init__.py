"""Placeholders such as TODO: finding them, the gate that reports them, and (`claims`) checking a verifier.

The words that are searched are in `policy`. `todo_words` decides when a word is a mark and when it is prose,
`empty_functions` finds functions that do nothing, `placeholder_matches` combines both for one text.
"""
