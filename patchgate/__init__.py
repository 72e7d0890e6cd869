"""patchgate judges what git will really do, at every commit and push."""

__version__ = "0.1.0"
