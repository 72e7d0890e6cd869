"""Read trees: one with other entries over it, many paths of many trees at once, or several compared.

What is staged or proposed has no tree object yet, so `TreeView` overlays it on one. A folder that no caller
asks for, or that is equal on both sides, is not read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from patchgate.git.model import GITLINK, SYMLINK, TREE_MODE, Entry, FileChange, MalformedTreeError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.values import dataclass

Entries = dict[bytes, Entry]


@dataclass(frozen=True, slots=True)
class DifferingFolder:
    """One folder of a tree that differs from each other tree: its path, its entries, those of the others."""

    path: bytes
    entries: Entries
    others: tuple[Entries, ...]

    def path_of(self, name: bytes) -> bytes:
        """Return the path of an entry."""
        return self.path + b"/" + name if self.path else name


def differing_folders(objects: Objects, tree: str, others: Sequence[str]) -> Iterator[DifferingFolder]:
    """List the folders of `tree` that differ from the folder of the same path in each of `others`.

    A folder that is missing in `tree` but in each of the others is listed too, without entries. A
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
        found = DifferingFolder(path, entries, tuple(_entries(objects, each) for each in there))
        yield found
        sides = (found.entries, *found.others)
        for name in {name for side in sides for name, entry in side.items() if entry.mode == TREE_MODE}:
            below, *beside = (_folder(side, name) for side in sides)
            waiting.append((found.path_of(name), below, tuple(beside)))


def differing_files(objects: Objects, tree: str, others: Sequence[str]) -> Iterator[bytes]:
    """List the files, links and submodules of `tree` that differ from all of `others`.

    Raises:
        UndecidedError: a tree is missing, or one below `tree` is malformed.
    """
    for folder in differing_folders(objects, tree, others):
        for name, entry in folder.entries.items():
            if entry.mode != TREE_MODE and all(each.get(name) != entry for each in folder.others):
                yield folder.path_of(name)


def differing_links(objects: Objects, tree: str, other: str) -> set[bytes]:
    """List the paths at which two trees differ and one has a symlink or a submodule.

    Raises:
        UndecidedError: a tree is missing, or one below `tree` is malformed.
    """
    return {
        folder.path_of(name)
        for folder in differing_folders(objects, tree, [other])
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


_MOST_KEPT = 20_000


class TreePaths:
    """Entries of trees by their paths; what was read is cached."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._listed: dict[str, dict[bytes, Entry]] = {}

    def entries(self, wanted: Sequence[tuple[str, bytes]]) -> list[Entry | None]:
        """Find the entry at each path (empty: the tree itself), given with the id of its tree.

        Raises:
            UndecidedError: a tree is missing or malformed.
        """
        found: list[Entry | None] = [None if path else Entry(TREE_MODE, tree) for tree, path in wanted]
        waiting = [(number, tree, path) for number, (tree, path) in enumerate(wanted) if path]
        while waiting:
            self._read({tree for _, tree, _ in waiting})
            deeper: list[tuple[int, str, bytes]] = []
            for number, tree, path in waiting:
                name, slash, rest = path.partition(b"/")
                entry = self._listed[tree].get(name)
                if not slash:
                    found[number] = entry
                elif entry is not None and entry.mode == TREE_MODE:
                    deeper.append((number, entry.oid, rest))
            waiting = deeper
        return found

    def names(self, tree: str, folder: bytes) -> dict[bytes, Entry]:
        """List a folder of a tree; empty if there is none.

        Raises:
            UndecidedError: a tree is missing or malformed.
        """
        (entry,) = self.entries([(tree, folder)])
        if entry is None or entry.mode != TREE_MODE:
            return {}
        self._read([entry.oid])
        return self._listed[entry.oid]

    def _read(self, trees: Collection[str]) -> None:
        if len(self._listed) + len(trees) > _MOST_KEPT:
            # Keep what the caller asks for now.
            self._listed = {tree: self._listed[tree] for tree in trees if tree in self._listed}
        known = self._listed
        known[self._objects.empty_tree] = {}
        for tree in self._objects.trees([tree for tree in trees if tree not in known]):
            known[tree.oid] = tree.entries()


class TreeView:
    """The tree `tree`, with its entries replaced by those of `over`; None removes a path."""

    def __init__(self, objects: Objects, tree: str, over: Mapping[bytes, Entry | None] | None = None) -> None:
        self.objects = objects
        self.tree = tree
        self._over = over or {}
        self._paths = sorted(self._over)

    def entry(self, path: bytes) -> Entry | None:
        """Find the file, symlink or gitlink at a path; None for nothing, or a folder."""
        if path in self._over:
            return self._over[path]
        found = self.objects.entry(self.tree, path)
        return None if found is None or found.mode == TREE_MODE else found

    def below(self, folder: bytes) -> dict[RepoPath, Entry]:
        """List every file, symlink and gitlink at or below a path (empty: of the whole tree), by its path.

        Raises:
            UndecidedError: an object is missing.
        """
        found: dict[bytes, Entry] = {}
        start = Entry(TREE_MODE, self.tree) if not folder else self.objects.entry(self.tree, folder)
        if start is not None:
            self._collect(folder, start, found)
        for path in self._overlay_within(folder):
            entry = self._over[path]
            if entry is None:
                found.pop(path, None)
            else:
                found[path] = entry
        return {RepoPath(path): found[path] for path in sorted(found)}

    def exists(self, path: bytes) -> bool:
        """Return whether a path exists, as a file or as a folder with files."""
        if not path or self.entry(path) is not None:
            return True
        overlaid = list(self._overlay_within(path))
        if any(self._over[each] is not None for each in overlaid):
            return True
        found = self.objects.entry(self.tree, path)
        if found is None or (path in self._over and self._over[path] is None and found.mode != TREE_MODE):
            return False
        return not overlaid or bool(self.below(path))

    def names(self, folder: bytes) -> list[bytes]:
        """List the names directly in a folder, with those of folders (even emptied ones)."""
        start = Entry(TREE_MODE, self.tree) if not folder else self.objects.entry(self.tree, folder)
        listed = self.objects.tree(start.oid) if start is not None and start.mode == TREE_MODE else {}
        found = set(listed)
        skipped = len(folder) + 1 if folder else 0
        for path in self._overlay_within(folder):
            name, slash, _ = path[skipped:].partition(b"/")
            if slash or self._over[path] is not None:
                found.add(name)
            else:
                found.discard(name)
        return sorted(found - {b""})

    def with_overlay(self, over: Mapping[bytes, Entry | None]) -> TreeView:
        """Return the same tree with further entries over it."""
        return TreeView(self.objects, self.tree, {**self._over, **over})

    def _overlay_within(self, folder: bytes) -> Iterator[bytes]:
        if not folder:
            yield from self._paths
            return
        if folder in self._over:
            yield folder
        inside = folder + b"/"
        for index in range(bisect_left(self._paths, inside), len(self._paths)):
            if not self._paths[index].startswith(inside):
                return
            yield self._paths[index]

    def _collect(self, path: bytes, entry: Entry, found: dict[bytes, Entry]) -> None:
        if entry.mode != TREE_MODE:
            found[path] = entry
            return
        waiting = [(path, entry.oid)]
        while waiting:
            above, oid = waiting.pop()
            start = above + b"/" if above else b""
            for name, inner in self.objects.tree(oid).items():
                if inner.mode == TREE_MODE:
                    waiting.append((start + name, inner.oid))
                else:
                    found[start + name] = inner


def listings_above(
    objects: Objects, tree: str, files: Iterable[FileChange]
) -> dict[bytes, tuple[bytes, ...]]:
    """List what a tree has in the folders above files to which git carried them: no record of a change tells.

    Raises:
        UndecidedError: a tree is missing or malformed.
    """
    found: dict[bytes, tuple[bytes, ...]] = {}
    for file in files:
        if file.new is None or file.path.is_too_long:
            continue
        folder = file.path.raw
        while folder:
            folder = folder.rpartition(b"/")[0]
            entry = objects.entry(tree, folder) if folder else None
            if folder not in found:
                found[folder] = tuple(objects.tree(tree if entry is None else entry.oid))
    return found
