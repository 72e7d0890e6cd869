"""Whether a baseline grew: whether it has an entry that it had not.

Decides what an entry is. One of JSON is a leaf by its place, whatever its position in lists. An object that
stands in a list counts as a whole, and so does a list with numbers, or with others, that stands in one; what
lies further in has its place under the words of these. A number that only got smaller, everything beside it
being as it was, is no growth; one that stands in a list by itself is the entry. Anything else has lines.
Order, blank lines and white space around a line are no entries. When growth counts, `abuse` decides.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import le
from typing import Any, TypeAlias

_MOST_TRIED = 1_000_000
_Place: TypeAlias = tuple[Any, ...]
_ITEM = ""
"""Stands in a place for any position of a list; keys have a mark of their own.

Within an entry that has words it stands with them in a tuple.
"""


def grown(before: bytes | None, after: bytes | None) -> bool:
    """Tell whether a baseline has an entry that it had not.

    Args:
        before: what it held; None where it was not there.
        after: what it holds; None where it is gone.
    """
    if after is None or before == after:
        return False
    now, was = _json_of(after), _json_of(before or b"")
    if now is not None and (was is not None or not (before or b"").strip()):
        return _has_more(was, now)
    return bool(Counter(_lines(after)) - Counter(_lines(before or b"")))


def _lines(raw: bytes) -> Iterator[bytes]:
    return (line.strip() for line in raw.split(b"\n") if line.strip())


class _Object(tuple[tuple[str, Any], ...]):
    """The members of a JSON object; a key that stands twice is there twice."""

    __slots__ = ()


def _json_of(raw: bytes) -> Any:
    """Read JSON in a list of one; None where it is none, for which a scalar alone is taken too."""
    try:
        # Words like NaN are no numbers that could be compared: they stay texts.
        value = json.loads(raw, object_pairs_hook=_Object, parse_constant=lambda word: f"({word})")
    except (ValueError, RecursionError):
        return None
    return [value] if isinstance(value, (_Object, list)) else None


def _has_more(before: Any, after: Any) -> bool:
    was, now = _Entries(before or []), _Entries(after)
    for place, numbers in now.numbers.items():
        if not _fit(numbers, was.numbers.get(place, [])):
            return True
    if any(number > was.leaves[leaf] for leaf, number in now.leaves.items()):
        return True
    # One that was emptied is no entry more; an empty document has none at all.
    if any(now.inner[place] > was.inner[place] for place in now.empty - {(_ITEM,)}):
        return True
    return any(not _fit(entries, was.objects.get(key, [])) for key, entries in now.objects.items())


def _fit(after: list[tuple[float, ...]], before: list[tuple[float, ...]]) -> bool:
    """Tell whether each has a partner of its own before, no number of which is smaller."""
    if len(after) > len(before):
        return False
    rest = sorted((Counter(after) - Counter(before)).elements(), reverse=True)
    partners = sorted((Counter(before) - Counter(after)).elements())
    if rest and len(rest[0]) == 1:
        largest = reversed(partners)
        return all(mine[0] <= its[0] for mine, its in zip(rest, largest, strict=False))
    if len(rest) * len(partners) > _MOST_TRIED:
        return False
    for each in rest:
        found = next((it for it in partners if all(map(le, each, it))), None)
        if found is None:
            return False
        partners.remove(found)
    return True


class _Entries:
    """What a JSON document has, by places.

    Attributes:
        leaves: how often each place has each text, truth value, or null, and each number that is an element
            of a list.
        numbers: the other numbers of each place, each in a tuple of its own.
        objects: of each kind of entry in a list, the numbers of each in the order of its words.
        inner: how many objects and lists each place has.
        empty: the places where one of them is empty.
    """

    def __init__(self, value: Any) -> None:
        self.leaves: Counter[tuple[_Place, Any]] = Counter()
        self.numbers: defaultdict[_Place, list[tuple[float, ...]]] = defaultdict(list)
        self.objects: defaultdict[tuple[Any, ...], list[tuple[float, ...]]] = defaultdict(list)
        self.inner: Counter[_Place] = Counter()
        self.empty: set[_Place] = set()
        # A list of what is open, not a recursion: its depth is a stranger's.
        waiting: list[tuple[_Place, Any]] = [((_ITEM,), each) for each in value]
        while waiting:
            place, each = waiting.pop()
            if isinstance(each, (_Object, list)):
                waiting += self._inner(place, each)
            elif not _is_number(each):
                self.leaves[place, each] += 1
            elif place[-1] == _ITEM:
                # Nothing beside it says that a smaller one is the same entry.
                self.leaves[place, (each,)] += 1
            else:
                self.numbers[place].append((each,))

    def _inner(self, place: _Place, each: Any) -> Iterator[tuple[_Place, Any]]:
        self.inner[place] += 1
        if not each:
            self.empty.add(place)
            return
        is_entry = place[-1] == _ITEM and len(place) > 1
        if isinstance(each, list):
            inner = [item for item in each if _is_inner(item)]
            # Of words alone the order says nothing.
            if is_entry and (any(map(_is_number, each)) or 0 < len(inner) < len(each)):
                place = self._entry(place, [("", item) for item in each if not _is_inner(item)])
                each = inner
            yield from (((*place, _ITEM), item) for item in each)
            return
        if is_entry:
            # Its leaves alone would let two entries swap their halves: a new one, made of old words.
            plain = [member for member in each if not _is_inner(member[1])]
            place = self._entry(place, sorted(plain or _further_in(each), key=_by_key))
        yield from (((*place, f".{key}"), item) for key, item in each)

    def _entry(self, place: _Place, members: Iterable[tuple[str, Any]]) -> _Place:
        """Count an entry of a list as a whole, and give the place of what lies further in it."""
        words: list[Any] = []
        numbers: list[float] = []
        for key, value in members:
            if _is_number(value):
                words.append((key, "number"))
                numbers.append(value)
            else:
                words.append((key, type(value).__name__, value))
        self.objects[(place, *words)].append(tuple(numbers))
        return (*place[:-1], (_ITEM, *words))


def _further_in(each: _Object) -> list[tuple[str, Any]]:
    """Give the words of an object's objects, by which it is known where it has none itself."""
    found: list[tuple[str, Any]] = []
    waiting: list[tuple[str, Any]] = list(each)
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, _Object):
            waiting += ((f"{key}.{inner}", item) for inner, item in value)
        elif not isinstance(value, list) and not _is_number(value):
            found.append((key, value))
    return found


def _by_key(member: tuple[str, Any]) -> tuple[str, str]:
    return member[0], str(member[1])


def _is_inner(value: Any) -> bool:
    return isinstance(value, (_Object, list))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
