"""patchgate judges what git will really do, at every commit and push."""

__version__ = "0.1.0"
# A rule that means something else is a new rule, and raises this: caches and policy digests depend on it.
RULES_VERSION = 1
