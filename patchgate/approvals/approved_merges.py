"""What the approval of a merge stands for: what was shown of it, and commits below it as its tree has them.

The approved commits below it may be unable to come one after the other: their conflict is what was approved.
So the merge can come instead of them. Who approves it is shown its own change, and where its tree is not what
git makes of its parents. All else is what the commits below it made: of each of them all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set

from patchgate.approvals.whole_commits import Slot, Values, WholeCommit
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.values import replace

# More than these need not be looked at in an honest history: the next one is among the first.
_MOST_LATER = 100


def is_chosen(
    objects: Objects, path: RepoPath, tree: str, sides: Sequence[str], bases: Iterable[str]
) -> bool:
    """Return whether a merge has a path otherwise than git makes it where one side alone has changed it.

    Args:
        tree: the merge's.
        sides: the trees of its parents.
        bases: the trees of what these have in common.
    """

    def at(place: str) -> Entry | None:
        return objects.file_at(place, path.raw)

    made, found = at(tree), {at(side) for side in sides}
    if found == {made}:
        return False
    return len(sides) > 2 or found - {at(base) for base in bases} != {made}


def stands_for(
    own: WholeCommit,
    below: Sequence[WholeCommit],
    tree: Mapping[Slot, Hashable],
    sides: Values,
    chosen: Set[Slot],
    ancestors_of: Callable[[str], Set[str]],
) -> WholeCommit:
    """Return a merge with the commits that need not come before it.

    Args:
        own: its own change.
        below: the approved commits below it, the oldest first.
        tree: what it has at every slot.
        sides: what the commits that it joins have at its own slots.
        chosen: the other slots that were shown to those who approved it.
        ancestors_of: returns the ancestors of a commit.
    """
    kept = _Kept(below, tree, ancestors_of)
    shown = own.makes.keys() | chosen
    needed, settled, left_out = set[str](), set[str](), set[str]()
    replaced: list[WholeCommit] = []
    # What a merge below it leaves out was in what others have seen.
    gone = frozenset[str]().union(*(each.leaves_out for each in below))
    dropped = {*gone}
    for each in below:
        rest = each.makes.keys() - shown
        has = {slot for slot in each.makes if kept.has(each, slot)}
        if not rest <= has:
            dropped.add(each.commit)
        is_whole = kept.has_one_way(each, rest) and dropped.isdisjoint(ancestors_of(each.commit))
        if rest and not is_whole:
            is_apart = rest == each.makes.keys() and rest.isdisjoint(has)
            (left_out if is_apart else needed).add(each.commit)
            continue
        if made := {slot: tree[slot] for slot in each.makes if slot in has - own.makes.keys()}:
            replaced.append(replace(each, makes=made, replaces=()))
        is_there = each.makes.keys() <= has | own.makes.keys() and each.commit not in gone
        (settled if is_there else left_out).add(each.commit)
    # What was shown is so wherever it comes, and what must have come and is not all in its tree is as that.
    others = (each for each in below if each.commit in needed)
    missing = {slot for each in others for slot in each.makes if not kept.has(each, slot)}
    as_in_tree = {slot: tree[slot] for slot in sorted(chosen | missing)}
    return replace(
        own,
        begins={
            **dict.fromkeys(as_in_tree, frozenset()),
            **{slot: own.begins[slot] | sides[slot] for slot in own.makes},
        },
        makes={**as_in_tree, **own.makes},
        below=frozenset(needed),
        settles=frozenset(settled),
        leaves_out=frozenset(left_out),
        replaces=tuple(replaced),
    )


class _Kept:
    """Says whether a merge has what a commit below it made, or what others below it have made of that."""

    def __init__(
        self,
        below: Sequence[WholeCommit],
        tree: Mapping[Slot, Hashable],
        ancestors_of: Callable[[str], Set[str]],
    ) -> None:
        self._ancestors_of = ancestors_of
        self._below = below
        self._known: set[tuple[str, Slot]] = set()
        self._as_made: set[tuple[str, Slot]] = set()
        makers: dict[Slot, list[tuple[WholeCommit, Hashable]]] = {}
        for each in below:
            for slot, value in each.beside(frozenset()).makes.items():
                makers.setdefault(slot, []).append((each, value))
        for slot, found in makers.items():
            kept: list[WholeCommit] = []
            for each, value in reversed(found):
                later = kept[-_MOST_LATER:]
                is_as_made = value == tree[slot] or any(
                    self._begins_with(one, each, slot, value) for one in later
                )
                if is_as_made:
                    self._as_made.add((each.commit, slot))
                if is_as_made or any(each.commit in one.leaves_out and slot in one.makes for one in later):
                    kept.append(each)
                    self._known.add((each.commit, slot))

    def _begins_with(self, later: WholeCommit, commit: WholeCommit, slot: Slot, value: Hashable) -> bool:
        """Return whether one commit stands on another, and began with what that made."""
        if commit.commit not in self._ancestors_of(later.commit):
            return False
        if later.begins.get(slot):
            return value in later.begins[slot]
        return any(each.commit == commit.commit and slot in each.makes for each in later.replaces)

    def has_one_way(self, commit: WholeCommit, slots: Set[Slot]) -> bool:
        """Return whether it has slots as the commit made them, or all as one merge that leaves it out."""
        out = [each.commit for each in self._below if commit.commit in each.leaves_out]
        return all((commit.commit, slot) in self._as_made for slot in slots) or any(
            all((name, slot) in self._known for slot in slots) for name in out
        )

    def has(self, commit: WholeCommit, slot: Slot) -> bool:
        """Return it for a slot of a commit."""
        return (commit.commit, slot) in self._known
