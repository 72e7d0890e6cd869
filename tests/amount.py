"""The number of examples of a property test: a quarter by default, all with `PATCHGATE_LONG=1`."""

from __future__ import annotations

import os

IS_LONG = bool(os.environ.get("PATCHGATE_LONG"))


def often(full: int) -> int:
    """Return the number of examples for this run."""
    return full if IS_LONG else max(full // 4, 25)
