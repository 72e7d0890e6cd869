"""How long a policy's own regular expressions may search.

Only what is asked of a limit: this module knows no clock. `process.cpu_time` has the one that hooks and
commands use; a policy that is read without one searches without a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from patchgate.errors import UndecidedError

# What a large change adds to the time of each expression; a plain one needs a tenth of it.
_SECONDS_A_LINE = 2e-6
_SECONDS_A_BYTE = 1e-7

_Result = TypeVar("_Result")


class TimeLimit(Protocol):
    """Runs work, and ends it with an OutOfTimeError once it took longer than its `seconds`."""

    seconds: float

    def run(self, name: bytes, work: Callable[[], _Result], earned: float = 0.0) -> _Result:
        """Do some work of this name, whose input adds some seconds to its time."""


class NoLimit:
    """Lets everything run to its end."""

    seconds = float("inf")

    def run(self, name: bytes, work: Callable[[], _Result], earned: float = 0.0) -> _Result:
        """Do some work."""
        return work()


def earned_by(lines: int, size: int) -> float:
    """Say how many seconds so many lines of so many bytes add to the time of an expression."""
    return lines * _SECONDS_A_LINE + size * _SECONDS_A_BYTE


def too_slow(what: str, limit: TimeLimit) -> UndecidedError:
    """Say that an expression of the policy used up its time.

    Args:
        what: names the expression and its place; safe for a terminal.
        limit: the time that it had.
    """
    return UndecidedError(
        f"{what} takes too long: it may use {limit.seconds:g} s of processor time",
        "make the expression simpler: no two repeated parts of it may match the same text",
    )
