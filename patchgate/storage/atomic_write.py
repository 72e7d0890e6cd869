"""Replace a file atomically: readers see the old content or the new, never a part.

Decides the order of calls that makes a write atomic and durable, and reversible until then, and which old
temporary files may be removed. It does not lock: of two writers at once, the last rename wins.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import ExitStack, suppress
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
from patchgate.storage.signals import defer_signals

_TEMPORARY = re.compile(
    r"\.patchgate-(?P<pid>[0-9]{1,10})-(?P<started>[0-9]*)-(?P<boot_id>[0-9a-f-]*)-[0-9a-f]{16}\.(?:new|old)"
)
# The errors of link(2) on file systems without hard links, for folders, for files of another user
# (protected_hardlinks) and at the limit of names. Such a replacement cannot be undone.
_NO_LINK = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write_atomically(
    path: Path,
    content: bytes,
    *,
    mode: int = 0o644,
    exist_ok: bool = True,
    faults: FaultPoints | None = None,
) -> None:
    """Replace the file `path` with `content`, on disk when this returns.

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
            file system refused the hard link for the way back.
    """
    faults = faults or FaultPoints()
    sweep(path.parent, faults)
    owner = Owner.current()
    stem = f".patchgate-{owner.pid}-{owner.started}-{owner.boot_id}-{os.urandom(8).hex()}"
    new, old = path.with_name(f"{stem}.new"), path.with_name(f"{stem}.old")
    # A signal in the middle would leave the temporary file.
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
    """Link the new file to a name that must be free: rename(2) would replace a file, link(2) refuses."""
    link(new, path, faults)
    undo.callback(_withdraw, path, ours, faults)
    unlink(new, faults)
    flush_folder(path.parent, faults)


def _replace(
    path: Path, new: Path, old: Path, ours: os.stat_result, undo: ExitStack, faults: FaultPoints
) -> None:
    """Rename the new file over the old one, which has a second name until the folder is flushed."""
    kept = _link_old(path, old, faults)
    undo.callback(_remove, old, faults)
    rename(new, path, faults)
    if kept is None:
        undo.callback(_withdraw, path, ours, faults)
    elif kept:
        undo.callback(_restore, path, old, ours, faults)
    flush_folder(path.parent, faults)
    if kept:
        unlink(old, faults)


def _link_old(path: Path, old: Path, faults: FaultPoints) -> bool | None:
    """Link the file at `path` to `old`; None if there is no file, False if links are refused."""
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
    """Return whether the path is still our file; another writer may have replaced it."""
    try:
        return os.path.samestat(os.lstat(path), ours)
    except OSError:
        return False


def _remove(path: Path, faults: FaultPoints) -> None:
    with suppress(OSError):
        unlink(path, faults)


def sweep(folder: Path, faults: FaultPoints) -> None:
    """Remove temporary files whose owner has ended; failing to remove one does not stop a write."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        match = _TEMPORARY.fullmatch(name)
        if match and not Owner(int(match["pid"]), match["boot_id"], match["started"]).is_running():
            _remove(folder / name, faults)
