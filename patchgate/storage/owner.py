"""The process that owns a lock or a temporary file, distinguished from later ones with the same pid.

Decides whether an owner still runs. Source: proc(5), field 22 of `/proc/PID/stat` and
`/proc/sys/kernel/random/boot_id`. Without `/proc` (macOS), boot and start time are unknown and an owner is
its pid alone.
"""

from __future__ import annotations

import os

from patchgate.storage import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_UNKNOWN = ""
_ENDED = "ended"
_MAX_PID = 2**31 - 1


class Owner(Value):
    """One process of one boot.

    `boot_id` is the kernel's UUID of this boot, `started` the process's start in clock ticks after it; each
    is empty if the system does not provide it.
    """

    __slots__ = ("boot_id", "pid", "started")

    def __init__(self, pid: int, boot_id: str, started: str) -> None:
        self.pid: Final = pid
        self.boot_id: Final = boot_id
        self.started: Final = started

    @classmethod
    def current(cls) -> Owner:
        """Describe this process."""
        return cls(os.getpid(), boot_id(), _start_of(os.getpid()))

    @classmethod
    def of(cls, pid: int) -> Owner | None:
        """Describe the process that has a pid now; None if none runs, or the system does not say."""
        if not 0 < pid <= _MAX_PID:
            return None
        found = cls(pid, boot_id(), _start_of(pid))
        return found if found.is_running() else None

    @classmethod
    def from_bytes(cls, raw: bytes) -> Owner | None:
        """Read what `to_bytes` wrote; None if it is anything else (empty, half written)."""
        # Imported here: it takes 6 ms, and the fast path only writes one.
        import json

        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        pid, boot_id, started = value.get("pid"), value.get("boot_id"), value.get("started")
        if type(pid) is not int or not isinstance(boot_id, str) or not isinstance(started, str):
            return None
        return cls(pid, boot_id, started)

    def to_bytes(self) -> bytes:
        """Write the owner as one line of JSON."""
        from _json import encode_basestring_ascii as quoted

        boot_id, started = quoted(self.boot_id), quoted(self.started)
        return f'{{"boot_id":{boot_id},"pid":{self.pid},"started":{started}}}\n'.encode("ascii")

    def is_running(self) -> bool:
        """Return whether this process still runs: same boot, pid and start time; a zombie does not.

        A process that exists but hides its start time (`hidepid`) counts as running.
        """
        if self.boot_id != boot_id() or not 0 < self.pid <= _MAX_PID:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return _start_of(self.pid) in {self.started, _UNKNOWN}


def parent_of(pid: int) -> tuple[int, str] | None:
    """Return a process's parent and the name of its program; None if the system does not say.

    The name is what the kernel keeps of it: at most 15 bytes.
    """
    try:
        stat = _content(f"/proc/{pid}/stat")
    except OSError:
        return None
    before, _, after = stat.rpartition(b")")
    return int(after.split()[1]), os.fsdecode(before.partition(b"(")[2])


def boot_id() -> str:
    """Return the kernel's UUID of this boot, empty if the system does not say."""
    try:
        return _content("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
    except OSError:
        return _UNKNOWN


def _start_of(pid: int) -> str:
    try:
        stat = _content(f"/proc/{pid}/stat")
    except OSError:
        return _UNKNOWN
    # The name in brackets may contain brackets and spaces; after the last one come state, ppid, …
    fields = stat.rpartition(b")")[2].split()
    return _ENDED if fields[0] in {b"Z", b"X"} else fields[19].decode("ascii")


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
