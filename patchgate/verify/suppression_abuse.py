"""Whether a change suppresses findings instead of fixing them: when growth of suppressions counts.

Decides which triggers there are, what functional code is, and what an entry of a suppression file is: in JSON
a leaf at its path, in other files a line.
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
"""Represents any position of a list in a path; keys are marked with a dot.

In an entry with words it is in a tuple with them.
"""


def has_grown(before: bytes | None, after: bytes | None) -> bool:
    """Check whether a suppression file has a new entry.

    Args:
        before: its content before; None if it did not exist.
        after: its content now; None if it was deleted.
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
    """The members of a JSON object; a duplicate key is kept twice."""

    __slots__ = ()


def _json_of(raw: bytes) -> Any:
    """Return parsed JSON in a list of one; None if it is not JSON or only a scalar."""
    try:
        # Words like NaN cannot be compared as numbers: they stay texts.
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
    # An emptied container is not a new entry; an empty document has no entries.
    if any(now.inner[place] > was.inner[place] for place in now.empty - {(_ITEM,)}):
        return True
    return any(not _can_match(entries, was.objects.get(key, [])) for key, entries in now.objects.items())


def _can_match(after: list[tuple[float, ...]], before: list[tuple[float, ...]]) -> bool:
    """Check whether each entry has a separate partner before, with no smaller number."""
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
    """The entries of a JSON document, by path.

    Attributes:
        leaves: how often each path has each text, boolean or null, and each number that is a list element.
        numbers: the other numbers of each path, each in a tuple.
        objects: for each kind of entry in a list, its numbers in the order of its words.
        inner: how many objects and lists each path has.
        empty: the paths where one of them is empty.
    """

    def __init__(self, value: Any) -> None:
        self.leaves: Counter[tuple[_Path, Any]] = Counter()
        self.numbers: defaultdict[_Path, list[tuple[float, ...]]] = defaultdict(list)
        self.objects: defaultdict[tuple[Any, ...], list[tuple[float, ...]]] = defaultdict(list)
        self.inner: Counter[_Path] = Counter()
        self.empty: set[_Path] = set()
        # An explicit stack instead of recursion: the depth is not trusted.
        waiting: list[tuple[_Path, Any]] = [((_ITEM,), each) for each in value]
        while waiting:
            place, each = waiting.pop()
            if isinstance(each, (_Object, list)):
                waiting += self._inner(place, each)
            elif not _is_number(each):
                self.leaves[place, each] += 1
            elif place[-1] == _ITEM:
                # Nothing shows that a smaller number is the same entry.
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
            # The order of words alone does not matter.
            if is_entry and (any(map(_is_number, each)) or 0 < len(inner) < len(each)):
                place = self._entry(place, [("", item) for item in each if not _is_inner(item)])
                each = inner
            yield from (((*place, _ITEM), item) for item in each)
            return
        if is_entry:
            # With leaves only, two entries could swap halves: a new entry made of old words.
            plain = [member for member in each if not _is_inner(member[1])]
            place = self._entry(place, sorted(plain or _further_in(each), key=_by_key))
        yield from (((*place, f".{key}"), item) for key, item in each)

    def _entry(self, place: _Path, members: Iterable[tuple[str, Any]]) -> _Path:
        """Count an entry of a list as a whole, and return the path of its inner values."""
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
    """Return the words of inner objects, which identify an object without words."""
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
# They end like prose, but affect the build.
_NO_PROSE = re.compile(rb"cmakelists\.txt|(?:.*[-_])?(?:requirements|constraints)(?:[-_.].*)?\.txt")


def find_triggers(
    *,
    has_changed: bool,
    has_grown: bool,
    has_intent: bool,
    has_code: bool,
    comparison: AnalysisComparison | None,
) -> tuple[str, ...]:
    """Return why a change of suppressions is suspicious; empty if it is not.

    Args:
        has_changed: a suppression file changed.
        has_grown: a suppression file, or the set of suppressions, grew.
        has_intent: the work is declared.
        has_code: functional code was changed too.
        comparison: of the two trees; None if regressions are unknown.
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
    touched: Iterable[RepoPath], suppression_files: Set[RepoPath], controls: Set[RepoPath]
) -> bool:
    """Check whether a change touches more than suppression files, control files and prose.

    Args:
        touched: every file that differs between the two trees, in the whole repository.
        suppression_files: the listed ones.
        controls: files that are control files by their content.
    """
    return any(
        path not in suppression_files
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
