"""An open folder: changes go to this folder, even if its name leads elsewhere by now.

Below its descriptor no link is followed, no name leads out, and no file is overwritten unless that is the
call's purpose. Every call that changes the disk is one numbered step. Two renames that Python does not
offer (see `exchange`, `move`) become several steps where a system or file system does not have them.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from functools import cache

from patchgate.storage.filesystem import FaultPoints, attempt, flush, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self, TypeVar

    _Result = TypeVar("_Result")
    from typing import TypeAlias

    _Rename: TypeAlias = Callable[[int, bytes, int, bytes, int], int]


# linux/fs.h and macOS's sys/stdio.h.
_NO_REPLACE, _EXCHANGE = (4, 2) if sys.platform == "darwin" else (1, 2)
_NAME = "renameatx_np" if sys.platform == "darwin" else "renameat2"
# The errors of kernels and file systems (NFS, FUSE, 9p) that do not know the flag.
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


class UnsupportedError(OSError):
    """The system or the file system does not have this rename; nothing was done."""


def exchange(folder: int, name: bytes, other: int, other_name: bytes) -> None:
    """Exchange two files atomically.

    Raises:
        UnsupportedError: it cannot be done here.
        OSError: ENOENT if one of them is missing.
    """
    _rename(folder, name, other, other_name, _EXCHANGE)


def rename_exclusively(folder: int, name: bytes, other: int, other_name: bytes) -> None:
    """Rename a file to a name that must be free.

    Raises:
        UnsupportedError: it cannot be done here.
        OSError: EEXIST if the name exists.
    """
    _rename(folder, name, other, other_name, _NO_REPLACE)


def _rename(folder: int, name: bytes, other: int, other_name: bytes, flag: int) -> None:
    import ctypes

    call = _system_call()
    if call is None:
        raise UnsupportedError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, name, other, other_name, flag) == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        raise UnsupportedError(code, os.strerror(code))
    raise OSError(code, os.strerror(code))


@cache
def _system_call() -> _Rename | None:
    # Imported here, because only writing a patch needs it (4 ms).
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), _NAME, None)
    if call is None:
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    found: _Rename = call
    return found


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# The errors of link(2) on a file system without hard links.
_NO_LINK = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_NO_SINGLE_NAME = {b"", b".", b".."}
UNFINISHED = b".old"
"""What `exchange` adds to its first name for the file that it moves, where it takes three moves."""


class OpenFolder:
    """A folder that is open by its descriptor; a context manager.

    `path` is its path when it was opened, only for messages and records.
    """

    __slots__ = ("descriptor", "path", "steps")

    def __init__(self, descriptor: int, path: bytes, steps: FaultPoints) -> None:
        self.descriptor = descriptor
        self.path = path
        self.steps = steps

    @classmethod
    def open(cls, path: str | bytes, steps: FaultPoints | None = None) -> OpenFolder:
        """Open a root: a folder that the user named, so links on the way to it are followed."""
        raw = os.fsencode(path)
        return cls(os.open(raw, _FOLDER), raw, steps or FaultPoints())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.descriptor)

    def at(self, name: bytes) -> bytes:
        """Return the path of a name in this folder, for messages and records."""
        return os.path.join(self.path, name)

    def child(self, path: bytes) -> OpenFolder:
        """Open a folder below this one, not through a link at any component; empty: this one again.

        Raises:
            OSError: ENOENT, ENOTDIR or ELOOP if a component is missing, not a folder, or a link.
        """
        descriptor = os.open(b".", _FOLDER, dir_fd=self.descriptor)
        try:
            for component in path.split(b"/") if path else ():
                inner = os.open(self._single(component), _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
        except OSError as error:
            os.close(descriptor)
            error.filename = self.at(path)
            raise
        return OpenFolder(descriptor, self.at(path) if path else self.path, self.steps)

    def names(self) -> list[bytes]:
        """List the names in it, unordered."""
        return [os.fsencode(name) for name in os.listdir(self.descriptor)]

    def status(self, name: bytes) -> os.stat_result | None:
        """Return the status of a name, not through a link; None if it is missing."""
        try:
            return os.stat(self._single(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def own_status(self) -> os.stat_result:
        """Return the status of this folder."""
        return os.fstat(self.descriptor)

    def open_file(self, name: bytes) -> int:
        """Open a file for reading; a link is refused (ELOOP), a pipe does not block."""
        return os.open(self._single(name), _READING, dir_fd=self.descriptor)

    def read(self, name: bytes) -> bytes:
        """Read a whole file."""
        descriptor = self.open_file(name)
        try:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read()
        except OSError as error:
            error.filename = self.at(name)
            raise
        finally:
            os.close(descriptor)

    def read_link(self, name: bytes) -> bytes:
        """Read the target of a symlink."""
        return os.readlink(self._single(name), dir_fd=self.descriptor)

    def write(
        self, name: bytes, content: bytes, *, mode: int, exactly: bool = False, flushed: bool = True
    ) -> None:
        """Make a file that must not exist, with its content on disk (its name not yet).

        Args:
            name: it is free.
            content: all of its bytes.
            mode: the permission bits, less the umask.
            exactly: ignore the umask.
            flushed: false if the content may be lost.
        """
        self._single(name)
        first = mode & 0o600 if exactly else mode
        descriptor = self._try(name, lambda: os.open(name, _CREATING, first, dir_fd=self.descriptor))
        try:
            made = os.fstat(descriptor)
            self._tell("open_exclusive", name, inode=made.st_ino, size=stat.S_IMODE(made.st_mode))
            write_all(descriptor, content, self.steps)
            if exactly:
                self._try(name, lambda: os.fchmod(descriptor, mode))
                self._tell("set_mode", name, inode=made.st_ino, size=mode)
            if flushed:
                flush(descriptor, self.steps)
        except OSError as error:
            error.filename = self.at(name)
            raise
        finally:
            os.close(descriptor)

    def symlink(self, name: bytes, target: bytes) -> None:
        """Make a symlink with a name that must be free."""
        self._single(name)
        self._try(name, lambda: os.symlink(target, name, dir_fd=self.descriptor))
        self._tell("symlink", name, content=target)

    def link(self, name: bytes, other: OpenFolder, other_name: bytes) -> None:
        """Link a file to a second name that must be free.

        Raises:
            OSError: EEXIST if it is not; EXDEV, EPERM and others if links are not possible.
        """
        self._single(name)
        other._single(other_name)
        self._try(
            other_name,
            lambda: os.link(
                name,
                other_name,
                src_dir_fd=self.descriptor,
                dst_dir_fd=other.descriptor,
                follow_symlinks=False,
            ),
            other,
        )
        self._tell("link", name, other.at(other_name))

    def rename(self, name: bytes, other_name: bytes) -> None:
        """Rename a file in this folder, replacing a file of that name."""
        self._single(name)
        self._single(other_name)
        self._try(
            other_name,
            lambda: os.rename(name, other_name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor),
        )
        self._tell("rename", name, self.at(other_name))

    def move(self, name: bytes, other: OpenFolder, other_name: bytes) -> None:
        """Rename a file to a name that must be free, perhaps in another folder.

        Without exclusive rename it is linked, then unlinked: a kill may leave both names.
        Without links either, the name is checked and the file renamed.

        Raises:
            OSError: EEXIST if the name exists.
        """
        self._single(name)
        other._single(other_name)
        try:
            self._try(
                other_name,
                lambda: rename_exclusively(self.descriptor, name, other.descriptor, other_name),
                other,
            )
        except UnsupportedError:
            self._move_by_link(name, other, other_name)
        else:
            self._tell("rename", name, other.at(other_name))

    def _move_by_link(self, name: bytes, other: OpenFolder, other_name: bytes) -> None:
        try:
            self.link(name, other, other_name)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
        else:
            other.flush()
            self.unlink(name)
            return
        if other.status(other_name) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), other.at(other_name))
        self._try(
            other_name,
            lambda: os.rename(name, other_name, src_dir_fd=self.descriptor, dst_dir_fd=other.descriptor),
            other,
        )
        self._tell("rename", name, other.at(other_name))

    def exchange(self, name: bytes, other: OpenFolder, other_name: bytes) -> None:
        """Exchange two files; both exist.

        If the file system cannot, three moves do it: the other file to `name` + `UNFINISHED` here, this
        one to its place, then the first into this one's. A kill leaves the state between two of them.

        Raises:
            OSError: ENOENT if one of them does not exist; EEXIST, in the long form, if another process
                made the other name again.
        """
        self._single(name)
        other._single(other_name)
        try:
            self._try(
                other_name, lambda: exchange(self.descriptor, name, other.descriptor, other_name), other
            )
        except UnsupportedError:
            self.flush()
            other.move(other_name, self, name + UNFINISHED)
            self.flush()
            self.move(name, other, other_name)
            other.flush()
            self.move(name + UNFINISHED, self, name)
        else:
            self._tell("exchange", name, other.at(other_name))

    def unlink(self, name: bytes) -> None:
        """Remove one name of a file."""
        self._single(name)
        self._try(name, lambda: os.unlink(name, dir_fd=self.descriptor))
        self._tell("unlink", name)

    def make(self, name: bytes, mode: int = 0o777) -> None:
        """Make a folder, with `mode` less the umask."""
        self._single(name)
        self._try(name, lambda: os.mkdir(name, mode, dir_fd=self.descriptor))
        self._tell("make_folder", name)

    def set_mode(self, mode: int) -> None:
        """Set the permission bits of this folder."""
        self._try(b"", lambda: os.fchmod(self.descriptor, mode))
        self._tell("set_mode", b"", size=mode)

    def remove(self, name: bytes) -> None:
        """Remove an empty folder.

        Raises:
            OSError: ENOTEMPTY if it is not.
        """
        self._single(name)
        self._try(name, lambda: os.rmdir(name, dir_fd=self.descriptor))
        self._tell("remove_folder", name)

    def flush(self) -> None:
        """Flush the names in this folder to disk."""
        self._try(b"", self._sync)
        self._tell("flush_folder", b"")

    def _sync(self) -> None:
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            # Some network and FUSE file systems cannot flush a folder and return one of these.
            if error.errno not in {errno.EBADF, errno.EINVAL}:
                raise

    def _single(self, name: bytes) -> bytes:
        """Return a name after checking that it is one component.

        Raises:
            OSError: EINVAL if it is empty, `.` or `..`, or has a slash or a NUL.
        """
        if name in _NO_SINGLE_NAME or b"/" in name or b"\0" in name:
            raise OSError(errno.EINVAL, "no single name", self.at(name))
        return name

    def _try(self, name: bytes, call: Callable[[], _Result], folder: OpenFolder | None = None) -> _Result:
        """Make one call as one step; an error has the full path."""
        try:
            return attempt(self.steps, call)
        except OSError as error:
            error.filename = (folder or self).at(name)
            raise

    def _tell(
        self,
        operation: str,
        name: bytes,
        other: bytes | None = None,
        *,
        inode: int | None = None,
        content: bytes = b"",
        size: int | None = None,
    ) -> None:
        if self.steps.records:
            path = os.fsdecode(self.at(name) if name else self.path)
            second = None if other is None else os.fsdecode(other)
            self.steps.done(operation, path, second, inode=inode, content=content, size=size)


def is_folder(status: os.stat_result | None) -> bool:
    """Return whether a status is that of a real folder."""
    return status is not None and stat.S_ISDIR(status.st_mode)
