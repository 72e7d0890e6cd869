"""Exclusive locks across processes.

The kernel keeps the lock (`flock`) and drops it when the owner ends, however it ends; the record in the file
only names the owner for the error message. A lock file is never removed: a waiting process could then lock a
file that has no name any more.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import ExitStack, contextmanager, suppress

from patchgate.errors import UndecidedError
from patchgate.storage.filesystem import (
    FaultPoints,
    flush_folder,
    folder_of,
    make_folder,
    open_exclusive,
    open_existing,
    truncate,
    write_all,
)
from patchgate.storage.owner import Owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from patchgate.storage.filesystem import AnyPath

_POLL_SECONDS = 0.02
_LOCK_MODE = 0o644
_FOLDER_MODE = 0o700
_MAX_RECORD = 4096


@contextmanager
def acquire(
    path: AnyPath,
    *,
    timeout_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
    faults: FaultPoints | None = None,
) -> Iterator[None]:
    """Lock the file `path` for a `with` block; missing folders above it are made, with mode 0700.

    Not reentrant: a second attempt, even in the same process, finds it busy. A child that was
    forked (without exec) during the block does not keep it after the block.

    Args:
        path: the lock file.
        timeout_seconds: how long to wait; 0 tries once.
        clock: seconds that never run backwards.
        pause: waits for so many seconds between two tries.
        faults: numbered fault points.

    Raises:
        UndecidedError: another process has it; names the owner and the next step.
        OSError: the file or its folder cannot be made or written, or the path is a symlink.
    """
    faults = faults or FaultPoints()
    path = os.fspath(path)
    _make_folders(path, faults)
    deadline = clock() + timeout_seconds
    while (descriptor := _try_to_acquire(path, faults)) is None:
        remaining = deadline - clock()
        if remaining <= 0:
            raise _lock_error(path)
        pause(min(_POLL_SECONDS, remaining))
    with ExitStack() as release:
        release.callback(os.close, descriptor)
        # A forked child shares this open file: closing our descriptor alone would leave the lock with it.
        release.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)
        release.callback(_erase, descriptor, faults)
        truncate(descriptor, 0, faults)
        write_all(descriptor, Owner.current().to_bytes(), faults)
        yield


def _make_folders(path: str, faults: FaultPoints) -> None:
    """Make the folders above a lock file that does not exist yet, and flush their names.

    A kill between making a folder and flushing the one above it leaves a name that is not on disk. That
    folder is then the deepest that exists, and still empty: the one above it is flushed once more.
    """
    if os.path.lexists(path):
        return
    missing: list[str] = []
    folder = folder_of(path)
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = folder_of(folder)
    # A precaution: if the folder above is not readable, the deepest one existed before us.
    with suppress(PermissionError):
        flush_folder(folder_of(folder), faults)
    for each in reversed(missing):
        try:
            make_folder(each, _FOLDER_MODE, faults)
        except FileExistsError:
            if not os.path.isdir(each):
                raise
        flush_folder(folder_of(each), faults)


def _try_to_acquire(path: str, faults: FaultPoints) -> int | None:
    with ExitStack() as undo:
        descriptor = _open(path, faults)
        undo.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if not _is_still(path, descriptor):
            return None
        undo.pop_all()
        return descriptor


def _open(path: str, faults: FaultPoints) -> int:
    while True:
        with suppress(FileNotFoundError):
            return open_existing(path)
        with suppress(FileExistsError):
            return open_exclusive(path, _LOCK_MODE, faults)


def _is_still(path: str, descriptor: int) -> bool:
    """Return whether the path is still the locked file; a user may have removed it."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _erase(descriptor: int, faults: FaultPoints) -> None:
    """Erase the owner, so that it is not taken for the next one; the lock does not need it."""
    with suppress(OSError):
        truncate(descriptor, 0, faults)


def _lock_error(path: str) -> UndecidedError:
    raw = b""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        raw = file.read(_MAX_RECORD)
    owner = Owner.from_bytes(raw)
    if owner is None or not owner.is_running():
        return UndecidedError(
            f"the lock {path!r} is held by a process that did not record its id",
            "wait until it ends, then run the command again; `lsof` on that file shows the process",
        )
    whose = "this process" if owner.pid == os.getpid() else f"process {owner.pid}"
    return UndecidedError(
        f"the lock {path!r} is held by {whose}",
        f"wait until process {owner.pid} ends (`ps -p {owner.pid}` shows it), then run the command again",
    )
