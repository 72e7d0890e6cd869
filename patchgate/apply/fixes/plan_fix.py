"""Plan what a fix writes: the whole new file, or, past unstaged edits, the hunks that do not meet them.

The index gets the whole fix. A working file that is gone, is a link, or is converted by a filter stays as it
is. What stays is listed with its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from patchgate.apply.disk_bytes import plan_writes, read_file_state
from patchgate.apply.fixes.line_merge import LineRange, merge_fix
from patchgate.git.conversion import MOST_BYTES, hash_as_stored
from patchgate.git.model import SYMLINK, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.transaction.entries import FileContent, Write
from patchgate.patches.line_ends import carry_line_ends
from patchgate.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A working file, or a part of it, that a fix does not change: `lines` of it, or all for `why`."""

    path: RepoPath
    lines: tuple[LineRange, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlannedFix:
    """What is written to the working tree, and what of it is left."""

    writes: tuple[Write, ...]
    left: tuple[LeftFile, ...]


def plan_fix(
    repository: Repository, objects: Objects, store: PrivateStore, files: Sequence[FileChange]
) -> PlannedFix:
    """Read the working files, and plan what each gets.

    Args:
        objects: reads through `store`, where the fixed blobs are.
        files: from the staged entry to the fixed one.

    Raises:
        UndecidedError: a file cannot be read or written.
    """
    state = read_file_state(repository, objects, store, files, with_index=True)
    # In a sparse checkout a file may be left out, as the index has it.
    absent = {path for path, content in state.contents.items() if content is None}
    edited = [file for file in files if file.path in state.differing or file.path in absent]
    clean = [file for file in files if file.path not in state.differing and file.path not in absent]
    writes = list(plan_writes(repository, objects, store, clean, state).writes)
    left = []
    for write, stays in _Edited(repository, objects, store, state.contents).plan(edited):
        writes += [] if write is None else [write]
        left += [] if stays is None else [stays]
    return PlannedFix(tuple(writes), tuple(left))


class _Edited:
    """Files with unstaged edits."""

    def __init__(
        self,
        repository: Repository,
        objects: Objects,
        store: PrivateStore,
        contents: Mapping[RepoPath, FileContent | None],
    ) -> None:
        self._repository = repository
        self._objects = objects
        self._store = store
        self._contents = contents

    def plan(self, files: Sequence[FileChange]) -> Iterator[tuple[Write | None, LeftFile | None]]:
        stored = self._stored([file.path for file in files])
        for file in files:
            content, bytes_stored = self._contents[file.path], stored.get(file.path)
            if content is None:
                yield None, LeftFile(file.path, why="it is not in the working tree")
            elif content.mode == SYMLINK:
                yield None, LeftFile(file.path, why="it is a symlink in the working tree")
            elif bytes_stored is None:
                yield None, LeftFile(file.path, why="git converts it, and it has unstaged edits")
            else:
                yield self._merge(file, content, bytes_stored)

    def _stored(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, bytes]:
        """Find what git would store for each file, if that differs in its line ends at most."""
        found = {path: content for path in paths if (content := self._contents[path]) is not None}
        asked = [(path, content.data) for path, content in found.items() if content.mode != SYMLINK]
        oids = hash_as_stored(self._repository, self._store, asked) if asked else []
        stored = {}
        for (path, data), oid in zip(asked, oids, strict=True):
            for form in (data, data.replace(b"\r\n", b"\n")):
                if self._objects.hash("blob", form) == oid:
                    stored[path] = form
                    break
        return stored

    def _merge(
        self, file: FileChange, content: FileContent, stored: bytes
    ) -> tuple[Write | None, LeftFile | None]:
        assert file.old is not None
        assert file.new is not None
        merged = merge_fix(
            self._objects.read(file.old.oid, MOST_BYTES), self._objects.read(file.new.oid, MOST_BYTES), stored
        )
        data: bytes | None = merged.content
        if stored != content.data:
            data = carry_line_ends(content.data, stored, merged.content)
        if data is None:
            return None, LeftFile(file.path, why="its line ends are mixed, and it has unstaged edits")
        left = LeftFile(file.path, merged.left) if merged.left else None
        new = replace(content, data=data)
        return (None if new == content else Write(file.path, content, new)), left
