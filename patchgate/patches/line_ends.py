"""Files and hunks as lists of lines, and their line endings: LF, CR LF, or mixed.

Only LF ends a line; the bytes of a line do not include it. A section is adapted to its file only if all its
lines end one way and all lines of the file the other. A file on disk keeps its line endings if git's blob
has different ones. A last line without a newline counts as either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from patchgate.patches.line_matching import match_lines
from patchgate.patches.patch_model import Hunk, PatchSection
from patchgate.values import dataclass

_LONE_LF = re.compile(rb"(?<!\r)\n")


class FileLines:
    """The lines of one file; `is_complete` is whether the last one ends in LF (true for an empty file)."""

    __slots__ = ("_index", "count", "is_complete", "lines")

    def __init__(self, raw: bytes) -> None:
        self.lines = raw.split(b"\n")
        self.is_complete = not self.lines[-1]
        if self.is_complete:
            self.lines.pop()
        self.count = len(self.lines)
        self._index: dict[bytes, list[int]] | None = None

    @property
    def index(self) -> dict[bytes, list[int]]:
        """The positions of each line, from 0; built on first use."""
        if self._index is None:
            self._index = {}
            for number, line in enumerate(self.lines):
                self._index.setdefault(line, []).append(number)
        return self._index

    def rarest(self, wanted: Sequence[bytes]) -> tuple[int, Sequence[int]]:
        """Find the line that the file has least often: its index in `wanted`, and its places in the file."""
        best: tuple[int, Sequence[int]] = (0, range(self.count))
        for position, line in enumerate(wanted):
            places = self.index.get(line)
            if places is None:
                return position, ()
            if len(places) < len(best[1]):
                best = position, places
        return best


@dataclass(frozen=True, slots=True)
class HunkLines:
    """The two sides of one hunk; `trailing` counts the context lines after the last change."""

    old: list[bytes]
    new: list[bytes]
    old_incomplete: bool
    new_incomplete: bool
    trailing: int


def read_hunk(section: PatchSection, hunk: Hunk) -> HunkLines:
    """Split a hunk into its sides."""
    body = section.body(hunk).split(b"\n")
    body.pop()
    if hunk.form & 3:
        body = [line for line in body if not line.startswith(b"\\")]
    trailing = 0
    while body[-1 - trailing][0] == 0x20:
        trailing += 1
    return HunkLines(
        old=[line[1:] for line in body if line[0] != 0x2B],
        new=[line[1:] for line in body if line[0] != 0x2D],
        old_incomplete=hunk.old_incomplete,
        new_incomplete=hunk.new_incomplete,
        trailing=trailing,
    )


def patch_line_of_old(section: PatchSection, hunk: Hunk, wanted: int) -> int:
    """Compute the line of the patch, from 1, of a hunk's old line number `wanted` (from 0)."""
    seen = -1
    number = hunk.line
    for line in section.body(hunk).split(b"\n"):
        number += 1
        if line[:1] in {b" ", b"-"}:
            seen += 1
            if seen == wanted:
                break
    return number


def is_same_but_ends(one: bytes, other: bytes) -> bool:
    """Return whether two texts are equal if LF and CR LF count as the same."""
    return one == other or one.replace(b"\r\n", b"\n") == other.replace(b"\r\n", b"\n")


def carry_line_ends(disk: bytes, old: bytes, new: bytes) -> bytes | None:
    """Give a new blob the line endings of its file on disk; None if the file differs in more than those.

    Lines that stay keep theirs, new lines get the one that most lines of the file have (LF, if equally many).
    `old` is the blob that the file was judged as, `new` the one that it becomes.
    """
    if not is_same_but_ends(disk, old):
        return None
    ends = disk.count(b"\n")
    carriage_returns = disk.count(b"\r\n")
    if carriage_returns == ends:
        return _LONE_LF.sub(b"\r\n", new)
    usual = b"\r\n" if carriage_returns * 2 > ends else b"\n"
    on_disk, before, after = (text.split(b"\n") for text in (disk, old, new))
    pieces: list[bytes] = []
    kept = match_lines(before, after)
    for number, line in enumerate(after[:-1]):
        source = kept.get(number)
        end = usual
        # The text after the last LF is a line without a newline.
        if source is not None and source < len(on_disk) - 1:
            end = b"\r\n" if on_disk[source].endswith(b"\r") else b"\n"
        pieces.append(line.removesuffix(b"\r") + end)
    return b"".join(pieces) + after[-1]


class LineEnds(Enum):
    """How the lines of a text end; `NONE` if it has no newline."""

    NONE = "none"
    LF = "lf"
    CRLF = "crlf"
    MIXED = "mixed"

    @classmethod
    def of_counts(cls, lines: int, carriage_returns: int) -> LineEnds:
        """Judge by how many lines end in LF, and how many of these in CR LF."""
        if not lines:
            return cls.NONE
        if not carriage_returns:
            return cls.LF
        return cls.CRLF if carriage_returns == lines else cls.MIXED


def detect_line_ends(text: bytes) -> LineEnds:
    """Return how the lines of a file end."""
    if b"\r" not in text:
        return LineEnds.LF if b"\n" in text else LineEnds.NONE
    return LineEnds.of_counts(text.count(b"\n"), text.count(b"\r\n"))


def detect_section_line_ends(section: PatchSection) -> LineEnds:
    """Return how the lines under a section's hunk headers end, without markers and unfinished lines."""
    lines = carriage_returns = 0
    for hunk in section.hunks:
        body = section.body(hunk)
        if hunk.form & 3:
            texts = body.split(b"\n")[:-1]
            ended = [
                text for text, below in zip(texts, [*texts[1:], b""], strict=True) if _is_ended(text, below)
            ]
            lines += len(ended)
            carriage_returns += sum(text.endswith(b"\r") for text in ended)
        else:
            lines += hunk.lines
            carriage_returns += body.count(b"\r\n")
    return LineEnds.of_counts(lines, carriage_returns)


def adapt_line_ends(section: PatchSection, preimage: bytes) -> bytes | None:
    """Write a section again, headers included, with the file's line endings; None if nothing changes."""
    wanted = detect_line_ends(preimage)
    if not section.rows or wanted not in {LineEnds.LF, LineEnds.CRLF}:
        return None
    if wanted is LineEnds.LF and section.raw.find(b"\r", section.start, section.end) < 0:
        return None
    given = detect_section_line_ends(section)
    if given not in {LineEnds.LF, LineEnds.CRLF} or given is wanted:
        return None
    hunks = section.hunks
    pieces = [section.raw[section.start : hunks[0].start]]
    for hunk in hunks:
        pieces.append(section.raw[hunk.start : hunk.body])
        texts = section.body(hunk).split(b"\n")[:-1]
        for text, below in zip(texts, [*texts[1:], b""], strict=True):
            if not _is_ended(text, below):
                pieces.append(text)
            else:
                pieces.append(text + b"\r" if wanted is LineEnds.CRLF else text[:-1])
            pieces.append(b"\n")
    return b"".join(pieces)


def _is_ended(text: bytes, below: bytes) -> bool:
    """Return whether a line of a hunk is a line of the file that has its newline."""
    return not text.startswith(b"\\") and not below.startswith(b"\\")
