"""Random histories of people who approve only states in which a door has its guard: no other state lands.

The histories are made up, without git: a commit is its parents and what it has of four files. `door` and
`guard` change together in all that is approved, but for comments in `guard`, which are even steps. Conflicts
in the other files make merges that are approved.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from patchgate.approvals.approved_merges import Approved, find_part
from patchgate.approvals.whole_commits import Effort, Slot
from patchgate.git.path import RepoPath
from tests.amount import IS_LONG

A, B, GUARD, DOOR = SLOTS = tuple((RepoPath(name), False) for name in (b"a", b"b", b"guard", b"door"))
# Who owns each of them: one person all, or two in every way that differs.
OWNERS = ("1111", "1112", "1121", "2111", "2112", "1212")
Tree = Mapping[Slot, int]


def is_sound(tree: Tree) -> bool:
    return tree[GUARD] % 2 == tree[DOOR] % 2


def is_approved(shown: Iterable[Slot], *trees: Tree) -> bool:
    """Return whether people approve what is shown to them of a tree, and of its parents."""
    is_same = DOOR not in shown and len({tree[GUARD] % 2 for tree in trees}) == 1
    return all(map(is_sound, trees)) or is_same or {GUARD, DOOR}.isdisjoint(shown)


@dataclass
class History:
    """Commits with their parents and trees, who was asked for what, and the changes that were approved."""

    draw: random.Random
    owners: Mapping[Slot, str]
    trees: list[Tree] = field(default_factory=list)
    parents: list[tuple[int, ...]] = field(default_factory=list)
    asked: dict[int, Tree] = field(default_factory=dict)
    changes: list[tuple[Tree, Tree]] = field(default_factory=list)
    main: int = 0

    def add(self, tree: Tree, *parents: int) -> int:
        self.trees.append(tree)
        self.parents.append(parents)
        return len(self.trees) - 1

    def ancestors(self, commit: int) -> set[int]:
        found = set(self.parents[commit])
        for each in self.parents[commit]:
            found |= self.ancestors(each)
        return found

    def bases(self, one: int, other: int) -> list[int]:
        common = (self.ancestors(one) | {one}) & (self.ancestors(other) | {other})
        return [each for each in common if not any(each in self.ancestors(more) for more in common)]

    def drawn(self, tree: Tree) -> Tree:
        """Draw what somebody makes of a tree: as sound as it was, or sound."""
        changed = dict(tree)
        if self.draw.random() < 0.8:
            changed[self.draw.choice([A, A, A, B])] = self.draw.randrange(3)
        if self.draw.random() < 0.6:
            changed[GUARD] = changed[DOOR] = self.draw.randrange(2)
        elif self.draw.random() < 0.3:
            changed[GUARD] += self.draw.choice([2, 4])
        return changed

    def propose(self, base: int, made: Tree | None = None) -> int:
        """Make a commit that its owners approve, if they do."""
        made = made or self.drawn(self.trees[base])
        changed = {slot: made[slot] for slot in SLOTS if made[slot] != self.trees[base][slot]}
        if changed and is_approved(changed, made, self.trees[base]):
            commit = self.add(made, base)
            self.asked[commit] = changed
            self.changes.append(({slot: self.trees[base][slot] for slot in changed}, changed))
            return commit
        return base

    def join(self, one: int, other: int) -> None:
        """Merge two commits that have different changes of a file."""
        sides = (self.propose(each, {**self.trees[each], A: value}) for each, value in ((one, 3), (other, 4)))
        self.merge(*sides)

    def again(self, base: int) -> None:
        """Make a change again that was approved, from where its files are as it began."""
        tree = self.trees[base]
        fitting = [each for each in self.changes if all(tree[slot] == was for slot, was in each[0].items())]
        if fitting:
            _, changed = self.draw.choice(fitting)
            self.asked[self.add({**tree, **changed}, base)] = changed

    def merge(self, one: int, other: int, *, is_last: bool = False) -> int | None:
        """Merge two commits; what nobody is asked about is as git makes it, or as main has it.

        Who is asked approves what is sound, and the last merge, into main, asks nobody.
        """
        bases = self.bases(one, other)
        if len(bases) != 1 or one in self.ancestors(other) or other in {one, *self.ancestors(one)}:
            return None
        now, made = self.trees[self.main], dict[Slot, int]()
        asked, chosen = dict[Slot, int](), set[Slot]()
        is_honest = self.draw.random() < 0.5
        for slot in SLOTS:
            was, ours, theirs = (self.trees[each][slot] for each in (bases[0], one, other))
            by_git = theirs if ours == was else ours if theirs in {was, ours} else None
            if by_git is None:
                made[slot] = self.draw.choice([ours, theirs, now[slot], *[self.draw.randrange(5, 9)] * 3])
            elif is_honest or self.draw.random() < 0.5:
                made[slot] = by_git
            else:
                made[slot] = now[slot]
            if made[slot] != by_git:
                chosen.add(slot)
            if made[slot] not in {by_git, now[slot]}:
                asked[slot] = made[slot]
        if asked and (is_last or not is_approved(chosen, made, self.trees[one], self.trees[other])):
            return None
        merge = self.add(made, one, other)
        self.asked.update({merge: asked} if asked else {})
        return merge

    def whole(self, tip: int) -> bool:
        """Return whether what a tip has is what whole approved commits make of main."""
        new = NewOf(self, tip)
        asked = {commit: self.asked[int(commit)] for commit in new if int(commit) in self.asked}
        named = {slot for made in asked.values() for slot in made}
        new.slots = sorted(named)
        approved = {}
        for commit, made in asked.items():
            first = self.trees[self.parents[int(commit)][0]]
            people = {self.owners[slot] for slot in made}
            shown = {slot for slot in SLOTS if self.owners[slot] in people}
            approved[commit] = Approved({slot: {first[slot]} for slot in made}, made, shown.__contains__)
        before = {slot: frozenset([self.trees[self.main][slot]]) for slot in SLOTS}
        at_named = {slot: before[slot] for slot in new.slots}
        # A slot of no commit is compared elsewhere.
        is_same = all(self.trees[tip][slot] in before[slot] for slot in SLOTS if slot not in named)
        return is_same and find_part(new, at_named, new.values_of(str(tip)), approved, {}, Effort()) is None


class NewOf:
    """What main gets of a history with a tip."""

    def __init__(self, history: History, tip: int) -> None:
        self.slots: Sequence[Slot] = SLOTS
        self._history = history
        old = history.ancestors(history.main) | {history.main}
        self._new = sorted((history.ancestors(tip) | {tip}) - old)

    def __iter__(self) -> Iterator[str]:
        return map(str, self._new)

    def parents_of(self, commit: str) -> Sequence[str]:
        return [*map(str, self._history.parents[int(commit)])]

    def begins_of(self, commit: str) -> Sequence[str]:
        return [*map(str, self._history.bases(int(commit), self._history.main))]

    def bases_of(self, merge: str) -> Sequence[str]:
        return [*map(str, self._history.bases(*self._history.parents[int(merge)]))]

    def values_of(self, commit: str) -> Tree:
        tree = self._history.trees[int(commit)]
        return {slot: tree[slot] for slot in self.slots}


def histories(seed: int, count: int) -> Iterator[tuple[History, int]]:
    """Yield random histories, each with a merge into main."""
    draw = random.Random(seed)
    for _ in range(count):
        owners = dict(zip(SLOTS, draw.choice(OWNERS), strict=True))
        history = History(draw, owners)
        state = draw.randrange(2)
        history.add({A: 0, B: 0, GUARD: state, DOOR: state})
        for _ in range(draw.randrange(3)):
            history.main = history.add(history.drawn(history.trees[-1]), history.main)
        steps = [draw.choice("ppa") for _ in range(draw.randint(2, 4))]
        steps += [draw.choice("jjm") for _ in range(draw.randint(1, 3))]
        steps += [draw.choice("pam") for _ in range(draw.randint(0, 2))] + ["m"]
        for step in steps:
            one, other = (draw.randrange(max(0, len(history.trees) - 8), len(history.trees)) for _ in "12")
            if step == "p":
                history.propose(one)
            elif step == "a":
                history.again(one)
            elif step == "j":
                history.join(one, other)
            else:
                history.merge(one, other)
        tip = history.merge(history.main, len(history.trees) - 1, is_last=True)
        if tip is not None:
            yield history, tip


@pytest.mark.parametrize("seed", range(500 if IS_LONG else 6))
def test_no_state_lands_that_nobody_has_approved(seed: int) -> None:
    counted = {True: 0, False: 0}
    for history, tip in histories(seed, 1000):
        is_whole = history.whole(tip)
        counted[is_whole] += 1
        assert not is_whole or is_sound(history.trees[tip]), history
    assert min(counted.values()) > 5


def scene() -> History:
    """Make a history of one owner, whose main is the first commit, without a guard and a door."""
    history = History(random.Random(0), dict.fromkeys(SLOTS, "1"))
    history.add(tree())
    return history


def tree(*, a: int = 0, b: int = 0, guard: int = 0, door: int = 0) -> Tree:
    return {A: a, B: b, GUARD: guard, DOOR: door}


def approved(history: History, made: Tree, *parents: int, asked: Sequence[Slot]) -> int:
    """Add a commit that was approved with what was asked about."""
    commit = history.add(made, *parents)
    history.asked[commit] = {slot: made[slot] for slot in asked}
    return commit


def test_what_began_without_a_commit_does_not_keep_it() -> None:
    """A comment in a file that a merge below has put back says nothing about what it left out."""
    history = scene()
    whole = approved(history, tree(guard=1, door=1), 0, asked=[GUARD, DOOR])
    half = history.add(tree(door=1), 0, whole)
    comment = approved(history, tree(guard=2, door=1), half, asked=[GUARD])
    one = approved(history, tree(a=3), 0, asked=[A])
    other = approved(history, tree(a=4, guard=2, door=1), comment, asked=[A])
    assert not history.whole(approved(history, tree(a=5, guard=2, door=1), one, other, asked=[A]))


def test_a_merge_does_not_come_beside_what_its_tree_lacks() -> None:
    history = scene()
    history.trees[0] = tree(guard=1, door=1)
    first = approved(history, tree(), 0, asked=[GUARD, DOOR])
    second = approved(history, tree(guard=3, door=1), first, asked=[GUARD, DOOR])
    again = approved(history, tree(), 0, asked=[GUARD, DOOR])
    merge = approved(history, tree(guard=6), again, second, asked=[GUARD])
    assert history.whole(merge)
    assert not history.whole(history.add(tree(guard=6, door=1), 0, merge))


@pytest.mark.parametrize("is_above", [False, True])
def test_what_was_shown_of_a_merge_is_so_wherever_it_comes(*, is_above: bool) -> None:
    history = scene()
    whole = approved(history, tree(guard=1, door=1), 0, asked=[GUARD, DOOR])
    other = approved(history, tree(guard=7), 0, asked=[GUARD])
    merge = approved(history, tree(guard=6), other, whole, asked=[GUARD])
    again = approved(history, tree(b=1, guard=1, door=1), 0, asked=[B, GUARD, DOOR])
    half = history.add(tree(b=1, door=1), 0, again)
    tip = history.add(tree(b=1, guard=6, door=1), merge, half)
    if is_above:
        sides = [approved(history, tree(a=value, guard=6), merge, asked=[A]) for value in (3, 4)]
        merge = approved(history, tree(a=5, guard=6), *sides, asked=[A])
        tip = history.add(tree(a=5, b=1, guard=6, door=1), merge, half)
    assert history.whole(merge)
    assert not history.whole(tip)


def test_a_merge_that_leaves_a_commit_out_is_no_revert_of_another() -> None:
    history = scene()
    history.trees[0] = tree(guard=4)
    history.main = history.add(tree(guard=7, door=1), 0)
    whole = approved(history, tree(guard=4), history.main, asked=[GUARD, DOOR])
    left_out = approved(history, tree(guard=2, b=1), 0, asked=[GUARD, B])
    other = approved(history, tree(guard=7, door=1, b=4), history.main, asked=[B])
    merge = approved(history, tree(guard=7, door=1, b=8), other, left_out, asked=[B])
    assert history.whole(merge)
    assert not history.whole(history.add(tree(guard=7, b=8), merge, whole))


def test_a_merge_above_one_that_leaves_a_commit_out_leaves_out_no_other_part_of_it() -> None:
    """The owner of a file has left out what a commit made of it, and somebody the door beside a guard."""
    history = scene()
    history.trees[0] = tree(guard=1, door=1)
    history.owners = {A: "2", B: "2", GUARD: "1", DOOR: "1"}
    comment = approved(history, tree(guard=3, door=1), 0, asked=[GUARD])
    whole = approved(history, tree(a=2), comment, asked=[A, GUARD, DOOR])
    other = approved(history, tree(b=3, guard=1, door=1), 0, asked=[B])
    lower = approved(history, tree(b=6), other, whole, asked=[B])
    side = approved(history, tree(b=4, guard=1, door=1), 0, asked=[B])
    upper = approved(history, tree(b=8, door=1), lower, side, asked=[B])
    assert not history.whole(upper)


def went(history: History, *trees: Tree) -> None:
    """Let main have been at some trees, one after the other."""
    history.trees[0] = trees[0]
    for each in trees[1:]:
        history.main = history.add(each, history.main)


def test_what_main_had_in_between_is_no_part_of_an_approved_commit() -> None:
    """The door was shut for a while: a merge with that time has what a commit makes without making it."""
    history = scene()
    went(history, tree(guard=1, door=1), tree(guard=1), tree(guard=1, door=1))
    whole = approved(history, tree(), 0, asked=[GUARD, DOOR])
    one = approved(history, tree(a=1, guard=1), 1, asked=[A])
    other = approved(history, tree(a=2), whole, asked=[A])
    merge = approved(history, tree(a=3), one, other, asked=[A])
    assert not history.whole(history.add(tree(a=3, door=1), history.main, merge))


def test_what_main_had_in_between_does_not_make_a_merge_of_it_whole() -> None:
    history = scene()
    went(history, tree(guard=1, door=1), tree(guard=1), tree(guard=1, door=1))
    whole = approved(history, tree(), 0, asked=[GUARD, DOOR])
    old = history.add(tree(), 1, whole)
    one = approved(history, tree(a=1), old, asked=[A])
    other = approved(history, tree(a=2, guard=1, door=1), history.main, asked=[A])
    merge = approved(history, tree(a=3, door=1), other, one, asked=[A])
    assert not history.whole(merge)


def test_what_an_earlier_push_has_left_out_makes_no_part_of_a_commit() -> None:
    history = scene()
    history.trees[0] = tree(guard=1, door=1)
    first = approved(history, tree(), 0, asked=[GUARD, DOOR])
    half = history.add(tree(guard=1), 0, first)
    left_out = history.add(tree(guard=1, door=1), 0, half)
    assert history.whole(left_out)
    history.main = left_out
    again = approved(history, tree(), 0, asked=[GUARD, DOOR])
    one = approved(history, tree(a=1, guard=1), half, asked=[A])
    other = approved(history, tree(a=2), again, asked=[A])
    merge = approved(history, tree(a=3), one, other, asked=[A])
    assert not history.whole(history.add(tree(a=3, door=1), left_out, merge))


def test_no_side_of_a_merge_has_what_stands_on_what_another_one_leaves_out() -> None:
    """The owner of all leaves a guard out where nothing needs it, and a door that needs it is beside."""
    history = scene()
    guard = approved(history, tree(a=1, guard=1), 0, asked=[A, GUARD])
    door = approved(history, tree(a=1, guard=1, door=1), guard, asked=[DOOR])
    sides = [
        approved(history, tree(a=3), 0, asked=[A]),
        approved(history, tree(a=4, guard=1), guard, asked=[A]),
    ]
    lower = approved(history, tree(a=6), *sides, asked=[A])
    other = approved(history, tree(a=7, guard=1, door=1), door, asked=[A])
    assert not history.whole(approved(history, tree(a=8, door=1), lower, other, asked=[A]))


def test_a_merge_leaves_out_and_reverts_nothing_that_has_come() -> None:
    """It leaves a guard out where no door was, and another commit has brought both."""
    history = scene()
    guard = approved(history, tree(a=1, guard=1), 0, asked=[A, GUARD])
    door = approved(history, tree(a=1, guard=1, door=1), guard, asked=[DOOR])
    sides = [
        approved(history, tree(a=3), 0, asked=[A]),
        approved(history, tree(a=4, guard=1), guard, asked=[A]),
    ]
    merge = approved(history, tree(a=6), *sides, asked=[A])
    assert history.whole(merge)
    history.main = door
    assert not history.whole(history.add(tree(a=6, door=1), door, merge))


def test_the_parents_of_several_have_all_that_differs_shown() -> None:
    """A merge of three: git joins nothing there by itself."""
    history = scene()
    whole = approved(history, tree(guard=1, door=1), 0, asked=[GUARD, DOOR])
    sides = [approved(history, tree(a=value), 0, asked=[A]) for value in (1, 2)]
    merge = approved(history, tree(a=3, guard=1, door=1), *sides, whole, asked=[A])
    history.owners = {**history.owners, GUARD: "2", DOOR: "2"}
    assert not history.whole(merge)
    history.owners = dict.fromkeys(SLOTS, "1")
    assert not history.whole(history.add(tree(a=3, door=1), 0, merge))


def test_a_merge_of_crossing_branches_is_shown_where_their_beginnings_lead_apart() -> None:
    history = scene()
    one, other = (approved(history, tree(b=value), 0, asked=[B]) for value in (1, 2))
    crossed = [approved(history, tree(b=3), *pair, asked=[B]) for pair in ((one, other), (other, one))]
    assert history.bases(*crossed) == [one, other]
    sides = [
        approved(history, tree(a=value, b=3), base, asked=[A])
        for value, base in zip((1, 2), crossed, strict=True)
    ]
    merge = approved(history, tree(a=3, b=1), *sides, asked=[A])
    assert not history.whole(history.add(tree(a=3, b=1), 0, merge))
