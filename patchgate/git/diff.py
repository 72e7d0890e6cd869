"""Read the raw diff of two trees, or of a tree and an index, with the added lines on request.

`--raw -z` gives paths, modes and ids; a patch without context gives counts and added lines. Hunks are read
by their own counts, so no line of a file can be taken for a header. If git needs too much memory, large
files are left out of the patch. Source: git-diff-tree, "Raw output format".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.model import (
    EXECUTABLE,
    GITLINK,
    NO_MODE,
    REGULAR,
    SYMLINK,
    TREE_MODE,
    Entry,
    FileChange,
    Line,
)
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import BIG_FILE, MemoryLimitError, Repository, failed, finish
from patchgate.process.child import Child, Completed
from patchgate.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

Watch = Callable[[Sequence[bytes]], Iterable[int]]
Glance = Callable[[bytes, int, int], bool]

RAW = ("--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none", "-O/dev/null")
PATCH = (
    "-p",
    "-U0",
    "--full-index",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-indent-heuristic",
    "--diff-algorithm=myers",
    "--inter-hunk-context=0",
    "--submodule=short",
)
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
# The records of a commit, the headers of a section, a whole hunk: each in one step if it is in the buffer,
# for a third of the time. No group that can backtrack is possessive: CPython before 3.11.5 misreads those
# (gh-106052).
# A tree of a few hundred bytes can name the same folder repeatedly: 10 million files in eight objects.
MOST_RECORDS = 1_000_000
_LARGE = 1_000
# Of the files of large changes, how many may be beyond so many for each content. An ordinary mass change has
# a new content for each file; to move a folder takes two files of each content, and may be repeated.
_MOST_REPEATED = {2: 300_000, 16: 100_000}
# They are counted after so many files too: they need not all be read.
_MASK = (1 << 17) - 1
_RECORDS = re.compile(rb"(?::[^\0]*+\0[^\0]*+\0)*")
_HEADER_LINES = re.compile(rb"(?:(?:index |--- |\+\+\+ |old mode|new mode|new file |deleted fil)[^\n]*+\n)*")
_WHOLE_HUNK = re.compile(
    _HUNK.pattern + rb"[^\n]*+\n((?:-[^\n]*+\n)*+)(?:\\ [^\n]*+\n)?((?:\+[^\n]*+\n)*+)(?:\\ [^\n]*+\n)?"
)
COUNTED = 100
"""After how many files progress is reported."""
# Git writes 4 KiB at a time, and a hunk that is cut by the end of a buffer is read line by line. Git
# needs no answer, so that many bytes, or its end, will arrive.
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of a change is read: line counts and text, sizes of new blobs.

    `watch` selects from added lines those that a content rule may reject. `glance` says at once
    of the lines between two places of git's output whether any may be picked; None: each run is watched.
    """

    lines: bool = False
    sizes: bool = False
    watch: Watch | None = None
    glance: Glance | None = None

    def covers(self, other: Detail) -> bool:
        """Return whether a walk with this detail can answer what `other` asks."""
        return (self.lines or not other.lines) and (self.sizes or not other.sizes)

    @property
    def flags(self) -> tuple[str, ...]:
        """The pinned flags of the diff."""
        return (*RAW, *PATCH) if self.lines else RAW


class KeptAnswer:
    """The answer in a file, read as if git gave it now."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out

    def finish(self) -> Completed:
        """Say how git ended: it ended well."""
        return Completed(0, b"", b"")


class DiffReader:
    """Reads the output of one diff command, piece by piece, from a child's standard output.

    Args:
        child: its input must be sent completely, or be on its way.
        glance: as in `Detail`.
        at_once: so many bytes are waited for.
        counted: is called after every hundred files of a patch, with how many are read.
        is_limited: all large changes together have a limit too.
        has_folders: git lists folders too (`-t`); otherwise a folder in its answer is an error.
    """

    def __init__(
        self,
        child: Child | KeptAnswer,
        glance: Glance | None = None,
        at_once: int = _AT_ONCE,
        *,
        counted: Callable[[int], None] | None = None,
        has_folders: bool = False,
        is_limited: bool = False,
    ) -> None:
        self._is_limited = is_limited
        self._counted = counted
        self._child = child
        self._glance = glance
        self._at_once = at_once
        self._fd = child.out.fileno()
        self._buffer = b""
        self._at = 0
        self._ended = False
        self._has_folders = has_folders
        self._n_in_large = 0
        self._contents: set[int] = set()
        self._folders: list[FileChange] = []

    def line(self) -> bytes:
        """Read the line by which a walk names the two trees that follow."""
        return self._until(b"\n")

    def records(self) -> list[FileChange]:
        """Read raw records as long as there are any; those of folders (`-t`) go to `take_folders`."""
        run = _RECORDS.match(self._buffer, self._at)
        assert run is not None
        self._at = run.end()
        words = run[0].split(b"\0")
        found = [_record(words[position], words[position + 1]) for position in range(0, len(words) - 1, 2)]
        while len(found) <= MOST_RECORDS and self._peek(1) == b":":
            found.append(_record(self._until(b"\0"), self._until(b"\0")))
            if not len(found) & _MASK and self._is_limited:
                self._require_contents(found)
        if len(found) > MOST_RECORDS:
            raise UndecidedError(
                f"the change has more than {MOST_RECORDS:,} files and folders", "split the change"
            )
        if self._is_limited and len(found) > _LARGE:
            self._require_contents(found)
            self._n_in_large += len(found)
        files = [record for record in found if not _is_folder(record)]
        if len(files) < len(found):
            if not self._has_folders:
                raise UndecidedError("git listed a folder where a file was expected", "run git fsck")
            self._folders += [record for record in found if _is_folder(record)]
        return files

    def _require_contents(self, found: Sequence[FileChange]) -> None:
        """Require that large changes together have not too many files of the same few contents.

        Trees that name one another give a commit of 100 bytes 100,000 files.
        """
        self._contents |= {hash(record.new or record.old) for record in found}
        total, contents = self._n_in_large + len(found), len(self._contents)
        for each, most in _MOST_REPEATED.items():
            if total - contents * each > most:
                raise UndecidedError(
                    f"large changes have more than {most:,} files with contents of others",
                    "check or push fewer commits at once",
                )

    def take_folders(self) -> list[FileChange]:
        """Return the records of folders that were read since this was last asked."""
        taken, self._folders = self._folders, []
        return taken

    def patches(self, records: list[FileChange], watch: Callable[[FileChange], Watch | None]) -> set[int]:
        """Read the patch that follows `records`, fill in their counts; return those that git calls binary."""
        if not records:
            return set()
        if (separator := self._until(b"\0")) != b"":
            raise _unreadable(separator)
        binary: set[int] = set()
        for index, record in enumerate(records):
            sections = 2 if _is_type_change(record) else 1
            added = removed = hunks = 0
            watched: list[Line] = []
            for _ in range(sections):
                seen = self._section(watch(record) if record.new else None, watched)
                if seen is None:
                    binary.add(index)
                else:
                    added, removed, hunks = added + seen[0], removed + seen[1], hunks + seen[2]
            # `dataclasses.replace` costs four times as much.
            records[index] = FileChange(
                path=record.path,
                old=record.old,
                new=record.new,
                added_lines=added,
                removed_lines=removed,
                n_hunks=hunks,
                watched=tuple(watched),
            )
            if self._counted is not None and index % COUNTED == 0:
                self._counted(index)
        return binary

    def _section(self, watch: Watch | None, watched: list[Line]) -> tuple[int, int, int] | None:
        """Read one file's section: added and removed lines and hunks, None if git calls it binary."""
        line = self._until(b"\n")
        if not line.startswith(b"diff --git "):
            raise _unreadable(line)
        headers = _HEADER_LINES.match(self._buffer, self._at)
        if headers is not None:
            self._at = headers.end()
        added = removed = hunks = 0
        while True:
            whole = self._whole_hunk(watch, watched)
            if whole is None and self._peek(4) == b"@@ -":
                whole = self._hunk(watch, watched)
            if whole is not None:
                added, removed, hunks = added + whole[0], removed + whole[1], hunks + 1
                continue
            start = self._peek(11)
            if start.startswith(b"Binary file"):
                self._until(b"\n")
                return None
            if hunks or not start.startswith(_HEADERS):
                return added, removed, hunks
            self._until(b"\n")

    def _whole_hunk(self, watch: Watch | None, watched: list[Line]) -> tuple[int, int] | None:
        """Read a hunk that is completely in the buffer, with the byte after it; None if it is not."""
        buffer = self._buffer
        found = _WHOLE_HUNK.match(buffer, self._at)
        if found is None:
            return None
        end = found.end()
        # A marker of a missing newline may be cut.
        if end == len(buffer) or buffer[end] == 0x5C:
            return None
        counts = found.group(1, 3)
        removed, added = int(counts[0] or 1), int(counts[1] or 1)
        start, stop = found.span(5)
        # The counts of the header decide here too.
        if buffer.count(b"\n", start, stop) != added or buffer.count(b"\n", *found.span(4)) != removed:
            return None
        self._at = end
        if watch is not None and added and (self._glance is None or self._glance(buffer, start, stop)):
            lines = [text[1:] for text in buffer[start:stop].split(b"\n")[:-1]]
            first = int(found[2])
            watched.extend(Line(first + index, lines[index]) for index in watch(lines))
        return added, removed

    def _hunk(self, watch: Watch | None, watched: list[Line]) -> tuple[int, int]:
        """Read a hunk line by line, however the pipe splits it."""
        line = self._until(b"\n")
        found = _HUNK.match(line)
        if found is None:
            raise _unreadable(line)
        removed, added = int(found[1] or 1), int(found[3] or 1)
        for _ in range(removed):
            self._until(b"\n")
        if self._peek(2) == b"\\ ":
            self._until(b"\n")
        if watch is None:
            for _ in range(added):
                self._until(b"\n")
        else:
            lines = [self._until(b"\n")[1:] for _ in range(added)]
            first = int(found[2])
            watched.extend(Line(first + index, lines[index]) for index in watch(lines))
        if self._peek(2) == b"\\ ":
            self._until(b"\n")
        return added, removed

    def _fill(self) -> bool:
        if self._ended:
            return False
        pieces = [self._buffer[self._at :]]
        more = 0
        while more < self._at_once and not self._ended:
            data = os.read(self._fd, 1 << 18)
            self._ended = not data
            pieces.append(data)
            more += len(data)
        self._buffer, self._at = b"".join(pieces), 0
        return more > 0

    def _peek(self, size: int) -> bytes:
        while len(self._buffer) - self._at < size and self._fill():
            pass
        return self._buffer[self._at : self._at + size]

    def _until(self, end: bytes) -> bytes:
        found = self._buffer.find(end, self._at)
        if found < 0:
            found = self._long(end)
        taken = self._buffer[self._at : found]
        self._at = found + 1
        return taken

    def _long(self, end: bytes) -> int:
        """Read on until `end` comes, joining pieces once: a line may have 50 MB."""
        pieces = [self._buffer[self._at :]]
        while not self._ended:
            data = os.read(self._fd, 1 << 20)
            self._ended = not data
            pieces.append(data)
            if end in data:
                self._buffer, self._at = b"".join(pieces), 0
                return self._buffer.index(end)
        raise failed("diff", self._child.finish())


_HEADERS = (b"index ", b"--- ", b"+++ ", b"old mode", b"new mode", b"new file ", b"deleted fil")


# One text for each mode, instead of one for each side of each file.
_SAME = {mode: mode for mode in (REGULAR, EXECUTABLE, SYMLINK, GITLINK, TREE_MODE)}


def _record(about: bytes, name: bytes) -> FileChange:
    """Read one raw record: `:<old mode> <new mode> <old oid> <new oid> <status>`, and its path."""
    old_mode, new_mode, old, new, status = about[1:].decode("ascii").split(" ")
    path = RepoPath.from_git(name)
    if status == "U":
        raise UndecidedError(
            f"{path.quoted} has an unresolved merge conflict",
            "resolve the conflict, then git add the file",
        )
    return FileChange(
        path,
        None if old_mode == NO_MODE else Entry(_SAME.get(old_mode, old_mode), old),
        None if new_mode == NO_MODE else Entry(_SAME.get(new_mode, new_mode), new),
    )


def _is_folder(record: FileChange) -> bool:
    return TREE_MODE in (record.old and record.old.mode, record.new and record.new.mode)


def _is_type_change(record: FileChange) -> bool:
    return record.old is not None and record.new is not None and record.old.mode[:3] != record.new.mode[:3]


def is_text_candidate(record: FileChange) -> bool:
    """Return whether the new side is a regular file, whose lines content rules judge."""
    return record.new is not None and record.new.mode != GITLINK and record.new.is_file


def _unreadable(line: bytes) -> UndecidedError:
    return UndecidedError(f"git's diff has an unexpected line ({line[:40]!r})", "run git fsck")


# The files that git diffs need a tenth of this.
_MEMORY = 512 << 20
Records = tuple[list[FileChange], set[int]]


def read_difference(
    repository: Repository,
    objects: Objects,
    command: Sequence[str],
    trees: Sequence[str],
    detail: Detail,
    variables: Mapping[str, str] | None = None,
    counted: Callable[[int], None] | None = None,
) -> Records:
    """Run a diff command: return the records, and the positions of those that git calls binary.

    Args:
        command: `diff-index` or `diff-tree` with its own options.
        trees: what is compared.
        counted: is called now and then, with the number of files whose lines are read.

    Raises:
        UndecidedError: git failed.
    """
    try:
        return _read(repository, command, trees, detail, variables, counted)
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
            "git needs more memory than patchgate allows to diff this change", "split the change"
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
    counted: Callable[[int], None] | None = None,
) -> Records:
    arguments = (*command, *detail.flags, *trees)
    with repository.child(*arguments, variables=variables, memory=_MEMORY) as child:
        child.close_input()
        reader = DiffReader(child, detail.glance, counted=counted)
        records = reader.records()
        binary: set[int] = set()
        if detail.lines:
            binary = reader.patches(records, lambda file: detail.watch if is_text_candidate(file) else None)
        finish(child, command[0])
    return records, binary
