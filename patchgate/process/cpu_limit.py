"""Limit the processor time of regular expressions from a policy. See `docs/decisions/commands.md`.

Python's `re` has no time limit, but checks for signals while it searches (`_sre`, every 4,096 steps;
measured on 3.11). So a timer on this process's own time ends a search. Time of other processes, or spent
waiting, does not count: a busy machine changes no verdict.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from patchgate.errors import OutOfTimeError

LOCAL_SECONDS = 10.0
RECEIVE_SECONDS = 2.0
# All expressions together have this many times the time of one.
_TOGETHER = 5

_Result = TypeVar("_Result")


class _Interrupt(Exception):  # noqa: N818
    """The timer ended."""


class CpuBudget:
    """The processor time that each piece of work, known by a name, may use, and that all may use together.

    Args:
        seconds: for each, `LOCAL_SECONDS` where it is None; all together have five times as much.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = LOCAL_SECONDS if seconds is None else seconds
        self._left: dict[bytes, float] = {}
        self._left_together = self.seconds * _TOGETHER
        self._is_used_up = False

    @property
    def names(self) -> int:
        """How many pieces of work have used time."""
        return len(self._left)

    def run(self, name: bytes, work: Callable[[], _Result], earned: float = 0.0) -> _Result:
        """Do some work, and stop it when its time is used up.

        Args:
            name: the same name shares the time.
            work: must not catch every exception.
            earned: how many seconds the size of the input adds, so that a large input is not an error.

        Raises:
            OutOfTimeError: the work of this name, or all work together, has no time left.
        """
        if self._is_used_up:
            # Nothing earns time any more: many inputs would keep the process busy without an end.
            raise OutOfTimeError
        self._left_together += earned
        left = self._left.get(name, self.seconds) + earned
        limit = min(left, self._left_together)
        if limit <= 0:
            raise OutOfTimeError
        begin = time.process_time()
        try:
            return _interrupted_after(limit, work)
        finally:
            spent = time.process_time() - begin
            self._left[name] = left - spent
            self._left_together -= spent
            self._is_used_up = self._left_together <= 0


def _interrupted_after(seconds: float, work: Callable[[], _Result]) -> _Result:
    if threading.current_thread() is not threading.main_thread():
        return work()
    is_armed = True

    def end(number: int, frame: FrameType | None) -> None:
        if is_armed:
            raise _Interrupt

    before = signal.signal(signal.SIGVTALRM, end)
    try:
        try:
            # Repeatedly: an exception in a destructor or a callback is swallowed.
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.1)
            return work()
        finally:
            is_armed = False
    except _Interrupt:
        raise OutOfTimeError from None
    finally:
        is_armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
