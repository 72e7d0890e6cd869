"""Read the raw diff of two trees, and the added lines where they were asked for, from git's plumbing.

Decides which flags are pinned and how the answer is read: `--raw -z` for paths, modes and ids (both sides
of every rename), and beside it a patch without context for counts and added lines. Hunks are walked by
their own counts, so no line of a file can pass for a header. Source: git-diff-tree, "Raw output format".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from patchgate.change.model import GITLINK, NO_MODE, Entry, FileChange, Line
from patchgate.change.path import RepoPath
from patchgate.errors import UndecidedError
from patchgate.git.repository import failed
from patchgate.process import Child

Watch = Callable[[Sequence[bytes]], Iterable[int]]

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
# A whole hunk, or the headers of a section, in one step where the buffer holds them: half of the time.
# No group is possessive that could backtrack: CPython before 3.11.5 misreads those (gh-106052).
_RUNS = re.compile(rb"((?:-[^\n]*+\n)*+)(?:\\ [^\n]*+\n)?((?:\+[^\n]*+\n)*+)(?:\\ [^\n]*+\n)?")
_HEADER_LINES = re.compile(rb"(?:(?:index |--- |\+\+\+ |old mode|new mode|new file |deleted fil)[^\n]*+\n)*")


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of a change is read: line counts and text, sizes of new blobs.

    `watch` picks from a run of added lines those that some content rule may object to.
    """

    lines: bool = False
    sizes: bool = False
    watch: Watch | None = None

    def covers(self, other: Detail) -> bool:
        """Tell whether a walk with this detail can answer what `other` asks."""
        return (self.lines or not other.lines) and (self.sizes or not other.sizes)

    @property
    def flags(self) -> tuple[str, ...]:
        """The pinned flags of the diff."""
        return (*RAW, *PATCH) if self.lines else RAW


class DiffReader:
    """Reads the output of one diff command, piece by piece, from a child's standard output."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._fd = child.out.fileno()
        self._buffer = b""
        self._at = 0
        self._ended = False

    def line(self) -> bytes:
        """Read the line by which a walk names the two trees that follow."""
        return self._until(b"\n")

    def records(self) -> list[FileChange]:
        """Read raw records as long as there are any."""
        found: list[FileChange] = []
        while self._peek(1) == b":":
            words = self._until(b"\0").split(b" ")
            path = RepoPath.from_git(self._until(b"\0"))
            if words[4] == b"U":
                raise UndecidedError(
                    f"{path.quoted} is not merged: the index holds a conflict",
                    "resolve the conflict, then git add the file",
                )
            old = None if words[0] == b":" + NO_MODE.encode() else _entry(words[0][1:], words[2])
            new = None if words[1] == NO_MODE.encode() else _entry(words[1], words[3])
            found.append(FileChange(path, old, new))
        return found

    def patches(self, records: list[FileChange], watch: Callable[[FileChange], Watch | None]) -> set[int]:
        """Read the patch that follows `records`, fill in their counts; return those that git calls binary."""
        if not records or self._peek(1) != b"\0":
            return set()
        self._at += 1
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
                record.path, record.old, record.new, added, removed, hunks, watched=tuple(watched)
            )
        return binary

    def _section(self, watch: Watch | None, watched: list[Line]) -> tuple[int, int, int] | None:
        """Read one file's section: added and removed lines and hunks, None where git calls it binary."""
        line = self._until(b"\n")
        if not line.startswith(b"diff --git "):
            raise _unreadable(line)
        headers = _HEADER_LINES.match(self._buffer, self._at)
        if headers is not None:
            self._at = headers.end()
        added = removed = hunks = 0
        while True:
            start = self._peek(11)
            if start.startswith(b"@@ -"):
                one, two = self._hunk(watch, watched)
                added, removed, hunks = added + one, removed + two, hunks + 1
            elif start.startswith(b"Binary file"):
                self._until(b"\n")
                return None
            elif start.startswith(_HEADERS) and not hunks:
                self._until(b"\n")
            else:
                return added, removed, hunks

    def _hunk(self, watch: Watch | None, watched: list[Line]) -> tuple[int, int]:
        line = self._until(b"\n")
        found = _HUNK.match(line)
        if found is None:
            raise _unreadable(line)
        removed = int(found[1]) if found[1] is not None else 1
        added = int(found[3]) if found[3] is not None else 1
        runs = _RUNS.match(self._buffer, self._at)
        # The counts of the header decide, here too. A hunk that the buffer does not hold whole is walked,
        # also where only the marker of a missing newline is cut.
        if (
            runs is not None
            and runs.end() < len(self._buffer)
            and self._buffer[runs.end()] != 0x5C
            and runs[1].count(b"\n") == removed
            and runs[2].count(b"\n") == added
        ):
            self._at = runs.end()
            if watch is not None and added:
                lines = [text[1:] for text in runs[2].split(b"\n")[:-1]]
                first = int(found[2])
                watched.extend(Line(first + index, lines[index]) for index in watch(lines))
            return added, removed
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
        data = os.read(self._fd, 1 << 18)
        self._ended = not data
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        return bool(data)

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


def _entry(mode: bytes, oid: bytes) -> Entry:
    return Entry(mode.decode("ascii"), oid.decode("ascii"))


def _is_type_change(record: FileChange) -> bool:
    return record.old is not None and record.new is not None and record.old.mode[:3] != record.new.mode[:3]


def is_text_candidate(record: FileChange) -> bool:
    """Tell whether the new side is a regular file, whose lines content rules judge."""
    return record.new is not None and record.new.mode != GITLINK and record.new.is_file


def _unreadable(line: bytes) -> UndecidedError:
    return UndecidedError(f"git's diff has an unexpected line ({line[:40]!r})", "run git fsck")
