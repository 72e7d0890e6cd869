"""A tree as it would be: one that can be read, with some paths laid over it.

What is staged or proposed has no tree object yet; the files around it are asked all the same. Costs what is
asked: folders that nobody asks for are not read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping

from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.tree_format import TREE_MODE


class TreeView:
    """The tree `tree` with `over` laid over it: each path has the entry named there, or (None) is gone."""

    def __init__(self, objects: Objects, tree: str, over: Mapping[bytes, Entry | None] | None = None) -> None:
        self.objects = objects
        self.tree = tree
        self._over = over or {}
        self._paths = sorted(self._over)

    def entry(self, path: bytes) -> Entry | None:
        """Find the file, symlink or gitlink at a path; None where nothing is, or a folder."""
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
        for path in self._laid_within(folder):
            entry = self._over[path]
            if entry is None:
                found.pop(path, None)
            else:
                found[path] = entry
        return {RepoPath(path): found[path] for path in sorted(found)}

    def exists(self, path: bytes) -> bool:
        """Tell whether a path is there, as a file or as a folder with something in it."""
        if not path or self.entry(path) is not None:
            return True
        laid = list(self._laid_within(path))
        if any(self._over[each] is not None for each in laid):
            return True
        found = self.objects.entry(self.tree, path)
        if found is None or (path in self._over and self._over[path] is None and found.mode != TREE_MODE):
            return False
        return not laid or bool(self.below(path))

    def names(self, folder: bytes) -> list[bytes]:
        """List the names right below a folder, those of folders too (also of one that was emptied)."""
        start = Entry(TREE_MODE, self.tree) if not folder else self.objects.entry(self.tree, folder)
        listed = self.objects.tree(start.oid) if start is not None and start.mode == TREE_MODE else {}
        found = set(listed)
        skipped = len(folder) + 1 if folder else 0
        for path in self._laid_within(folder):
            name, slash, _ = path[skipped:].partition(b"/")
            if slash or self._over[path] is not None:
                found.add(name)
            else:
                found.discard(name)
        return sorted(found - {b""})

    def with_laid(self, over: Mapping[bytes, Entry | None]) -> TreeView:
        """Give the same tree with further entries laid over it."""
        return TreeView(self.objects, self.tree, {**self._over, **over})

    def _laid_within(self, folder: bytes) -> Iterator[bytes]:
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

    def _collect(self, place: bytes, entry: Entry, found: dict[bytes, Entry]) -> None:
        if entry.mode != TREE_MODE:
            found[place] = entry
            return
        waiting = [(place, entry.oid)]
        while waiting:
            above, oid = waiting.pop()
            start = above + b"/" if above else b""
            for name, inner in self.objects.tree(oid).items():
                if inner.mode == TREE_MODE:
                    waiting.append((start + name, inner.oid))
                else:
                    found[start + name] = inner
