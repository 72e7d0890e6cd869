"""Find the repository of a path without starting git, and whether patchgate is used there.

Git itself decides later about everything that is judged; this only tells quickly what need not be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from patchgate.values import dataclass

_MOST_CONFIG = 1 << 20
_MOST_POINTER = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """A working tree: its root, git's folder of it, and the one that all worktrees share."""

    root: str
    git_dir: str
    common_dir: str


def find_place(path: str) -> Place | None:
    """Find the working tree that a path is in; None if there is none."""
    folder = path
    while True:
        git_dir = _git_dir(folder)
        if git_dir is not None:
            common = _read_pointer(os.path.join(git_dir, "commondir"), git_dir) or git_dir
            return Place(folder, git_dir, common)
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def enclosing_places(path: str) -> Iterator[Place]:
    """Yield the working trees that a path is in, the innermost first."""
    place = find_place(path)
    while place is not None:
        yield place
        above = os.path.dirname(place.root)
        place = None if above == place.root else find_place(above)


def _git_dir(folder: str) -> str | None:
    """Return git's folder of a working tree (gitrepository-layout: `.git` is a folder, or a file)."""
    place = os.path.join(folder, ".git")
    if os.path.isdir(place):
        return place if os.path.isfile(os.path.join(place, "HEAD")) else None
    return _read_pointer(place, folder, "gitdir: ")


def _read_pointer(place: str, folder: str, prefix: str = "") -> str | None:
    """Read a file that names a folder, relative to another one."""
    try:
        with open(place, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_MOST_POINTER).rstrip("\n")
    except OSError:
        return None
    if not text.startswith(prefix) or not text[len(prefix) :]:
        return None
    return os.path.normpath(os.path.join(folder, text[len(prefix) :]))


def uses_patchgate(place: Place) -> bool:
    """Return whether hooks of patchgate ran or were installed there, or the working tree has a policy."""
    files = (os.path.join(place.common_dir, "patchgate"), *_named(place.root, "patchgate.toml", ".patchgate"))
    if any(os.path.lexists(each) for each in files):
        return True
    try:
        with open(os.path.join(place.root, "pyproject.toml"), "rb") as file:
            return b"[tool.patchgate" in file.read(_MOST_CONFIG)
    except OSError:
        return False


def is_in_git_folder(path: str, folder: str) -> bool:
    """Return whether a path is in git's own folder of the working tree that a folder is in.

    That folder may have any name (git init --separate-git-dir).
    """
    place = find_place(os.path.realpath(folder))
    if place is None or not uses_patchgate(place):
        return False
    return any(f"{path}/".startswith(f"{own}/") for own in (place.git_dir, place.common_dir))


def _named(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(os.path.join(folder, name) for name in names)


def below_git(path: str) -> str | None:
    """Return the folder whose `.git` an absolute path is in or names, as any file system spells it."""
    parts = path.split("/")
    for number, part in enumerate(parts):
        # As git's is_ntfs_dotgit: trailing dots and spaces, and the short name, are `.git` too.
        name = part.casefold().rstrip(". ")
        if name == ".git" or name.startswith("git~1"):
            return "/".join(parts[:number]) or "/"
    return None
