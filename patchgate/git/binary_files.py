"""Decide from bytes which files are binary, and read the lines that git's diff does not show.

Git decides "binary" by attributes, size or a NUL in the first 8,000 bytes (buffer_is_binary in
xdiff-interface.c). Here only the bytes count. Where git hides the lines of a text, libgit2 compares the two
buffers. A blob that is too large for memory is read in pieces, and all its lines count as added.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from patchgate.git.diff import Watch
from patchgate.git.model import SYMLINK, Entry, FileChange, Line, Status
from patchgate.git.objects import SNIFFED, Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import BIG_FILE, finish
from patchgate.values import replace

_WINDOW = 1 << 20
_OVERLAP = 4096


def is_binary(content: bytes) -> bool:
    """Return whether these bytes are binary by git's rule: a NUL among the first 8,000."""
    return b"\0" in content[:SNIFFED]


def binaries_shown_as_text(objects: Objects, records: Sequence[FileChange], binary: set[int]) -> set[int]:
    """Find the files that git's diff shows as text although one of their sides is binary by its bytes.

    An attribute (`diff`) makes git do so.

    Args:
        binary: the positions that git called binary; they are skipped.
    """
    asked = {
        index: [side.oid for side in (record.old, record.new) if side is not None and side.is_file]
        for index, record in enumerate(records)
        if index not in binary and record.status is not Status.MODE_CHANGED
    }
    found = objects.without_text(oid for oids in asked.values() for oid in oids)
    return {index for index, oids in asked.items() if not found.isdisjoint(oids)}


def count_hidden_lines(objects: Objects, record: FileChange, watch: Watch | None) -> FileChange:
    """Fill in the real contents of a pair that git called binary."""
    if record.new is None or not record.new.is_file:
        return _counted_old(objects, record)
    size = objects.sizes([record.new.oid])[record.new.oid]
    if size > BIG_FILE:
        return _large(objects, record, watch)
    new = objects.read(record.new.oid)
    if is_binary(new):
        return replace(record, binary=True, added_lines=None, removed_lines=None, n_hunks=0, watched=())
    old = _old_text(objects, record)
    return _diffed(record, old, new, watch)


def _old_text(objects: Objects, record: FileChange) -> bytes:
    """Return the old side; empty if it is absent, binary or too large: then every new line is added."""
    if record.old is None or not record.old.is_file:
        return b""
    if objects.sizes([record.old.oid])[record.old.oid] > BIG_FILE:
        return b""
    old = objects.read(record.old.oid)
    return b"" if is_binary(old) else old


def _counted_old(objects: Objects, record: FileChange) -> FileChange:
    """Count the removed lines of a deletion if the old side is text."""
    old = _old_text(objects, record)
    if not old:
        return replace(record, binary=True, added_lines=None, removed_lines=None, n_hunks=0, watched=())
    return replace(record, added_lines=0, removed_lines=len(split_lines(old)), n_hunks=1)


def split_lines(content: bytes) -> list[bytes]:
    """Split at LF alone, as git does; a missing last newline adds no line."""
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _diffed(record: FileChange, old: bytes, new: bytes, watch: Watch | None) -> FileChange:
    if not old:
        lines = split_lines(new)
        watched = tuple(Line(index + 1, lines[index]) for index in watch(lines)) if watch else ()
        return replace(record, added_lines=len(lines), removed_lines=0, n_hunks=1, watched=watched)
    # 85 ms to import: only for pairs whose lines an attribute hides.
    import pygit2

    patch = pygit2.Patch.create_from(
        old, new, flag=pygit2.enums.DiffOption.FORCE_TEXT, context_lines=0, interhunk_lines=0
    )
    found: list[Line] = []
    for hunk in patch.hunks:
        run = [line for line in hunk.lines if line.origin == "+"]
        texts = [line.raw_content.removesuffix(b"\n") for line in run]
        if watch:
            found.extend(Line(run[index].new_lineno, texts[index]) for index in watch(texts))
    _, added, removed = patch.line_stats
    return replace(
        record, added_lines=added, removed_lines=removed, n_hunks=len(patch.hunks), watched=tuple(found)
    )


def _large(objects: Objects, record: FileChange, watch: Watch | None) -> FileChange:
    """Read a blob that is too large for memory in pieces; every line of it counts as added.

    A line longer than a window is judged in overlapping windows.
    """
    assert record.new is not None
    number, rest, first = 0, b"", True
    found: list[Line] = []
    with objects.repository.child("cat-file", "blob", record.new.oid) as child:
        child.close_input()
        while True:
            data = os.read(child.out.fileno(), _WINDOW)
            if not data:
                break
            if first and is_binary(data):
                return replace(
                    record, binary=True, added_lines=None, removed_lines=None, n_hunks=0, watched=()
                )
            first = False
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            if watch:
                found.extend(Line(number + index + 1, lines[index]) for index in watch(lines))
            number += len(lines)
            if len(rest) > _WINDOW:
                if watch:
                    found.extend(Line(number + 1, rest) for _ in watch([rest]))
                rest = rest[-_OVERLAP:]
        finish(child, "cat-file")
    if rest:
        if watch:
            found.extend(Line(number + 1, rest) for _ in watch([rest]))
        number += 1
    return replace(record, added_lines=number, removed_lines=0, n_hunks=1, watched=tuple(found))


def line_reader(objects: Objects, tree: str) -> Callable[[RepoPath], Sequence[bytes] | None]:
    """Return a reader of a tree's files, from git's objects, because a command can change the files on disk.

    It returns the lines of a regular file, none for a link or a file that is too large, None for no file.

    Raises:
        UndecidedError: when it is called: an object is missing.
    """

    def lines(path: RepoPath) -> Sequence[bytes] | None:
        entry: Entry | None = objects.entry(tree, path.raw)
        if entry is None or not (entry.is_file or entry.mode == SYMLINK):
            return None
        if not entry.is_file or objects.sizes([entry.oid])[entry.oid] > BIG_FILE:
            return ()
        return objects.read(entry.oid).split(b"\n")

    return lines
