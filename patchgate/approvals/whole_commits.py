"""What would land of approved commits in part: all that a branch gets must come, each commit as a whole.

Who approved a commit has seen all of it. A merge can keep one of its files and leave out another, and nobody
is asked about that. So at each path the commits must follow each other: the first began with what the branch
has, each with what the one before it made, and merges have what the last one made, or were approved there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set

from patchgate.approvals.approved_merges import SlotMerge
from patchgate.approvals.approved_slots import (
    Approved,
    Effort,
    Made,
    MissingPart,
    NumberedCommits,
    Slot,
    SlotHistory,
    Values,
    first_number,
    union,
)
from patchgate.values import dataclass, field


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


@dataclass(slots=True)
class _TouchedSlots:
    """What a commit and those below it make of the slots that they touch.

    Of the commits below, those of `come` are in that; merges have left out those of `left_out`. So many
    `users` have it.
    """

    made: dict[Slot, Made] = field(default_factory=dict)
    come: int = 0
    left_out: int = 0
    users: int = 0


def _own(state: _TouchedSlots) -> _TouchedSlots:
    """Return a state that may be changed: it, or a copy where others have it, too."""
    return _TouchedSlots({**state.made}, state.come, state.left_out) if state.users else state


class _SlotTracker:
    """Follows what commits make of each slot, from the oldest to the newest."""

    def __init__(self, new: SlotHistory, before: Values, effort: Effort) -> None:
        self._new, self._before, self._effort = new, before, effort
        self._children = Counter(parent for commit in new for parent in new.parents_of(commit))
        self._states: dict[str, _TouchedSlots] = {}
        self._last = _TouchedSlots()
        self._commits = NumberedCommits()

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
        elif approved:
            if state.users and not self._effort.spend(len(state.made)):
                return False
            state = _own(state)
            for each in approved:
                self._append(state, commit, each)
        if self._is_there(commit, state, approved):
            # It counts as the branch.
            broken = union(made.commits for made in state.made.values() if made.broken)
            state = _TouchedSlots(left_out=state.left_out | broken)
        state.users += 1
        self._last = self._states[commit] = state
        return True

    def missing_of(self, result: Mapping[Slot, Hashable]) -> MissingPart | None:
        """Return what is not whole if the last commit lands, with what the branch then has."""
        if self._branch_has(result):
            return None
        # What a merge has left out says the most, and that it is not as it began the least.
        faults = sorted(filter(None, (self._fault(slot, value) for slot, value in result.items())))
        if faults:
            *_, slot = faults[0]
            made = self._last.made.get(slot)
            if made is None:
                return self._commits.last_part(slot)
            return made.broken or self._commits.part(first_number(made.commits), slot)
        missing = self._commits.below(self._last.come) & ~self._last.come
        return self._commits.part(first_number(missing)) if missing else None

    def _fault(self, slot: Slot, value: Hashable) -> tuple[bool, bool, Slot] | None:
        """Return how well a slot explains what is missing; None if all of it is there."""
        made, is_there = self._last.made.get(slot), value in self._before[slot]
        if made is None:
            return None if is_there else (True, True, slot)
        if made.broken or value != made.value or made.began not in self._before[slot]:
            return not made.broken, not is_there, slot
        return None

    def _take(self, commit: str) -> _TouchedSlots:
        """Return the state of a commit, for one of its children."""
        state = self._states.get(commit) or _TouchedSlots()
        self._children[commit] -= 1
        if not self._children[commit] and self._states.pop(commit, None) is not None:
            state.users -= 1
        return state

    def _is_there(self, commit: str, state: _TouchedSlots, approved: Sequence[Approved]) -> bool:
        """Return whether the branch has all slots as a commit has them that changes any."""
        is_merge = len(self._new.parents_of(commit)) > 1
        is_new = is_merge or (bool(approved) and all(self._branch_has(each.makes) for each in approved))
        is_looked_at = is_new and self._effort.spend(len(state.made))
        return is_looked_at and self._branch_has({slot: each.value for slot, each in state.made.items()})

    def _branch_has(self, values: Mapping[Slot, Hashable]) -> bool:
        return all(value in self._before[slot] for slot, value in values.items())

    def _append(self, state: _TouchedSlots, commit: str, approved: Approved) -> None:
        """Let a commit come on top of one parent."""
        made, begins, makes = state.made, approved.begins, approved.makes
        if made.keys().isdisjoint(makes) and self._branch_has(makes):
            return
        bit = self._commits.add(commit, makes, state.come | state.left_out)
        state.come |= bit
        for slot, value in makes.items():
            was = made.get(slot) or Made(0, begins[slot], begins[slot])
            fault = MissingPart(commit, slot[0]) if was.value != begins[slot] else None
            made[slot] = Made(was.commits | bit, was.began, value, was.broken or fault)

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
                slot: state.made.get(slot) or Made(0, value, value)
                for slot in has
                for value in (value_of(parent, slot),)
            }
            for parent, state in zip(parents, below, strict=True)
        ]
        known = union(state.come | state.left_out for state in below)
        alike = (
            state
            for state, side in zip(below, sides, strict=True)
            if not approved
            and all(made.value == has[slot] for slot, made in side.items())
            and all(made.began in self._before[slot] for slot, made in state.made.items())
        )
        state = next(alike, None)
        if state is not None:
            state = _own(state)
            state.left_out = known & ~state.come
            return state
        made = SlotMerge(self._new, merge, sides, has, approved, self._effort).made(self._commits, known)
        come = union(each.commits for each in made.values())
        return _TouchedSlots(made, come, known & ~come)
