"""Compare a tree with several others, and read only the folders that are equal in none of them.

A merge takes most folders from one of its sides. What no side has alone is in the rest, so the cost is that
of the folders which more than one side changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchgate.git.model import GITLINK, SYMLINK, Entry
from patchgate.git.objects import Objects
from patchgate.git.tree_format import TREE_MODE, MalformedTreeError

Entries = dict[bytes, Entry]


@dataclass(frozen=True, slots=True)
class Unlike:
    """One folder of a tree that differs from each other tree: its path, its entries, those of the others."""

    path: bytes
    entries: Entries
    others: tuple[Entries, ...]

    def path_of(self, name: bytes) -> bytes:
        """Name the path of an entry."""
        return self.path + b"/" + name if self.path else name


def folders_unlike(objects: Objects, tree: str, others: Sequence[str]) -> Iterator[Unlike]:
    """List the folders of `tree` that differ from the folder of the same path in each of `others`.

    A folder that `tree` has not, and each of the others has, is listed too, as one without entries. A
    malformed folder of the others counts as one without entries.

    Raises:
        UndecidedError: a tree is missing, or one below `tree` is malformed.
    """
    waiting: list[tuple[bytes, str | None, tuple[str | None, ...]]] = [(b"", tree, tuple(others))]
    while waiting:
        path, here, there = waiting.pop()
        if here in there:
            continue
        entries = {} if here is None else objects.tree(here)
        found = Unlike(path, entries, tuple(_entries(objects, each) for each in there))
        yield found
        sides = (found.entries, *found.others)
        for name in {name for side in sides for name, entry in side.items() if entry.mode == TREE_MODE}:
            below, *beside = (_folder(side, name) for side in sides)
            waiting.append((found.path_of(name), below, tuple(beside)))


def files_unlike(objects: Objects, tree: str, others: Sequence[str]) -> Iterator[bytes]:
    """List the paths of files, links and submodules that `tree` has as none of `others` has them.

    Raises:
        UndecidedError: a tree is missing, or one below `tree` is malformed.
    """
    for folder in folders_unlike(objects, tree, others):
        for name, entry in folder.entries.items():
            if entry.mode != TREE_MODE and all(each.get(name) != entry for each in folder.others):
                yield folder.path_of(name)


def links_unlike(objects: Objects, tree: str, other: str) -> set[bytes]:
    """List the paths at which one of two trees has a symlink or a submodule, and the other has not the same.

    Raises:
        UndecidedError: a tree is missing, or one below `tree` is malformed.
    """
    return {
        folder.path_of(name)
        for folder in folders_unlike(objects, tree, [other])
        for entries in (folder.entries, folder.others[0])
        for name, entry in entries.items()
        if entry.mode in {SYMLINK, GITLINK} and folder.entries.get(name) != folder.others[0].get(name)
    }


def _entries(objects: Objects, tree: str | None) -> Entries:
    try:
        return {} if tree is None else objects.tree(tree)
    except MalformedTreeError:
        return {}


def _folder(entries: Entries, name: bytes) -> str | None:
    entry = entries.get(name)
    return entry.oid if entry is not None and entry.mode == TREE_MODE else None
