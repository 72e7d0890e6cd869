"""Check the files before a transaction writes, and plan its entries; the errors that stop it.

Decides whether each path and each folder above it is still as it was judged, which folders will be made,
which are replaced by a file, and where temporary contents are kept. It writes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.model import Descent
from patchgate.git.path import RepoPath, is_git_alias
from patchgate.git.quoting import first_of, printable, quote_path
from patchgate.git.transaction.entries import (
    FOLDER,
    JournalEntry,
    Write,
    fingerprint_at,
    fingerprint_of,
    join,
    name_of,
    parent_of,
)
from patchgate.git.transaction.workspace import Workspace
from patchgate.storage.open_folder import OpenFolder, is_folder
from patchgate.values import dataclass

_SHOWN = 5
_NEXT = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "raise the limit of a file's size (ulimit -f)",
    errno.EACCES: "make that place writable",
    errno.EPERM: "make that place writable",
    errno.EROFS: "make that file system writable",
}


class ConcurrentChangeError(UndecidedError):
    """Something was changed since it was judged; nothing was written, or all of it was undone."""

    def __init__(self, paths: Sequence[RepoPath]) -> None:
        names = first_of(paths, _SHOWN, lambda path: path.quoted)
        super().__init__(
            f"changed since the patch was checked: {names}; nothing was written",
            "review what changed there, then apply the patch again",
        )
        self.paths = tuple(paths)


class WriteFailedError(UndecidedError):
    """A write failed; nothing was changed, or, in a recovery, the transaction is still pending."""

    def __init__(self, error: OSError, *, recovering: bool = False) -> None:
        then = "run git patchgate recover again" if recovering else "apply the patch again"
        state = "the interrupted apply is not recovered yet" if recovering else "nothing was changed"
        what = _NEXT.get(error.errno or 0, "fix that")
        super().__init__(f"{describe_error(error)}; {state}", f"{what}, then {then}")


class DirtyWorkspaceError(UndecidedError):
    """The rollback is blocked at `paths`; `states` describes each, and the journal stays."""

    def __init__(self, reason: str, paths: Sequence[RepoPath], states: Sequence[str] = ()) -> None:
        states = states or [path.quoted for path in paths]
        states_text = f": {first_of(states, _SHOWN)}" if states else ""
        super().__init__(
            f"{reason}{states_text}",
            "restore them, then run git patchgate recover; with --keep it leaves such files as they are",
        )
        self.paths = tuple(paths)
        self.states = tuple(states)


def describe_error(error: OSError) -> str:
    """Describe an OSError and its file."""
    text = error.strerror or os.strerror(error.errno or 0)
    if error.filename is None:
        return f"a write failed ({printable(text)})"
    name = error.filename if isinstance(error.filename, bytes) else os.fsencode(str(error.filename))
    return f"cannot write {quote_path(name)}: {printable(text)}"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The entries in the order of their paths, the index last; folders as `journal.Journal` has them."""

    entries: tuple[JournalEntry, ...]
    new_folders: tuple[bytes, ...]
    removed_folders: tuple[tuple[bytes, int], ...]


def plan_writes(workspace: Workspace, writes: Sequence[Write], name: Callable[[], bytes]) -> WritePlan:
    """Check everything that will be written, and plan the entries.

    Args:
        workspace: the roots.
        writes: what is to be written; those that change nothing are only checked.
        name: returns a new, free name for a temporary content.

    Raises:
        ConcurrentChangeError: something is not as it was judged.
        UndecidedError: the same path comes twice, or is not allowed for a file.
    """
    ordered = sorted(writes, key=lambda write: write.path)
    _refuse_impossible(ordered)
    planner = _WritePlanner(workspace, {write.path.raw for write in ordered if write.old and not write.new})
    changed = [write.path for write in ordered if not planner.is_as_judged(write)]
    if changed:
        raise ConcurrentChangeError(changed)
    removed = tuple(sorted(planner.removed_folders.items(), reverse=True))
    entries = tuple(
        JournalEntry(
            path=write.path.raw,
            folder=planner.deepest_kept_folder(write.path),
            aside=name(),
            old=fingerprint_of(write.old),
            new=fingerprint_of(write.new),
        )
        for write in ordered
        if write.old != write.new
    )
    return WritePlan(entries, tuple(sorted(planner.new_folders)), removed)


def _refuse_impossible(writes: Sequence[Write]) -> None:
    seen: set[bytes] = set()
    for write in writes:
        parts = write.path.raw.split(b"/")
        if write.path.raw in seen or any(not part or part in {b".", b".."} for part in parts):
            raise UndecidedError(f"{write.path.quoted} cannot be written", "name each file once, by its path")
        if any(is_git_alias(part) for part in parts):
            raise UndecidedError(f"{write.path.quoted} is in a git directory", "leave it out of the patch")
        seen.add(write.path.raw)


class _WritePlanner:
    """Collects the new and the removed folders."""

    def __init__(self, workspace: Workspace, deleted: set[bytes]) -> None:
        self._tree = workspace.tree
        self._deleted = deleted
        self._folders = Descent(True, self._is_own_in)
        self.new_folders: set[bytes] = set()
        self.removed_folders: dict[bytes, int] = {}

    def is_as_judged(self, write: Write) -> bool:
        """Return whether a path and the folders above it are as they were judged."""
        path = write.path.raw
        current = self._is_own(parent_of(path))
        if not current:
            if write.new is None:
                return write.old is None
            return write.old is None and self._can_make_folders(write.path)
        found = fingerprint_at(self._tree, path)
        if write.old is None and write.new is not None and found is not None and found.mode == FOLDER:
            return self._can_replace_folder(path)
        return found == fingerprint_of(write.old)

    def deepest_kept_folder(self, path: RepoPath) -> bytes:
        """Return the deepest existing folder above a path that stays."""
        staying = [each for each in path.parents() if self._is_own(each) and each not in self.removed_folders]
        return staying[-1]

    def _is_own(self, folder: bytes) -> bool:
        """Return whether a path below the root is a real folder of this working tree."""
        return self._folders.at(folder)

    def _is_own_in(self, above: bool, folder: bytes) -> bool:
        return above and self._is_own_folder(parent_of(folder), name_of(folder))

    def _is_own_folder(self, above: bytes, name: bytes) -> bool:
        with self._tree.child(above) as folder:
            if not is_folder(folder.status(name)):
                return False
            with folder.child(name) as inner:
                # Another repository, or a submodule: its files are not ours.
                return inner.status(b".git") is None

    def _can_make_folders(self, path: RepoPath) -> bool:
        """Return whether the missing folders above a path can be made: their names are free."""
        for each in list(path.parents())[1:]:
            if self._is_own(each):
                continue
            if self._is_own(parent_of(each)) and each not in self._deleted:
                with self._tree.child(parent_of(each)) as above:
                    if above.status(name_of(each)) is not None:
                        return False
            self.new_folders.add(each)
        return True

    def _can_replace_folder(self, path: bytes) -> bool:
        """Return whether a folder has only deleted files, so that a file can replace it."""
        found: dict[bytes, int] = {}
        with self._tree.child(path) as folder:
            if not self._is_emptied(folder, path, found):
                return False
        self.removed_folders |= found
        return True

    def _is_emptied(self, folder: OpenFolder, path: bytes, found: dict[bytes, int]) -> bool:
        found[path] = stat.S_IMODE(folder.own_status().st_mode)
        for name in folder.names():
            inner = join(path, name)
            if is_git_alias(name):
                return False
            if is_folder(folder.status(name)):
                with folder.child(name) as below:
                    if not self._is_emptied(below, inner, found):
                        return False
            elif inner not in self._deleted:
                return False
        return True


def verify(workspace: Workspace, entries: Iterable[JournalEntry]) -> None:
    """Check again the entries that were not written yet.

    Raises:
        ConcurrentChangeError: something is not as it was planned.
    """
    _raise_changed(workspace, [entry for entry in entries if not _is_still(workspace, entry)])


def verify_kept(workspace: Workspace, entries: Iterable[JournalEntry]) -> None:
    """Check the old files after the exchange: an editor may have saved just before, or still be writing.

    Raises:
        ConcurrentChangeError: it is not what was judged.
    """
    kept = [entry for entry in entries if entry.old is not None]
    _raise_changed(workspace, [entry for entry in kept if workspace.at_aside(entry) != entry.old])


def _is_still(workspace: Workspace, entry: JournalEntry) -> bool:
    found = workspace.at_path(entry)
    return found == entry.old or (entry.old is None and found is not None and found.mode == FOLDER)


def _raise_changed(workspace: Workspace, changed: Sequence[JournalEntry]) -> None:
    if changed:
        raise ConcurrentChangeError([workspace.path_of(entry) for entry in changed])
