"""Reach a file on disk folder by folder, from an open one, and follow no link on the way.

Decides how a folder and a file are opened, and what may stand in the place of a folder of this repository.
What is made of that, others decide (`checkout`; `placeholders/claims/judged`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from io import FileIO

from patchgate.git.path import RepoPath

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How a file is opened; not blocking, for a FIFO that took its place must not hold us."""


class Kind(Enum):
    """What stands where a folder of this repository had to."""

    LINK = auto()
    OTHER = auto()
    REPOSITORY = auto()


@dataclass(frozen=True, slots=True)
class InTheWay:
    """Something that is no folder of this repository, and where it stands."""

    path: bytes
    kind: Kind


@contextmanager
def open_root(work_tree: str) -> Generator[int, None, None]:
    """Open the folder where the ways begin; it alone may be reached by a link.

    Raises:
        OSError: as the system gave it.
    """
    root = os.open(work_tree, _ROOT)
    try:
        yield root
    finally:
        os.close(root)


@contextmanager
def folder_above(
    root: int, path: RepoPath, look: Callable[[int, bytes], None] | None = None
) -> Generator[int | InTheWay, None, None]:
    """Open the folder in which a path stands, or say what stands in the way.

    Args:
        root: an open folder.
        path: below it.
        look: is shown each folder on the way with its path, but not `root`.

    Raises:
        FileNotFoundError: a folder on the way is not there.
        OSError: as the system gave it.
    """
    above = root
    try:
        for folder in list(path.parents())[1:]:
            name = folder.rpartition(b"/")[2]
            try:
                below = os.open(name, _FOLDER, dir_fd=above)
            except OSError as error:
                if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                    raise
                yield InTheWay(folder, _kind(name, above))
                return
            if above != root:
                os.close(above)
            above = below
            if is_there(b".git", above):
                yield InTheWay(folder, Kind.REPOSITORY)
                return
            if look is not None:
                look(above, folder)
        yield above
    finally:
        if above != root:
            os.close(above)


def open_file(name: bytes, folder: int) -> FileIO:
    """Open what has a name in an open folder; the caller sees whether it is a regular file.

    Raises:
        OSError: as the system gave it; ELOOP for a link.
    """
    return open(os.open(name, FILE, dir_fd=folder), "rb", buffering=0)


def is_there(name: bytes, folder: int) -> bool:
    """Tell whether anything has a name in an open folder."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _kind(name: bytes, above: int) -> Kind:
    with suppress(OSError):
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            return Kind.LINK
    return Kind.OTHER
