"""The policy: the config, its schema, patterns, limits and profiles. Bytes become checked, frozen values.

Does not belong here: what a change violates (`check`). All mistakes are reported at once. pydantic (120 ms to
import) is not imported for cached configs; `difflib` and `toml_lines` only to report a mistake.
"""
