"""Compute the tree that a change results in, without writing an object.

The id of a staged change's tree is needed for its verdict id. `git write-tree` would write objects and the
index; this reads only the folders that the change touches, so the cost is that of the change.
Also gives the neighbours of new names, for collisions. A malformed folder of the base is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from patchgate.errors import UndecidedError
from patchgate.git.folders import Descent
from patchgate.git.model import Entry, FileChange
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
    made: str | None = None
    for place, folder in reversed(list(_opened(objects, base, touched).items())):
        for name, entry in folder.here.items():
            if name in folder.below and name in folder.entries:
                raise UndecidedError("the index holds a file and a folder of one name", "run git status")
            folder.entries[name] = entry
        folders[place] = tuple(folder.entries)
        made = None
        if folder.entries:
            content = print_tree(folder.entries)
            keep("tree", content)
            made = objects.hash("tree", content)
        if folder.above is not None and made is not None:
            folder.above.entries[place.rpartition(b"/")[2]] = Entry(TREE_MODE, made)
    return Result(made or objects.empty_tree, folders)


@dataclass(slots=True)
class _Folder:
    """One folder that the change touches: what it held, what is put into it, its subfolders that change."""

    above: _Folder | None
    entries: dict[bytes, Entry]
    here: dict[bytes, Entry] = field(default_factory=dict)
    below: set[bytes] = field(default_factory=set)


def _opened(objects: Objects, base: str, touched: Mapping[bytes, Entry | None]) -> Mapping[bytes, _Folder]:
    """Open the folders above the touched paths, each after the one above it, and enter the paths.

    Not by recursion: git accepts a path of 2,000 folders.
    """

    def enter(above: _Folder | None, place: bytes) -> _Folder:
        assert above is not None
        name = place.rpartition(b"/")[2]
        above.below.add(name)
        old = above.entries.pop(name, None)
        is_folder = old is not None and old.mode == TREE_MODE
        return _Folder(above, dict(objects.tree(old.oid)) if old is not None and is_folder else {})

    opened = Descent(_Folder(None, dict(objects.tree(base))), enter)
    for path, entry in touched.items():
        place, _, name = path.rpartition(b"/")
        folder = opened.at(place)
        if entry is not None:
            folder.here[name] = entry
        else:
            folder.entries.pop(name, None)
    return opened.known
