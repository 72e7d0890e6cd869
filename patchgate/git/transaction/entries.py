"""The entries of a transaction: the old content of each path, the new one, and its temporary name.

Contents are equal if kind, exec bit and bytes are. Every path is opened from a root, through no link. The new
content is written to `<aside>.part`, in the deepest folder above the path that stays. When it is complete on
disk it is renamed to `<aside>`, which is then exchanged with the old file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from functools import cached_property

from patchgate.git.path import RepoPath
from patchgate.storage.open_folder import UNFINISHED, OpenFolder
from patchgate.values import dataclass

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
FOLDER, SPECIAL = "040000", "other"
PART = b".part"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileContent:
    """The file at a path on disk: mode 100644, 100755 or 120000, and every byte (a link's target)."""

    mode: str
    data: bytes

    @property
    def fingerprint(self) -> Fingerprint:
        """The form that a journal stores."""
        return Fingerprint(self.mode, len(self.data), hashlib.sha256(self.data).hexdigest())


@dataclass(frozen=True, slots=True)
class Write:
    """One path to write: `old` as it was judged, byte for byte, and `new`; None means no file."""

    path: RepoPath
    old: FileContent | None
    new: FileContent | None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A file without its bytes; a folder and a special file have only a mode."""

    mode: str
    size: int = 0
    sha256: str = ""


@dataclass(frozen=True)
class JournalEntry:
    """One path of a transaction: below the working tree, or the index below its folder.

    `folder` is the folder of `aside`, below the same root.
    """

    path: bytes
    folder: bytes
    aside: bytes
    old: Fingerprint | None
    new: Fingerprint | None
    is_index: bool = False

    @cached_property
    def parent(self) -> bytes:
        """The folder of the path; empty at the root."""
        return parent_of(self.path)

    @property
    def name(self) -> bytes:
        """The last component of the path."""
        return name_of(self.path)

    @property
    def part(self) -> bytes:
        """The name of the new content while it is written."""
        return self.aside + PART

    @property
    def unfinished(self) -> bytes:
        """The name in between, if an exchange takes three moves."""
        return self.aside + UNFINISHED


def fingerprint_of(content: FileContent | None) -> Fingerprint | None:
    """Return the fingerprint of a content; None for None."""
    return None if content is None else content.fingerprint


def fingerprint_at(root: OpenFolder, path: bytes) -> Fingerprint | None:
    """Read the fingerprint of a path below an open folder; see `fingerprint_in`."""
    try:
        with root.child(parent_of(path)) as folder:
            return fingerprint_in(folder, name_of(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        if is_reachable(root, parent_of(path)):
            raise
        return None


def is_reachable(root: OpenFolder, path: bytes) -> bool:
    """Return whether a path is a real folder, and each folder above it is."""
    try:
        with root.child(path):
            return True
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            raise
        return False


def fingerprint_in(folder: OpenFolder, name: bytes) -> Fingerprint | None:
    """Read the fingerprint of a name in an open folder: kind, exec bit, and the hash of its bytes."""
    status = folder.status(name)
    if status is None:
        return None
    if stat.S_ISDIR(status.st_mode):
        return Fingerprint(FOLDER)
    if stat.S_ISLNK(status.st_mode):
        return FileContent(LINK, folder.read_link(name)).fingerprint
    if not stat.S_ISREG(status.st_mode):
        return Fingerprint(SPECIAL)
    digest, size = hashlib.sha256(), 0
    with os.fdopen(folder.open_file(name), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        while block := file.read(_CHUNK):
            digest.update(block)
            size += len(block)
    return Fingerprint(EXECUTABLE if mode & stat.S_IXUSR else FILE, size, digest.hexdigest())


def is_same_file(folder: OpenFolder, name: bytes, other: OpenFolder, other_name: bytes) -> bool:
    """Return whether two names are the same file."""
    first, second = folder.status(name), other.status(other_name)
    return first is not None and second is not None and os.path.samestat(first, second)


def remove_if_there(folder: OpenFolder, name: bytes) -> None:
    """Remove a name of ours; it may be gone."""
    if folder.status(name) is not None:
        with suppress(FileNotFoundError):
            folder.unlink(name)


def parent_of(path: bytes) -> bytes:
    """Return the folder of a path; empty at the root."""
    return path.rpartition(b"/")[0]


def name_of(path: bytes) -> bytes:
    """Return the last component of a path."""
    return path.rpartition(b"/")[2]


def join(folder: bytes, name: bytes) -> bytes:
    """Join a folder and a name."""
    return folder + b"/" + name if folder else name
