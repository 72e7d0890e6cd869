"""List the files of an index, a tree or the working tree; open one on disk without following links.

Lists are sorted by the bytes of the paths and come in pieces: a loop over the records of 500,000 files costs
more than git. Git's child is ended when the caller stops reading. Sources: git-ls-files, git-ls-tree.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from io import FileIO
from types import MappingProxyType

from patchgate.errors import UndecidedError
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository, failed
from patchgate.storage.temporary_folder import TemporaryFolder
from patchgate.values import dataclass

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to open a file; non-blocking, because a FIFO may have replaced it."""


class ObstructionKind(Enum):
    """What is at a path where a folder of this repository is needed."""

    LINK = auto()
    OTHER = auto()
    REPOSITORY = auto()


@dataclass(frozen=True, slots=True)
class Obstruction:
    """Something that is not a folder of this repository, and its path."""

    path: bytes
    kind: ObstructionKind


@contextmanager
def open_root(work_tree: str) -> Generator[int, None, None]:
    """Open the root folder; only its own path may contain a link.

    Raises:
        OSError: as the system gave it.
    """
    root = os.open(work_tree, _ROOT)
    try:
        yield root
    finally:
        os.close(root)


@contextmanager
def folder_above(
    root: int, path: RepoPath, look: Callable[[int, bytes], None] | None = None
) -> Generator[int | Obstruction, None, None]:
    """Open the folder that contains a path, or yield what blocks the way.

    Args:
        root: an open folder.
        path: below it.
        look: is called with each folder on the way and its path, except `root`.

    Raises:
        FileNotFoundError: a folder on the way is not there.
        OSError: as the system gave it.
    """
    above = root
    try:
        for folder in list(path.parents())[1:]:
            name = folder.rpartition(b"/")[2]
            try:
                below = os.open(name, _FOLDER, dir_fd=above)
            except OSError as error:
                if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                    raise
                yield Obstruction(folder, _kind(name, above))
                return
            if above != root:
                os.close(above)
            above = below
            if is_there(b".git", above):
                yield Obstruction(folder, ObstructionKind.REPOSITORY)
                return
            if look is not None:
                look(above, folder)
        yield above
    finally:
        if above != root:
            os.close(above)


def open_file(name: bytes, folder: int) -> FileIO:
    """Open a name in an open folder; the caller checks whether it is a regular file.

    Raises:
        OSError: as the system gave it; ELOOP for a link.
    """
    return open(os.open(name, FILE, dir_fd=folder), "rb", buffering=0)


def is_there(name: bytes, folder: int) -> bool:
    """Return whether a name exists in an open folder."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _kind(name: bytes, above: int) -> ObstructionKind:
    with suppress(OSError):
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            return ObstructionKind.LINK
    return ObstructionKind.OTHER


Records = Generator[list[bytes], None, None]
"""Some records at a time, each of one file: what git says of it, a tab, and its name."""
_CHUNK = 1 << 16
_MOST_NAMED = 200
_SKIPPED = b"S"


def index_records(repository: Repository) -> Records:
    """List the files of the index, also those of `git add -N`; unmerged ones several times.

    Raises:
        UndecidedError: it cannot be read.
    """
    return _records(repository, "ls-files", "-z", "--stage")


def index_names(repository: Repository) -> Records:
    """List the files of the index, each once; a record is a tab and a name.

    Raises:
        UndecidedError: it cannot be read.
    """
    return _records(repository, "ls-files", "-z", "--deduplicate", before=b"\t")


def untracked_names(repository: Repository) -> Records:
    """List the files of the working tree that are neither tracked nor ignored; a record is a tab and a name.

    Raises:
        UndecidedError: they cannot be listed.
    """
    done = repository.git("ls-files", "-z", "--others", "--exclude-standard", in_work_tree=True)
    # A repository nested in this one is listed as a folder.
    names = (name for name in done.out.split(b"\0") if name and not name.endswith(b"/"))
    yield [b"\t" + name for name in sorted(names)]


def differing_from_index(repository: Repository, paths: Collection[RepoPath]) -> frozenset[RepoPath]:
    """Find the paths that differ between working tree and index, also those that only one of them has.

    The contents of changed files are compared; ignored files count too.

    Raises:
        UndecidedError: they cannot be listed.
    """
    # No file can have such a name, and git would not accept it.
    paths = frozenset(path for path in paths if not path.is_too_long)
    if not paths:
        return frozenset()
    # Above this many names, listing everything is shorter.
    if len(paths) > _MOST_NAMED:
        return _differing(repository, paths)
    # `ls-files --modified` reads nearly every file of the index, with any arguments (500,000 files:
    # 0.6 s). So it gets an index with these paths only.
    raw = repository.output("ls-files", "-z", "-t", "--stage", "--", *_pathspecs(paths))
    entries = [record.partition(b" ") for record in raw.split(b"\0") if record]
    staged = {RepoPath.from_git(name_of(entry)): entry for _, _, entry in entries}
    left_out = {RepoPath.from_git(name_of(entry)) for tag, _, entry in entries if tag == _SKIPPED}
    root = os.fsencode(repository.work_tree or "")
    on_disk = frozenset(path for path in paths if os.path.lexists(os.path.join(root, path.raw)))
    gone = (paths & staged.keys()) - on_disk - left_out
    if not on_disk:
        return gone
    records = b"".join(staged[path] + b"\0" for path in on_disk & staged.keys())
    try:
        with TemporaryFolder() as folder:
            own = {"GIT_INDEX_FILE": os.path.join(folder.path, "index")}
            repository.git("update-index", "-z", "--index-info", stdin=records, variables=own)
            return gone | _differing(repository, on_disk, _pathspecs(on_disk), own)
    except OSError as error:
        raise UndecidedError(
            f"cannot create a temporary folder: {printable(error.strerror or str(error))}",
            "free some space, or set TMPDIR to a folder with free space",
        ) from error


def _differing(
    repository: Repository,
    paths: frozenset[RepoPath],
    only: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> frozenset[RepoPath]:
    asked = ("ls-files", "-z", "--modified", "--deleted", "--others")
    listed = repository.git(*asked, "--", *only, variables=variables, in_work_tree=True)
    return paths.intersection(map(RepoPath.from_git, listed.out.split(b"\0")))


def _pathspecs(paths: Collection[RepoPath]) -> list[str]:
    return [f":(top,literal){os.fsdecode(path.raw)}" for path in paths]


def tree_records(repository: Repository, tree: str) -> Records:
    """List the files of a tree, with those in its folders.

    Raises:
        UndecidedError: it cannot be read.
    """
    return _records(repository, "ls-tree", "-r", "-z", "--full-tree", tree)


def name_of(record: bytes) -> bytes:
    """Return the name of a record; it may contain tabs."""
    return record.partition(b"\t")[2]


def entry_of(record: bytes) -> Entry:
    """Return mode and object id of a record of an index or a tree."""
    mode, *words = record.partition(b"\t")[0].decode("ascii").split(" ")
    # An index has id and stage, a tree has type and id.
    return Entry(mode, max(words, key=len))


def _records(repository: Repository, *arguments: str, before: bytes = b"") -> Records:
    with repository.child(*arguments) as child:
        child.close_input()
        rest = b""
        while data := os.read(child.out.fileno(), _CHUNK):
            *records, rest = (rest + data).split(b"\0")
            yield [before + record for record in records] if before else records
        ended = child.finish()
        if ended.code != 0 or rest:
            raise failed(arguments[0], ended)
