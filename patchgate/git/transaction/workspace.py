"""The working tree and the index's folder that a transaction writes to, git's lock, and saved contents.

Every change is one call of `storage`, and the folders in which names changed are remembered until they are
flushed. The order is decided elsewhere. Git makes the same lock file (`O_EXCL`) for every write of the
index, so git and a transaction exclude each other.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from patchgate.errors import UndecidedError
from patchgate.git.model import folders_above
from patchgate.git.path import RepoPath
from patchgate.git.quoting import quote_path
from patchgate.git.transaction.entries import (
    EXECUTABLE,
    LINK,
    PART,
    Fingerprint,
    JournalEntry,
    fingerprint_at,
    fingerprint_in,
    is_reachable,
    is_same_file,
    join,
    name_of,
    parent_of,
    remove_if_there,
)
from patchgate.git.transaction.journal import LOCK, Journal
from patchgate.storage.filesystem import FaultPoints
from patchgate.storage.open_folder import OpenFolder, is_folder
from patchgate.storage.signals import is_signal_pending

_KEPT = b"patchgate/kept"


class SavedContents:
    """The folder of one transaction's saved contents; it is made for the first one."""

    def __init__(self, common_dir: str, identity: str, steps: FaultPoints) -> None:
        self._common_dir = common_dir
        self._folder = join(_KEPT, os.fsencode(identity))
        self._steps = steps

    def save(self, folder: OpenFolder, name: bytes, path: bytes) -> bytes:
        """Copy a file or a link under its old path; return where the copy is.

        It is on disk when this returns. The same content is saved only once.
        """
        found = fingerprint_in(folder, name)
        with OpenFolder.open(self._common_dir, self._steps) as root:
            below = join(self._folder, parent_of(path)) if parent_of(path) else self._folder
            _make_folders(root, below)
            with root.child(below) as kept:
                free = name_of(path)
                while (there := fingerprint_in(kept, free)) is not None and there != found:
                    free += b"~"
                if there is None:
                    if found is not None and found.mode == LINK:
                        kept.symlink(free, folder.read_link(name))
                    else:
                        mode = 0o700 if found is not None and found.mode == EXECUTABLE else 0o600
                        growing = free + b".part"
                        with suppress(FileNotFoundError):
                            kept.unlink(growing)
                        kept.write(growing, folder.read(name), mode=mode)
                        kept.rename(growing, free)
                    kept.flush()
                return kept.at(free)


def _make_folders(root: OpenFolder, path: bytes) -> None:
    """Make every missing folder of a path, and flush each name."""
    parts = path.split(b"/")
    for depth in range(len(parts)):
        with root.child(b"/".join(parts[:depth])) as above:
            if above.status(parts[depth]) is None:
                above.make(parts[depth], 0o700)
                above.flush()


class Workspace:
    """The two roots, opened: the working tree and the folder of the index; use it as a context manager."""

    def __init__(self, work_tree: str, index_file: str, steps: FaultPoints) -> None:
        self._touched: set[tuple[bool, bytes]] = set()
        self.tree = OpenFolder.open(work_tree, steps)
        self.index_name = os.path.basename(os.fsencode(index_file))
        try:
            self.index = OpenFolder.open(os.path.dirname(index_file), steps)
        except OSError:
            self.tree.__exit__()
            raise

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *error: object) -> None:
        self.tree.__exit__()
        self.index.__exit__()

    def root(self, entry: JournalEntry) -> OpenFolder:
        """Return the root of an entry."""
        return self.index if entry.is_index else self.tree

    @contextmanager
    def pair(self, entry: JournalEntry) -> Iterator[tuple[OpenFolder, OpenFolder]]:
        """Open the folder of the entry itself, and the folder of its temporary content."""
        root = self.root(entry)
        with root.child(entry.parent) as target, root.child(entry.folder) as aside:
            yield target, aside

    def at_path(self, entry: JournalEntry) -> Fingerprint | None:
        """Read the fingerprint of an entry; None also if a folder above it is missing or a link."""
        return fingerprint_at(self.root(entry), entry.path)

    def at_aside(self, entry: JournalEntry, name: bytes | None = None) -> Fingerprint | None:
        """Read the fingerprint of an entry's temporary file, or of another name there."""
        return fingerprint_at(self.root(entry), join(entry.folder, name or entry.aside))

    def path_of(self, entry: JournalEntry | None, path: bytes = b"") -> RepoPath:
        """Return an entry, or a folder, as a path; the index by its full path."""
        if entry is None:
            return RepoPath(path)
        return RepoPath(self.index.at(entry.path) if entry.is_index else entry.path)

    def quoted_name(self, entry: JournalEntry, name: bytes | None = None) -> str:
        """Return an entry, or a temporary name of it, as text that is safe for a terminal."""
        if entry.is_index:
            return quote_path(self.index.at(name or entry.path))
        return quote_path(entry.path if name is None else join(entry.folder, name))

    def move_aside(self, entry: JournalEntry) -> None:
        """Move a file to its temporary name, which is free."""
        with self.pair(entry) as (target, aside):
            target.move(entry.name, aside, entry.aside)
        self._touch_both(entry)

    def move_back(self, entry: JournalEntry) -> None:
        """Move the temporary file to its target, which must be free."""
        with self.pair(entry) as (target, aside):
            aside.move(entry.aside, target, entry.name)
        self._touch_both(entry)

    def exchange(self, entry: JournalEntry) -> None:
        """Exchange a file with its temporary file."""
        with self.pair(entry) as (target, aside):
            aside.exchange(entry.aside, target, entry.name)
        self._touch_both(entry)

    def remove_aside(self, entry: JournalEntry, name: bytes) -> None:
        """Remove one of the temporary names, if it exists."""
        with self.root(entry).child(entry.folder) as aside:
            if aside.status(name) is not None:
                aside.unlink(name)
                self._touched.add((entry.is_index, entry.folder))

    def make_folder(self, path: bytes) -> None:
        """Make a folder of the working tree; it may exist already."""
        with self.tree.child(parent_of(path)) as above:
            if not is_folder(above.status(name_of(path))):
                above.make(name_of(path))
        self._touched |= {(False, path), (False, parent_of(path))}

    def set_folder_mode(self, path: bytes, bits: int) -> None:
        """Restore the permission bits of a folder of the working tree."""
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

    def touch_all(self, entries: Iterable[JournalEntry], folders: Iterable[bytes]) -> None:
        """Note every folder in which a transaction of these entries may have changed a name."""
        self.touch_index()
        known = list(entries)
        for is_index in (False, True):
            here = [entry for entry in known if entry.is_index == is_index]
            above = folders_above(RepoPath(entry.path) for entry in here)
            self._touched |= {(is_index, path) for path in (*above, *(entry.folder for entry in here))}
        self._touched |= {(False, path) for path in folders_above(map(RepoPath, folders))}
        self.forget_missing()

    def forget_missing(self) -> None:
        """Forget the folders that are gone: they need no flush."""
        self._touched = {
            (is_index, path)
            for is_index, path in self._touched
            if is_reachable(self.index if is_index else self.tree, path)
        }

    def flush(self) -> None:
        """Flush every folder in which a name changed."""
        for is_index, path in sorted(self._touched):
            with (self.index if is_index else self.tree).child(path) as folder:
                folder.flush()
        self._touched.clear()

    def _touch_both(self, entry: JournalEntry) -> None:
        self._touched |= {(entry.is_index, entry.parent), (entry.is_index, entry.folder)}


_LOCK_MODE = 0o644
_POLL_SECONDS = 0.02
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def prepare_lock(transaction: OpenFolder, identity: str) -> None:
    """Make the file that becomes the lock; its folder is flushed with the journal."""
    transaction.write(LOCK, _token(identity), mode=_LOCK_MODE, flushed=False)


def acquire_lock(
    workspace: Workspace, transaction: OpenFolder, journal: Journal, patience_seconds: float
) -> None:
    """Acquire git's lock, unless it is ours already.

    Raises:
        UndecidedError: another process has it for longer than we wait, or a signal asks us to end.
    """
    deadline = time.monotonic() + patience_seconds
    while not is_lock_ours(workspace, transaction, journal):
        try:
            _try_to_acquire(workspace, transaction, journal)
        except FileExistsError:
            if time.monotonic() >= deadline or is_signal_pending():
                raise _lock_error(workspace) from None
            time.sleep(_POLL_SECONDS)


def release_lock(workspace: Workspace, transaction: OpenFolder, journal: Journal) -> None:
    """Remove the lock if it is ours, and its temporary files; the caller flushes the folder."""
    for name in (journal.lock_aside + PART, journal.lock_aside):
        remove_if_there(workspace.index, name)
    if is_lock_ours(workspace, transaction, journal):
        remove_if_there(workspace.index, _lock_name(workspace))


def release_lock_quietly(workspace: Workspace, transaction: OpenFolder, journal: Journal) -> None:
    """Unlock git, so that the user can fix what blocks the rollback; `recover` locks it again."""
    with suppress(OSError):
        release_lock(workspace, transaction, journal)


def is_lock_ours(workspace: Workspace, transaction: OpenFolder, journal: Journal) -> bool:
    """Return whether the lock exists and is ours."""
    if is_same_file(transaction, LOCK, workspace.index, _lock_name(workspace)):
        return True
    token = _token(journal.id)
    status = workspace.index.status(_lock_name(workspace))
    if status is None or status.st_size != len(token):
        return False
    try:
        return workspace.index.read(_lock_name(workspace)) == token
    except OSError:
        return False


def _try_to_acquire(workspace: Workspace, transaction: OpenFolder, journal: Journal) -> None:
    if transaction.status(LOCK) is not None:
        try:
            transaction.link(LOCK, workspace.index, _lock_name(workspace))
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
        else:
            return
    # Another file system than the transaction's, or one without hard links: by its content, which is on
    # disk before the name is.
    if workspace.index.status(_lock_name(workspace)) is not None:
        raise FileExistsError(errno.EEXIST, "held", workspace.index.at(_lock_name(workspace)))
    remove_if_there(workspace.index, journal.lock_aside)
    workspace.index.write(journal.lock_aside, _token(journal.id), mode=_LOCK_MODE)
    workspace.index.move(journal.lock_aside, workspace.index, _lock_name(workspace))


def _lock_name(workspace: Workspace) -> bytes:
    return workspace.index_name + b".lock"


def _token(identity: str) -> bytes:
    return f"patchgate transaction {identity}\n".encode()


def _lock_error(workspace: Workspace) -> UndecidedError:
    name = quote_path(workspace.index.at(_lock_name(workspace)))
    return UndecidedError(
        f"git's lock {name} exists: another git command is running in this repository, or was killed",
        f"wait until it ends, or, if none is running, remove {name}; then run the command again",
    )
