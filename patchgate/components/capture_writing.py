"""Write a baseline to the working tree: whole, through no symlink, and only where it differs.

Decides nothing about what it says. Its folder is made where it is missing.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from patchgate.components.baseline import MAX_BASELINE_BYTES
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.storage.replace import write_atomically


def is_written(work_tree: str, path: RepoPath, content: bytes) -> bool:
    """Tell whether the file is there with this content already; line ends that git converts are the same."""
    place = os.path.join(work_tree, os.fsdecode(path.raw))
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        return file.read(2 * MAX_BASELINE_BYTES).replace(b"\r\n", b"\n") == content


def require_place(work_tree: str, path: RepoPath) -> None:
    """Make sure that a baseline can lie where it is to lie.

    Raises:
        UndecidedError: something else is there: a symlink, a file for a folder or a folder for a file.
    """
    above = [folder for folder in path.parents() if folder]
    for raw in sorted(above, key=len):
        mode = _mode(work_tree, raw)
        if mode is not None and not stat.S_ISDIR(mode):
            what = "a symlink" if stat.S_ISLNK(mode) else "no folder"
            raise UndecidedError(
                f"{RepoPath(raw).quoted} is {what}, and baselines are written through none",
                "make it a plain folder",
            )
    mode = _mode(work_tree, path.raw)
    if mode is not None and not stat.S_ISREG(mode):
        raise UndecidedError(f"{path.quoted} is no regular file", "remove it, then capture again")


def write_file(work_tree: str, path: RepoPath, content: bytes) -> None:
    """Write a baseline whole or not at all.

    Raises:
        UndecidedError: it could not be written, or something else is in its place.
    """
    require_place(work_tree, path)
    place = Path(work_tree, os.fsdecode(path.raw))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, content)
    except OSError as error:
        raise UndecidedError(
            f"{path.quoted} could not be written: {error.strerror or error}",
            "make room, or mend the mode of its folder",
        ) from error


def _mode(work_tree: str, raw: bytes) -> int | None:
    try:
        return os.lstat(os.path.join(work_tree, os.fsdecode(raw))).st_mode
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        # What is above it was told of already.
        return None
