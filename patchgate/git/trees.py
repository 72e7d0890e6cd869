"""Compute the tree that a change results in, without writing an object.

The id of a staged change's tree is needed for its verdict id. `git write-tree` would write objects and the
index; this reads only the folders that the change touches, so the cost is that of the change.
Also gives the neighbours of new names, for collisions. A malformed folder of the base is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from patchgate.change.model import Entry, FileChange
from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.tree_format import TREE_MODE, print_tree

Listing = tuple[bytes, ...]
"""The names in one folder."""


@dataclass(frozen=True, slots=True)
class Result:
    """The tree that a change results in, and the folders of it that the change touches (by their path)."""

    tree: str
    folders: dict[bytes, Listing]


def resulting_tree(
    objects: Objects,
    base: str,
    files: Iterable[FileChange],
    keep: Callable[[str, bytes], object] = lambda kind, content: None,
) -> Result:
    """Compute the tree `base` with `files` applied to it.

    Args:
        keep: is handed every new tree object (its kind and content), to be written to a private store.

    Raises:
        UndecidedError: the files do not fit the base (a file where a folder is), so the index is damaged.
    """
    touched: dict[bytes, Entry | None] = {file.path.raw: file.new for file in files}
    folders: dict[bytes, Listing] = {}
    if not touched:
        return Result(base, folders)
    return Result(_apply(objects, base, touched, b"", folders, keep) or objects.empty_tree, folders)


def _apply(
    objects: Objects,
    base: str | None,
    touched: Mapping[bytes, Entry | None],
    place: bytes,
    folders: dict[bytes, Listing],
    keep: Callable[[str, bytes], object],
) -> str | None:
    """Apply changes to one folder; paths are relative to it. None where nothing is left of it."""
    entries = dict(objects.tree(base)) if base else {}
    below: dict[bytes, dict[bytes, Entry | None]] = {}
    here: dict[bytes, Entry] = {}
    for path, entry in touched.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            below.setdefault(name, {})[rest] = entry
        elif entry is None:
            entries.pop(name, None)
        else:
            here[name] = entry
    for name, inside in below.items():
        old = entries.pop(name, None)
        folder = old.oid if old is not None and old.mode == TREE_MODE else None
        oid = _apply(objects, folder, inside, place + name + b"/", folders, keep)
        if oid is not None:
            entries[name] = Entry(TREE_MODE, oid)
    for name, entry in here.items():
        if name in below and name in entries:
            raise UndecidedError("the index holds a file and a folder of one name", "run git status")
        entries[name] = entry
    folders[place.rstrip(b"/")] = tuple(entries)
    if not entries:
        return None
    content = print_tree(entries)
    keep("tree", content)
    return objects.hash("tree", content)
