"""What can be read of the working tree: regular files inside it, no link followed on the way or at the end.

Decides how a file is reached: folder by folder, each opened without following. A file that changes between
the look and the end of its reading gives no answer.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from types import TracebackType

from patchgate.change.path import RepoPath, is_git_alias
from patchgate.errors import UndecidedError, UsageError
from patchgate.gates.claim_scan import Looked
from patchgate.git.listing import index_names, name_of
from patchgate.git.repository import Repository
from patchgate.operations.hold.claims.walk import Walk
from patchgate.verdict.claim import Unscanned

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: a FIFO that took the file's place must not hold us.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20
_NOT_THERE = frozenset({errno.ENOENT, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})


class DiskSnapshot:
    """The working tree of a repository; a context manager that holds its folder open.

    Raises:
        UsageError: there is none.
        UndecidedError: it may not be read.
    """

    def __init__(self, repository: Repository) -> None:
        if repository.work_tree is None:
            raise UsageError("a bare repository has no working tree", "name a revision: --tree REV")
        self._repository = repository
        try:
            self._root = os.open(repository.work_tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _unreadable("the working tree", error) from error
        self._states: dict[RepoPath, tuple[int, ...]] = {}
        self._looked: set[bytes] = set()
        self._walk: Walk | None = None

    def __enter__(self) -> DiskSnapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._root)

    def look(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, Looked]:
        """Tell what stands at each path.

        Raises:
            UndecidedError: one may not be looked at.
        """
        if self._walk is None:
            self._looked.update(path.raw for path in paths)
        return {path: self._look(path) for path in paths}

    def read(self, path: RepoPath, most: int) -> bytes:
        """Read the first bytes of a file that was looked at.

        Raises:
            UndecidedError: it may not be read, or is no longer what it was.
        """
        try:
            folder = self._above(path)
            if isinstance(folder, Unscanned):
                raise _changed(path)
            try:
                with open(os.open(path.name, _FILE, dir_fd=folder), "rb", buffering=0) as file:
                    before = _state(os.fstat(file.fileno()))
                    content = _first(file.fileno(), most)
                    after = _state(os.fstat(file.fileno()))
            finally:
                self._close(folder)
        except OSError as error:
            raise _unreadable(path.quoted, error) from error
        if not before == after == self._states[path]:
            raise _changed(path)
        return content

    def tracked(self, suffixes: tuple[str, ...]) -> Generator[RepoPath, None, None]:
        """List the files of the index that are worth reading, sorted."""
        self._walk = Walk(suffixes, self._looked)
        with closing(self._walk.over(index_names(self._repository))) as records:
            for record in records:
                yield RepoPath.from_git(name_of(record))

    def left_out(self) -> Mapping[Unscanned, int]:
        """Count what `tracked` left out so far; what was looked at before is not among it."""
        return self._walk.left_out if self._walk is not None else {}

    def _look(self, path: RepoPath) -> Looked:
        try:
            folder = self._above(path)
            if isinstance(folder, Unscanned):
                return Looked(fault=folder)
            try:
                found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode):
                    return Looked(fault=Unscanned.SYMLINK)
                if stat.S_ISDIR(found.st_mode) and _is_repository(path.name, folder):
                    return Looked(fault=Unscanned.OUTSIDE)
            finally:
                self._close(folder)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return Looked(fault=Unscanned.MISSING)
            raise _unreadable(path.quoted, error) from error
        if not stat.S_ISREG(found.st_mode):
            return Looked(fault=Unscanned.MISSING)
        self._states[path] = _state(found)
        return Looked(found.st_size)

    def _above(self, path: RepoPath) -> int | Unscanned:
        """Open the folder above a path; a fault where something on the way is none of this repository."""
        *folders, _ = parts = path.raw.split(b"/")
        if any(map(is_git_alias, parts)):
            return Unscanned.OUTSIDE
        above = self._root
        for name in folders:
            try:
                below = os.open(name, _FOLDER, dir_fd=above)
            except OSError as error:
                fault = _instead(name, above, error)
                self._close(above)
                if fault is None:
                    raise
                return fault
            self._close(above)
            above = below
            if _is_repository(b".", above):
                self._close(above)
                return Unscanned.OUTSIDE
        return above

    def _close(self, folder: int) -> None:
        if folder != self._root:
            os.close(folder)


def _instead(name: bytes, above: int, error: OSError) -> Unscanned | None:
    """Say what stands where a folder had to; None where the error has to be told."""
    if error.errno in _NOT_THERE:
        return Unscanned.MISSING
    if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
        return None
    found = os.stat(name, dir_fd=above, follow_symlinks=False)
    return Unscanned.SYMLINK if stat.S_ISLNK(found.st_mode) else Unscanned.MISSING


def _is_repository(name: bytes, folder: int) -> bool:
    """Tell whether a folder is a repository of its own, a submodule for instance."""
    try:
        os.stat(name + b"/.git", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _first(descriptor: int, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := os.read(descriptor, min(most, _PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _state(found: os.stat_result) -> tuple[int, ...]:
    """What tells one content of a file from the next."""
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns


def _unreadable(what: str, error: OSError) -> UndecidedError:
    return UndecidedError(
        f"{what} cannot be read: {error.strerror or 'no reason given'}",
        "see who may read it and its folders",
    )


def _changed(path: RepoPath) -> UndecidedError:
    return UndecidedError(
        f"{path.quoted} was changed while it was read", "wait for its writer, then try again"
    )
