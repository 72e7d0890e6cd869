"""Look up many paths of many trees at once: folder by folder, each tree read once, many in one round trip.

Decides nothing about what lies there. For one path of one tree `Objects.entry` is simpler.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.tree_format import TREE_MODE

_MOST_KEPT = 20_000


class TreePaths:
    """Entries of trees by their paths; what was read is remembered."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._listed: dict[str, dict[bytes, Entry]] = {}

    def entries(self, wanted: Sequence[tuple[str, bytes]]) -> list[Entry | None]:
        """Find what lies at each path (empty: the tree itself), given with the id of its tree.

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
        """List a folder of a tree; empty where there is none.

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
            # What is asked for right now has to stay.
            self._listed = {tree: self._listed[tree] for tree in trees if tree in self._listed}
        known = self._listed
        known[self._objects.empty_tree] = {}
        for tree in self._objects.trees([tree for tree in trees if tree not in known]):
            known[tree.oid] = tree.entries()
