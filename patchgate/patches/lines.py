"""Files and hunks as lists of lines, the missing newline kept apart.

Decides what a line is: bytes without their LF, and only LF ends one. `FileLines` also knows where each line
stands, which is what makes looking for a hunk cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchgate.patches.patch_model import Hunk, Section


class FileLines:
    """The lines of one file; `is_complete` tells whether the last one ends in LF (true for an empty file)."""

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
        """Where each line stands, from 0; built when first asked for."""
        if self._index is None:
            self._index = {}
            for number, line in enumerate(self.lines):
                self._index.setdefault(line, []).append(number)
        return self._index

    def rarest(self, wanted: Sequence[bytes]) -> tuple[int, Sequence[int]]:
        """Find which of some lines the file has least often: its position among them, and its places."""
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
    """The two sides of one hunk; `trailing` counts the context lines behind the last change."""

    old: list[bytes]
    new: list[bytes]
    old_incomplete: bool
    new_incomplete: bool
    trailing: int


def read_hunk(section: Section, hunk: Hunk) -> HunkLines:
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


def patch_line_of_old(section: Section, hunk: Hunk, wanted: int) -> int:
    """Compute the line of the patch, from 1, that holds a hunk's old line number `wanted` (from 0)."""
    seen = -1
    number = hunk.line
    for line in section.body(hunk).split(b"\n"):
        number += 1
        if line[:1] in {b" ", b"-"}:
            seen += 1
            if seen == wanted:
                break
    return number
