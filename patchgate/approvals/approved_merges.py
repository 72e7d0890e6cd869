"""What approved merges stand for: the whole change from each of their parents.

Who approves a merge is shown its own change, and where git would merge otherwise. All else must be right by
itself: its parents, and the commits in which these began, have what whole approved commits make, no parent
has what stands on a commit that another one leaves out, and the branch still has what they stand on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence, Set
from typing import Protocol

from patchgate.approvals.whole_commits import (
    Effort,
    MissingPart,
    Slot,
    Values,
    WholeCommit,
    explain,
    find_missing,
    find_order,
)
from patchgate.values import dataclass, replace

# What git takes to find where the parents of a merge began, as an effort.
_OF_A_MERGE = 2_000


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

    def values_of(self, commit: str) -> Mapping[Slot, Hashable]:
        """Return what any commit has at all slots that count."""
        ...


@dataclass(frozen=True, slots=True)
class Approved:
    """What was approved of a commit, what each of its slots was, and which others of a merge were shown."""

    begins: Values
    makes: Mapping[Slot, Hashable]
    is_shown: Callable[[Slot], bool]


def find_part(
    new: SlotHistory,
    before: Values,
    result: Mapping[Slot, Hashable],
    approved: Mapping[str, Approved],
    free: Mapping[str, Sequence[WholeCommit]],
    effort: Effort,
) -> MissingPart | None:
    """Return what would land in part; None if whole commits lead from what a branch has to a result.

    Args:
        before: what the branch has, at every slot of the commits.
        result: what it becomes.
        approved: what was approved, by commit.
        free: the changes for which nobody is asked, by commit.
    """
    found = _WholeCommits(new, before, effort)
    for commit in new:
        found.add(commit, approved.get(commit), free.get(commit, ()))
    missing = find_missing(before, result, found.all, effort)
    return missing and found.cause_of(missing)


class _WholeCommits:
    """Collects what may come as a whole: `all` has what the commits do that were added.

    `_needs` has what must have come before what stands on a commit, `_came` what has come where a commit has
    what whole ones make, or None. `_causes` says why a commit has not, or why a merge cannot come. `_slots`
    has those of the commits that do something; each of these has a bit, and `_below` those of a commit and of
    what it stands on.
    """

    def __init__(self, new: SlotHistory, before: Values, effort: Effort) -> None:
        self.all: list[WholeCommit] = []
        self._causes: dict[str, MissingPart] = {}
        self._new, self._before, self._effort = new, before, effort
        self._needs: dict[str, frozenset[str]] = {}
        self._came: dict[str, frozenset[str] | None] = {}
        self._slots: dict[str, Set[Slot]] = {}
        self._bits: dict[str, int] = {}
        self._below: dict[str, int] = {}

    def add(self, commit: str, mine: Approved | None, free: Sequence[WholeCommit]) -> None:
        """Add what a commit does; those below it are there.

        Args:
            mine: what was approved of it.
            free: what it does besides.
        """
        parents = self._new.parents_of(commit)
        below = self._bits[commit] = 1 << len(self._bits) if free or mine is not None else 0
        for parent in parents:
            below |= self._below.get(parent, 0)
        self._below[commit] = below
        for each in free:
            self._append(each)
        needs = frozenset[str]().union(*(self._needs.get(each, frozenset()) for each in parents))
        if mine is not None and len(parents) > 1:
            needs = self._add_merge(commit, parents, mine) or needs | {commit}
        elif mine is not None:
            self._append(WholeCommit(commit, mine.begins, mine.makes, needs))
            needs |= {commit}
        self._needs[commit] = needs

    def cause_of(self, missing: MissingPart) -> MissingPart:
        """Return why a part is missing: the cause of that, where a merge that cannot come would make it."""
        makes = (
            each for each in reversed(self._causes) if (missing.path, False) in self._slots.get(each, ())
        )
        return self._causes.get(missing.commit) or self._causes.get(next(makes, "")) or missing

    def _append(self, commit: WholeCommit) -> None:
        self.all.append(commit)
        self._slots[commit.commit] = self._slots.get(commit.commit, set()) | commit.makes.keys()

    def _add_merge(self, merge: str, parents: Sequence[str], mine: Approved) -> frozenset[str] | None:
        """Add what an approved merge does; return what has come where it has, None if it cannot come."""
        if not self._effort.spend(_OF_A_MERGE + len(self._before) * 3 * (len(parents) + 1)):
            self._refuse(merge, mine, MissingPart(merge, min(mine.makes)[0]))
            return None
        made = self._new.values_of(merge)
        sides = [self._new.values_of(each) for each in parents]
        bases = self._new.bases_of(merge) if len(parents) == 2 else ()
        began = [self._new.values_of(each) for each in bases]
        chosen = {
            slot
            for slot in made.keys() - mine.makes.keys()
            if is_chosen(made[slot], [side[slot] for side in sides], [base[slot] for base in began])
        }
        shown = mine.makes.keys() | chosen
        below_it = frozenset(each for each in self._slots if self._is_below(each, merge))
        touched = shown.union(*(self._slots[each] for each in below_it))
        old = {begin for each in (*parents, *bases) for begin in self._new.begins_of(each)}
        unsure = {slot for slot in chosen if not mine.is_shown(slot)}
        unsure |= {slot for each in old for slot in self._moved(each, touched - shown)}
        cause = MissingPart(merge, min(unsure)[0]) if unsure else self._cause(parents, bases)
        asked = parents if cause is None else ()
        parts = {each: self._part_of(merge, each, touched - shown) for each in asked}
        # Whose other files are not shown is asked: from one parent their commits come as they are.
        own = {each: self._part_of(merge, each, touched - shown, mine) for each in asked}
        if None not in own.values():
            parts = own
        if None not in parts.values():
            self._refuse(merge, mine, cause or self.cause_of(next(filter(None, parts.values()))))
            return None
        came = {each: self._came_to(each) or frozenset() for each in parents}
        left_out = set[str]()
        for parent, side in zip(parents, sides, strict=True):
            lost = {slot for slot in chosen if made[slot] != side[slot]}
            left_out |= {each for each in came[parent] if not lost.isdisjoint(self._slots[each])}
        has = frozenset([merge]).union(*came.values()) - left_out
        makes = {slot: value for slot, value in made.items() if slot in touched}
        # What has all of it already is not changed by it.
        places = [(made, frozenset[str]())]
        for parent, side in zip(parents, sides, strict=True):
            # From another one it would also make what the branch has made.
            if parts[parent] is None and {*self._new.begins_of(parent)} == {*self._new.begins_of(merge)}:
                places.append((side, came[parent]))
                if all(made[slot] == side[slot] for slot in chosen):
                    self._came[merge] = has
        for values, below in places:
            begins = {slot: frozenset() if slot in chosen else frozenset([values[slot]]) for slot in makes}
            self._append(WholeCommit(merge, begins, makes, below, has, stands_on=below_it))
        return has

    def _refuse(self, merge: str, mine: Approved, cause: MissingPart) -> None:
        """Let a merge wait for itself: who asks what is missing learns of it."""
        self._causes[merge] = cause
        self._append(WholeCommit(merge, mine.begins, mine.makes, frozenset([merge])))

    def _moved(self, commit: str, slots: Set[Slot]) -> Iterator[Slot]:
        """Yield where the branch has something else than an older commit of it."""
        values = self._new.values_of(commit)
        return (slot for slot in slots if values[slot] not in self._before[slot])

    def _cause(self, parents: Sequence[str], bases: Sequence[str]) -> MissingPart | None:
        """Say why a merge cannot come: one of its commits is not whole, or has what another leaves out."""
        for each in (*parents, *bases):
            if self._came_to(each) is None:
                return self._causes[each]
        came = {each: self._came_to(each) or frozenset() for each in parents}
        all_there = frozenset[str]().union(*came.values())
        for parent, there in came.items():
            left_out = [each for each in all_there - there if self._is_below(each, parent)]
            if left_out:
                return MissingPart(min(left_out), min(self._slots[min(left_out)])[0])
        return None

    def _part_of(
        self, merge: str, parent: str, slots: Set[Slot], mine: Approved | None = None
    ) -> MissingPart | None:
        """Say what of a merge no whole commits make of a parent; None if they lead to what it has.

        Args:
            slots: those that nobody was shown. At the others anything may be.
            mine: the approval whose people must own all of a commit for that; None: nobody must.
        """

        def rest(commit: WholeCommit) -> WholeCommit:
            if mine is not None and not all(map(mine.is_shown, commit.makes)):
                return commit
            begins = {slot: values for slot, values in commit.begins.items() if slot in slots}
            makes = {slot: value for slot, value in commit.makes.items() if slot in slots}
            return replace(commit, begins=begins, makes=makes)

        commits = [rest(each) for each in self._steps(merge) if not self._is_below(each.commit, parent)]
        result = {slot: value for slot, value in self._new.values_of(merge).items() if slot in slots}
        before, came = self._state_of(parent), self._came_to(parent) or frozenset()
        there = {each: self._slots[each] for each in came}
        if not result or find_order(before, result, commits, self._effort, there) is not None:
            return None
        return explain(before, result, commits)

    def _is_below(self, commit: str, other: str) -> bool:
        """Return whether a commit that does something is another one, or below it."""
        return bool(self._bits[commit] & self._below.get(other, 0))

    def _came_to(self, commit: str) -> frozenset[str] | None:
        """Return what has come where a commit has what whole ones make of what the branch had; else None."""
        if commit not in self._needs:
            return frozenset()
        if commit not in self._came:
            self._came[commit] = self._order_above(commit) or self._order_from_branch(commit)
        return self._came[commit]

    def _order_above(self, commit: str) -> frozenset[str] | None:
        """Return what has come, from what has where its first parents have what whole commits make."""
        below = commit
        while below in self._needs and below not in self._came:
            below, *_ = self._new.parents_of(below) or ("",)
        came = self._came.get(below)
        if came is None or {*self._new.begins_of(below)} != {*self._new.begins_of(commit)}:
            return None
        commits = [each for each in self._steps(commit) if not self._is_below(each.commit, below)]
        there = {each: self._slots[each] for each in came}
        return find_order(self._state_of(below), self._new.values_of(commit), commits, self._effort, there)

    def _order_from_branch(self, commit: str) -> frozenset[str] | None:
        """Return what has come, from where a commit began in the branch; else note what it has in part."""
        commits, result = self._steps(commit), self._new.values_of(commit)
        orders: list[frozenset[str]] = []
        for before in map(self._state_of, self._new.begins_of(commit)):
            order = find_order(before, result, commits, self._effort)
            if order is None:
                missing = explain(before, result, commits)
                self._causes.setdefault(commit, self.cause_of(missing))
                return None
            orders.append(order)
        return orders[0].intersection(*orders)

    def _steps(self, commit: str) -> list[WholeCommit]:
        """Return what a commit and those below it do."""
        return [each for each in self.all if self._is_below(each.commit, commit)]

    def _state_of(self, commit: str) -> Values:
        return {slot: frozenset([value]) for slot, value in self._new.values_of(commit).items()}
