"""What can be read of the judged content: git's objects under the index or a tree, or the files on disk.

Decides what stands at a path there, and reads it; nothing is written, and no link is followed. Which files
are worth a look, `gates.claim_scan` decides. Of the content only what was asked for is held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing

from patchgate.change.model import GITLINK, SYMLINK, Entry
from patchgate.change.path import RepoPath
from patchgate.gates.claim_scan import Looked
from patchgate.git.listing import Records, entry_of, name_of
from patchgate.git.objects import TREE_MODE, Objects
from patchgate.operations.hold.claims.walk import Walk
from patchgate.verdict.claim import Unscanned


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
        self._listed = listed
        # What was listed since somebody looked last, so that no folder is read for it.
        self._seen: dict[bytes, Entry] = {}
        self._oids: dict[RepoPath, str] = {}
        self._looked: set[bytes] = set()
        self._walk: Walk | None = None

    def look(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, Looked]:
        """Tell what stands at each path, in few round trips.

        Raises:
            UndecidedError: an object is missing.
        """
        found: dict[RepoPath, Looked] = {}
        oids: dict[RepoPath, str] = {}
        for path in paths:
            entry = self._seen.get(path.raw) or self._find(path.raw)
            fault = entry if isinstance(entry, Unscanned) else _fault(entry)
            if fault is None and isinstance(entry, Entry):
                oids[path] = entry.oid
            else:
                found[path] = Looked(fault=fault)
        if self._walk is None:
            self._looked.update(path.raw for path in paths)
        self._seen.clear()
        sizes = self._objects.sizes(oids.values())
        self._oids |= oids
        return found | {path: Looked(sizes[oid]) for path, oid in oids.items()}

    def read(self, path: RepoPath, most: int) -> bytes:
        """Read the first bytes of a file that was looked at.

        Raises:
            UndecidedError: the object is missing.
        """
        return self._objects.head(self._oids[path], most)

    def tracked(self, suffixes: tuple[str, ...]) -> Generator[RepoPath, None, None]:
        """List the files that are worth reading, sorted."""
        self._walk = Walk(suffixes, self._looked)
        with closing(self._walk.over(self._listed())) as records:
            for record in records:
                name = name_of(record)
                self._seen[name] = entry_of(record)
                yield RepoPath.from_git(name)

    def left_out(self) -> Mapping[Unscanned, int]:
        """Count what `tracked` left out so far; what was looked at before is not among it."""
        return self._walk.left_out if self._walk is not None else {}

    def _find(self, raw: bytes) -> Entry | Unscanned | None:
        """Walk down to a path; a fault where something above it is no folder."""
        parts = raw.split(b"/")
        tree: str | None = self._tree
        entry: Entry | None = None
        for count, part in enumerate(parts, start=1):
            here = b"/".join(parts[:count])
            if here in self._laid:
                entry = self._laid[here]
            else:
                entry = self._objects.tree(tree).get(part) if tree is not None else None
            if count < len(parts) and (fault := _fault(entry)) in {Unscanned.SYMLINK, Unscanned.OUTSIDE}:
                return fault
            tree = entry.oid if entry is not None and entry.mode == TREE_MODE else None
        return entry


def _fault(entry: Entry | None) -> Unscanned | None:
    """Say why what stands at a path is no file; a folder is none either."""
    if entry is None or entry.mode == TREE_MODE:
        return Unscanned.MISSING
    if entry.mode == SYMLINK:
        return Unscanned.SYMLINK
    return Unscanned.OUTSIDE if entry.mode == GITLINK else None
