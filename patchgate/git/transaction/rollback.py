"""The way back, from a journal and what stands at its places; and what is tidied once a landing is in force.

Decides for each place what has to happen, from what is found alone, so that it can be begun again at any
point, by any process. It undoes only what is exactly ours. What a person wrote since stays: then nothing is
undone, or, where that is asked for, everything else is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto

from patchgate.git.transaction.entries import (
    FOLDER,
    JournalEntry,
    is_reachable,
    is_same_file,
    join,
    parent_of,
)
from patchgate.git.transaction.journal import Journal
from patchgate.git.transaction.preflight import DirtyWorkspaceError
from patchgate.git.transaction.workspace import SavedContents, Workspace, release_lock, release_lock_quietly
from patchgate.storage.open_folder import OpenFolder, is_folder

_REASON = "not everything of an interrupted apply can be taken back"


class _RollbackStep(Enum):
    """What has to happen at a place."""

    NOTHING = auto()
    WITHDRAW = auto()
    EXCHANGE = auto()
    RESTORE = auto()
    BLOCKED = auto()


class Rollback:
    """One way back.

    Args:
        site: the roots.
        journal: what was planned.
        keeping: where contents go that are nobody's plan.
        untouched: the paths that the caller knows it did not come to.
    """

    def __init__(
        self,
        site: Workspace,
        journal: Journal,
        keeping: SavedContents,
        untouched: Iterable[JournalEntry] = (),
    ) -> None:
        self._site = site
        self._journal = journal
        self._keeping = keeping
        self._untouched = {place.aside for place in untouched}
        self.kept: list[JournalEntry] = []

    def run(self, *, keep: bool = False) -> None:
        """Undo everything; the last flush of the site, the journal and the locks are the caller's.

        Args:
            keep: leave what a person wrote, keep aside what had stood there, and undo the rest.

        Raises:
            DirtyWorkspaceError: a person wrote since; nothing was undone, but for a race that was lost now.
            OSError: a step failed.
        """
        for place in self._journal.places:
            _settle(self._site, place)
        ways = [(place, self._way(place)) for place in self._journal.places]
        blocked = [place for place, way in ways if way is _RollbackStep.BLOCKED]
        if blocked and not keep:
            raise self._dirty(blocked)
        self.kept += blocked
        for place in _that(ways, _RollbackStep.WITHDRAW):
            self._withdraw(place, keep)
        if self._journal.swaps:
            self._site.flush()
        self._restore_folders(keep)
        for place, way in reversed(ways):
            self._restore(place, way, keep)
        self._site.flush()
        self._drop_asides()

    def _way(self, place: JournalEntry) -> _RollbackStep:
        if place.aside in self._untouched:
            return _RollbackStep.NOTHING
        stands = self._standing(place)
        aside = self._site.at_aside(place)
        if aside is None:
            return self._way_with_nothing_aside(place, stands)
        if aside == place.new:
            return _RollbackStep.NOTHING
        if place.old is None:
            return _RollbackStep.NOTHING
        if stands is None:
            return _RollbackStep.RESTORE
        if stands == place.new:
            return _RollbackStep.EXCHANGE
        return _RollbackStep.NOTHING if stands == aside == place.old else _RollbackStep.BLOCKED

    def _way_with_nothing_aside(self, place: JournalEntry, stands: object) -> _RollbackStep:
        if place.old is None:
            if stands is None:
                is_there = is_reachable(self._site.root(place), place.folder)
                return _RollbackStep.NOTHING if is_there else _RollbackStep.BLOCKED
            return _RollbackStep.WITHDRAW if stands == place.new else _RollbackStep.BLOCKED
        if stands == place.new:
            # What had stood there is gone: somebody removed it from where it was kept.
            return _RollbackStep.BLOCKED
        is_there = is_reachable(self._site.root(place), place.folder)
        return _RollbackStep.NOTHING if is_there else _RollbackStep.BLOCKED

    def _standing(self, place: JournalEntry) -> object:
        """Look at a place; a folder of ours, or one that is still to make room, counts as nothing."""
        found = self._site.at_target(place)
        if found is not None and found.mode == FOLDER and not place.is_index:
            if place.path in self._journal.made and self._is_ours(place.path):
                return None
            if place.path in {path for path, _ in self._journal.vanishing}:
                return None
        return found

    def _is_ours(self, path: bytes) -> bool:
        """Tell whether a folder that we made holds nothing but ours."""
        ours = {place.path for place in self._journal.places} | set(self._journal.made)
        with self._site.tree.child(path) as folder:
            return all(
                join(path, name) in ours
                and (not is_folder(folder.status(name)) or self._is_ours(join(path, name)))
                for name in folder.names()
            )

    def _withdraw(self, place: JournalEntry, keep: bool) -> None:
        """Take our new file back; somebody may write there at this moment."""
        self._site.take_out(place)
        if self._site.at_aside(place) != place.new:
            self._site.put_in(place)
            self._give_way(place, keep)

    def _restore(self, place: JournalEntry, way: _RollbackStep, keep: bool) -> None:
        if way is _RollbackStep.RESTORE:
            try:
                self._site.put_in(place)
            except OSError as error:
                if error.errno not in {errno.EEXIST, errno.ENOENT, errno.ENOTDIR}:
                    raise
                self._give_way(place, keep)
        elif way is _RollbackStep.EXCHANGE:
            self._site.exchange(place)
            if self._site.at_aside(place) != place.new:
                self._site.exchange(place)
                self._give_way(place, keep)

    def _give_way(self, place: JournalEntry, keep: bool) -> None:
        if not keep:
            raise self._dirty([place])
        self.kept.append(place)

    def _restore_folders(self, keep: bool) -> None:
        """Remove the folders that we made, and make those again that made room."""
        for path in reversed(self._journal.made):
            if is_reachable(self._site.tree, path):
                try:
                    self._site.remove_folder(path)
                except OSError as error:
                    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                        raise
        for path, bits in reversed(self._journal.vanishing):
            try:
                self._site.make_folder(path)
                self._site.set_folder_mode(path, bits)
            except (FileExistsError, NotADirectoryError):
                if not keep:
                    inside = [p for p in self._journal.places if p.path.startswith(path + b"/")]
                    raise self._dirty(inside) from None
        if self._journal.vanishing:
            # What is put into them is nowhere else.
            self._site.flush()

    def _drop_asides(self) -> None:
        for place in self._journal.places:
            if is_reachable(self._site.root(place), place.folder):
                drop_aside(self._site, place, self._keeping, is_kept=place in self.kept)

    def _dirty(self, places: Sequence[JournalEntry]) -> DirtyWorkspaceError:
        paths = [self._site.path_of(place) for place in places]
        return DirtyWorkspaceError(_REASON, paths, [describe_blocked(self._site, place) for place in places])


def drop_aside(
    site: Workspace, place: JournalEntry, keeping: SavedContents, *, is_kept: bool = False
) -> bytes | None:
    """Remove what lies beside a place; what is neither its old nor its new content is kept elsewhere."""
    saved = None
    site.remove_aside(place, place.part)
    for name in (place.aside, place.unfinished):
        found = site.at_aside(place, name)
        if found is None:
            continue
        if is_kept or found not in {place.old, place.new}:
            with site.root(place).child(place.folder) as folder:
                if found != place.new and found.mode != FOLDER:
                    saved = keeping.save(folder, name, place.path)
        if found.mode != FOLDER:
            site.remove_aside(place, name)
    return saved


def describe_blocked(site: Workspace, place: JournalEntry) -> str:
    """Say what is where, for one place that is in the way."""
    shown = site.shown(place)
    aside = site.at_aside(place)
    if place.old is not None and aside is None:
        return f"{shown} (its old content is gone)"
    if place.old is None:
        return f"{shown} (made by the patch, changed since)"
    return f"{shown} (changed since; its old content is in {site.shown(place, place.aside)})"


def _settle(site: Workspace, place: JournalEntry) -> None:
    """Finish a move, or an exchange by three moves, that a kill left half done."""
    root = site.root(place)
    if not is_reachable(root, place.folder):
        return
    if not is_reachable(root, place.parent):
        with root.child(place.folder) as aside:
            _settle_unfinished(site, place, aside, None)
        return
    with site.pair(place) as (target, aside):
        _settle_unfinished(site, place, aside, target)


def _settle_unfinished(
    site: Workspace, place: JournalEntry, aside: OpenFolder, target: OpenFolder | None
) -> None:
    if target is not None:
        for name in (place.unfinished, place.aside):
            if is_same_file(aside, name, target, place.name):
                site.remove_aside(place, name)
    if aside.status(place.unfinished) is None:
        return
    if is_same_file(aside, place.unfinished, aside, place.aside):
        site.remove_aside(place, place.unfinished)
    elif target is not None and target.status(place.name) is None:
        aside.move(place.unfinished, target, place.name)
    elif aside.status(place.aside) is None:
        aside.move(place.unfinished, aside, place.aside)


def _that(
    ways: Sequence[tuple[JournalEntry, _RollbackStep]], wanted: _RollbackStep
) -> Iterator[JournalEntry]:
    return (place for place, way in reversed(ways) if way is wanted)


def emptied_folders(journal: Journal) -> list[bytes]:
    """Name the folders that deletions may have left empty, the innermost first; never the user's own."""
    found: set[bytes] = set()
    for place in journal.places:
        folder = place.parent
        while place.new is None and folder:
            if journal.prefix != folder and not journal.prefix.startswith(folder + b"/"):
                found.add(folder)
            folder = parent_of(folder)
    return sorted(found, reverse=True)


_STAYING = {
    errno.ENOTEMPTY,
    errno.EEXIST,
    errno.EBUSY,
    errno.EINVAL,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
}


def clean_up(
    site: Workspace, transaction: OpenFolder, journal: Journal, keeping: SavedContents
) -> tuple[str, ...]:
    """Remove what a landing left, on the disk when this returns; name what was kept, for it was a person's.

    Raises:
        OSError: a step failed; the rest is for another time.
    """
    kept = []
    try:
        for place in journal.places:
            if is_reachable(site.root(place), place.folder):
                saved = drop_aside(site, place, keeping)
                if saved is not None:
                    kept.append(os.fsdecode(saved))
        _remove_emptied(site, journal)
    except OSError:
        # What is in force need not keep git out.
        release_lock_quietly(site, transaction, journal)
        raise
    release_lock(site, transaction, journal)
    site.touch_index()
    site.flush()
    return tuple(kept)


def _remove_emptied(site: Workspace, journal: Journal) -> None:
    """Remove the folders that deletions left empty; one that must stay, stays, as git leaves it."""
    for path in emptied_folders(journal):
        if is_reachable(site.tree, path):
            try:
                site.remove_folder(path)
            except OSError as error:
                if error.errno not in _STAYING:
                    raise
