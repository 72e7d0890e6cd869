"""What can be read of the working tree: regular files inside it, no link followed on the way or at the end.

Decides what each thing on disk is to a scan. A file that cannot be read, or changes between the look and the
end of its reading, gives nothing; how it is reached `git.no_follow` decides.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from io import FileIO

from patchgate.errors import UndecidedError
from patchgate.git.listing import index_names, name_of, untracked_names
from patchgate.git.no_follow import InTheWay, Kind, folder_above, is_there, open_file, open_root
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.placeholders.claims.claim import Unscanned
from patchgate.placeholders.claims.claim_scan import Looked
from patchgate.placeholders.claims.claim_walk import Walk
from patchgate.placeholders.claims.named import is_in_git

_PIECE = 1 << 20
_NOT_THERE = frozenset({errno.ENOENT, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})
_INSTEAD = {Kind.LINK: Unscanned.SYMLINK, Kind.OTHER: Unscanned.MISSING, Kind.REPOSITORY: Unscanned.OUTSIDE}


@contextmanager
def disk_snapshot(repository: Repository) -> Generator[DiskSnapshot, None, None]:
    """Hold a working tree's folder open, and give what can be read of it.

    Raises:
        UndecidedError: it may not be opened.
    """
    with ExitStack() as held:
        try:
            root = held.enter_context(open_root(repository.work_tree or ""))
        except OSError as error:
            raise UndecidedError(
                f"the working tree cannot be read: {error.strerror or 'no reason given'}",
                "see who may read it",
            ) from error
        yield DiskSnapshot(repository, root)


class DiskSnapshot:
    """The working tree of a repository, below an open folder."""

    def __init__(self, repository: Repository, root: int) -> None:
        self._repository = repository
        self._root = root
        self._states: dict[RepoPath, tuple[int, ...]] = {}

    def look(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, Looked]:
        """Tell what stands at each path."""
        return {path: self._look(path) for path in paths}

    def read(self, path: RepoPath, most: int) -> bytes | None:
        """Read the first bytes of a file that was looked at; None: it may not be read, or is another one."""
        try:
            with folder_above(self._root, path) as above:
                if isinstance(above, InTheWay):
                    return None
                with open_file(path.name, above) as file:
                    before = _state(os.fstat(file.fileno()))
                    content = _first(file, most)
                    after = _state(os.fstat(file.fileno()))
        except OSError:
            return None
        return content if before == after == self._states[path] else None

    def tracked(self, walk: Walk) -> Generator[RepoPath, None, None]:
        """List the files that a walk gives: the untracked ones, which are the newest work, then the others.

        Raises:
            UndecidedError: they cannot be listed.
        """
        for listed in (untracked_names, index_names):
            with closing(listed(self._repository)) as pieces:
                for record in walk.over(pieces, name_of):
                    yield RepoPath.from_git(name_of(record))

    def _look(self, path: RepoPath) -> Looked:
        if path.is_too_long:
            return Looked(fault=Unscanned.MISSING)
        if is_in_git(path):
            return Looked(fault=Unscanned.OUTSIDE)
        try:
            with folder_above(self._root, path) as above:
                if isinstance(above, InTheWay):
                    return Looked(fault=_INSTEAD[above.kind])
                found = os.stat(path.name, dir_fd=above, follow_symlinks=False)
                # A submodule for instance.
                is_repository = stat.S_ISDIR(found.st_mode) and is_there(path.name + b"/.git", above)
        except OSError as error:
            return Looked(fault=Unscanned.MISSING if error.errno in _NOT_THERE else Unscanned.UNREADABLE)
        if is_repository:
            return Looked(fault=Unscanned.OUTSIDE)
        if not stat.S_ISREG(found.st_mode):
            return Looked(fault=Unscanned.SYMLINK if stat.S_ISLNK(found.st_mode) else Unscanned.MISSING)
        self._states[path] = _state(found)
        return Looked(found.st_size)


def _first(file: FileIO, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := file.read(min(most, _PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _state(found: os.stat_result) -> tuple[int, ...]:
    """What tells one content of a file from the next."""
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns
