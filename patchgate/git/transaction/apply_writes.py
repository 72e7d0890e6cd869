"""Write a set of files to the working tree, and to the index with them: all of it, or nothing.

The new contents are flushed to disk next to their targets, each is exchanged with the old one, and the
journal is renamed to `landed`: with that rename the patch is applied. Until then every error undoes
everything. Afterwards the old contents, the empty folders and git's lock are removed.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import quote_path
from patchgate.git.repository import Repository
from patchgate.git.transaction.entries import EXECUTABLE, LINK, FileContent, JournalEntry, Write
from patchgate.git.transaction.journal import APPLIED, JOURNAL, PREPARED, Journal, discard, identity_of
from patchgate.git.transaction.preflight import (
    ConcurrentChangeError,
    DirtyWorkspaceError,
    WriteFailedError,
    WritePlan,
    describe_error,
    plan_writes,
    verify,
    verify_kept,
)
from patchgate.git.transaction.recovery import LOCK, PATIENCE_SECONDS, journal_index_name, open_transactions
from patchgate.git.transaction.rollback import Rollback, clean_up
from patchgate.git.transaction.workspace import (
    SavedContents,
    Workspace,
    acquire_lock,
    prepare_lock,
    release_lock,
    release_lock_quietly,
)
from patchgate.storage.filesystem import FaultPoints
from patchgate.storage.lock import acquire
from patchgate.storage.open_folder import OpenFolder
from patchgate.storage.owner import Owner
from patchgate.storage.record import Json
from patchgate.storage.signals import defer_signals
from patchgate.values import dataclass


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """A patch that is applied.

    `kept` names the old files that were saved, because they were edited after the last check.
    """

    id: str
    kept: tuple[str, ...]
    _common_dir: str
    _is_tidy: bool
    _steps: FaultPoints

    def finish(self) -> None:
        """Remove the record, once the caller has its own; what cannot be removed, `recover` removes."""
        if not self._is_tidy:
            return
        with suppress(OSError), open_transactions(self._common_dir, self._steps) as transactions:
            discard(transactions, os.fsencode(self.id))


def write_files(
    repository: Repository,
    writes: Sequence[Write],
    *,
    note: Mapping[str, Json],
    index: bytes | None = None,
    patience_seconds: float = PATIENCE_SECONDS,
    look: Callable[[], None] = lambda: None,
    faults: FaultPoints | None = None,
) -> WrittenFiles:
    """Write all of it, or nothing; applied and on disk when this returns.

    SIGINT, SIGTERM and SIGHUP are deferred. After a kill or a power cut at any point, `recover` makes it
    all old, or all new.

    Args:
        repository: with a working tree.
        writes: each path once; `old` is compared with the disk, byte for byte.
        note: the caller's data, stored in the journal, returned by `recover`.
        index: the whole new content of the index file; None leaves it unchanged.
        patience_seconds: how long to wait for each of the two locks.
        look: the caller's second check, under both locks; if it raises, nothing is written.
        faults: numbered fault points.

    Raises:
        ConcurrentChangeError: something is not as it was judged; nothing was written, or it was undone.
        WriteFailedError: the system refused a step; nothing was changed.
        DirtyWorkspaceError: the rollback failed too; the journal stays for `recover`.
        UndecidedError: a lock is held, or an earlier transaction was interrupted and waits for `recover`.
        UsageError: there is no working tree.
    """
    if repository.work_tree is None:
        raise UsageError("there is no working tree here", "run this in a working tree")
    steps = faults or FaultPoints()
    lock_file = os.path.join(repository.common_dir, LOCK)
    try:
        with (
            acquire(lock_file, timeout_seconds=patience_seconds, faults=steps),
            defer_signals(),
            Workspace(repository.work_tree, repository.index_file, steps) as workspace,
            open_transactions(repository.common_dir, steps) as transactions,
        ):
            _refuse_pending(transactions)
            work = _WriteRun(
                repository=repository, workspace=workspace, transactions=transactions, steps=steps
            )
            return work.run(writes, note, index, patience_seconds, look)
    except OSError as error:
        raise WriteFailedError(error) from error


class _WriteRun:
    """One transaction, under our lock."""

    def __init__(
        self, repository: Repository, workspace: Workspace, transactions: OpenFolder, steps: FaultPoints
    ) -> None:
        self._repository = repository
        self._workspace = workspace
        self._transactions = transactions
        self._steps = steps
        self._id = secrets.token_hex(8)
        self._backup = SavedContents(repository.common_dir, self._id, steps)
        self._untouched: dict[bytes, JournalEntry] = {}

    def run(
        self,
        writes: Sequence[Write],
        note: Mapping[str, Json],
        index: bytes | None,
        patience_seconds: float,
        look: Callable[[], None],
    ) -> WrittenFiles:
        found = plan_writes(self._workspace, writes, _new_name)
        contents = {write.path.raw: write.new for write in writes}
        journal = self._journal(found, note, index)
        self._untouched = {entry.aside: entry for entry in journal.entries}
        name = os.fsencode(self._id)
        with ExitStack() as undo:
            undo.callback(self._discard, name)
            self._transactions.make(name, 0o700)
            with self._transactions.child(name) as folder:
                prepare_lock(folder, self._id)
                journal.write(folder)
                self._transactions.flush()
                with self._undone_on_error(folder, journal, undo):
                    acquire_lock(self._workspace, folder, journal, patience_seconds)
                    look()
                    verify(self._workspace, journal.entries)
                    self._prepare(journal, contents, index)
                    folder.write(PREPARED, b"", mode=0o600, flushed=False)
                    folder.flush()
                    self._exchange_files(journal)
                    verify_kept(self._workspace, journal.entries)
                    with self._touching(None):
                        self._workspace.flush()
                    self._commit(folder)
                undo.pop_all()
                kept: tuple[str, ...] = ()
                is_tidy = False
                # Applied: what cannot be cleaned up now, recover will.
                with suppress(OSError):
                    kept = clean_up(self._workspace, folder, journal, self._backup)
                    is_tidy = True
        return WrittenFiles(
            id=self._id,
            kept=kept,
            _common_dir=self._repository.common_dir,
            _is_tidy=is_tidy,
            _steps=self._steps,
        )

    def _journal(self, found: WritePlan, note: Mapping[str, Json], index: bytes | None) -> Journal:
        entries = found.entries
        if index is not None:
            entries += tuple(self._index_entry(index))
        return Journal(
            id=self._id,
            owner=Owner.current(),
            work_tree=self._repository.work_tree or "",
            index_file=journal_index_name(self._repository),
            prefix=os.fsencode(self._repository.prefix),
            note=note,
            new_folders=found.new_folders,
            removed_folders=found.removed_folders,
            lock_aside=_new_name(),
            entries=entries,
            tree=identity_of(self._workspace.tree.own_status()),
            common=identity_of(os.stat(self._repository.common_dir)),
        )

    def _index_entry(self, index: bytes) -> Iterator[JournalEntry]:
        entry = JournalEntry(
            path=self._workspace.index_name,
            folder=b"",
            aside=_new_name(),
            old=None,
            new=FileContent("100644", index).fingerprint,
            is_index=True,
        )
        old = self._workspace.at_path(entry)
        if old != entry.new:
            yield JournalEntry(
                path=entry.path, folder=b"", aside=entry.aside, old=old, new=entry.new, is_index=True
            )

    def _prepare(
        self, journal: Journal, contents: Mapping[bytes, FileContent | None], index: bytes | None
    ) -> None:
        """Write each new content to disk, next to its target."""
        for entry in journal.entries:
            content = FileContent("100644", index or b"") if entry.is_index else contents[entry.path]
            if content is None:
                continue
            with self._workspace.root(entry).child(entry.folder) as aside:
                if content.mode == LINK:
                    aside.symlink(entry.part, content.data)
                else:
                    bits = self._bits(entry)
                    natural = 0o777 if content.mode == EXECUTABLE else 0o666
                    mode = natural if bits is None else _with_exec_bit(bits, content.mode)
                    aside.write(entry.part, content.data, mode=mode, exactly=bits is not None)
                aside.rename(entry.part, entry.aside)

    def _bits(self, entry: JournalEntry) -> int | None:
        """Read the permission bits of the file at a path; None if there is none.

        Without setuid and the like: these rights were not given to the new content.
        """
        if entry.old is None or entry.old.mode == LINK:
            return None
        with self._workspace.root(entry).child(entry.parent) as folder:
            status = folder.status(entry.name)
        return None if status is None else status.st_mode & 0o777

    def _exchange_files(self, journal: Journal) -> None:
        """Remove deleted files, exchange changed ones, add new ones; the index comes last."""
        for entry in journal.entries:
            if entry.new is None:
                with self._touching(entry):
                    self._workspace.move_aside(entry)
        if journal.swaps:
            # Otherwise a power cut could keep the new owner of a name, and lose where the old one went.
            self._workspace.flush()
        for path, _ in journal.removed_folders:
            with self._touching(None, path):
                self._workspace.remove_folder(path)
        for path in journal.new_folders:
            with self._touching(None, path):
                self._workspace.make_folder(path)
        for entry in journal.entries:
            if entry.new is not None:
                with self._touching(entry):
                    if entry.old is None:
                        self._workspace.move_back(entry)
                    else:
                        self._workspace.exchange(entry)

    @contextmanager
    def _touching(self, entry: JournalEntry | None, path: bytes = b"") -> Iterator[None]:
        """Note that an entry is no longer untouched, and turn some OSErrors into concurrent changes."""
        if entry is not None and entry.new is not None:
            self._untouched.pop(entry.aside)
        try:
            yield
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.ELOOP}:
                raise ConcurrentChangeError([self._workspace.path_of(entry, path)]) from error
            raise
        if entry is not None:
            self._untouched.pop(entry.aside, None)

    def _commit(self, folder: OpenFolder) -> None:
        folder.rename(JOURNAL, APPLIED)
        try:
            folder.flush()
        except OSError:
            # It may or may not be on disk; the rollback begins by renaming it back. If
            # that fails, the patch is applied.
            try:
                folder.rename(APPLIED, JOURNAL)
            except OSError:
                return
            folder.flush()
            raise

    @contextmanager
    def _undone_on_error(self, folder: OpenFolder, journal: Journal, undo: ExitStack) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            try:
                self._workspace.forget_missing()
                Rollback(
                    workspace=self._workspace,
                    journal=journal,
                    backup=self._backup,
                    untouched=self._untouched.values(),
                ).run()
                release_lock(self._workspace, folder, journal)
                self._workspace.touch_index()
                self._workspace.flush()
            except DirtyWorkspaceError:
                undo.pop_all()
                release_lock_quietly(self._workspace, folder, journal)
                raise
            except OSError as second:
                undo.pop_all()
                release_lock_quietly(self._workspace, folder, journal)
                first = f"{describe_error(error)}, and " if isinstance(error, OSError) else ""
                raise DirtyWorkspaceError(
                    f"{first}undoing the writes failed: {describe_error(second)}",
                    [self._workspace.path_of(entry) for entry in journal.entries],
                ) from error
            raise

    def _discard(self, name: bytes) -> None:
        """Remove the transaction's folder; nothing outside it is left."""
        with suppress(OSError):
            discard(self._transactions, name)


def _refuse_pending(transactions: OpenFolder) -> None:
    """Refuse to begin while an earlier transaction is half done: its rollback needs the files as they are."""
    for name in transactions.names():
        with suppress(FileNotFoundError, NotADirectoryError), transactions.child(name) as folder:
            if folder.status(JOURNAL) is not None:
                raise UndecidedError(
                    f"an earlier apply was interrupted ({quote_path(folder.path)})",
                    "run git patchgate recover, then apply the patch again",
                )


def _with_exec_bit(bits: int, mode: str) -> int:
    """Add the exec bit wherever the bits allow reading, or remove it everywhere."""
    return bits | (bits & 0o444) >> 2 if mode == EXECUTABLE else bits & ~0o111


def _new_name() -> bytes:
    return b".patchgate-" + secrets.token_hex(8).encode()
