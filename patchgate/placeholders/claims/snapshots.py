"""What can be read of git's objects, under the index or a tree.

Decides what stands at a path there, and reads it; nothing is written, and no link is followed. Which files
are worth a look, `placeholders.claims.claim_scan` decides. Of the content only what was asked for is held in
memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing

from patchgate.git.listing import Records, entry_of, name_of
from patchgate.git.model import GITLINK, SYMLINK, Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.tree_format import TREE_MODE
from patchgate.placeholders.claims.claim import Unscanned
from patchgate.placeholders.claims.claim_scan import Looked
from patchgate.placeholders.claims.claim_walk import Walk


class ObjectSnapshot:
    """A tree, with what an index has otherwise.

    Args:
        tree: the tree below.
        laid: what lies over it, by path; None: it is gone.
        listed: lists all of it.
    """

    def __init__(
        self,
        objects: Objects,
        tree: str,
        laid: Mapping[bytes, Entry | None],
        listed: Callable[[], Records],
    ) -> None:
        self._objects = objects
        self._tree = tree
        self._laid = laid
        self._laid_names = sorted(name for name, entry in laid.items() if entry)
        self._listed = listed
        # What the listing said of a path that nobody looked at yet, so that no folder is read for it.
        self._told: dict[bytes, Entry] = {}
        self._oids: dict[RepoPath, str] = {}

    def look(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, Looked]:
        """Tell what stands at each path, in few round trips; a file whose object is not here is UNREADABLE.

        Raises:
            UndecidedError: a folder's object is missing.
        """
        found: dict[RepoPath, Looked] = {}
        oids: dict[RepoPath, str] = {}
        for path in paths:
            entry = self._told.pop(path.raw, None) or self._find(path)
            fault = entry if isinstance(entry, Unscanned) else _fault(entry)
            if fault is None and isinstance(entry, Entry):
                oids[path] = entry.oid
            else:
                found[path] = Looked(fault=fault)
        distinct = list(dict.fromkeys(oids.values()))
        headers = dict(zip(distinct, self._objects.headers(distinct), strict=True))
        for path, oid in oids.items():
            header = headers[oid]
            found[path] = Looked(header.size) if header else Looked(fault=Unscanned.UNREADABLE)
        self._oids |= oids
        return found

    def read(self, path: RepoPath, most: int) -> bytes:
        """Read the first bytes of a file that was looked at.

        Raises:
            UndecidedError: the object is damaged.
        """
        return self._objects.head(self._oids[path], most)

    def tracked(self, walk: Walk) -> Generator[RepoPath, None, None]:
        """List the files that a walk gives.

        Raises:
            UndecidedError: they cannot be listed.
        """
        with closing(self._listed()) as pieces:
            for record in walk.over(pieces, name_of):
                name = name_of(record)
                self._told[name] = entry_of(record)
                yield RepoPath.from_git(name)

    def _find(self, path: RepoPath) -> Entry | Unscanned | None:
        """Walk down to a path, until nothing is there; a fault where a link or a repository is above."""
        if path.is_too_long:
            return None
        tree: str | None = self._tree
        for folder in list(path.parents())[1:]:
            entry = self._at(folder, tree)
            fault = _fault(entry)
            if fault in {Unscanned.SYMLINK, Unscanned.OUTSIDE}:
                return fault
            tree = entry.oid if entry is not None and entry.mode == TREE_MODE else None
            if tree is None and not self._is_laid_in(folder):
                return None
        return self._at(path.raw, tree)

    def _at(self, raw: bytes, tree: str | None) -> Entry | None:
        """Find what a path holds, whose folder is this tree, or stands in what is laid over alone."""
        if raw in self._laid:
            return self._laid[raw]
        return self._objects.tree(tree).get(raw.rpartition(b"/")[2]) if tree is not None else None

    def _is_laid_in(self, folder: bytes) -> bool:
        """Tell whether something new lies in a folder."""
        place = bisect_left(self._laid_names, folder + b"/")
        return place < len(self._laid_names) and self._laid_names[place].startswith(folder + b"/")


def _fault(entry: Entry | None) -> Unscanned | None:
    """Say why what stands at a path is no file; a folder is none either."""
    if entry is None or entry.mode == TREE_MODE:
        return Unscanned.MISSING
    if entry.mode == SYMLINK:
        return Unscanned.SYMLINK
    return Unscanned.OUTSIDE if entry.mode == GITLINK else None
