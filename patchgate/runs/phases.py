"""Decide which component may start which phase, and what a failure blocks.

A `Schedule` knows nothing of authors, checks or time: the caller starts what is ready and says how it ended.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import reduce, total_ordering
from graphlib import TopologicalSorter
from operator import or_

from patchgate.components.component_names import find_cycles
from patchgate.errors import UsageError
from patchgate.values import dataclass


class Phase(StrEnum):
    """A stage in the life of a component; `PHASES` has their order."""

    INTERVIEW = "interview"
    SHAPING = "shaping"
    CONTRACT = "contract"
    TESTS = "tests"
    IMPLEMENTATION = "implementation"
    INTEGRATION = "integration"

    @property
    def number(self) -> int:
        """Its place in `PHASES`, from 0; the values themselves compare by their letters."""
        return _NUMBERS[self]


PHASES = tuple(Phase)
_NUMBERS = {phase: number for number, phase in enumerate(PHASES)}


class Scheduling(StrEnum):
    """Whether all components finish a phase before any starts the next one (phased), or not (wavefront)."""

    PHASED = "phased"
    WAVEFRONT = "wavefront"


@total_ordering
@dataclass(frozen=True, slots=True)
class Work:
    """One phase of one component; sorted by component, then by the order of phases."""

    component: str
    phase: Phase

    def __lt__(self, other: Work) -> bool:
        """Return whether it comes first."""
        return (self.component, self.phase.number) < (other.component, other.phase.number)

    def __str__(self) -> str:
        """Write it for messages: `storage (tests)`."""
        return f"{self.component} ({self.phase})"


@dataclass(frozen=True, slots=True)
class BlockedWork:
    """Work that can never become ready, and the failed works that it waits for, sorted."""

    work: Work
    failed: tuple[Work, ...]


class Schedule:
    """Hands out work whose dependencies are finished; a work that is retried stays started meanwhile.

    A component is ready for a phase when its own phases before are done, and its dependencies have finished
    all phases up to this one. Integration waits for the implementation of the dependencies and for all phases
    of the children instead. A component without a phase finishes it with the phases before. Names that only
    `needs` or `parents` have are not part of the run, but keep the order of those on both sides of them.

    Two works are never started together if one component depends on the other, directly or through others,
    or is an ancestor of the other.
    """

    def __init__(
        self,
        *,
        phases: Mapping[str, Sequence[Phase]],
        needs: Mapping[str, Collection[str]],
        parents: Mapping[str, str | None],
        scheduling: Scheduling,
        most: int,
        done: Collection[Work] = (),
    ) -> None:
        """Plan the work.

        Args:
            phases: the phases that each component goes through, in the order of `PHASES`.
            needs: the components that each one depends on.
            parents: the parent of each component, None at the top.
            scheduling: whether a phase waits for the one before in all components.
            most: how many works may be started at once, at least 1.
            done: what needs no work any more; works that the run does not have are ignored.

        Raises:
            UsageError: components depend on each other in a cycle, or are parents of each other.
            ValueError: phases are out of order or repeated, or `most` is less than 1.
        """
        if most < 1:
            raise ValueError(f"{most} works at once")
        for name, some in phases.items():
            if list(some) != sorted(set(some), key=_NUMBERS.__getitem__):
                raise ValueError(f"the phases of {name} are not in order")
        above = {name: {parent} for name, parent in parents.items() if parent is not None}
        _refuse_cycles(needs, "these components depend on each other")
        _refuse_cycles(above, "these components are parents of each other")
        self._most = most
        self._is_phased = scheduling is Scheduling.PHASED
        works = {Work(name, phase) for name, some in phases.items() for phase in some}
        self._done = works & set(done)
        self._started: set[Work] = set()
        self._failed: set[Work] = set()
        self._blocked: dict[Work, set[Work]] = {}
        # Sorted; the phase comes first under phased.
        self._ready: list[tuple[int, int, Work]] = []
        self._unfinished = works - self._done
        self._left = Counter(work.phase for work in self._unfinished)
        self._order = _Order({*phases, *needs, *parents}, needs, above)
        self._after, self._sorter = _plan(self._order.names, needs, above)
        self._sorter.prepare()
        self._advance()

    @property
    def done(self) -> list[Work]:
        """What is finished, sorted."""
        return sorted(self._done)

    @property
    def started(self) -> list[Work]:
        """What is started and has not ended, sorted."""
        return sorted(self._started)

    @property
    def failed(self) -> list[Work]:
        """What failed, sorted."""
        return sorted(self._failed)

    @property
    def is_over(self) -> bool:
        """Whether nothing is started and nothing will become ready."""
        return not self._unfinished

    def ready(self) -> list[Work]:
        """List what may start now, all of it together; dependencies come first, then names, then phases."""
        chosen: list[Work] = []
        busy, last = self._busy(), self._last_phase()
        for phase, _, work in self._ready:
            if len(self._started) + len(chosen) >= self._most or phase > last:
                break
            if not self._order.relatives(work.component) & busy:
                chosen.append(work)
                busy |= self._order.bit(work.component)
        return chosen

    def start(self, work: Work) -> None:
        """Record that a work is started; it is not handed out again.

        Raises:
            ValueError: it may not start now.
        """
        key = self._key(work)
        at = bisect_left(self._ready, key)
        is_ready = self._ready[at : at + 1] == [key] and key[0] <= self._last_phase()
        is_alone = not self._order.relatives(work.component) & self._busy()
        if not (is_ready and is_alone and len(self._started) < self._most):
            raise ValueError(f"{work} may not start now")
        del self._ready[at]
        self._started.add(work)

    def finish(self, work: Work) -> None:
        """Record that a started work is done.

        Raises:
            ValueError: it is not started.
        """
        self._end(work)
        self._done.add(work)
        self._sorter.done(work)
        self._advance()

    def fail(self, work: Work) -> None:
        """Record that a started work failed for good; what waits for it is blocked, the rest goes on.

        Raises:
            ValueError: it is not started.
        """
        self._end(work)
        self._failed.add(work)
        seen = {work}
        waiting = [work]
        while waiting:
            for each in self._after[waiting.pop()]:
                if each in seen:
                    continue
                seen.add(each)
                waiting.append(each)
                if each in self._unfinished:
                    self._unfinished.remove(each)
                    self._left[each.phase] -= 1
                    self._blocked[each] = set()
                if each in self._blocked:
                    self._blocked[each].add(work)

    def blocked(self) -> list[BlockedWork]:
        """List what can never become ready after the failures, sorted, each with the failed works."""
        return [BlockedWork(work, tuple(sorted(self._blocked[work]))) for work in sorted(self._blocked)]

    def _key(self, work: Work) -> tuple[int, int, Work]:
        """Sort a work behind those of all components that its component depends on."""
        return (work.phase.number if self._is_phased else 0), self._order.level(work.component), work

    def _last_phase(self) -> int:
        """Return the last phase that may be worked on: under phased the first one that has any work left."""
        if not self._is_phased:
            return len(PHASES)
        return next((phase.number for phase in PHASES if self._left[phase]), 0)

    def _busy(self) -> int:
        """Return the bits of the components that are being worked on."""
        return reduce(or_, (self._order.bit(work.component) for work in self._started), 0)

    def _end(self, work: Work) -> None:
        if work not in self._started:
            raise ValueError(f"{work} is not started")
        self._started.remove(work)
        self._unfinished.remove(work)
        self._left[work.phase] -= 1

    def _advance(self) -> None:
        """Find what became ready; what is done, or no phase of its component, is passed at once."""
        while found := self._sorter.get_ready():
            for work in found:
                if work in self._unfinished:
                    insort(self._ready, self._key(work))
                else:
                    self._sorter.done(work)


_Graph = Mapping[str, Collection[str]]


class _Order:
    """The names in topological order, and for each the names that it must not run beside, as bits."""

    def __init__(self, some: Collection[str], needs: _Graph, above: _Graph) -> None:
        every = {*some, *(each for graph in (needs, above) for others in graph.values() for each in others)}
        self.names = sorted(every)
        self._bits = {name: 1 << at for at, name in enumerate(self.names)}
        self._levels: dict[str, int] = {}
        for name in _topological(self.names, needs):
            self._levels[name] = 1 + max((self._levels[each] for each in needs.get(name, ())), default=-1)
        self._relatives = dict.fromkeys(self.names, 0)
        for graph in (needs, above):
            self._add_reached(graph)

    def level(self, name: str) -> int:
        """Return the length of the longest chain of dependencies below a name; 0 for an unknown one."""
        return self._levels.get(name, 0)

    def bit(self, name: str) -> int:
        """Return the bit of one name."""
        return self._bits[name]

    def relatives(self, name: str) -> int:
        """Return the bits of the names that one depends on, and of its ancestors, and the other way round."""
        return self._relatives.get(name, 0)

    def _add_reached(self, graph: _Graph) -> None:
        order = _topological(self.names, graph)
        down = dict.fromkeys(self.names, 0)
        up = dict.fromkeys(self.names, 0)
        for name in order:
            for each in graph.get(name, ()):
                down[name] |= down[each] | self._bits[each]
        for name in reversed(order):
            for each in graph.get(name, ()):
                up[each] |= up[name] | self._bits[name]
        for name in self.names:
            self._relatives[name] |= down[name] | up[name]


def _topological(names: Sequence[str], graph: _Graph) -> list[str]:
    return list(TopologicalSorter({name: graph.get(name, ()) for name in names}).static_order())


def _refuse_cycles(graph: _Graph, what: str) -> None:
    found = find_cycles({name: sorted(others) for name, others in graph.items()})
    if found:
        paths = [" -> ".join((*each.path, each.path[0])) for each in found]
        raise UsageError(f"{what}: {'; '.join(paths)}", "remove one step of each cycle")


def _plan(
    names: Sequence[str], needs: _Graph, above: _Graph
) -> tuple[Mapping[Work, Sequence[Work]], TopologicalSorter[Work]]:
    """Give each name all phases, and each phase what it waits for; return also what waits for each."""
    before: dict[Work, list[Work]] = {}
    for name in names:
        for earlier, phase in zip((None, *PHASES), PHASES, strict=False):
            before[Work(name, phase)] = [] if earlier is None else [Work(name, earlier)]
            if phase is not Phase.INTEGRATION:
                before[Work(name, phase)] += [Work(other, phase) for other in needs.get(name, ())]
    for name, parents in above.items():
        for parent in parents:
            before[Work(parent, Phase.INTEGRATION)].append(Work(name, Phase.INTEGRATION))
    after: dict[Work, list[Work]] = {work: [] for work in before}
    for work, others in before.items():
        for other in others:
            after[other].append(work)
    return after, TopologicalSorter(before)
