"""The calls that change a disk, each a numbered step; nothing else in the room changes one.

Decides how a single call is made: exclusively, without following a link, whole, again after EINTR. It does
not decide in which order calls make a protocol. Every file that is written here is written at its end
(`O_APPEND`), so that a recorded write needs no position.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from patchgate.durable.faults import Faults, Operation

_Result = TypeVar("_Result")

_APPENDING = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def _attempt(faults: Faults, call: Callable[[], _Result]) -> _Result:
    """Make one call as one step, and once more for each EINTR.

    Python repeats `open`, `write` and `fsync` by itself (PEP 475), but not `rename`, `link` and the others.
    """
    while True:
        try:
            faults.reach()
            return call()
        except InterruptedError:
            continue


def open_existing(path: Path) -> int:
    """Open a file for reading and appending, not through a symlink; changes nothing and is no step.

    Raises:
        OSError: ENOENT where there is none, ELOOP where it is a symlink.
    """
    return os.open(path, _APPENDING)


def open_exclusive(path: Path, mode: int, faults: Faults) -> int:
    """Create a file that must not exist, with `mode` less the umask, and return its descriptor.

    Raises:
        OSError: EEXIST where anything has that name, a dangling symlink included.
    """
    descriptor = _attempt(faults, lambda: os.open(path, _APPENDING | os.O_CREAT | os.O_EXCL, mode))
    if faults.records:
        faults.done(Operation("open_exclusive", path, inode=os.fstat(descriptor).st_ino))
    return descriptor


def write_all(descriptor: int, content: bytes, faults: Faults) -> None:
    """Add every byte of `content` to the end of a file, however many writes it takes; each write is a step.

    Raises:
        OSError: a part may have been written; the caller takes it back.
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
            faults.done(Operation("write", inode=inode, content=bytes(rest[:written])))
        rest = rest[written:]


def truncate(descriptor: int, size: int, faults: Faults) -> None:
    """Cut an open file to `size` bytes."""
    _attempt(faults, lambda: os.ftruncate(descriptor, size))
    if faults.records:
        faults.done(Operation("truncate", inode=os.fstat(descriptor).st_ino, size=size))


def flush(descriptor: int, faults: Faults) -> None:
    """Bring an open file's content and size to the disk.

    A failed flush is never tried again: the kernel may have dropped the pages and would then say yes
    (Rebello et al., “Can Applications Recover from fsync Failures?”, USENIX ATC 2020).
    """
    _attempt(faults, lambda: os.fsync(descriptor))
    if faults.records:
        faults.done(Operation("flush", inode=os.fstat(descriptor).st_ino))


def flush_folder(folder: Path, faults: Faults) -> None:
    """Bring the names in a folder to the disk."""
    _attempt(faults, lambda: _fsync_folder(folder))
    faults.done(Operation("flush_folder", folder))


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE file systems cannot flush a folder at all and say so with these two.
        if error.errno not in {errno.EBADF, errno.EINVAL}:
            raise
    finally:
        os.close(descriptor)


def rename(source: Path, target: Path, faults: Faults) -> None:
    """Give `source` the name `target`, over whatever file or symlink has it, in one instant."""
    _attempt(faults, lambda: os.rename(source, target))
    faults.done(Operation("rename", source, target))


def link(source: Path, target: Path, faults: Faults) -> None:
    """Give `source` (itself, should it be a symlink) the second name `target`.

    Raises:
        OSError: EEXIST where anything has that name.
    """
    _attempt(faults, lambda: os.link(source, target, follow_symlinks=False))
    faults.done(Operation("link", source, target))


def unlink(path: Path, faults: Faults) -> None:
    """Remove one name of a file."""
    _attempt(faults, lambda: os.unlink(path))
    faults.done(Operation("unlink", path))


def make_folder(folder: Path, mode: int, faults: Faults) -> None:
    """Create one folder, with `mode` less the umask.

    Raises:
        OSError: EEXIST where anything has that name.
    """
    _attempt(faults, lambda: os.mkdir(folder, mode))
    faults.done(Operation("make_folder", folder))
