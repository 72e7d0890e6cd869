"""The policy: the config, its schema, patterns and profiles. Bytes become checked, frozen values.

All mistakes are reported at once. pydantic (120 ms to import, so not for documents that a cache knows) and
pathspec are imported here. What a good document does not need is imported where a mistake is reported:
`difflib` and `toml_lines` cost a commit nothing.
"""
