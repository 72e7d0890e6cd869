"""Line ends of a file on disk, carried over to what the file becomes.

Decides which line end each line of the new text gets where the disk has others than git's blob: lines that
stay keep theirs, new ones get the file's own. Whether git takes the result for the new blob is not decided
here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONE_LF = re.compile(rb"(?<!\r)\n")
# How many lines around a change in a file of mixed line ends are compared: the comparison is quadratic.
_COMPARED = 2000


def is_same_but_ends(one: bytes, other: bytes) -> bool:
    """Tell whether two texts are the same, LF and CR LF taken for one."""
    return one == other or one.replace(b"\r\n", b"\n") == other.replace(b"\r\n", b"\n")


def carry_line_ends(disk: bytes, old: bytes, new: bytes) -> bytes | None:
    """Give a new blob the line ends of its file on disk; None where more than these set the file apart.

    Lines that stay keep theirs, new lines get the one that most lines of the file have (LF, if equally many).

    Args:
        disk: the file's bytes.
        old: the blob that it was judged as.
        new: the blob that it becomes.
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
    kept = _kept_lines(before, after)
    for number, line in enumerate(after[:-1]):
        source = kept.get(number)
        end = usual
        # What stands behind the last LF is a line without an end.
        if source is not None and source < len(on_disk) - 1:
            end = b"\r\n" if on_disk[source].endswith(b"\r") else b"\n"
        pieces.append(line.removesuffix(b"\r") + end)
    return b"".join(pieces) + after[-1]


def _kept_lines(before: Sequence[bytes], after: Sequence[bytes]) -> dict[int, int]:
    """Pair the lines that stay: the position after to the one before."""
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    kept = {number: number for number in range(head)}
    kept |= {len(after) - number: len(before) - number for number in range(1, tail + 1)}
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if old and new and len(old) + len(new) <= _COMPARED:
        from difflib import SequenceMatcher

        for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            for number in range(block.size):
                kept[head + block.b + number] = head + block.a + number
    return kept
