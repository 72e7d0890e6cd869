"""What a killed landing left, and how it ends: all old, or all new.

Decides which transactions are to be looked at, and hands each back with its outcome, for the caller to
record. Nothing is guessed: what cannot be believed, or stands in the way, is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from patchgate.errors import UndecidedError
from patchgate.git.left_over import FOLDER
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.git.transaction import index_lock
from patchgate.git.transaction.belonging import find
from patchgate.git.transaction.journal import (
    JOURNAL,
    LANDED,
    PREPARED,
    UNDONE,
    Journal,
    discard,
    read_journal,
)
from patchgate.git.transaction.keeping import Keeping
from patchgate.git.transaction.obstacles import DirtyWorkspaceError, WriteFailedError
from patchgate.git.transaction.rollback import Rollback
from patchgate.git.transaction.site import Site
from patchgate.git.transaction.tidying import tidy
from patchgate.storage import lock
from patchgate.storage.folder import Folder, is_folder
from patchgate.storage.owner import Owner
from patchgate.storage.record import Json
from patchgate.storage.steps import Steps
from patchgate.storage.unbroken import unbroken

_LOCK = "patchgate/apply.lock"
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Left:
    """A landing whose record is still there.

    `interrupted`: it may be half done. `landed` and `undone`: it is whole, and was not recorded yet.
    """

    id: str
    note: Mapping[str, Json]
    state: Literal["interrupted", "landed", "undone"]
    is_running: bool


@dataclass(frozen=True, slots=True)
class Recovered:
    """A landing that is whole now; `kept` are the paths that were left as a person wrote them."""

    id: str
    note: Mapping[str, Json]
    outcome: Literal["undone", "landed"]
    kept: tuple[RepoPath, ...]
    _common_dir: str
    _steps: Steps

    def finish(self) -> None:
        """Let the record go, for the caller has its own now; what cannot be removed comes back next time."""
        with suppress(OSError), open_transactions(self._common_dir, self._steps) as transactions:
            discard(transactions, os.fsencode(self.id))


@contextmanager
def open_transactions(common_dir: str, steps: Steps) -> Iterator[Folder]:
    """Open the folder in which each transaction has its own; it is made where it is missing."""
    with Folder.open(common_dir, steps) as root:
        above, _, name = FOLDER.partition("/")
        with root.child(above.encode()) as own:
            if own.status(name.encode()) is None:
                own.make(name.encode(), 0o700)
                own.flush()
            with own.child(name.encode()) as transactions:
                yield transactions


def left(repository: Repository) -> list[Left]:
    """List what landings left, without a lock; nothing is changed. One look where there is nothing."""
    found = []
    for name in _names(repository):
        state, note, is_running = "interrupted", dict[str, Json](), False
        with suppress(OSError), Folder.open(_path(repository, name)) as folder:
            try:
                read = read_journal(folder)
            except UndecidedError:
                read = None
            else:
                if read is None and folder.status(JOURNAL) is None:
                    # No journal yet, or no longer: it touches nothing.
                    continue
            if read is not None:
                state = read[0].decode() if read[0] in {LANDED, UNDONE} else "interrupted"
                note, is_running = dict(read[1].note), read[1].owner.is_running()
        found.append(Left(os.fsdecode(name), note, _state(state), is_running))
    return found


def recover(
    repository: Repository,
    *,
    keep: bool = False,
    patience_seconds: float = _PATIENCE_SECONDS,
    faults: Steps | None = None,
) -> list[Recovered]:
    """Finish or undo what landings left; the caller records each, then calls its `finish`.

    It may be killed at any point, and be called again. One whose process still runs and has only its own
    record to make is left alone.

    Args:
        repository: any working tree of the repository.
        keep: leave files that a person wrote since as they are, and undo the rest.
        patience_seconds: how long to wait for each of the two locks.
        faults: numbered fault points.

    Raises:
        DirtyWorkspaceError: a person wrote since; nothing of that landing was changed.
        WriteFailedError: the system refused a step; try again when that is put right.
        UndecidedError: a lock is held, a journal is damaged or of another repository, or a working tree
                is gone.
    """
    if not _names(repository):
        return []
    steps = faults or Steps()
    recovered = []
    path = os.path.join(repository.common_dir, _LOCK)
    try:
        with (
            lock.hold(path, timeout_seconds=patience_seconds, faults=steps),
            unbroken(),
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
    transactions: Folder,
    name: bytes,
    keep: bool,
    patience_seconds: float,
    steps: Steps,
) -> Recovered | None:
    with transactions.child(name) as folder:
        read = read_journal(folder)
        if read is None:
            discard(transactions, name)
            return None
        state, journal = read
        if state != JOURNAL and journal.owner.is_running() and journal.owner != Owner.current():
            return None
        # A kill may have come between these names and their flush.
        folder.flush()
        transactions.flush()
        kept: tuple[RepoPath, ...] = ()
        if state != UNDONE:
            with Site(*find(repository, journal, folder), steps) as site:
                # What the killed process saw as done need not be on the disk; what follows builds on it.
                site.touch_all(journal.places, [path for path, _ in journal.vanishing])
                site.flush()
                keeping = Keeping(repository.common_dir, os.fsdecode(name), steps)
                if state == LANDED:
                    tidy(site, folder, journal, keeping)
                else:
                    kept = _undo(site, folder, journal, keeping, keep, patience_seconds)
        outcome: Literal["undone", "landed"] = "landed" if state == LANDED else "undone"
        return Recovered(os.fsdecode(name), journal.note, outcome, kept, repository.common_dir, steps)


def _undo(
    site: Site, folder: Folder, journal: Journal, keeping: Keeping, keep: bool, patience_seconds: float
) -> tuple[RepoPath, ...]:
    index_lock.take(site, folder, journal, patience_seconds)
    # Without the mark nothing has changed places, whatever stands there now: a person may have put it there.
    untouched = () if folder.status(PREPARED) is not None else journal.places
    rollback = Rollback(site, journal, keeping, untouched)
    try:
        rollback.run(keep=keep)
    except (DirtyWorkspaceError, OSError):
        index_lock.release_quietly(site, folder, journal)
        raise
    index_lock.release(site, folder, journal)
    site.touch_index()
    site.flush()
    folder.rename(JOURNAL, UNDONE)
    folder.flush()
    return tuple(site.path_of(place) for place in rollback.kept)


def _names(repository: Repository) -> list[bytes]:
    try:
        return sorted(os.listdir(os.fsencode(os.path.join(repository.common_dir, FOLDER))))
    except FileNotFoundError:
        return []


def _path(repository: Repository, name: bytes) -> bytes:
    return os.path.join(os.fsencode(repository.common_dir), FOLDER.encode(), name)


def _state(name: str) -> Literal["interrupted", "landed", "undone"]:
    if name == "landed":
        return "landed"
    return "undone" if name == "undone" else "interrupted"
