"""What a merge makes of the paths that approved commits below it have made, and what it leaves out."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

from patchgate.approvals.approved_slots import (
    Approved,
    Effort,
    Made,
    MissingPart,
    NumberedCommits,
    Side,
    Slot,
    SlotHistory,
    first_number,
    is_chosen,
    numbers_of,
    union,
)
from patchgate.values import replace


class SlotMerge:
    """A merge of sides, with what it has, and what was approved of it."""

    def __init__(
        self,
        new: SlotHistory,
        name: str,
        sides: Sequence[Side],
        has: Mapping[Slot, Hashable],
        approved: Sequence[Approved],
        effort: Effort,
    ) -> None:
        self._new, self._name, self._sides, self._has = new, name, sides, has
        self._approved, self._effort = approved, effort

    def made(self, commits: NumberedCommits, known: int) -> dict[Slot, Made]:
        """Return what it and the commits below it make of slots.

        Who approved it has changed what they were shown, on top of all sides, or has decided between these.
        Elsewhere it may have what one side has, if it leaves out the other commits at all slots.
        """
        made: dict[Slot, Made] = {}
        changed, apart = list[Slot](), list[Slot]()
        left_out: dict[Slot, int] = {}
        for slot, value in self._has.items():
            last = self._last(slot)
            if last is not None and last.value == value:
                made[slot] = last
            elif not self._is_shown(slot):
                made[slot] = self._kept(slot, commits)
                left_out[slot] = self._below(slot) & ~made[slot].commits
            elif last is None or any(side[slot].began != last.began for side in self._sides):
                apart.append(slot)
                made[slot] = Made(self._below(slot), self._began(slot), value)
            else:
                changed.append(slot)
                made[slot] = replace(last, value=value)
        fault = self._foreign_part(apart, made, commits)
        decided = {slot: self._has[slot] for slot in (*changed, *apart)}
        bit = commits.add(self._name, decided, known) if decided else 0
        for slot in decided:
            each = made[slot]
            broken = each.broken or (fault if slot in apart else None)
            made[slot] = replace(each, commits=each.commits | bit, broken=broken)
        lost = union(left_out.values())
        for slot, each in made.items():
            half = each.commits & lost
            if half:
                number = first_number(half)
                where = next(one for one, some in left_out.items() if some >> number & 1)
                made[slot] = replace(each, broken=commits.part(number, where))
        return {slot: each for slot, each in made.items() if each.commits or each.broken}

    def _below(self, slot: Slot) -> int:
        return union(side[slot].commits for side in self._sides)

    def _last(self, slot: Slot) -> Made | None:
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

    def _kept(self, slot: Slot, commits: NumberedCommits) -> Made:
        """Return the side that has what the merge has at a slot."""
        value, below = self._has[slot], self._below(slot)
        like = [side[slot] for side in self._sides if side[slot].value == value]
        if like:
            return max(like, key=lambda each: (each.broken is None, each.commits.bit_count()))
        part = commits.part(first_number(below), slot) if below else MissingPart(self._name, slot[0])
        return Made(below, self._began(slot), value, part)

    def _foreign_part(
        self, apart: Collection[Slot], made: Side, commits: NumberedCommits
    ) -> MissingPart | None:
        """Name a commit of others that a merge brings in part where it decides between sides.

        There must be a side with the newest commits of the branch on top of which all that the others have
        done there, and what their commits do elsewhere, is of those who approved the merge.
        """
        faults = [self._foreign_beside(side, apart, made, commits) for side in self._sides if apart]
        return None if None in faults else next(iter(faults), None)

    def _foreign_beside(
        self, side: Side, apart: Collection[Slot], made: Side, commits: NumberedCommits
    ) -> MissingPart | None:
        for slot in apart:
            if side[slot].broken or side[slot].began != made[slot].began:
                return side[slot].broken or MissingPart(self._name, slot[0])
        others = union(made[slot].commits & ~side[slot].commits for slot in apart)
        if not self._effort.spend(others.bit_count()):
            return MissingPart(self._name, min(apart)[0])
        for number in numbers_of(others):
            makes = commits.makes(number)
            for slot in sorted(makes):
                if not any(slot in each.makes or each.is_shown(slot) for each in self._approved):
                    return commits.part(number, min(makes.keys() & set(apart)))
                if slot not in made or not made[slot].commits >> number & 1:
                    return commits.part(number, slot)
        return None
