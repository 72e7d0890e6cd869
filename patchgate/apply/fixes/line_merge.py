"""Carry the hunks of a fix into a file that has unstaged edits, where they do not meet these edits.

A hunk meets an edit if they replace a common line or border on each other. Lines keep their ends, so a
missing newline at the end is a difference like any other. Every edit is in the result, whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from patchgate.patches.line_matching import match_lines
from patchgate.values import dataclass


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines `first` to `last` of a file, from 1."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class MergedLines:
    """The file with the hunks that fit, and where in it the others would have been."""

    content: bytes
    left: tuple[LineRange, ...]


@dataclass(frozen=True, slots=True)
class _LineHunk:
    """Lines `start` up to `stop` (from 0, exclusive) become `new`."""

    start: int
    stop: int
    new: tuple[bytes, ...]

    @property
    def growth(self) -> int:
        return len(self.new) - (self.stop - self.start)

    def meets(self, other: _LineHunk) -> bool:
        return self.start <= other.stop and other.start <= self.stop


def merge_fix(staged: bytes, fixed: bytes, working: bytes) -> MergedLines:
    """Apply to a working file the hunks of a fix that meet no unstaged edit.

    Args:
        staged: what is in the index, from which both others are made.
        fixed: what the fix makes of it.
        working: the file with its unstaged edits, as git would store it.
    """
    lines = _lines(staged)
    edits, fixes = _hunks(lines, _lines(working)), _hunks(lines, _lines(fixed))
    chosen: list[_LineHunk] = list(edits)
    left: list[tuple[_LineHunk, list[_LineHunk]]] = []
    at = 0
    for fix in fixes:
        while at < len(edits) and edits[at].stop < fix.start:
            at += 1
        met = list(takewhile(fix.meets, edits[at:]))
        if not met:
            chosen.append(fix)
        elif fix not in met:
            left.append((fix, met))
    chosen.sort(key=lambda hunk: (hunk.start, hunk.stop))
    content = b"".join(_apply(lines, chosen))
    return MergedLines(content, tuple(_place(fix, met, chosen) for fix, met in left))


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _hunks(before: Sequence[bytes], after: Sequence[bytes]) -> list[_LineHunk]:
    found = []
    start = first = 0
    for number, source in (*sorted(match_lines(before, after).items()), (len(after), len(before))):
        if start < source or first < number:
            found.append(_LineHunk(start, source, tuple(after[first:number])))
        start, first = source + 1, number + 1
    return found


def _apply(lines: Sequence[bytes], hunks: Sequence[_LineHunk]) -> list[bytes]:
    made: list[bytes] = []
    at = 0
    for hunk in hunks:
        made += lines[at : hunk.start]
        made += hunk.new
        at = hunk.stop
    return made + list(lines[at:])


def _place(hunk: _LineHunk, met: Sequence[_LineHunk], chosen: Sequence[_LineHunk]) -> LineRange:
    """Find the lines of the result where a hunk was left out: its own and those that it meets."""
    start = min(hunk.start, *(edit.start for edit in met))
    stop = max(hunk.stop, *(edit.stop for edit in met))
    before = sum(each.growth for each in chosen if each.stop <= start and each not in met)
    within = sum(edit.growth for edit in met)
    first = start + before + 1
    return LineRange(first, max(first, stop + before + within))
