"""List the files of an index, a tree or the working tree, in the order of the paths' bytes.

Decides only how git is asked and its answer is cut. It comes in pieces, for a loop over the records of
500,000 files costs more than git; the child is ended as soon as nobody wants more. Sources: git-ls-files,
git-ls-tree.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Mapping, Sequence
from types import MappingProxyType

from patchgate.errors import UndecidedError
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository, failed
from patchgate.storage.temporary import TemporaryFolder

Records = Generator[list[bytes], None, None]
"""Some records at a time, each of one file: what git says of it, a tab, and its name."""
_CHUNK = 1 << 16
_MOST_NAMED = 200
_SKIPPED = b"S"


def index_records(repository: Repository) -> Records:
    """List the files of the index, those too that are only intended to be added; unmerged ones several times.

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


def unlike_index(repository: Repository, paths: Collection[RepoPath]) -> frozenset[RepoPath]:
    """Find the paths that the working tree has otherwise than the index; one is enough that only it has.

    Of changed files the contents are compared; what is ignored counts too.

    Raises:
        UndecidedError: they cannot be listed.
    """
    # No file can have such a name, and git could not be asked for it.
    paths = frozenset(path for path in paths if not path.is_too_long)
    if not paths:
        return frozenset()
    # Beyond so many the names are fewer bytes than the question.
    if len(paths) > _MOST_NAMED:
        return _differing(repository, paths)
    # `ls-files --modified` looks at nearly every file of the index, whatever it is asked for (500,000 files:
    # 0.6 s). So it is asked of an index that holds these alone.
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
            f"no temporary folder can be made: {printable(error.strerror or str(error))}",
            "make room, or set TMPDIR to a folder with room",
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
    """Give the name of a record, which may hold tabs itself."""
    return record.partition(b"\t")[2]


def entry_of(record: bytes) -> Entry:
    """Give mode and object id of a record of an index or a tree."""
    mode, *words = record.partition(b"\t")[0].decode("ascii").split(" ")
    # An index says id and stage, a tree type and id.
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
