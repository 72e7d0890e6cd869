"""Finish or undo the transactions that killed processes left, if they belong to this repository.

A transaction is touched only in the folder that it wrote (device and inode, from the journal), even if that
was moved. A copy of the repository never changes the tree that it was copied from. Nothing is guessed: a
journal that is not valid, or a file that blocks the rollback, is an error. The caller records each outcome.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import quote_path
from patchgate.git.repository import TRANSACTIONS, Repository
from patchgate.git.transaction.journal import (
    APPLIED,
    JOURNAL,
    PREPARED,
    UNDONE,
    Journal,
    discard,
    identity_of,
    read_journal,
)
from patchgate.git.transaction.preflight import DirtyWorkspaceError, WriteFailedError
from patchgate.git.transaction.rollback import Rollback, clean_up
from patchgate.git.transaction.workspace import (
    SavedContents,
    Workspace,
    acquire_lock,
    release_lock,
    release_lock_quietly,
)
from patchgate.storage.filesystem import FaultPoints
from patchgate.storage.lock import acquire
from patchgate.storage.open_folder import OpenFolder, is_folder
from patchgate.storage.owner import Owner
from patchgate.storage.record import Json
from patchgate.storage.signals import defer_signals
from patchgate.values import dataclass

_MOST_BYTES = 1 << 14


def journal_index_name(repository: Repository) -> str:
    """Return the index as journals have it: the name alone in the git directory, otherwise the path."""
    folder, name = os.path.split(repository.index_file)
    is_own = "index" in name and _is_same(folder, repository.git_dir)
    return name if is_own else repository.index_file


def find_working_tree(repository: Repository, journal: Journal, record: OpenFolder) -> tuple[str, str]:
    """Find the working tree of a journal, and its index.

    Raises:
        UndecidedError: it is not a working tree of this repository, or is missing, or uses another index.
    """
    for tree, git_dir in _candidates(repository, journal):
        if _is_meant(repository, journal, tree):
            return tree, _index_of(repository, journal, git_dir, record)
    quoted_name, own = quote_path(os.fsencode(journal.work_tree)), quote_path(record.path)
    if not os.path.isdir(journal.work_tree):
        raise UndecidedError(
            f"the working tree {quoted_name} of an interrupted apply does not exist",
            f"restore it, or run the command where it is now, or remove the record {own}",
        )
    raise UndecidedError(
        f"the record {own} of an interrupted apply belongs to another working tree ({quoted_name})",
        "if this is a copy, or that tree was recreated, run git status to see what the apply left here"
        " (.patchgate-*, git's index.lock), then remove that record; otherwise run git patchgate recover"
        " there",
    )


def _candidates(repository: Repository, journal: Journal) -> Iterator[tuple[str, str]]:
    """Yield the working trees of this repository, each with its git directory; the most likely first."""
    if repository.work_tree is not None:
        yield repository.work_tree, repository.git_dir
    linked = os.path.join(repository.common_dir, "worktrees")
    names = sorted(os.listdir(linked)) if os.path.isdir(linked) else []
    pointers = [_line(os.path.join(linked, name, "gitdir")) for name in names]
    for tree in (journal.work_tree, os.path.dirname(repository.common_dir), *map(os.path.dirname, pointers)):
        git_dir = _git_dir_of(tree, repository.common_dir)
        if git_dir is not None:
            yield tree, git_dir


def _git_dir_of(tree: str, common_dir: str) -> str | None:
    """Follow a tree's `.git` to its git directory; None if that is not one of this repository.

    Source: gitrepository-layout(5), `gitdir` and `commondir`.
    """
    entry = os.path.join(tree, ".git")
    git_dir = entry
    if not os.path.isdir(entry):
        line = _line(entry)
        if not line.startswith("gitdir: "):
            return None
        git_dir = os.path.join(tree, line.removeprefix("gitdir: "))
    if _is_same(git_dir, common_dir):
        return git_dir
    is_linked = _is_same(os.path.dirname(git_dir), os.path.join(common_dir, "worktrees"))
    leads_back = _is_same(os.path.join(git_dir, _line(os.path.join(git_dir, "gitdir"))), entry)
    return git_dir if is_linked and leads_back else None


def _is_meant(repository: Repository, journal: Journal, tree: str) -> bool:
    try:
        found = identity_of(os.stat(tree)), identity_of(os.stat(repository.common_dir))
    except OSError:
        return False
    known = journal.tree, journal.common
    if journal.owner.boot_id != Owner.current().boot_id:
        # Device numbers may change after a restart.
        found, known = (_inode(found[0]), _inode(found[1])), (_inode(known[0]), _inode(known[1]))
    is_other = found[0] != known[0] and found[1] != known[1]
    is_whole = _is_same(os.path.join(tree, ".git"), repository.common_dir)
    return found == known or (is_other and is_whole and tree == journal.work_tree)


def _index_of(repository: Repository, journal: Journal, git_dir: str, record: OpenFolder) -> str:
    if os.path.isabs(journal.index_file):
        if journal.index_file != repository.index_file:
            quoted_name = quote_path(os.fsencode(journal.index_file))
            raise UndecidedError(
                f"an interrupted apply used another index: {quoted_name}",
                "run git patchgate recover with GIT_INDEX_FILE set to it, or, if it is gone, remove the"
                f" record {quote_path(record.path)}",
            )
        return journal.index_file
    return os.path.join(git_dir, journal.index_file)


def _inode(identity: str) -> str:
    return identity.partition(":")[2]


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def _line(path: str) -> str:
    """Read a file of one line; empty if there is none."""
    try:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return os.fsdecode(file.read(_MOST_BYTES).rstrip(b"\r\n"))
    except (OSError, ValueError):
        pass
    return ""


LOCK = "patchgate/apply.lock"
PATIENCE_SECONDS = 5.0
_STATES: Mapping[bytes, Literal["interrupted", "landed", "undone"]] = {
    JOURNAL: "interrupted",
    APPLIED: "landed",
    UNDONE: "undone",
}


@dataclass(frozen=True, slots=True)
class PendingTransaction:
    """A transaction whose record still exists.

    `interrupted`: it may be half done. `landed` and `undone`: it is complete, but not in the ledger yet.
    """

    id: str
    note: Mapping[str, Json]
    state: Literal["interrupted", "landed", "undone"]
    is_running: bool


@dataclass(frozen=True, slots=True)
class RecoveredTransaction:
    """A transaction that is complete now; `kept` are the paths that were edited since; they stay."""

    id: str
    note: Mapping[str, Json]
    outcome: Literal["undone", "landed"]
    kept: tuple[RepoPath, ...]
    _common_dir: str
    _steps: FaultPoints

    def finish(self) -> None:
        """Remove the record, once the caller has its own; what cannot be removed comes back next time."""
        with suppress(OSError), open_transactions(self._common_dir, self._steps) as transactions:
            discard(transactions, os.fsencode(self.id))


@contextmanager
def open_transactions(common_dir: str, steps: FaultPoints) -> Iterator[OpenFolder]:
    """Open the folder of all transactions; it is made if it is missing."""
    with OpenFolder.open(common_dir, steps) as root:
        above, _, name = TRANSACTIONS.partition("/")
        with root.child(above.encode()) as own:
            if own.status(name.encode()) is None:
                own.make(name.encode(), 0o700)
                own.flush()
            with own.child(name.encode()) as transactions:
                yield transactions


def pending_transactions(repository: Repository) -> list[PendingTransaction]:
    """List the pending transactions, without a lock; nothing is changed."""
    found = []
    for name in _names(repository):
        state, note, is_running = JOURNAL, dict[str, Json](), False
        with suppress(OSError), OpenFolder.open(_path(repository, name)) as folder:
            try:
                read = read_journal(folder)
            except UndecidedError:
                read = None
            else:
                if read is None and folder.status(JOURNAL) is None:
                    # No journal yet, or no longer: it changed nothing.
                    continue
            if read is not None:
                state, note, is_running = read[0], dict(read[1].note), read[1].owner.is_running()
        found.append(
            PendingTransaction(id=os.fsdecode(name), note=note, state=_STATES[state], is_running=is_running)
        )
    return found


def recover(
    repository: Repository,
    *,
    keep: bool = False,
    patience_seconds: float = PATIENCE_SECONDS,
    faults: FaultPoints | None = None,
) -> list[RecoveredTransaction]:
    """Finish or undo the pending transactions; the caller records each, then calls its `finish`.

    It may be killed at any point, and called again. One whose process still runs and has only its own
    record to write is left alone.

    Args:
        repository: any working tree of the repository.
        keep: leave files that were edited since, and undo the rest.
        patience_seconds: how long to wait for each of the two locks.
        faults: numbered fault points.

    Raises:
        DirtyWorkspaceError: a file was edited since; nothing of that transaction was changed.
        WriteFailedError: the system refused a step; fix that, then try again.
        UndecidedError: a lock is held, a journal is damaged or of another repository, or a working tree
                is gone.
    """
    if not _names(repository):
        return []
    steps = faults or FaultPoints()
    recovered = []
    path = os.path.join(repository.common_dir, LOCK)
    try:
        with (
            acquire(path, timeout_seconds=patience_seconds, faults=steps),
            defer_signals(),
            open_transactions(repository.common_dir, steps) as transactions,
        ):
            for name in sorted(transactions.names()):
                if not is_folder(transactions.status(name)):
                    continue
                done = _recover_one(repository, transactions, name, keep, patience_seconds, steps)
                if done is not None:
                    recovered.append(done)
    except OSError as error:
        raise WriteFailedError(error, recovering=True) from error
    return recovered


def _recover_one(
    repository: Repository,
    transactions: OpenFolder,
    name: bytes,
    keep: bool,
    patience_seconds: float,
    steps: FaultPoints,
) -> RecoveredTransaction | None:
    with transactions.child(name) as folder:
        read = read_journal(folder)
        if read is None:
            discard(transactions, name)
            return None
        state, journal = read
        if state != JOURNAL and journal.owner.is_running() and journal.owner != Owner.current():
            return None
        # A kill may have happened between these renames and their flush.
        folder.flush()
        transactions.flush()
        kept: tuple[RepoPath, ...] = ()
        if state != UNDONE:
            with Workspace(*find_working_tree(repository, journal, folder), steps) as workspace:
                # The killed process's steps may not be on disk, but the next steps depend on them.
                workspace.touch_all(journal.entries, [path for path, _ in journal.removed_folders])
                workspace.flush()
                backup = SavedContents(repository.common_dir, os.fsdecode(name), steps)
                if state == APPLIED:
                    clean_up(workspace, folder, journal, backup)
                else:
                    kept = _undo(workspace, folder, journal, backup, keep, patience_seconds)
        outcome: Literal["undone", "landed"] = "landed" if state == APPLIED else "undone"
        return RecoveredTransaction(
            id=os.fsdecode(name),
            note=journal.note,
            outcome=outcome,
            kept=kept,
            _common_dir=repository.common_dir,
            _steps=steps,
        )


def _undo(
    workspace: Workspace,
    folder: OpenFolder,
    journal: Journal,
    backup: SavedContents,
    keep: bool,
    patience_seconds: float,
) -> tuple[RepoPath, ...]:
    acquire_lock(workspace, folder, journal, patience_seconds)
    # Without the mark no file was exchanged: another process may have written what is there now.
    untouched = () if folder.status(PREPARED) is not None else journal.entries
    rollback = Rollback(workspace=workspace, journal=journal, backup=backup, untouched=untouched)
    try:
        rollback.run(keep=keep)
    except (DirtyWorkspaceError, OSError):
        release_lock_quietly(workspace, folder, journal)
        raise
    release_lock(workspace, folder, journal)
    workspace.touch_index()
    workspace.flush()
    folder.rename(JOURNAL, UNDONE)
    folder.flush()
    return tuple(workspace.path_of(entry) for entry in rollback.kept)


def _names(repository: Repository) -> list[bytes]:
    try:
        return sorted(os.listdir(os.fsencode(os.path.join(repository.common_dir, TRANSACTIONS))))
    except FileNotFoundError:
        return []


def _path(repository: Repository, name: bytes) -> bytes:
    return os.path.join(os.fsencode(repository.common_dir), TRANSACTIONS.encode(), name)
