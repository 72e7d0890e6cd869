"""Names of components in contracts, matched to declared ids; dependency graph and cycles.

`How` lists the steps of matching, in their order; a step with more than one candidate finds nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from patchgate.components.contract_facts import ContractFacts, Reference
from patchgate.policy.component import Components
from patchgate.values import dataclass

_SEPARATOR = re.compile("[-_]+")
_ENDS = "-_"
# difflib takes time with the product of the lengths.
_MOST_LETTERS = 80
_MOST_CHOICES = 2000
_MOST_WORDS = 20


class How(StrEnum):
    """By which step a name was found."""

    EXACT = "exact"
    CASE = "case"
    WORDS = "words"
    AFFIX = "affix"
    PART = "part"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The component that a name means, and how it was found."""

    id: str
    how: How


class ComponentNames:
    """The declared ids, made ready for many questions."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.ids = frozenset(ids)

    def find(self, name: str) -> Resolved | None:
        """Find the component that a name means; None if none is, or more than one."""
        if name in self.ids:
            return Resolved(name, How.EXACT)
        # An id is ASCII; letters of other scripts that fold to ASCII must not pass for it.
        if not name.isascii():
            return None
        folded = name.lower()
        for how, known, key in self._steps:
            wanted = key(folded)
            candidates = known.get(wanted, ()) if wanted else ()
            if len(candidates) == 1:
                return Resolved(candidates[0], how)
            if candidates:
                return None
        some = self._with_part(folded)
        return Resolved(some[0], How.PART) if len(some) == 1 else None

    @cached_property
    def _steps(self) -> tuple[tuple[How, Mapping[str, list[str]], Callable[[str], str]], ...]:
        """One matching step: the ids by a key, and the function that makes the same key of a name."""
        steps: tuple[tuple[How, Callable[[str], str]], ...] = (
            (How.CASE, str),
            (How.WORDS, _words),
            (How.AFFIX, self._bare),
            (How.AFFIX, lambda folded: _words(self._bare(folded))),
        )
        return tuple((how, self._by(key), key) for how, key in steps)

    def _by(self, key: Callable[[str], str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for each in self.ids:
            found[key(each.lower())].append(each)
        return found

    def _with_part(self, folded: str) -> list[str]:
        """Find the ids that the name begins or ends with, and those that begin or end with the name."""
        if not folded.strip(_ENDS):
            return []
        shorter = {each for part in _outer_parts(folded) for each in self._by_plain.get(part, ())}
        longer = self._by_outer_part.get(_plain(folded), ())
        return sorted({*shorter, *longer})

    @cached_property
    def _by_plain(self) -> Mapping[str, list[str]]:
        return self._by(_plain)

    @cached_property
    def _by_outer_part(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for each in self.ids:
            for part in set(_outer_parts(each.lower())):
                found[part].append(each)
        return found

    @cached_property
    def _affixes(self) -> tuple[str, str]:
        """The prefix and the suffix, up to a separator, that all ids share; one id alone shares nothing."""
        folded = [each.lower() for each in self.ids]
        if len(folded) < 2:
            return "", ""
        before = _shared_start(folded)
        return before, _shared_start([each[::-1] for each in folded])[::-1]

    def _bare(self, folded: str) -> str:
        before, after = self._affixes
        return folded.removeprefix(before).removesuffix(after)


def did_you_mean(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that looks most like a name; None if none looks like it."""
    if len(name) > _MOST_LETTERS:
        return None
    from difflib import get_close_matches

    some = sorted(each for each in set(choices) if each != name and len(each) <= _MOST_LETTERS)
    folded: dict[str, str] = {}
    for each in some[:_MOST_CHOICES]:
        folded.setdefault(each.lower(), each)
    return next((folded[match] for match in get_close_matches(name.lower(), list(folded), n=1)), None)


def _words(folded: str) -> str:
    return " ".join(sorted(word for word in _SEPARATOR.split(folded) if word))


def _plain(folded: str) -> str:
    """Write a name with one separator between its words, in their order."""
    return "_".join(word for word in _SEPARATOR.split(folded) if word)


def _outer_parts(folded: str) -> Iterator[str]:
    """Yield what a name begins and ends with, up to a separator; not the name itself."""
    words = _plain(folded).split("_")
    for count in range(1, min(len(words), _MOST_WORDS)):
        yield "_".join(words[:count])
        yield "_".join(words[-count:])


def _shared_start(texts: Collection[str]) -> str:
    """Return the common start of all texts, up to its last separator, inclusive."""
    first, last = min(texts), max(texts)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[: max(first.rfind(end, 0, length) for end in _ENDS) + 1]


Graph = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Cycle:
    """Components that need each other: the shortest path from the smallest id back to it, and all of them."""

    path: tuple[str, ...]
    members: frozenset[str]

    @property
    def edges(self) -> Iterator[tuple[str, str]]:
        """Its dependencies, one after the other; the last leads back to the first."""
        yield from pairwise((*self.path, self.path[0]))


def resolve_dependencies(
    facts: ContractFacts, names: ComponentNames
) -> tuple[tuple[Reference, Resolved | None], ...]:
    """Match each dependency of a contract to a component, in the contract's order."""
    return tuple((each, names.find(each.name)) for each in facts.dependencies)


def dependency_graph(
    names: ComponentNames, facts: Mapping[str, ContractFacts | None]
) -> dict[str, tuple[str, ...]]:
    """Map each component to its dependencies, by their declared ids, sorted."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(facts):
        known = facts[name]
        resolved = resolve_dependencies(known, names) if known is not None else ()
        found[name] = tuple(sorted({each.id for _, each in resolved if each is not None}))
    return found


def find_cycles(needs: Graph) -> tuple[Cycle, ...]:
    """Find dependency cycles: one for each group of components that all depend on each other."""
    found = []
    for members in _strongly_connected(needs):
        start = min(members)
        if len(members) > 1 or start in needs.get(start, ()):
            found.append(Cycle(_shortest_cycle(needs, start, members), members))
    return tuple(sorted(found, key=lambda each: each.path))


def is_across(components: Components, name: str, other: str) -> bool:
    """Return whether a dependency leads into another branch of the component tree."""
    above, above_other = components.ancestors(name), components.ancestors(other)
    if name == other or other in above or name in above_other:
        return False
    parent_of_other = next(iter(above_other), None)
    places = {next(iter(above), None)}
    if above:
        places.add(above[1] if len(above) > 1 else None)
    return parent_of_other not in places


def _strongly_connected(needs: Graph) -> list[frozenset[str]]:
    """Find the strongly connected components (Kosaraju's algorithm, without recursion)."""
    back: dict[str, list[str]] = {}
    for name, others in needs.items():
        for other in others:
            back.setdefault(other, []).append(name)
    seen: set[str] = set()
    left = [name for start in sorted(needs) for name in _finished(start, needs, seen)]
    seen.clear()
    return [frozenset(members) for start in reversed(left) if (members := _finished(start, back, seen))]


def _finished(start: str, needs: Graph, seen: set[str]) -> list[str]:
    """Walk to unseen names; each name comes after all that can be reached from it."""
    found: list[str] = []
    waiting = [(start, iter(needs.get(start, ())))] if start not in seen else []
    seen.add(start)
    while waiting:
        name, rest = waiting[-1]
        other = next((each for each in rest if each not in seen), None)
        if other is None:
            found.append(name)
            waiting.pop()
        else:
            seen.add(other)
            waiting.append((other, iter(needs.get(other, ()))))
    return found


def _shortest_cycle(needs: Graph, start: str, members: frozenset[str]) -> tuple[str, ...]:
    """Find the shortest way from a component back to itself; of equal ones the first by name."""
    came: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        for other in needs.get(name, ()):
            if other == start:
                path = [name]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return tuple(reversed(path))
            if other in members and other not in came:
                came[other] = name
                waiting.append(other)
    raise AssertionError("a cycle that does not close")
