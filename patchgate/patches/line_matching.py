"""Pair the lines that stay between two versions of a text.

Lines that both versions have exactly once split a long text into short ones, as git's patience diff does, so
that the time stays nearly linear; only short stretches are compared in full.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

# How many lines of a stretch are compared in full: the comparison is quadratic.
_COMPARED = 2000


def match_lines(before: Sequence[bytes], after: Sequence[bytes]) -> dict[int, int]:
    """Pair the lines that stay: the position after to the one before, both from 0 and ascending."""
    kept: dict[int, int] = {}
    waiting = [(0, len(before), 0, len(after))]
    while waiting:
        start, stop, first, last = waiting.pop()
        while start < stop and first < last and before[start] == after[first]:
            kept[first] = start
            start, first = start + 1, first + 1
        while start < stop and first < last and before[stop - 1] == after[last - 1]:
            stop, last = stop - 1, last - 1
            kept[last] = stop
        if start == stop or first == last:
            continue
        if stop - start + last - first <= _COMPARED:
            kept.update(_compare(before[start:stop], after[first:last], start, first))
            continue
        pairs = _unique_pairs(before, after, (start, stop, first, last))
        kept.update(pairs)
        above, below = start, first
        for new, old in (*pairs, (last, stop)) if pairs else ():
            waiting.append((above, old, below, new))
            above, below = old + 1, new + 1
    return kept


def _compare(old: Sequence[bytes], new: Sequence[bytes], start: int, first: int) -> Iterator[tuple[int, int]]:
    from difflib import SequenceMatcher

    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        for number in range(block.size):
            yield first + block.b + number, start + block.a + number


def _unique_pairs(
    before: Sequence[bytes], after: Sequence[bytes], within: tuple[int, int, int, int]
) -> list[tuple[int, int]]:
    """Pair lines that both stretches have once: the longest selection of pairs in the same order."""
    start, stop, first, last = within
    counts = Counter(before[start:stop])
    places = {before[at]: at for at in range(start, stop) if counts[before[at]] == 1}
    counts = Counter(after[first:last])
    both = [
        (at, places[after[at]]) for at in range(first, last) if counts[after[at]] == 1 and after[at] in places
    ]
    # The longest ascending subsequence, by patience sorting.
    tops: list[int] = []
    piles: list[int] = []
    above: list[int] = []
    for number, (_, old) in enumerate(both):
        pile = bisect_left(tops, old)
        above.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [old]
        piles[pile : pile + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = piles[-1] if piles else -1
    while number >= 0:
        chosen.append(both[number])
        number = above[number]
    return chosen[::-1]
