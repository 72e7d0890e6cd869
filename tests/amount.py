"""How much the tests try: a seeded part by default, all with `PATCHGATE_LONG=1`."""

from __future__ import annotations

import os
import random

IS_LONG = bool(os.environ.get("PATCHGATE_LONG"))


def often(full: int) -> int:
    """Return the number of examples of a property test: a tenth by default."""
    return full if IS_LONG else max(full // 10, 20)


def sample(steps: int, size: int, seed: str) -> list[int]:
    """Choose some of the steps of a sweep of faults, each time the same; the long form takes all."""
    every = range(1, steps + 1)
    return list(every) if IS_LONG or steps <= size else sorted(random.Random(seed).sample(every, size))
