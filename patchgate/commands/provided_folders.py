"""Folders of the working tree that are linked into a scratch tree, for tools that are installed in them.

Nothing may write to them: a write is found afterwards by the times of change of all names, which no program
can set. Their state is known by the lock files next to them.
"""

from __future__ import annotations

import os
import time

from patchgate.storage.digest import sha256_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_NAMES = 500_000
# The clock of a file system may be one tick of the kernel behind the other one.
_TICK_NS = 20_000_000
_MOST_LOCK = 64 << 20
_BESIDE = (
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"),
    *("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt", "requirements-dev.txt"),
    *("composer.lock", "Gemfile.lock", "go.sum", "Cargo.lock"),
)
_INSIDE = (".package-lock.json", ".yarn-integrity", ".modules.yaml", "pyvenv.cfg", "bin", "lib")


def link_folders(work_tree: str | None, place: str, folders: Sequence[str]) -> str | None:
    """Link folders into a scratch tree; return why one could not be linked."""
    # 8 ms to import: the fast path links nothing.
    from patchgate.git.quoting import printable

    for folder in folders:
        name = os.fsdecode(folder.encode())
        target, link = os.path.join(work_tree or "", name), os.path.join(place, name)
        if work_tree is None or not os.path.isdir(target):
            return f"{printable(folder, 200)} is not a folder of the working tree"
        if os.path.lexists(link):
            return f"{printable(folder, 200)} is in the tree itself"
        try:
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(os.path.realpath(target), link)
        except OSError as error:
            return f"{printable(folder, 200)} cannot be linked: {error.strerror or error}"
    return None


def unlink_folders(place: str, folders: Sequence[str]) -> None:
    """Remove the links again, so that nothing that cleans the tree follows them."""
    for folder in folders:
        link = os.path.join(place, os.fsdecode(folder.encode()))
        if os.path.islink(link):
            os.unlink(link)


def moment() -> int:
    """Return a time before everything that is written from now on, in nanoseconds."""
    return time.time_ns() - _TICK_NS


def first_written(work_tree: str | None, folders: Sequence[str], since: int) -> str | None:
    """Return the first name below some folders that was changed since then; None if none was."""
    for folder in folders:
        root = os.path.join(work_tree or "", os.fsdecode(folder.encode()))
        for number, (path, changed) in enumerate(_times(root)):
            if changed >= since or number > _MOST_NAMES:
                return os.path.join(folder, os.path.relpath(path, root))
    return None


def _times(root: str) -> Iterator[tuple[str, int]]:
    """List every name below a folder with the time of its last change; links are not followed."""
    unread = [os.path.realpath(root)]
    while unread:
        folder = unread.pop()
        try:
            yield folder, os.stat(folder).st_ctime_ns
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        unread.append(entry.path)
                    else:
                        yield entry.path, entry.stat(follow_symlinks=False).st_ctime_ns
        except FileNotFoundError:
            continue
        except OSError:
            yield folder, 1 << 63


def state_of(work_tree: str | None, folders: Sequence[str]) -> list[list[str]]:
    """Describe what is installed in some folders: their lock files by content, themselves by time."""
    found = []
    for folder in folders:
        root = os.path.join(work_tree or "", os.fsdecode(folder.encode()))
        beside = os.path.dirname(root)
        files = [os.path.join(beside, name) for name in _BESIDE]
        stated = [root, *(os.path.join(root, name) for name in _INSIDE)]
        found.append([*map(_content, files), *map(_time, stated)])
    return found


def _content(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            return sha256_text(stream.read(_MOST_LOCK))
    except OSError:
        return ""


def _time(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
