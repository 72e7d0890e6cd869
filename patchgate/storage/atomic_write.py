"""A file that is replaced whole, or not at all; and work that SIGINT, SIGTERM and SIGHUP do not break.

Decides the order of calls that makes a write atomic, durable and reversible until it is both, and which
left-over temporary files may go. It does not lock: of two writers at once, the last rename wins, whole.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import signal
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from patchgate.storage.filesystem import (
    FaultPoints,
    flush,
    flush_folder,
    link,
    open_exclusive,
    rename,
    unlink,
    write_all,
)
from patchgate.storage.owner import Owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


_WAITING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Signals belong to the process, and so does what is known of those that wait.
_asked: list[int] = []


@contextmanager
def defer_signals() -> Iterator[None]:
    """Hold those signals back; one that came meanwhile is delivered when the outermost block ends.

    A mask alone holds back one thread: where another one lives (each child that is spoken with has two), the
    system delivers there, and Python runs the handler in the main thread all the same. So the handlers are
    exchanged as well; in another thread than the main one only the system is held back. SIGKILL does not
    wait. A child that is started inside inherits the mask. Blocks may be nested.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITING)
    try:
        if threading.current_thread() is threading.main_thread():
            with _deferred():
                yield
        else:
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _deferred() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in _WAITING}
    if any(handler is _wait for handler in handlers.values()):
        # Within another block, which delivers.
        yield
        return
    changed = {number: it for number, it in handlers.items() if it not in {signal.SIG_IGN, None}}
    try:
        for number in changed:
            signal.signal(number, _wait)
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)
        came = list(dict.fromkeys(_asked))
        _asked.clear()
        for waiting in came:
            # The mask still holds: it comes through with the others when that is gone.
            signal.raise_signal(waiting)


def _wait(number: int, frame: FrameType | None) -> None:
    _asked.append(number)


def is_signal_pending() -> bool:
    """Tell whether one of those signals waits, so that work which only waits for others can stop early."""
    pending = signal.sigpending().intersection(_WAITING)
    # One that is ignored is pending too while it is held back (Linux).
    return bool(_asked) or any(signal.getsignal(number) is not signal.SIG_IGN for number in pending)


_TEMPORARY = re.compile(
    r"\.patchgate-(?P<pid>[0-9]{1,10})-(?P<started>[0-9]*)-(?P<boot_id>[0-9a-f-]*)-[0-9a-f]{16}\.(?:new|old)"
)
# What link(2) says on file systems without hard links, for folders, for files that are not ours
# (protected_hardlinks) and at the limit of names. Such a file is replaced without a way back.
_NO_LINK = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write_atomically(
    path: Path,
    content: bytes,
    *,
    mode: int = 0o644,
    exist_ok: bool = True,
    faults: FaultPoints | None = None,
) -> None:
    """Make `path` a file with exactly `content`, on the disk when this returns.

    Readers, a kill and a power cut see the old file or the new one. After an error the old one is in its
    place, and no temporary file is left. A symlink at `path` is replaced, not followed. What killed writers
    left in the folder is removed first.

    Args:
        path: the file; its folder exists.
        content: all of its bytes.
        mode: of the new file, less the umask.
        exist_ok: whether there may be a file already.
        faults: numbered fault points.

    Raises:
        FileExistsError: `exist_ok` is false and something has that name.
        OSError: as the system gave it. One case leaves the new file: its folder could not be flushed, and the
            file system refused the hard link that would have led back.
    """
    faults = faults or FaultPoints()
    sweep(path.parent, faults)
    owner = Owner.current()
    stem = f".patchgate-{owner.pid}-{owner.started}-{owner.boot_id}-{secrets.token_hex(8)}"
    new, old = path.with_name(f"{stem}.new"), path.with_name(f"{stem}.old")
    # A signal in the middle would leave the new file beside the old one.
    with defer_signals(), ExitStack() as undo:
        descriptor = open_exclusive(new, mode, faults)
        undo.callback(_remove, new, faults)
        try:
            write_all(descriptor, content, faults)
            flush(descriptor, faults)
            ours = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if exist_ok:
            _replace(path, new, old, ours, undo, faults)
        else:
            _publish(path, new, ours, undo, faults)
        undo.pop_all()


def _publish(path: Path, new: Path, ours: os.stat_result, undo: ExitStack, faults: FaultPoints) -> None:
    """Give the new file a name that must be free: rename(2) would replace, link(2) refuses."""
    link(new, path, faults)
    undo.callback(_withdraw, path, ours, faults)
    unlink(new, faults)
    flush_folder(path.parent, faults)


def _replace(
    path: Path, new: Path, old: Path, ours: os.stat_result, undo: ExitStack, faults: FaultPoints
) -> None:
    """Put the new file over the old one, which keeps a second name until the folder is flushed."""
    kept = _keep(path, old, faults)
    undo.callback(_remove, old, faults)
    rename(new, path, faults)
    if kept is None:
        undo.callback(_withdraw, path, ours, faults)
    elif kept:
        undo.callback(_restore, path, old, ours, faults)
    flush_folder(path.parent, faults)
    if kept:
        unlink(old, faults)


def _keep(path: Path, old: Path, faults: FaultPoints) -> bool | None:
    """Give the file at `path` the second name `old`: true where it has it, None where there is no file."""
    try:
        link(path, old, faults)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise
    return True


def _restore(path: Path, old: Path, ours: os.stat_result, faults: FaultPoints) -> None:
    if _is(path, ours):
        with suppress(OSError):
            rename(old, path, faults)
            flush_folder(path.parent, faults)


def _withdraw(path: Path, ours: os.stat_result, faults: FaultPoints) -> None:
    if _is(path, ours):
        _remove(path, faults)


def _is(path: Path, ours: os.stat_result) -> bool:
    """Tell whether the path names the file that we put there; another writer may have replaced it since."""
    try:
        return os.path.samestat(os.lstat(path), ours)
    except OSError:
        return False


def _remove(path: Path, faults: FaultPoints) -> None:
    with suppress(OSError):
        unlink(path, faults)


def sweep(folder: Path, faults: FaultPoints) -> None:
    """Remove temporary files whose owner has ended; what cannot be removed is no reason not to write."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        match = _TEMPORARY.fullmatch(name)
        if match and not Owner(int(match["pid"]), match["boot_id"], match["started"]).is_running():
            _remove(folder / name, faults)
