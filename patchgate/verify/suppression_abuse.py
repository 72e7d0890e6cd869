"""Whether a change accepts debt instead of mending it: when growth of baselines counts, and what growth is.

Decides which triggers there are, what functional code is, and what an entry of a baseline is: of JSON a leaf
by its place, of anything else a line.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from operator import le
from typing import Any, TypeAlias

from patchgate.commands.analysis_results import AnalysisComparison
from patchgate.git.path import RepoPath
from patchgate.policy.file_kinds import is_control_by_name

_MOST_TRIED = 1_000_000
_Path: TypeAlias = tuple[Any, ...]
_ITEM = ""
"""Stands in a place for any position of a list; keys have a mark of their own.

Within an entry that has words it stands with them in a tuple.
"""


def has_grown(before: bytes | None, after: bytes | None) -> bool:
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
    was, now = _EntryCounts(before or []), _EntryCounts(after)
    for place, numbers in now.numbers.items():
        if not _can_match(numbers, was.numbers.get(place, [])):
            return True
    if any(number > was.leaves[leaf] for leaf, number in now.leaves.items()):
        return True
    # One that was emptied is no entry more; an empty document has none at all.
    if any(now.inner[place] > was.inner[place] for place in now.empty - {(_ITEM,)}):
        return True
    return any(not _can_match(entries, was.objects.get(key, [])) for key, entries in now.objects.items())


def _can_match(after: list[tuple[float, ...]], before: list[tuple[float, ...]]) -> bool:
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


class _EntryCounts:
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
        self.leaves: Counter[tuple[_Path, Any]] = Counter()
        self.numbers: defaultdict[_Path, list[tuple[float, ...]]] = defaultdict(list)
        self.objects: defaultdict[tuple[Any, ...], list[tuple[float, ...]]] = defaultdict(list)
        self.inner: Counter[_Path] = Counter()
        self.empty: set[_Path] = set()
        # A list of what is open, not a recursion: its depth is a stranger's.
        waiting: list[tuple[_Path, Any]] = [((_ITEM,), each) for each in value]
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

    def _inner(self, place: _Path, each: Any) -> Iterator[tuple[_Path, Any]]:
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

    def _entry(self, place: _Path, members: Iterable[tuple[str, Any]]) -> _Path:
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


WHILE_REGRESSIONS = "baseline_updated_while_regressions_present"
WITH_CODE = "baseline_changed_with_functional_code"
WITHOUT_INTENT = "baseline_updated_without_intent"
GREENED = "ci_greened_by_accepting_debt"
TRIGGERS = (WHILE_REGRESSIONS, WITH_CODE, WITHOUT_INTENT, GREENED)

_PROSE = (b".md", b".markdown", b".rst", b".txt", b".text", b".adoc", b".asciidoc", b".org", b".tex")
_PROSE_NAMES = frozenset(
    {b"readme", b"license", b"licence", b"changelog", b"changes", b"notice", b"authors", b"copying", b"news"}
)
# They end like prose, and decide what is built.
_NO_PROSE = re.compile(rb"cmakelists\.txt|(?:.*[-_])?(?:requirements|constraints)(?:[-_.].*)?\.txt")


def find_triggers(
    *,
    has_changed: bool,
    has_grown: bool,
    has_intent: bool,
    has_code: bool,
    comparison: AnalysisComparison | None,
) -> tuple[str, ...]:
    """Name why a change of baselines is suspicious; nothing where nothing changed.

    Args:
        has_changed: a listed baseline is not what it was.
        has_grown: a listed baseline, or the set of suppressions, grew.
        has_intent: the work is declared.
        has_code: functional code was changed with it.
        comparison: of the two trees; None where nothing can be said of regressions.
    """
    regressed = comparison is not None and bool(comparison.new)
    greened = comparison is not None and any(
        state.failed_before and not state.fails_after for state in comparison.thresholds
    )
    said = (
        regressed and (has_changed or has_grown),
        has_grown and has_code,
        has_grown and not has_intent,
        has_grown and greened,
    )
    return tuple(trigger for trigger, is_so in zip(TRIGGERS, said, strict=True) if is_so)


def has_functional_code(
    touched: Iterable[RepoPath], baselines: Set[RepoPath], controls: Set[RepoPath]
) -> bool:
    """Tell whether a change touches anything but baselines, control files and prose.

    Args:
        touched: every file that differs between the two trees, in the whole repository.
        baselines: the listed ones.
        controls: files that are control files by what they hold.
    """
    return any(
        path not in baselines
        and path not in controls
        and not is_control_by_name(path)
        and not _is_prose(path)
        for path in touched
    )


def _is_prose(path: RepoPath) -> bool:
    name = path.name.lower()
    if _NO_PROSE.fullmatch(name):
        return False
    return name.endswith(_PROSE) or name in _PROSE_NAMES
