"""Undo a transaction from its journal and the files that are there, or clean up after it.

Each step is decided from the files alone, so any process can start again at any point. Only exactly our own
writes are undone. If a file was edited since, nothing is undone, or, with `keep`, everything except that
file.
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

_REASON = "an interrupted apply cannot be undone completely"


class _RollbackStep(Enum):
    """What to do for an entry."""

    NOTHING = auto()
    REMOVE = auto()
    EXCHANGE = auto()
    RESTORE = auto()
    BLOCKED = auto()


class Rollback:
    """One rollback.

    Args:
        workspace: the roots.
        journal: what was planned.
        backup: where unexpected contents are saved.
        untouched: the entries that the caller did not reach.
    """

    def __init__(
        self,
        workspace: Workspace,
        journal: Journal,
        backup: SavedContents,
        untouched: Iterable[JournalEntry] = (),
    ) -> None:
        self._workspace = workspace
        self._journal = journal
        self._backup = backup
        self._untouched = {entry.aside for entry in untouched}
        self.kept: list[JournalEntry] = []

    def run(self, *, keep: bool = False) -> None:
        """Undo everything; the last flush, the journal and the locks are left to the caller.

        Args:
            keep: leave files that were edited since, save their old contents, and undo the rest.

        Raises:
            DirtyWorkspaceError: a file was edited since; nothing was undone, unless it was just now.
            OSError: a step failed.
        """
        for entry in self._journal.entries:
            _finish_moves(self._workspace, entry)
        steps = [(entry, self._step(entry)) for entry in self._journal.entries]
        blocked = [entry for entry, way in steps if way is _RollbackStep.BLOCKED]
        if blocked and not keep:
            raise self._dirty(blocked)
        self.kept += blocked
        for entry in _entries_with(steps, _RollbackStep.REMOVE):
            self._remove_new(entry, keep)
        if self._journal.swaps:
            self._workspace.flush()
        self._restore_folders(keep)
        for entry, way in reversed(steps):
            self._restore(entry, way, keep)
        self._workspace.flush()
        self._drop_asides()

    def _step(self, entry: JournalEntry) -> _RollbackStep:
        if entry.aside in self._untouched:
            return _RollbackStep.NOTHING
        current = self._standing(entry)
        aside = self._workspace.at_aside(entry)
        if aside is None:
            return self._step_with_nothing_aside(entry, current)
        if aside == entry.new:
            return _RollbackStep.NOTHING
        if entry.old is None:
            return _RollbackStep.NOTHING
        if current is None:
            return _RollbackStep.RESTORE
        if current == entry.new:
            return _RollbackStep.EXCHANGE
        return _RollbackStep.NOTHING if current == aside == entry.old else _RollbackStep.BLOCKED

    def _step_with_nothing_aside(self, entry: JournalEntry, current: object) -> _RollbackStep:
        if entry.old is None:
            if current is None:
                is_there = is_reachable(self._workspace.root(entry), entry.folder)
                return _RollbackStep.NOTHING if is_there else _RollbackStep.BLOCKED
            return _RollbackStep.REMOVE if current == entry.new else _RollbackStep.BLOCKED
        if current == entry.new:
            # The old content is gone: its temporary file was removed.
            return _RollbackStep.BLOCKED
        is_there = is_reachable(self._workspace.root(entry), entry.folder)
        return _RollbackStep.NOTHING if is_there else _RollbackStep.BLOCKED

    def _standing(self, entry: JournalEntry) -> object:
        """Read the fingerprint of an entry; a folder that we made or will remove counts as nothing."""
        found = self._workspace.at_path(entry)
        if found is not None and found.mode == FOLDER and not entry.is_index:
            if entry.path in self._journal.new_folders and self._is_ours(entry.path):
                return None
            if entry.path in {path for path, _ in self._journal.removed_folders}:
                return None
        return found

    def _is_ours(self, path: bytes) -> bool:
        """Return whether a folder that we made has only our files."""
        ours = {entry.path for entry in self._journal.entries} | set(self._journal.new_folders)
        with self._workspace.tree.child(path) as folder:
            return all(
                join(path, name) in ours
                and (not is_folder(folder.status(name)) or self._is_ours(join(path, name)))
                for name in folder.names()
            )

    def _remove_new(self, entry: JournalEntry, keep: bool) -> None:
        """Remove our new file; another process may write to it at this moment."""
        self._workspace.move_aside(entry)
        if self._workspace.at_aside(entry) != entry.new:
            self._workspace.move_back(entry)
            self._keep_or_refuse(entry, keep)

    def _restore(self, entry: JournalEntry, way: _RollbackStep, keep: bool) -> None:
        if way is _RollbackStep.RESTORE:
            try:
                self._workspace.move_back(entry)
            except OSError as error:
                if error.errno not in {errno.EEXIST, errno.ENOENT, errno.ENOTDIR}:
                    raise
                self._keep_or_refuse(entry, keep)
        elif way is _RollbackStep.EXCHANGE:
            self._workspace.exchange(entry)
            if self._workspace.at_aside(entry) != entry.new:
                self._workspace.exchange(entry)
                self._keep_or_refuse(entry, keep)

    def _keep_or_refuse(self, entry: JournalEntry, keep: bool) -> None:
        if not keep:
            raise self._dirty([entry])
        self.kept.append(entry)

    def _restore_folders(self, keep: bool) -> None:
        """Remove the folders that we made, and make the removed ones again."""
        for path in reversed(self._journal.new_folders):
            if is_reachable(self._workspace.tree, path):
                try:
                    self._workspace.remove_folder(path)
                except OSError as error:
                    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                        raise
        for path, bits in reversed(self._journal.removed_folders):
            try:
                self._workspace.make_folder(path)
                self._workspace.set_folder_mode(path, bits)
            except (FileExistsError, NotADirectoryError):
                if not keep:
                    inside = [p for p in self._journal.entries if p.path.startswith(path + b"/")]
                    raise self._dirty(inside) from None
        if self._journal.removed_folders:
            # The files that go into them exist nowhere else.
            self._workspace.flush()

    def _drop_asides(self) -> None:
        for entry in self._journal.entries:
            if is_reachable(self._workspace.root(entry), entry.folder):
                drop_aside(self._workspace, entry, self._backup, is_kept=entry in self.kept)

    def _dirty(self, entries: Sequence[JournalEntry]) -> DirtyWorkspaceError:
        paths = [self._workspace.path_of(entry) for entry in entries]
        return DirtyWorkspaceError(
            _REASON, paths, [describe_blocked(self._workspace, entry) for entry in entries]
        )


def drop_aside(
    workspace: Workspace, entry: JournalEntry, backup: SavedContents, *, is_kept: bool = False
) -> bytes | None:
    """Remove the temporary files of an entry; a content that is neither old nor new is saved elsewhere."""
    saved = None
    workspace.remove_aside(entry, entry.part)
    for name in (entry.aside, entry.unfinished):
        found = workspace.at_aside(entry, name)
        if found is None:
            continue
        if is_kept or found not in {entry.old, entry.new}:
            with workspace.root(entry).child(entry.folder) as folder:
                if found != entry.new and found.mode != FOLDER:
                    saved = backup.save(folder, name, entry.path)
        if found.mode != FOLDER:
            workspace.remove_aside(entry, name)
    return saved


def describe_blocked(workspace: Workspace, entry: JournalEntry) -> str:
    """Describe one entry that blocks the rollback."""
    quoted_name = workspace.quoted_name(entry)
    aside = workspace.at_aside(entry)
    if entry.old is not None and aside is None:
        return f"{quoted_name} (its old content is gone)"
    if entry.old is None:
        return f"{quoted_name} (made by the patch, changed since)"
    return f"{quoted_name} (changed since; its old content is in {workspace.quoted_name(entry, entry.aside)})"


def _finish_moves(workspace: Workspace, entry: JournalEntry) -> None:
    """Finish a move, or an exchange by three moves, that a kill interrupted."""
    root = workspace.root(entry)
    if not is_reachable(root, entry.folder):
        return
    if not is_reachable(root, entry.parent):
        with root.child(entry.folder) as aside:
            _finish_exchange(workspace, entry, aside, None)
        return
    with workspace.pair(entry) as (target, aside):
        _finish_exchange(workspace, entry, aside, target)


def _finish_exchange(
    workspace: Workspace, entry: JournalEntry, aside: OpenFolder, target: OpenFolder | None
) -> None:
    if target is not None:
        for name in (entry.unfinished, entry.aside):
            if is_same_file(aside, name, target, entry.name):
                workspace.remove_aside(entry, name)
    if aside.status(entry.unfinished) is None:
        return
    if is_same_file(aside, entry.unfinished, aside, entry.aside):
        workspace.remove_aside(entry, entry.unfinished)
    elif target is not None and target.status(entry.name) is None:
        aside.move(entry.unfinished, target, entry.name)
    elif aside.status(entry.aside) is None:
        aside.move(entry.unfinished, aside, entry.aside)


def _entries_with(
    steps: Sequence[tuple[JournalEntry, _RollbackStep]], wanted: _RollbackStep
) -> Iterator[JournalEntry]:
    return (entry for entry, way in reversed(steps) if way is wanted)


def emptied_folders(journal: Journal) -> list[bytes]:
    """Return the folders that deletions may have emptied, innermost first; not the user's current one."""
    found: set[bytes] = set()
    for entry in journal.entries:
        folder = entry.parent
        while entry.new is None and folder:
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
    workspace: Workspace, transaction: OpenFolder, journal: Journal, backup: SavedContents
) -> tuple[str, ...]:
    """Remove the temporary files of a transaction, flushed when this returns; return the saved edits.

    Raises:
        OSError: a step failed; the rest is left for later.
    """
    kept = []
    try:
        for entry in journal.entries:
            if is_reachable(workspace.root(entry), entry.folder):
                saved = drop_aside(workspace, entry, backup)
                if saved is not None:
                    kept.append(os.fsdecode(saved))
        _remove_emptied(workspace, journal)
    except OSError:
        # The patch is applied, so git need not be locked out.
        release_lock_quietly(workspace, transaction, journal)
        raise
    release_lock(workspace, transaction, journal)
    workspace.touch_index()
    workspace.flush()
    return tuple(kept)


def _remove_emptied(workspace: Workspace, journal: Journal) -> None:
    """Remove the folders that deletions emptied; one that cannot be removed stays, as with git."""
    for path in emptied_folders(journal):
        if is_reachable(workspace.tree, path):
            try:
                workspace.remove_folder(path)
            except OSError as error:
                if error.errno not in _STAYING:
                    raise
