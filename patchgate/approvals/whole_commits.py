"""Find an order in which approved commits, each as a whole, make of a branch what it becomes.

Who approved a commit has seen all of it, on top of the approved ones below it. A merge can keep one of its
files and leave out another, or take one back, and nobody is asked about that. So this does not look at each
merge: whole commits must lead to the result, each from where its files are as it began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set

from patchgate.git.path import RepoPath
from patchgate.values import dataclass, field

# Commits and slots that are looked at for all refs of a push. An honest history needs few for each commit.
_MOST_WORK = 3_000_000

Slot = tuple[RepoPath, bool]
"""A path of approved commits, and whether only what its content says about the rules counts."""

Values = Mapping[Slot, Set[Hashable]]
"""The value of each slot, or those of all commits that count as what a branch has."""


@dataclass(frozen=True, slots=True)
class WholeCommit:
    """An approved commit: the values that it may begin with, and those that it makes, of the same slots.

    They are all as it began, or all as it makes them: not some so, and others so. One that it may begin with
    nothing is as it makes it. `below` are the approved commits that must come before it. `is_free`: nobody is
    asked for it, so it may come often. A merge `stands_on` others: no other may have come at its slots before
    it. It `settles` those that it has: they need not come any more.
    """

    commit: str
    begins: Values
    makes: Mapping[Slot, Hashable]
    below: frozenset[str]
    settles: frozenset[str] = frozenset()
    is_free: bool = False
    stands_on: frozenset[str] | None = None

    def obstacle(self, values: Values, came: Mapping[Slot, Set[str]]) -> Slot | None:
        """Return the first slot that is not as it must be for the commit to come.

        Args:
            came: the commits that have come at each slot.
        """
        is_done = all(made in values[slot] for slot, made in self.makes.items())
        for slot, made in self.makes.items():
            begins = self.begins[slot] or {made}
            if not is_done and begins.isdisjoint(values[slot]):
                return slot
            if self.stands_on is not None and not came.get(slot, frozenset()) <= self.stands_on:
                return slot
        return None


@dataclass(frozen=True, slots=True)
class MissingPart:
    """Where no order leads to the result: a commit that would land in part, and a path that shows it.

    `commit` is empty where none of the commits touches the path.
    """

    commit: str
    path: RepoPath


def find_missing(
    before: Values, result: Mapping[Slot, Hashable], commits: Sequence[WholeCommit], effort: Effort
) -> MissingPart | None:
    """Return what would land in part; None if some order of whole commits leads to the result.

    Args:
        before: what the branch has, at every slot of the commits.
        result: what it becomes; a slot that is left out may become anything.
        commits: those that may come, the oldest first.
    """
    if find_order(before, result, commits, effort) is not None:
        return None
    return explain(before, result, commits)


class Effort:
    """How many commits and slots may still be looked at."""

    def __init__(self) -> None:
        self._left = _MOST_WORK

    def spend(self, amount: int) -> bool:
        """Return whether there was as much left."""
        self._left -= amount
        return self._left >= 0


def find_order(
    before: Values,
    result: Mapping[Slot, Hashable],
    commits: Sequence[WholeCommit],
    effort: Effort,
    slots: Mapping[str, Set[Slot]] | None = None,
) -> frozenset[str] | None:
    """Return the commits that need not come any more where some in some order have led to a result.

    None: no order was found; not all is tried.

    Args:
        slots: those of the commits that need not come from the beginning, with what they have touched.
    """
    n_looked = sum(len(each.makes) + 1 for each in commits) + len(result) + 1
    came: dict[Slot, set[str]] = {}
    for name, touched in (slots or {}).items():
        for slot in touched:
            came.setdefault(slot, set()).add(name)
    begin = _Reached(before, frozenset(slots or ()), came)
    if not effort.spend(n_looked):
        return None
    state = begin.after(*commits)
    if next(state.differing(result), None) is None:
        return state.settled
    left = _possible(begin, result, commits, effort)
    known: set[int] = set()
    waiting = [(begin, iter(left))]
    while waiting:
        state, following = waiting[-1]
        if next(state.differing(result), None) is None:
            return state.settled
        commit = next((each for each in following if state.allows(each)), None)
        if commit is None:
            waiting.pop()
            continue
        fresh = state.after(commit)
        mark = hash((fresh.settled, tuple(fresh.values.values())))
        if mark in known:
            continue
        known.add(mark)
        waiting.append((fresh, iter(left)))
        if not effort.spend(n_looked):
            return None
    return None


@dataclass(frozen=True, slots=True)
class _Reached:
    """What some commits have made of a branch.

    `settled` are those that need not come any more, `came` has those that have come at each slot, `last` who
    changed it last.
    """

    values: Values
    settled: frozenset[str] = frozenset()
    came: Mapping[Slot, Set[str]] = field(default_factory=dict)
    last: Mapping[Slot, WholeCommit] = field(default_factory=dict)

    def allows(self, commit: WholeCommit) -> bool:
        """Return whether a commit may come next."""
        may_come = commit.below <= self.settled and commit.commit not in self.settled
        return may_come and commit.obstacle(self.values, self.came) is None

    def after(self, *commits: WholeCommit) -> _Reached:
        """Return the state that those of some commits make which may come next, one after the other."""
        values, settled, last = {**self.values}, {*self.settled}, {**self.last}
        came = {slot: {*names} for slot, names in self.came.items()}
        for commit in commits:
            may_come = commit.below <= settled and commit.commit not in settled
            if not may_come or commit.obstacle(values, came) is not None:
                continue
            for slot, made in commit.makes.items():
                came.setdefault(slot, set()).add(commit.commit)
                if values[slot] != {made}:
                    values[slot] = frozenset([made])
                    last.update({} if commit.is_free else {slot: commit})
            settled |= set() if commit.is_free else {commit.commit, *commit.settles}
        return _Reached(values, frozenset(settled), came, last)

    def differing(self, result: Mapping[Slot, Hashable]) -> Iterator[Slot]:
        """Yield the slots that are not as in a result."""
        return (slot for slot, value in result.items() if value not in self.values[slot])


def _possible(
    begin: _Reached, result: Mapping[Slot, Hashable], commits: Sequence[WholeCommit], effort: Effort
) -> list[WholeCommit]:
    """Leave out the commits that cannot come: few are left where merges have dropped many."""
    left = list(commits)
    while effort.spend(sum(len(each.makes) + 1 for each in left)):
        begun = {(slot, value) for each in left for slot, values in each.begins.items() for value in values}
        made = Counter(each for commit in left for each in commit.makes.items())
        settled = {each.commit for each in left}.union(begin.settled, *(each.settles for each in left))
        fewer = [
            each
            for each in left
            if each.below <= settled
            and all(
                (result.get(slot, value) == value or (slot, value) in begun)
                and _may_begin(each, slot, begin.values, made)
                for slot, value in each.makes.items()
            )
        ]
        if len(fewer) == len(left):
            return left
        left = fewer
    return []


def _may_begin(
    commit: WholeCommit, slot: Slot, before: Values, made: Mapping[tuple[Slot, Hashable], int]
) -> bool:
    """Return whether a slot is as a commit began or made it before, or as another commit makes it."""
    own = commit.makes[slot]
    if own in before[slot] or not commit.begins[slot].isdisjoint(before[slot]) or made[slot, own] > 1:
        return True
    return any((slot, value) in made for value in commit.begins[slot])


def explain(before: Values, result: Mapping[Slot, Hashable], commits: Sequence[WholeCommit]) -> MissingPart:
    """Say what would land in part: what made a slot otherwise, or kept back who makes it so."""
    state = _Reached(before).after(*commits)
    # Where it was too much to look at, a commit may be named that could have come.
    slot = next(state.differing(result), None) or min(result)
    asked = [each for each in commits if slot in each.makes and not each.is_free]
    maker = next((each for each in asked if each.makes[slot] == result[slot]), None)
    below = [] if maker is None else [each for each in commits if each.commit in maker.below]
    for each in below:
        # What a merge has left out says more than the conflict that it solves.
        apart = (one for one, made in each.makes.items() if result.get(one, made) != made)
        left_out = next((one for one in apart if maker is None or not maker.begins.get(one)), None)
        if left_out is not None:
            return MissingPart(each.commit, left_out[0])
    if slot in state.last:
        return MissingPart(state.last[slot].commit, slot[0])
    if not asked:
        return MissingPart("", slot[0])
    for each in (*(one for one in below if one.commit not in state.settled), maker or asked[0]):
        obstacle = each.obstacle(state.values, state.came)
        if obstacle is not None:
            return MissingPart(each.commit, obstacle[0])
    return MissingPart((maker or asked[0]).commit, slot[0])
