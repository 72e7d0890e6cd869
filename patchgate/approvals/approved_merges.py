"""What the approval of a merge stands for: its own change, and commits below it as its tree has them.

The approved commits below it may be unable to come one after the other: their conflict is what was approved.
So the merge can come instead of them. It was approved with its tree, by the owners of some paths. Of these it
may leave out or change what the commits below made, where its sides differ; of others it has what they made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set

from patchgate.approvals.whole_commits import Slot, Values, WholeCommit
from patchgate.values import replace


def stands_for(
    own: WholeCommit,
    below: Sequence[WholeCommit],
    tree: Mapping[Slot, Hashable],
    sides: Values,
    mine: Set[Slot],
    ancestors_of: Callable[[str], Set[str]],
) -> WholeCommit:
    """Return a merge with the commits that need not come before it.

    Args:
        own: its own change.
        below: the approved commits below it, the oldest first.
        tree: what it has at every slot.
        sides: what each commit that it joins has.
        mine: the slots for whose owners it was approved.
        ancestors_of: returns the ancestors of a commit.
    """
    taken = {slot for slot in mine if not sides[slot] <= {tree[slot]}}
    kept = _Kept(below, tree, ancestors_of)
    needed, settled, dropped = set(), set(), set()
    replaced: list[WholeCommit] = []
    for each in below:
        here = {slot for slot in each.makes if slot in mine}
        others = each.makes.keys() - here
        has = {slot for slot in each.makes if kept.has(each, slot)}
        if not others <= has:
            dropped.add(each.commit)
        is_parted = not others.isdisjoint(has) and not (others <= has and dropped.isdisjoint(each.below))
        # Of what all sides have alike nobody was asked: with it comes all of a commit.
        alike, left_out = here - taken - own.makes.keys(), here - has - own.makes.keys()
        if is_parted or (alike and left_out):
            needed.add(each.commit)
            continue
        if made := {slot: tree[slot] for slot in each.makes if slot in here or slot in has}:
            replaced.append(replace(each, makes=made, replaces=()))
        if others <= has:
            settled.add(each.commit)
    return replace(
        own,
        begins={slot: own.begins[slot] | sides[slot] for slot in own.makes},
        below=frozenset(needed),
        settles=frozenset(settled),
        replaces=tuple(replaced),
    )


class _Kept:
    """Says whether a merge has what a commit below it made, or what a later one made of that."""

    def __init__(
        self,
        below: Sequence[WholeCommit],
        tree: Mapping[Slot, Hashable],
        ancestors_of: Callable[[str], Set[str]],
    ) -> None:
        self._ancestors_of = ancestors_of
        self._makers: dict[Slot, list[str]] = {}
        for each in below:
            for slot, value in each.makes.items():
                if tree[slot] == value:
                    self._makers.setdefault(slot, []).append(each.commit)

    def has(self, commit: WholeCommit, slot: Slot) -> bool:
        """Return it for a slot of a commit."""
        makers = self._makers.get(slot, [])
        return any(each == commit.commit or commit.commit in self._ancestors_of(each) for each in makers)
