"""Which files a given path may mean: separators mixed, folders above, absolute ones, made paths or nothing.

Decides the forms by text alone; which of them are there the snapshot tells. An absolute path is made one
inside the working tree by its text. Only where it begins otherwise than that folder, by its own name or the
real one, is the disk asked: whether one of the folders that it names is that folder too. That follows links,
outside the repository as well, and tells nobody what is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from patchgate.git.path import RepoPath, is_git_alias

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Named:
    """The files that a text may name: as it stands, where that could be a name, and with plain separators.

    `literal` is None where the text has nothing that could be read in two ways; `plain` where it leads out of
    the repository, into `.git`, or names the repository itself.
    """

    literal: RepoPath | None
    plain: RepoPath | None


def is_in_git(path: RepoPath) -> bool:
    """Tell whether a path leads into `.git`, by any of its names."""
    return any(map(is_git_alias, set(path.raw.split(b"/"))))


def named(given: str, work_tree: str | None) -> Named:
    """Find what a text from the root of the repository may name.

    Args:
        given: not empty, without NUL.
        work_tree: the folder inside which absolute paths are taken; None: nowhere.
    """
    literal = None
    if "\\" in given or _DRIVE.match(given):
        literal = _possible(given)
    text = given.replace("\\", "/")
    if text.startswith("/"):
        inside = None if work_tree is None else _inside(text, work_tree)
        return Named(literal, None if inside is None else _resolved(inside))
    return Named(literal, None if _DRIVE.match(text) else _resolved(text))


def _possible(text: str) -> RepoPath | None:
    """Take a text as the very name of a file, where git could have one of it."""
    return None if {"", ".", ".."}.intersection(text.split("/")) else _outside_git(text)


def _resolved(text: str) -> RepoPath | None:
    """Take a text without `.`, `..` and doubled slashes; None for what is not inside the repository."""
    parts: list[str] = []
    for part in text.split("/"):
        if part in {"", "."}:
            continue
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return _outside_git("/".join(parts)) if parts else None


def _outside_git(text: str) -> RepoPath | None:
    """Make it a path; None where that leads into `.git`. One that no file can have leads nowhere at all."""
    path = RepoPath.from_git(text.encode("utf-8", "surrogateescape"))
    return None if not path.is_too_long and is_in_git(path) else path


def _inside(text: str, work_tree: str) -> str | None:
    """Make an absolute path one from the root of the working tree; None where it lies outside.

    The folder may have several names (`/tmp` is a symlink on macOS), so it is recognised by what it is where
    its name does not tell; what comes after it is text again, so that a symlink inside stays one.
    """
    parts = _parts(os.path.normpath(text))
    for folder in map(_parts, _names(work_tree)):
        if parts[: len(folder)] == folder:
            return "/".join(parts[len(folder) :])
    try:
        root = os.stat(work_tree)
    except OSError:
        return None
    # The shortest first: a symlink inside that leads back to the root must not hide that it is one.
    for count in range(1, len(parts) + 1):
        try:
            found = os.stat("/" + "/".join(parts[:count]))
        except (OSError, ValueError):
            return None
        if os.path.samestat(found, root):
            return "/".join(parts[count:])
    return None


def _names(folder: str) -> Iterator[str]:
    yield folder
    yield os.path.realpath(folder)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
