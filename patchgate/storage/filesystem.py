"""The calls that change a disk, each a numbered step; nothing else in `storage` changes one.

Decides how a single call is made: exclusively, without following a link, completely, again after EINTR. The
order of calls is decided by the callers. Every file is written at its end (`O_APPEND`), so a recorded write
needs no position.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias, TypeVar

    _Result = TypeVar("_Result")
    AnyPath: TypeAlias = str | os.PathLike[str]


class FaultPoints:
    """The numbered steps of a write; this base plans no fault and records nothing."""

    __slots__ = ()

    @property
    def records(self) -> bool:
        """Return whether operations are recorded."""
        return False

    def reach(self) -> bool:
        """Reach one step; return whether the write is to be cut short.

        Raises:
            OSError: a planned one.
        """
        return False

    def done(
        self,
        name: str,
        path: AnyPath | None = None,
        other: AnyPath | None = None,
        *,
        inode: int | None = None,
        content: bytes = b"",
        size: int | None = None,
    ) -> None:
        """Record one successful operation, with what a replay needs."""


_APPENDING = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def attempt(faults: FaultPoints, call: Callable[[], _Result]) -> _Result:
    """Make one call as one step, and again after each EINTR.

    Python repeats `open`, `write` and `fsync` (PEP 475), but not `rename`, `link` and the others.
    """
    while True:
        try:
            faults.reach()
            return call()
        except InterruptedError:
            continue


def folder_of(path: str) -> str:
    """Return the folder that contains a path."""
    return os.path.dirname(path) or "."


def open_existing(path: AnyPath) -> int:
    """Open a file for reading and appending, not through a symlink; changes nothing and is not a step.

    Raises:
        OSError: ENOENT where there is none, ELOOP where it is a symlink.
    """
    return os.open(path, _APPENDING)


def open_exclusive(path: AnyPath, mode: int, faults: FaultPoints) -> int:
    """Create a file that must not exist, with `mode` less the umask, and return its descriptor.

    Raises:
        OSError: EEXIST if the name exists, a dangling symlink included.
    """
    descriptor = attempt(faults, lambda: os.open(path, _APPENDING | os.O_CREAT | os.O_EXCL, mode))
    if faults.records:
        faults.done("open_exclusive", path, inode=os.fstat(descriptor).st_ino)
    return descriptor


def write_all(descriptor: int, content: bytes, faults: FaultPoints) -> None:
    """Append all of `content` to a file; each write is a step.

    Raises:
        OSError: a part may be written; the caller undoes it.
    """
    rest = memoryview(content)
    while rest:
        try:
            part = rest[: (len(rest) + 1) // 2] if faults.reach() else rest
            written = os.write(descriptor, part)
        except InterruptedError:
            continue
        if faults.records:
            inode = os.fstat(descriptor).st_ino
            faults.done("write", inode=inode, content=bytes(rest[:written]))
        rest = rest[written:]


def truncate(descriptor: int, size: int, faults: FaultPoints) -> None:
    """Cut an open file to `size` bytes."""
    attempt(faults, lambda: os.ftruncate(descriptor, size))
    if faults.records:
        faults.done("truncate", inode=os.fstat(descriptor).st_ino, size=size)


def flush(descriptor: int, faults: FaultPoints) -> None:
    """Flush an open file's content and size to disk.

    A failed flush is never tried again: the kernel may have dropped the pages and would report success
    (Rebello et al., “Can Applications Recover from fsync Failures?”, USENIX ATC 2020).
    """
    attempt(faults, lambda: os.fsync(descriptor))
    if faults.records:
        faults.done("flush", inode=os.fstat(descriptor).st_ino)


def flush_folder(folder: AnyPath, faults: FaultPoints) -> None:
    """Flush the names in a folder to disk."""
    attempt(faults, lambda: _fsync_folder(folder))
    faults.done("flush_folder", folder)


def _fsync_folder(folder: AnyPath) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE file systems cannot flush a folder and return one of these.
        if error.errno not in {errno.EBADF, errno.EINVAL}:
            raise
    finally:
        os.close(descriptor)


def rename(source: AnyPath, target: AnyPath, faults: FaultPoints) -> None:
    """Rename `source` to `target` atomically, replacing a file or symlink."""
    attempt(faults, lambda: os.rename(source, target))
    faults.done("rename", source, target)


def link(source: AnyPath, target: AnyPath, faults: FaultPoints) -> None:
    """Link `source` (the link itself, if it is a symlink) to `target`.

    Raises:
        OSError: EEXIST if the name exists.
    """
    attempt(faults, lambda: os.link(source, target, follow_symlinks=False))
    faults.done("link", source, target)


def unlink(path: AnyPath, faults: FaultPoints) -> None:
    """Remove one name of a file."""
    attempt(faults, lambda: os.unlink(path))
    faults.done("unlink", path)


def make_folder(folder: AnyPath, mode: int, faults: FaultPoints) -> None:
    """Create one folder, with `mode` less the umask.

    Raises:
        OSError: EEXIST if the name exists.
    """
    attempt(faults, lambda: os.mkdir(folder, mode))
    faults.done("make_folder", folder)
