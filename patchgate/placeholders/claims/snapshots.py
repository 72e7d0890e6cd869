"""Reads git's objects as a snapshot of the index or of a tree; and finds the files that a given path may
name.

The forms of a path are decided by its text; a snapshot says which of them exist. Nothing is written, and no
link is followed in git's objects. `claim_scan` decides which files are read.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing

from patchgate.git.model import GITLINK, SYMLINK, TREE_MODE, Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, is_git_alias
from patchgate.git.working_tree import Records, entry_of, name_of
from patchgate.placeholders.claims.claim import SkipReason
from patchgate.placeholders.claims.claim_scan import FallbackFilter, PathInfo
from patchgate.values import dataclass

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class PathForms:
    """The files that a text may name: the literal name, if possible, and with `/` as separator.

    `literal` is None if the text has only one reading; `plain` is None if it leads out of the
    repository, into `.git`, or names the repository itself.
    """

    literal: RepoPath | None
    plain: RepoPath | None


def is_in_git(path: RepoPath) -> bool:
    """Return whether a path leads into `.git`, by any of its aliases."""
    return any(map(is_git_alias, set(path.raw.split(b"/"))))


def path_forms(given: str, work_tree: str | None) -> PathForms:
    """Find the paths that a text may name, relative to the root of the repository.

    Args:
        given: not empty, without NUL.
        work_tree: the folder inside which absolute paths are accepted; None: none are.
    """
    literal = None
    if "\\" in given or _DRIVE.match(given):
        literal = _literal_path(given)
    text = given.replace("\\", "/")
    if text.startswith("/"):
        inside = None if work_tree is None else _relative_to(text, work_tree)
        return PathForms(literal, None if inside is None else _plain_path(inside))
    return PathForms(literal, None if _DRIVE.match(text) else _plain_path(text))


def _literal_path(text: str) -> RepoPath | None:
    """Take a text literally as a path, where git allows that."""
    return None if {"", ".", ".."}.intersection(text.split("/")) else _outside_git(text)


def _plain_path(text: str) -> RepoPath | None:
    """Resolve `.`, `..` and doubled slashes; None for what is not inside the repository."""
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
    """Build a path; None if it leads into `.git`. One that is too long for a file leads nowhere."""
    path = RepoPath.from_git(text.encode("utf-8", "surrogateescape"))
    return None if not path.is_too_long and is_in_git(path) else path


def _relative_to(text: str, work_tree: str) -> str | None:
    """Make an absolute path relative to the working tree; None if it is outside.

    The folder may have several names (`/tmp` is a symlink on macOS), so it is also recognised by its inode.
    The rest of the path stays text, so that a symlink inside stays one.
    """
    parts = _parts(os.path.normpath(text))
    for folder in map(_parts, _folder_names(work_tree)):
        if parts[: len(folder)] == folder:
            return "/".join(parts[len(folder) :])
    try:
        root = os.stat(work_tree)
    except OSError:
        return None
    # The shortest first: a symlink inside that leads back to the root must stay visible as one.
    for count in range(1, len(parts) + 1):
        try:
            found = os.stat("/" + "/".join(parts[:count]))
        except (OSError, ValueError):
            return None
        if os.path.samestat(found, root):
            return "/".join(parts[count:])
    return None


def _folder_names(folder: str) -> Iterator[str]:
    yield folder
    yield os.path.realpath(folder)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


class ObjectSnapshot:
    """A tree, with the entries of an index that differ from it.

    Args:
        tree: the tree below.
        overlay: the entries that replace those of the tree, by path; None: deleted.
        listed: lists all entries.
    """

    def __init__(
        self,
        objects: Objects,
        tree: str,
        overlay: Mapping[bytes, Entry | None],
        listed: Callable[[], Records],
    ) -> None:
        self._objects = objects
        self._tree = tree
        self._overlay = overlay
        self._overlay_names = sorted(name for name, entry in overlay.items() if entry)
        self._list = listed
        # Entries from the listing, so that `inspect` reads no folder for them.
        self._listed_entries: dict[bytes, Entry] = {}
        self._oids: dict[RepoPath, str] = {}

    def inspect(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, PathInfo]:
        """Look up what is at each path, in few round trips; a file whose object is missing is UNREADABLE.

        Raises:
            UndecidedError: a folder's object is missing.
        """
        found: dict[RepoPath, PathInfo] = {}
        oids: dict[RepoPath, str] = {}
        for path in paths:
            entry = self._listed_entries.pop(path.raw, None) or self._find(path)
            fault = entry if isinstance(entry, SkipReason) else _skip_reason(entry)
            if fault is None and isinstance(entry, Entry):
                oids[path] = entry.oid
            else:
                found[path] = PathInfo(fault=fault)
        distinct = list(dict.fromkeys(oids.values()))
        headers = dict(zip(distinct, self._objects.headers(distinct), strict=True))
        for path, oid in oids.items():
            header = headers[oid]
            found[path] = PathInfo(header.size) if header else PathInfo(fault=SkipReason.UNREADABLE)
        self._oids |= oids
        return found

    def read(self, path: RepoPath, most: int) -> bytes:
        """Read the first bytes of a file that was inspected.

        Raises:
            UndecidedError: the object is damaged.
        """
        return self._objects.head(self._oids[path], most)

    def tracked(self, selection: FallbackFilter) -> Generator[RepoPath, None, None]:
        """List the files that the filter selects.

        Raises:
            UndecidedError: they cannot be listed.
        """
        with closing(self._list()) as pieces:
            for record in selection.select(pieces, name_of):
                name = name_of(record)
                self._listed_entries[name] = entry_of(record)
                yield RepoPath.from_git(name)

    def _find(self, path: RepoPath) -> Entry | SkipReason | None:
        """Walk down to a path; the fault of a link or a repository above it, None if nothing is there."""
        if path.is_too_long:
            return None
        tree: str | None = self._tree
        for folder in list(path.parents())[1:]:
            entry = self._at(folder, tree)
            fault = _skip_reason(entry)
            if fault in {SkipReason.SYMLINK, SkipReason.OUTSIDE}:
                return fault
            tree = entry.oid if entry is not None and entry.mode == TREE_MODE else None
            if tree is None and not self._is_in_overlay(folder):
                return None
        return self._at(path.raw, tree)

    def _at(self, raw: bytes, tree: str | None) -> Entry | None:
        """Find the entry of a path, whose folder is this tree, or exists only in the overlay (None)."""
        if raw in self._overlay:
            return self._overlay[raw]
        return self._objects.tree(tree).get(raw.rpartition(b"/")[2]) if tree is not None else None

    def _is_in_overlay(self, folder: bytes) -> bool:
        """Return whether the overlay has an entry in a folder."""
        place = bisect_left(self._overlay_names, folder + b"/")
        return place < len(self._overlay_names) and self._overlay_names[place].startswith(folder + b"/")


def _skip_reason(entry: Entry | None) -> SkipReason | None:
    """Return why an entry is not a regular file; a folder is not one."""
    if entry is None or entry.mode == TREE_MODE:
        return SkipReason.MISSING
    if entry.mode == SYMLINK:
        return SkipReason.SYMLINK
    return SkipReason.OUTSIDE if entry.mode == GITLINK else None
