"""Which files a given path may mean: separators mixed, folders above, absolute ones, made paths or nothing.

Decides the forms by text alone; which of them are there the snapshot tells. Nothing is followed: of the disk
only the working tree's own folder is recognised, to make an absolute path one inside it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from patchgate.change.path import RepoPath, is_git_alias

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Named:
    """The files that a text may name: as it stands, where that could be a name, and with plain separators.

    `literal` is None where the text has nothing that could be read in two ways; `plain` where it leads out of
    the repository, into `.git`, or names the repository itself.
    """

    literal: RepoPath | None
    plain: RepoPath | None


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


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _possible(text: str) -> RepoPath | None:
    """Take a text as the very name of a file, where git could have one of it."""
    parts = text.split("/")
    if any(part in {"", ".", ".."} or is_git_alias(_raw(part)) for part in parts):
        return None
    return RepoPath.from_git(_raw(text))


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
    if not parts or any(is_git_alias(_raw(part)) for part in parts):
        return None
    return RepoPath.from_git(_raw("/".join(parts)))


def _inside(text: str, work_tree: str) -> str | None:
    """Make an absolute path one from the root of the working tree; None where it lies outside.

    The folder is recognised by what it is, for it may have several names (`/tmp` is a symlink on macOS); what
    comes after it is text again, so that a symlink inside stays one.
    """
    parts = [part for part in os.path.normpath(text).split("/") if part]
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
