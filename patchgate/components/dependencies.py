"""What contracts depend on: names resolved, cycles found, and which dependencies cross the component tree.

Pure questions over facts; which of the answers are findings is told in `contracts`. A component may depend
freely on its parents, its children, its siblings and its parent's siblings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from patchgate.components.contract_facts import ContractFacts, Reference
from patchgate.components.names import Names, Resolved
from patchgate.policy.component import Components

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


def resolved_dependencies(
    facts: ContractFacts, names: Names
) -> tuple[tuple[Reference, Resolved | None], ...]:
    """Say of each dependency of a contract which component it means, in the contract's order."""
    return tuple((each, names.find(each.name)) for each in facts.dependencies)


def graph(names: Names, facts: Mapping[str, ContractFacts | None]) -> dict[str, tuple[str, ...]]:
    """Map each component to those that its contract depends on, by their right names, sorted."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(facts):
        known = facts[name]
        resolved = resolved_dependencies(known, names) if known is not None else ()
        found[name] = tuple(sorted({each.id for _, each in resolved if each is not None}))
    return found


def cycles(needs: Graph) -> tuple[Cycle, ...]:
    """Find what depends on itself, one cycle for each group of components that all need each other."""
    found = []
    for members in _knots(needs):
        start = min(members)
        if len(members) > 1 or start in needs.get(start, ()):
            found.append(Cycle(_way_back(needs, start, members), members))
    return tuple(sorted(found, key=lambda each: each.path))


def is_across(components: Components, name: str, other: str) -> bool:
    """Tell whether a dependency of one component on another leads into another part of the tree."""
    above, above_other = components.ancestors(name), components.ancestors(other)
    if name == other or other in above or name in above_other:
        return False
    parent_of_other = next(iter(above_other), None)
    places = {next(iter(above), None)}
    if above:
        places.add(above[1] if len(above) > 1 else None)
    return parent_of_other not in places


def _knots(needs: Graph) -> list[frozenset[str]]:
    """Find the strongly connected components (Tarjan's algorithm, without recursion)."""
    found: list[frozenset[str]] = []
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_names: dict[str, None] = {}
    for root in sorted(needs):
        if root in order:
            continue
        waiting: list[tuple[str, Iterator[str]]] = []

        def enter(name: str, waiting: list[tuple[str, Iterator[str]]] = waiting) -> None:
            order[name] = low[name] = len(order)
            open_names[name] = None
            waiting.append((name, iter(needs.get(name, ()))))

        enter(root)
        while waiting:
            name, rest = waiting[-1]
            for other in rest:
                if other not in order:
                    enter(other)
                    break
                if other in open_names:
                    low[name] = min(low[name], order[other])
            else:
                waiting.pop()
                if waiting:
                    above = waiting[-1][0]
                    low[above] = min(low[above], low[name])
                if low[name] == order[name]:
                    found.append(_closed(open_names, name))
    return found


def _closed(open_names: dict[str, None], first: str) -> frozenset[str]:
    """Take the members of a knot, those met last, from what is still open."""
    members = set()
    while True:
        name, _ = open_names.popitem()
        members.add(name)
        if name == first:
            return frozenset(members)


def _way_back(needs: Graph, start: str, members: frozenset[str]) -> tuple[str, ...]:
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
    raise AssertionError("a knot without a way back")
