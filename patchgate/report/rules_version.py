"""The version of the rules, for caches that must not import them: the registry takes 6 ms."""

RULES_VERSION = 1
