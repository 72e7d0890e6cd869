"""Where a transaction writes: the working tree and the folder of the index, both open.

Decides how contents change places: every such step is one rename, exchange or folder of `storage`, and the
folders in which names changed are remembered until they are flushed. It does not decide the order.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from patchgate.git.path import RepoPath, folders_above
from patchgate.git.quoting import quote_path
from patchgate.git.transaction.places import Place, Trace, is_reachable, join, look, name_of, parent_of
from patchgate.storage.folder import Folder, is_folder
from patchgate.storage.steps import Steps


class Site:
    """The two roots, opened: the working tree and the folder of the index; use it as a context manager."""

    def __init__(self, work_tree: str, index_file: str, steps: Steps) -> None:
        self._touched: set[tuple[bool, bytes]] = set()
        self.tree = Folder.open(work_tree, steps)
        self.index_name = os.path.basename(os.fsencode(index_file))
        try:
            self.index = Folder.open(os.path.dirname(index_file), steps)
        except OSError:
            self.tree.__exit__(None, None, None)
            raise

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *error: object) -> None:
        self.tree.__exit__(None, None, None)
        self.index.__exit__(None, None, None)

    def root(self, place: Place) -> Folder:
        """Give the root below which a place lies."""
        return self.index if place.is_index else self.tree

    @contextmanager
    def pair(self, place: Place) -> Iterator[tuple[Folder, Folder]]:
        """Open the folder of the place itself, and the one in which its content is kept aside."""
        root = self.root(place)
        with root.child(place.parent) as target, root.child(place.folder) as aside:
            yield target, aside

    def at_target(self, place: Place) -> Trace | None:
        """Look at what stands at a place; nothing does where a folder above it is none, or a link."""
        return look(self.root(place), place.path)

    def at_aside(self, place: Place, name: bytes | None = None) -> Trace | None:
        """Look at what is kept aside for a place, or at another of its names there."""
        return look(self.root(place), join(place.folder, name or place.aside))

    def path_of(self, place: Place | None, path: bytes = b"") -> RepoPath:
        """Name a place, or a folder, as a path; the index by where it is."""
        if place is None:
            return RepoPath(path)
        return RepoPath(self.index.at(place.path) if place.is_index else place.path)

    def shown(self, place: Place, name: bytes | None = None) -> str:
        """Name a place, or a name kept aside for it, for a person; safe for a terminal."""
        if place.is_index:
            return quote_path(self.index.at(name or place.path))
        return quote_path(place.path if name is None else join(place.folder, name))

    def take_out(self, place: Place) -> None:
        """Move what stands at a place aside; what was aside is nothing."""
        with self.pair(place) as (target, aside):
            target.move(place.name, aside, place.aside)
        self._touch_both(place)

    def put_in(self, place: Place) -> None:
        """Move what is aside to the place, where nothing may stand."""
        with self.pair(place) as (target, aside):
            aside.move(place.aside, target, place.name)
        self._touch_both(place)

    def exchange(self, place: Place) -> None:
        """Exchange what stands at a place with what is aside."""
        with self.pair(place) as (target, aside):
            aside.exchange(place.aside, target, place.name)
        self._touch_both(place)

    def remove_aside(self, place: Place, name: bytes) -> None:
        """Remove one of the names aside, should it be there."""
        with self.root(place).child(place.folder) as aside:
            if aside.status(name) is not None:
                aside.unlink(name)
                self._touched.add((place.is_index, place.folder))

    def make_folder(self, path: bytes) -> None:
        """Make a folder of the working tree; it may be there already."""
        with self.tree.child(parent_of(path)) as above:
            if not is_folder(above.status(name_of(path))):
                above.make(name_of(path))
        self._touched |= {(False, path), (False, parent_of(path))}

    def set_folder_mode(self, path: bytes, bits: int) -> None:
        """Give a folder of the working tree the permission bits that it had."""
        with self.tree.child(path) as folder:
            if stat.S_IMODE(folder.own_status().st_mode) != bits:
                folder.set_mode(bits)

    def remove_folder(self, path: bytes) -> None:
        """Remove an empty folder of the working tree."""
        with self.tree.child(parent_of(path)) as above:
            above.remove(name_of(path))
        self._touched.discard((False, path))
        self._touched.add((False, parent_of(path)))

    def touch_index(self) -> None:
        """Note that a name changed in the folder of the index."""
        self._touched.add((True, b""))

    def touch_all(self, places: Iterable[Place], folders: Iterable[bytes]) -> None:
        """Note every folder in which a landing of these places may have changed a name."""
        self.touch_index()
        known = list(places)
        for is_index in (False, True):
            here = [place for place in known if place.is_index == is_index]
            above = folders_above(RepoPath(place.path) for place in here)
            self._touched |= {(is_index, path) for path in (*above, *(place.folder for place in here))}
        self._touched |= {(False, path) for path in folders_above(map(RepoPath, folders))}
        self.forget_gone()

    def forget_gone(self) -> None:
        """Leave out the folders that are gone: there is nothing of them to bring to the disk."""
        self._touched = {
            (is_index, path)
            for is_index, path in self._touched
            if is_reachable(self.index if is_index else self.tree, path)
        }

    def flush(self) -> None:
        """Bring every name that was changed to the disk."""
        for is_index, path in sorted(self._touched):
            with (self.index if is_index else self.tree).child(path) as folder:
                folder.flush()
        self._touched.clear()

    def _touch_both(self, place: Place) -> None:
        self._touched |= {(place.is_index, place.parent), (place.is_index, place.folder)}
