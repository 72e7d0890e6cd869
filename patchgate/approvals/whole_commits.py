"""What would land of approved commits in part: all that a branch gets must come, each commit as a whole.

Who approved a commit has seen all of it. A merge can keep one of its files and leave out another, and nobody
is asked about that. So at each path the commits must follow each other: the first began with what the branch
has, each with what the one before it made, and merges have what the last one made, or were approved there.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Protocol

from patchgate.git.path import RepoPath
from patchgate.values import dataclass, field, replace

# Slots of merges that are looked at for all refs of a push; a lookup takes some microseconds.
_MOST_WORK = 1_000_000

Slot = tuple[RepoPath, bool]
"""A path of approved commits, and whether only what its content says about the rules counts."""

Values = Mapping[Slot, Set[Hashable]]
"""The value of each slot, or those of all commits that count as what a branch has."""


def is_chosen(made: Hashable, sides: Collection[Hashable], bases: Collection[Hashable]) -> bool:
    """Return whether a merge has a path otherwise than git makes it where one side alone has changed it.

    Args:
        made: what the merge has there.
        sides: what its parents have.
        bases: what each of the commits in which these began has.
    """
    if all(side == made for side in sides):
        return False
    if len(sides) != 2 or not bases:
        return True
    found = {*sides}
    return not all(base in found and found - {base} == {made} for base in bases)


class SlotHistory(Protocol):
    """The commits that a branch gets, each before those that stand on it."""

    def __iter__(self) -> Iterator[str]:
        """Yield them."""
        ...

    def parents_of(self, commit: str) -> Sequence[str]:
        """Return the parents of one of them."""
        ...

    def begins_of(self, commit: str) -> Sequence[str]:
        """Return the newest commits of the branch on which any commit stands; the empty tree if none."""
        ...

    def bases_of(self, merge: str) -> Sequence[str]:
        """Return the commits in which the two parents of a merge began; the empty tree if none."""
        ...

    def value_of(self, commit: str, slot: Slot) -> Hashable:
        """Return what any commit has at a slot."""
        ...


@dataclass(frozen=True, slots=True)
class Approved:
    """What a commit makes of slots, and what each was before.

    `is_shown`: whether those who approved it own another slot: where a merge decides, they have seen it.
    """

    begins: Mapping[Slot, Hashable]
    makes: Mapping[Slot, Hashable]
    is_shown: Callable[[Slot], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A commit that would land in part, and a path that shows it.

    `commit` is empty where none of the commits touches the path.
    """

    commit: str
    path: RepoPath


class Effort:
    """How many slots of merges may still be looked at."""

    def __init__(self) -> None:
        self._left = _MOST_WORK

    def spend(self, amount: int) -> bool:
        """Return whether there was as much left."""
        self._left -= amount
        return self._left >= 0


def find_part(
    new: SlotHistory,
    before: Values,
    result: Mapping[Slot, Hashable],
    approved: Mapping[str, Sequence[Approved]],
    effort: Effort,
) -> MissingPart | None:
    """Return what would land in part; None if all that a branch gets comes as a whole.

    Args:
        before: what the branch has, at every slot of the commits.
        result: what it becomes.
        approved: what each commit makes: what was approved, and that for which nobody is asked.
    """
    tracker = _SlotTracker(new, before, effort)
    for commit in new if before else ():
        if not tracker.add(commit, approved.get(commit, ())):
            return MissingPart(commit, min(before)[0])
    return tracker.missing_of(result)


@dataclass(frozen=True, slots=True)
class _Made:
    """What some commits make of a slot: a bit for each of them, what the first began with, and their end.

    `broken`: they do not follow each other.
    """

    commits: int
    began: Hashable
    value: Hashable
    broken: MissingPart | None = None


_Side = Mapping[Slot, _Made]
"""What a parent of a merge has at each slot that counts there."""


@dataclass(slots=True)
class _TouchedSlots:
    """What a commit and those below it make of the slots that they touch.

    Of the commits below, those of `come` are in that; merges have left out those of `left_out`.
    """

    made: dict[Slot, _Made] = field(default_factory=dict)
    come: int = 0
    left_out: int = 0


def _union(commits: Iterable[int]) -> int:
    return functools.reduce(operator.or_, commits, 0)


def _numbers(commits: int) -> Iterator[int]:
    """Yield the numbers of some commits."""
    while commits:
        yield _first(commits)
        commits &= commits - 1


def _first(commits: int) -> int:
    """Return the number of the first of some commits."""
    return (commits & -commits).bit_length() - 1


class _NumberedCommits:
    """The commits that touch slots: each has a number, and so a bit."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._touched: list[Set[Slot]] = []
        self._below: list[int] = []
        self._before: list[int] = []
        self._numbers: dict[Hashable, int] = {}

    def add(self, commit: str, slots: Set[Slot], below: int) -> int:
        """Return the bit of another commit, on top of others."""
        self._names.append(commit)
        self._touched.append(slots)
        self._below.append(below)
        self._before.append(below)
        return 1 << len(self._names) - 1

    def add_change(self, commit: str, approved: Approved, below: int) -> int:
        """Return the bit of a commit; that of one with the same change, unless that must come before it."""
        change = frozenset(approved.begins.items()), frozenset(approved.makes.items())
        for count in itertools.count():
            number = self._numbers.setdefault((change, count), len(self._names))
            if number == len(self._names):
                return self.add(commit, approved.makes.keys(), below)
            if not self._with_those_before(below) >> number & 1:
                self._below[number] &= below
                self._before[number] |= below
                return 1 << number
        raise AssertionError

    def below(self, commits: int) -> int:
        """Return those that must come before some commits."""
        return _union(self._below[number] for number in _numbers(commits))

    def _with_those_before(self, commits: int) -> int:
        """Return commits with all that have come before one of them, or of these, on any line."""
        found = fresh = commits
        while fresh:
            fresh = _union(self._before[number] for number in _numbers(fresh)) & ~found
            found |= fresh
        return found

    def touched(self, number: int) -> Set[Slot]:
        """Return the slots that a commit touches."""
        return self._touched[number]

    def part(self, number: int, slot: Slot | None = None) -> MissingPart:
        """Name a commit with a slot, or with the first that it touches."""
        return MissingPart(self._names[number], (slot or min(self._touched[number]))[0])

    def last_part(self, slot: Slot) -> MissingPart:
        """Name the last commit that touches a slot, if there is any."""
        numbers = reversed(range(len(self._names)))
        number = next((each for each in numbers if slot in self._touched[each]), None)
        return MissingPart("", slot[0]) if number is None else self.part(number, slot)


class _SlotTracker:
    """Follows what commits make of each slot, from the oldest to the newest.

    `_landed` are commits that the branch has already.
    """

    def __init__(self, new: SlotHistory, before: Values, effort: Effort) -> None:
        self._new, self._before, self._effort = new, before, effort
        self._children = Counter(parent for commit in new for parent in new.parents_of(commit))
        self._states: dict[str, _TouchedSlots] = {}
        self._last = _TouchedSlots()
        self._commits = _NumberedCommits()
        self._landed = 0

    def add(self, commit: str, approved: Sequence[Approved]) -> bool:
        """Add a commit, which comes after those below it; return False where that is too much to look at."""
        parents = self._new.parents_of(commit)
        below = [self._take(each) for each in parents] or [_TouchedSlots()]
        state = below[0]
        if len(parents) > 1:
            slots = {slot for each in below for slot in each.made}.union(*(one.makes for one in approved))
            if not self._effort.spend(len(slots) * (len(parents) + 1)):
                return False
            state = self._joined(commit, parents, below, slots, approved)
        for each in approved if len(parents) < 2 else ():
            self._append(state, commit, each)
        if (approved or len(parents) > 1) and self._is_there(state.made):
            broken = _union(made.commits for made in state.made.values() if made.broken)
            self._landed |= state.come & ~broken
            # What has all as the branch has it counts as the branch.
            state = _TouchedSlots(left_out=state.left_out | broken)
        self._last = self._states[commit] = state
        return True

    def missing_of(self, result: Mapping[Slot, Hashable]) -> MissingPart | None:
        """Return what is not whole if the last commit lands, with what the branch then has."""
        if all(value in self._before[slot] for slot, value in result.items()):
            return None
        # What a merge has left out says the most, and that it is not as it began the least.
        faults = sorted(filter(None, (self._fault(slot, value) for slot, value in result.items())))
        if faults:
            *_, slot = faults[0]
            made = self._last.made.get(slot)
            if made is None:
                return self._commits.last_part(slot)
            return made.broken or self._commits.part(_first(made.commits), slot)
        missing = self._commits.below(self._last.come) & ~self._last.come & ~self._landed
        return self._commits.part(_first(missing)) if missing else None

    def _fault(self, slot: Slot, value: Hashable) -> tuple[bool, bool, Slot] | None:
        """Return how well a slot explains what is missing; None if all of it is there."""
        made, is_there = self._last.made.get(slot), value in self._before[slot]
        if made is None:
            return None if is_there else (True, True, slot)
        if made.broken or value != made.value or made.began not in self._before[slot]:
            return not made.broken, not is_there, slot
        return None

    def _take(self, commit: str) -> _TouchedSlots:
        """Return the state of a commit, for one of its children to change."""
        self._children[commit] -= 1
        if not self._children[commit]:
            return self._states.pop(commit, None) or _TouchedSlots()
        state = self._states.get(commit) or _TouchedSlots()
        return _TouchedSlots({**state.made}, state.come, state.left_out)

    def _is_there(self, made: _Side) -> bool:
        return all(each.value in self._before[slot] for slot, each in made.items())

    def _append(self, state: _TouchedSlots, commit: str, approved: Approved) -> None:
        """Let a commit come on top of one parent."""
        made, begins, makes = state.made, approved.begins, approved.makes
        if made.keys().isdisjoint(makes) and all(makes[slot] in self._before[slot] for slot in makes):
            # The branch has it.
            return
        bit = self._commits.add_change(commit, approved, state.come | state.left_out)
        state.come |= bit
        for slot, value in makes.items():
            was = made.get(slot) or _Made(0, begins[slot], begins[slot])
            fault = MissingPart(commit, slot[0]) if was.value != begins[slot] else None
            made[slot] = _Made(was.commits | bit, was.began, value, was.broken or fault)

    def _joined(
        self,
        merge: str,
        parents: Sequence[str],
        below: Sequence[_TouchedSlots],
        slots: Set[Slot],
        approved: Sequence[Approved],
    ) -> _TouchedSlots:
        """Return the state of a merge."""
        value_of = self._new.value_of
        has = {slot: value_of(merge, slot) for slot in sorted(slots)}
        sides = [
            {
                slot: state.made.get(slot) or _Made(0, value, value)
                for slot in has
                for value in (value_of(parent, slot),)
            }
            for parent, state in zip(parents, below, strict=True)
        ]
        known = _union(state.come | state.left_out for state in below)
        alike = (
            state
            for state, side in zip(below, sides, strict=True)
            if not approved
            and all(made.value == has[slot] for slot, made in side.items())
            and all(made.began in self._before[slot] for slot, made in state.made.items())
        )
        state = next(alike, None)
        if state is not None:
            return _TouchedSlots(state.made, state.come, known & ~state.come)
        made = _Merge(self._new, merge, sides, has, approved).made(self._commits, known)
        come = _union(each.commits for each in made.values())
        return _TouchedSlots(made, come, known & ~come)


class _Merge:
    """A merge of sides, with what it has, and what was approved of it."""

    def __init__(
        self,
        new: SlotHistory,
        name: str,
        sides: Sequence[_Side],
        has: Mapping[Slot, Hashable],
        approved: Sequence[Approved],
    ) -> None:
        self._new, self._name, self._sides, self._has = new, name, sides, has
        self._approved = approved

    def made(self, commits: _NumberedCommits, known: int) -> dict[Slot, _Made]:
        """Return what it and the commits below it make of slots.

        Who approved it has changed what they were shown, on top of all sides, or has decided between these.
        Elsewhere it may have what one side has, if it leaves out the other commits at all slots.
        """
        made: dict[Slot, _Made] = {}
        changed, apart = list[Slot](), list[Slot]()
        left_out: dict[int, Slot] = {}
        for slot, value in self._has.items():
            last = self._last(slot)
            if last is not None and last.value == value:
                made[slot] = last
            elif not self._is_shown(slot):
                made[slot] = self._kept(slot, commits)
                left_out |= dict.fromkeys(_numbers(self._below(slot) & ~made[slot].commits), slot)
            elif last is None or any(side[slot].began != last.began for side in self._sides):
                apart.append(slot)
                made[slot] = _Made(self._below(slot), self._began(slot), value)
            else:
                changed.append(slot)
                made[slot] = replace(last, value=value)
        fault = self._foreign_part({slot: made[slot] for slot in apart}, commits)
        bit = commits.add(self._name, {*changed, *apart}, known) if changed or apart else 0
        for slot in (*changed, *apart):
            each = made[slot]
            broken = each.broken or (fault if slot in apart else None)
            made[slot] = replace(each, commits=each.commits | bit, broken=broken)
        for number, slot in left_out.items():
            for one in commits.touched(number) & made.keys():
                if made[one].commits >> number & 1:
                    made[one] = replace(made[one], broken=commits.part(number, slot))
        return {slot: each for slot, each in made.items() if each.commits or each.broken}

    def _below(self, slot: Slot) -> int:
        return _union(side[slot].commits for side in self._sides)

    def _last(self, slot: Slot) -> _Made | None:
        """Return what the side has that has all commits, where these began with the same on all sides."""
        below = self._below(slot)
        found = [side[slot] for side in self._sides if side[slot].commits or not below]
        last = [each for each in found if each.commits == below]
        values, began = {each.value for each in last}, {each.began for each in found}
        if len(values) != 1 or len(began) != 1:
            return None
        return replace(last[0], broken=next((each.broken for each in found if each.broken), None))

    def _is_shown(self, slot: Slot) -> bool:
        """Return whether those who approved the merge were shown what it has at a slot."""
        if any(slot in each.makes for each in self._approved):
            return True
        if not any(each.is_shown(slot) for each in self._approved):
            return False
        value_of = self._new.value_of
        bases = self._new.bases_of(self._name) if len(self._sides) == 2 else ()
        began = [value_of(each, slot) for each in bases]
        return is_chosen(self._has[slot], [side[slot].value for side in self._sides], began)

    def _began(self, slot: Slot) -> Hashable:
        """Return with what all sides began; else what the newest commits of the branch have below the merge.

        If these are several with different values, nothing else is like it.
        """
        began = {side[slot].began for side in self._sides}
        if len(began) > 1:
            began = {self._new.value_of(each, slot) for each in self._new.begins_of(self._name)}
        return began.pop() if len(began) == 1 else object()

    def _kept(self, slot: Slot, commits: _NumberedCommits) -> _Made:
        """Return the side that has what the merge has at a slot."""
        value, below = self._has[slot], self._below(slot)
        like = [side[slot] for side in self._sides if side[slot].value == value]
        if like:
            return max(like, key=lambda each: (each.broken is None, each.commits.bit_count()))
        part = commits.part(_first(below), slot) if below else MissingPart(self._name, slot[0])
        return _Made(below, self._began(slot), value, part)

    def _foreign_part(self, apart: _Side, commits: _NumberedCommits) -> MissingPart | None:
        """Name a commit of others that a merge brings in part where it decides between sides.

        There must be a side with the newest commits of the branch on top of which all that the others have
        done there, and what their commits do elsewhere, is of those who approved the merge.
        """
        faults = [self._foreign_beside(side, apart, commits) for side in self._sides if apart]
        return None if None in faults else next(iter(faults), None)

    def _foreign_beside(self, side: _Side, apart: _Side, commits: _NumberedCommits) -> MissingPart | None:
        for slot, each in apart.items():
            if side[slot].broken or side[slot].began != each.began:
                return side[slot].broken or MissingPart(self._name, slot[0])
        others = _union(each.commits & ~side[slot].commits for slot, each in apart.items())
        for number in _numbers(others):
            for slot in sorted(commits.touched(number)):
                if not any(slot in each.makes or each.is_shown(slot) for each in self._approved):
                    return commits.part(number, min(apart.keys() & commits.touched(number)))
        return None
