"""What a command leaves behind outside its process group: found and ended, where the system is Linux.

A process that calls `setsid` leaves the group, and one whose parent ends is given to init. While a subreaper
is asked for (prctl(2), PR_SET_CHILD_SUBREAPER) such an orphan is given to this process instead: so whatever
is a child of ours after a command and was none before it came from the command. Elsewhere, and without
/proc, only the group is ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator

_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37
_PAUSE = 0.005

Born = tuple[int, int]
"""A process id, and when the process began (clock ticks): together they are never given twice."""


def children() -> frozenset[Born]:
    """List the children of this process, those that ended and were not reaped included."""
    if not sys.platform.startswith("linux"):
        return frozenset()
    ours = os.getpid()
    found = set[Born]()
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdecimal() and (fields := _stat(name)) and int(fields[1]) == ours:
                found.add((int(name), int(fields[19])))
    return frozenset(found)


def _stat(pid: str) -> list[bytes]:
    """Read what proc(5) tells of a process from its state on, after its name, which may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stream:
            return stream.read().rpartition(b")")[2].split()
    except OSError:
        return []


@contextlib.contextmanager
def adopted() -> Iterator[None]:
    """Have the orphans of what is started in here given to this process; ending them is the caller's task."""
    if not sys.platform.startswith("linux"):
        yield
        return
    # ctypes costs 10 ms: only who runs a command pays.
    import ctypes

    before = ctypes.c_int(0)
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        yield
        return
    prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def end(before: frozenset[Born], seconds: float, spared: int | None = None) -> int:
    """Kill and reap every child that was none `before`, and in turn each one that comes to us by that.

    Only children are killed, never their children: the id of a child stays its own until it is reaped here.

    Args:
        before: the children that are none of the command's.
        seconds: how long to go on at most; a process may not be killable (another user's, a dead disk).
        spared: a child that somebody else reaps.

    Returns:
        How many are left.
    """
    until = time.monotonic() + seconds
    while left := {pid for pid, _ in children() - before} - {spared}:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        reaped = sum(_is_reaped(pid) for pid in left)
        if reaped == 0:
            if time.monotonic() > until:
                return len(left)
            time.sleep(_PAUSE)
    return 0


def reap(before: frozenset[Born], spared: int) -> None:
    """Reap the children that ended and were none `before`, so that they do not pile up during a long run."""
    for pid, _ in children() - before:
        if pid != spared:
            _is_reaped(pid)


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
