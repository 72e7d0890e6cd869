"""Which patterns of a list could match a path, by literal texts alone.

For each pattern, the index has one text that every matching path contains. Most paths contain none of these
texts, so no pattern is tried. The index may name too many patterns, never too few.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import takewhile

from patchgate.policy.glob_syntax import Segment, Single

Check = tuple[str, str]
"""How a text is looked for in a path, and the text. An empty text is found in every path.

`prefixes`: the path or a folder above it; `names`: a whole component; `beginnings`, `endings`, `parts`: of
any component.
"""

# A class of more characters is as good as a `?`; ten digits are few enough.
_MOST_TEXTS = 12
_MAX_FOLDERS = 50_000
# Real folders are shorter. Paths of 4,096 bytes, one folder for every second byte, would fill the memory.
_MAX_REMEMBERED = 512
ASCII = "".join(map(chr, range(128)))
FOLDED_ASCII = "".join(character for character in ASCII if character == character.lower())
_NOTHING: dict[int, dict[str, list[int]]] = {}


def best_checks(segments: list[Segment], characters: str, *, is_exact: bool = False) -> list[Check]:
    """Choose checks, one of which every path that these components match passes: the longest text.

    Args:
        segments: the components of a pattern.
        characters: the only ones in paths; a class is replaced by those that it matches; empty: not known.
        is_exact: whether a component matches its own text only where its pieces do.
    """
    plain = [each.written for each in takewhile(lambda each: each.plain == each.written, segments)]
    best: list[Check] = [("prefixes", "/".join(plain))]
    # A lone folder at the top may contain nearly everything, so its name counts less than others.
    weight = len(best[0][1]) / (3 if len(plain) == 1 else 1)
    for segment in segments[len(plain) :]:
        checks = _segment_checks(segment, characters, is_exact)
        length = len(checks[0][1])
        if length > weight:
            best, weight = checks, length
    return best


def _segment_checks(segment: Segment, characters: str, is_exact: bool) -> list[Check]:
    """Choose checks, one of which every component that a segment matches passes.

    Between its wildcards are runs of text; a small class gives one run for each of its characters. All
    texts of a run have one length.
    """
    runs = [[""]]
    for piece in segment.pieces:
        texts = [piece] if isinstance(piece, str) else []
        if isinstance(piece, Single):
            texts = _matched(piece, characters)
        if texts and len(runs[-1]) * len(texts) <= _MOST_TEXTS:
            runs[-1] = [before + after for before in runs[-1] for after in texts]
        else:
            runs.append([""])
    longest = max(range(len(runs)), key=lambda position: len(runs[position][0]))
    field = "parts"
    if len(runs) == 1:
        field = "names"
    elif longest in {0, len(runs) - 1}:
        field = "endings" if longest else "beginnings"
    checks = [(field, text) for text in runs[longest]]
    if not is_exact and ("[" in segment.written or "\\" in segment.written):
        # A component with a class or an escape also matches its own text.
        checks.append(("names", segment.written))
    return checks


def _matched(single: Single, characters: str) -> list[str]:
    """List the characters that a class matches; none for a negated one.

    `[!a]` matches an A in the reading that does not fold, and an A is an `a` in a folded path.
    """
    if "[^" in single.expression:
        return []
    return re.compile(single.expression, re.DOTALL).findall(characters)


class LiteralIndex:
    """Answers which entries of a list could match a path; it remembers up to 50,000 folders, and the
    last long one with those above it.

    Args:
        entries: for each entry its checks; every path that the entry matches passes one of them.
    """

    __slots__ = (
        "_always",
        "_folders",
        "_heads",
        "_long",
        "_longest",
        "_names",
        "_parts",
        "_prefixes",
        "_tails",
    )

    def __init__(self, entries: Iterable[Iterable[Check]]) -> None:
        self._prefixes: dict[str, list[int]] = {}
        self._names: dict[str, list[int]] = {}
        # By the first or last character, then by length.
        self._heads: dict[str, dict[int, dict[str, list[int]]]] = {}
        self._tails: dict[str, dict[int, dict[str, list[int]]]] = {}
        self._parts: dict[str, list[int]] = {}
        always: set[int] = set()
        for number, checks in enumerate(entries):
            for field, text in checks:
                if not text:
                    always.add(number)
                    continue
                table = {"prefixes": self._prefixes, "names": self._names, "parts": self._parts}.get(field)
                if table is None:
                    by_character = self._tails if field == "endings" else self._heads
                    character = text[-1] if field == "endings" else text[0]
                    table = by_character.setdefault(character, {}).setdefault(len(text), {})
                table.setdefault(text, []).append(number)
        self._longest = max(map(len, self._prefixes), default=0)
        self._always = frozenset(always)
        self._folders: dict[str, frozenset[int]] = {"": self._always}
        self._long = _LongFolder("", [], [])

    def find(self, path: str) -> frozenset[int]:
        """Return the positions of the entries that could match a path or a folder above it."""
        above, _, name = path.rpartition("/")
        found = self._folders.get(above)
        if found is None:
            found = self._enter(above)
        own = self._prefixes.get(path)
        if own is not None:
            found = found.union(own)
        return self._with_name(found, name)

    def _with_name(self, found: frozenset[int], name: str) -> frozenset[int]:
        entries = self._names.get(name)
        if entries is not None:
            found = found.union(entries)
        for length, tails in self._tails.get(name[-1:], _NOTHING).items():
            entries = tails.get(name[-length:])
            if entries is not None:
                found = found.union(entries)
        for length, heads in self._heads.get(name[:1], _NOTHING).items():
            entries = heads.get(name[:length])
            if entries is not None:
                found = found.union(entries)
        for text, entries in self._parts.items():
            if text in name:
                found = found.union(entries)
        return found

    def _enter(self, path: str) -> frozenset[int]:
        """Walk to a folder from the nearest one above that is remembered, remembering those on the way."""
        if len(self._folders) >= _MAX_FOLDERS:
            self._folders = {"": self._always}
        if len(path) > _MAX_REMEMBERED:
            return self._enter_long(path)
        start = path
        while (found := self._folders.get(start)) is None:
            start = start.rpartition("/")[0]
        position = len(start) + 1 if start else 0
        while position <= len(path):
            end = path.find("/", position)
            end = len(path) if end < 0 else end
            if end <= self._longest:
                own = self._prefixes.get(path[:end])
                found = found if own is None else found.union(own)
            found = self._folders[path[:end]] = self._with_name(found, path[position:end])
            position = end + 1
        return found

    def _enter_long(self, path: str) -> frozenset[int]:
        """Walk to a long folder from where it parts from the last one.

        Of each folder on the way the end alone is remembered, for its text would be long too.
        """
        last = self._long
        known = last.shared_with(path)
        ends, entries = last.ends[:known], last.entries[:known]
        if not known:
            start = path[: _MAX_REMEMBERED + 1].rpartition("/")[0]
            ends, entries = [len(start)], [self._folders.get(start) or self._enter(start)]
        end = ends[-1]
        while end < len(path):
            position = end + 1 if end else 0
            end = path.find("/", position)
            end = len(path) if end < 0 else end
            found = entries[-1]
            if end <= self._longest:
                own = self._prefixes.get(path[:end])
                found = found if own is None else found.union(own)
            ends.append(end)
            entries.append(self._with_name(found, path[position:end]))
        self._long = _LongFolder(path, ends, entries)
        return entries[-1]


class _LongFolder:
    """A long folder: where the names of those above it end, and which entries could match each."""

    __slots__ = ("ends", "entries", "path")

    def __init__(self, path: str, ends: list[int], entries: list[frozenset[int]]) -> None:
        self.path = path
        self.ends = ends
        self.entries = entries

    def shared_with(self, other: str) -> int:
        """Return how many of the remembered folders are also those of another path."""
        low, high = 0, min(len(self.path), len(other))
        while low < high:
            middle = (low + high + 1) // 2
            if self.path[low:middle] == other[low:middle]:
                low = middle
            else:
                high = middle - 1
        known = bisect_right(self.ends, low)
        is_cut = known > 0 and self.ends[known - 1] == low and other[low : low + 1] not in {"", "/"}
        return known - is_cut
