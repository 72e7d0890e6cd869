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
    dropped: set[str] = set()
    for each in below:
        rest = each.makes.keys() - shown
        has = {slot for slot in each.makes if kept.has(each, slot)}
        if not rest <= has:
            dropped.add(each.commit)
        is_whole = rest <= has and dropped.isdisjoint(ancestors_of(each.commit))
        if rest and not is_whole:
            is_apart = rest == each.makes.keys() and rest.isdisjoint(has)
            (left_out if is_apart else needed).add(each.commit)
            continue
        if made := {slot: tree[slot] for slot in each.makes if slot not in own.makes}:
            replaced.append(replace(each, makes=made, replaces=()))
        (settled if each.makes.keys() <= has | own.makes.keys() else left_out).add(each.commit)
    return replace(
        own,
        begins={slot: own.begins[slot] | sides[slot] for slot in own.makes},
        below=frozenset(needed),
        settles=frozenset(settled),
        leaves_out=frozenset(left_out),
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
