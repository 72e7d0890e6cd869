"""Read the difference of two trees, or of a tree and an index, whole.

Decides what happens where git needs too much memory: it loads an added or deleted file whole even if it will
only say "binary" (measured: 2 GB for 2 GB). Such files are then left out of the patch, and looked at aside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.git.diff import Detail, DiffReader, is_text_candidate
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.repository import BIG_FILE, MemoryLimitError, Repository, failed

# Files below the size that git diffs at all need a tenth of this.
_MEMORY = 512 << 20
Records = tuple[list[FileChange], set[int]]


def read_difference(
    repository: Repository,
    objects: Objects,
    command: Sequence[str],
    trees: Sequence[str],
    detail: Detail,
    variables: Mapping[str, str] | None = None,
) -> Records:
    """Read what a diff command says: the records, and the positions of those that git calls binary.

    Args:
        command: `diff-index` or `diff-tree` with its own options.
        trees: what is compared.

    Raises:
        UndecidedError: git failed.
    """
    try:
        return _read(repository, command, trees, detail, variables)
    except MemoryLimitError:
        if not detail.lines:
            raise
    records, _ = _read(repository, command, trees, Detail(), variables)
    oids = {
        side.oid for file in records for side in (file.old, file.new) if side is not None and side.is_file
    }
    sizes = objects.sizes(oids)
    large = {
        file.path
        for file in records
        if any(side is not None and sizes.get(side.oid, 0) > BIG_FILE for side in (file.old, file.new))
    }
    if not large:
        raise MemoryLimitError(
            "git needs more memory than it may have to diff this change", "split the change"
        )
    left_out = [
        ":(top,exclude,literal)" + path.raw.decode("utf-8", "surrogateescape") for path in sorted(large)
    ]
    small, binary = _read(repository, command, [*trees, "--", ":(top)", *left_out], detail, variables)
    read = {file.path: (file, index in binary) for index, file in enumerate(small)}
    marked = {
        index
        for index, file in enumerate(records)
        if file.path in large or read.get(file.path, (file, True))[1]
    }
    return [read.get(file.path, (file, True))[0] for file in records], marked


def _read(
    repository: Repository,
    command: Sequence[str],
    trees: Sequence[str],
    detail: Detail,
    variables: Mapping[str, str] | None,
) -> Records:
    arguments = (*command, *detail.flags, *trees)
    with repository.child(*arguments, variables=variables, memory=_MEMORY) as child:
        child.close_input()
        reader = DiffReader(child, detail.glance)
        records = reader.records()
        binary: set[int] = set()
        if detail.lines:
            binary = reader.patches(records, lambda file: detail.watch if is_text_candidate(file) else None)
        ended = child.finish()
        if ended.code != 0:
            raise failed(command[0], ended)
    return records, binary
