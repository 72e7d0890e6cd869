"""What a command leaves running: finds the processes that left its group, and ends them.

Imports only what is quick: the fast path runs commands too. `process.command` does the rest of their end.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_KILL = 9
_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37
_PAUSE = 0.005

ProcessIdentity = tuple[int, int]
"""A process id, and when the process began (clock ticks): together they are never given twice."""


def children() -> frozenset[ProcessIdentity]:
    """List the children of this process, those that ended and were not reaped included."""
    if not sys.platform.startswith("linux"):
        return frozenset()
    ours = os.getpid()
    found = set[ProcessIdentity]()
    try:
        names = os.listdir("/proc")
    except OSError:
        names = []
    for name in names:
        if name.isdecimal() and (fields := _stat(name)) and int(fields[1]) == ours:
            found.add((int(name), int(fields[19])))
    return frozenset(found)


def _stat(pid: str) -> list[bytes]:
    """Read the fields of proc(5) from the state on, after the name, which may contain anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stream:
            return stream.read().rpartition(b")")[2].split()
    except OSError:
        return []


class Adoption:
    """A context manager: adopts the orphans of children that are started in this block; the caller ends them.

    A process that calls `setsid` leaves the group, and one whose parent ends is given to init, or to a
    subreaper (prctl(2)). So a new child of ours came from the command. Only on Linux with
    /proc; elsewhere `is_possible` is false, and nothing is adopted.
    """

    def __init__(self) -> None:
        self._before = 0
        self._prctl = _prctl() if sys.platform.startswith("linux") else None
        self.is_possible = self._prctl is not None

    def __enter__(self) -> Adoption:
        if self._prctl is not None:
            # The kernel writes an int there.
            before = bytes(bytearray(4))
            self._prctl(_GET_CHILD_SUBREAPER, before)
            self._before = int.from_bytes(before, sys.byteorder)
            self._prctl(_SET_CHILD_SUBREAPER, 1)
        return self

    def __exit__(self, *error: object) -> None:
        if self._prctl is not None:
            self._prctl(_SET_CHILD_SUBREAPER, self._before)


def _prctl() -> Callable[[int, int | bytes], int] | None:
    """Return the system call; None if this Python cannot make it. Importing ctypes itself takes 2 ms more."""
    try:
        import _ctypes

        # The C library that is loaded already.
        address = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    except (ImportError, OSError, AttributeError):
        return None
    return lambda option, value: _ctypes.call_function(address, (option, value, 0, 0, 0))


def kill_orphans(before: frozenset[ProcessIdentity], seconds: float, spared: int | None = None) -> int:
    """Kill and reap every child that is not in `before`, and each one that is adopted by that.

    Only children are killed, never their children: the id of a child stays its own until it is reaped here.

    Args:
        before: the children that do not belong to the command.
        seconds: how long to try; some processes cannot be killed (another user's, a dead disk).
        spared: a child that another thread reaps.

    Returns:
        How many are left.
    """
    until = time.monotonic() + seconds
    while left := {pid for pid, _ in children() - before} - {spared}:
        for pid in left:
            try:  # noqa: SIM105 - contextlib takes 2 ms to import
                os.kill(pid, _KILL)
            except (ProcessLookupError, PermissionError):
                pass
        reaped = sum(_is_reaped(pid) for pid in left)
        if reaped == 0:
            if time.monotonic() > until:
                return len(left)
            time.sleep(_PAUSE)
    return 0


def reap_orphans(before: frozenset[ProcessIdentity], spared: int) -> None:
    """Reap ended children that are not in `before`, so that they do not accumulate during a long run."""
    for pid, _ in children() - before:
        if pid != spared:
            _is_reaped(pid)


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
