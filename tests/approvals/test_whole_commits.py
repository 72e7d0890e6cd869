"""Random histories of people who approve only what keeps every sound state sound: no other state lands.

The histories are made up, without git: a commit is its parents and what it has of four files. Some states of
three of them are sound. A commit is approved if it makes a sound state of each in which it may come. In the
other file there are conflicts: their merges are approved for that, by people who look at nothing else. The
main branch may have been at any sound state before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product

import pytest

from patchgate.approvals.approved_slots import Approved, Effort, Slot, is_chosen
from patchgate.approvals.whole_commits import find_part
from patchgate.git.path import RepoPath
from tests.amount import IS_LONG

A, B, GUARD, DOOR = SLOTS = tuple((RepoPath(name), False) for name in (b"a", b"b", b"guard", b"door"))
JUDGED = (B, GUARD, DOOR)
# Who owns each of the files: one person all, or several in ways that differ.
OWNERS = ("1111", "1111", "1112", "1121", "2111", "1122", "1222", "1234")
Tree = Mapping[Slot, int]
State = tuple[int, ...]


@dataclass
class History:
    """Commits with their parents and trees, who was asked for what, and the changes that were approved."""

    draw: random.Random
    owners: Mapping[Slot, str]
    sound: Set[State] = frozenset()
    trees: list[Tree] = field(default_factory=list)
    parents: list[tuple[int, ...]] = field(default_factory=list)
    asked: dict[int, Tree] = field(default_factory=dict)
    main: int = 0

    def __post_init__(self) -> None:
        self.ancestors = cache(self._ancestors)

    def add(self, tree: Tree, *parents: int) -> int:
        self.trees.append(tree)
        self.parents.append(parents)
        return len(self.trees) - 1

    def _ancestors(self, commit: int) -> frozenset[int]:
        parents = self.parents[commit]
        return frozenset(parents).union(*map(self.ancestors, parents))

    def bases(self, one: int, other: int) -> list[int]:
        common = (self.ancestors(one) | {one}) & (self.ancestors(other) | {other})
        return sorted(each for each in common if not any(each in self.ancestors(more) for more in common))

    def is_sound(self, tree: Tree) -> bool:
        return tuple(tree[slot] for slot in JUDGED) in self.sound

    def keeps(self, makes: Tree, begins: Tree | None = None) -> bool:
        """Return whether a change makes a sound state of each, where it may come."""
        judged = [(number, makes[slot], slot) for number, slot in enumerate(JUDGED) if slot in makes]
        for state in self.sound:
            if begins is not None and any(state[n] not in {made, begins[slot]} for n, made, slot in judged):
                continue
            after = list(state)
            for number, made, _ in judged:
                after[number] = made
            if tuple(after) not in self.sound:
                return False
        return True

    def propose(self, base: int, changes: Tree) -> int:
        """Make a commit, if its owners approve it."""
        tree = self.trees[base]
        made = {slot: value for slot, value in changes.items() if value != tree[slot]}
        if not made or not self.keeps(made, tree):
            return base
        commit = self.add({**tree, **made}, base)
        self.asked[commit] = made
        return commit

    def join(self, one: int, other: int) -> None:
        """Merge two commits that have different changes of the file that nobody judges."""
        self.merge(self.propose(one, {A: 3}), self.propose(other, {A: 4}))

    def merge(self, *parents: int, is_last: bool = False) -> int | None:
        """Merge commits; what nobody is asked about is as git makes it, or as main has it.

        Who is asked approves what is sound, and the last merge, into main, asks nobody.
        """
        if any(one == other or one in self.ancestors(other) for one, other in permutations(parents, 2)):
            return None
        bases = self.bases(*parents) if len(parents) == 2 else []
        now, made, asked, chosen = self.trees[self.main], dict[Slot, int](), set[Slot](), set[Slot]()
        is_honest = self.draw.random() < 0.5
        for slot in SLOTS:
            sides = [self.trees[each][slot] for each in parents]
            began = [self.trees[each][slot] for each in bases]
            clean = [each for each in sides if not is_chosen(each, sides, began)]
            own = [self.draw.randrange(5, 9)] * 3 if slot == A else [self.draw.randrange(2)]
            if clean and (is_honest or self.draw.random() < 0.6):
                made[slot] = clean[0]
            else:
                made[slot] = self.draw.choice([now[slot]] if clean else [*sides, now[slot], *own])
            if made[slot] not in {*clean, now[slot]}:
                asked.add(slot)
            elif made[slot] not in clean:
                chosen.add(slot)
        people = {self.owners[slot] for slot in asked}
        shown = asked | {slot for slot in chosen if self.owners[slot] in people}
        judged = {slot: made[slot] for slot in shown.intersection(JUDGED)}
        if asked and (is_last or (judged and not (self.is_sound(made) and self.keeps(judged)))):
            return None
        merge = self.add(made, *parents)
        if asked:
            self.asked[merge] = {slot: made[slot] for slot in asked}
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
            approved[commit] = [Approved({slot: first[slot] for slot in made}, made, shown.__contains__)]
        before = {slot: frozenset([self.trees[self.main][slot]]) for slot in SLOTS}
        at_named = {slot: before[slot] for slot in new.slots}
        # A slot of no commit is compared elsewhere.
        is_same = all(self.trees[tip][slot] in before[slot] for slot in SLOTS if slot not in named)
        result = {slot: self.trees[tip][slot] for slot in new.slots}
        return is_same and find_part(new, at_named, result, approved, Effort()) is None


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

    def value_of(self, commit: str, slot: Slot) -> int:
        return self._history.trees[int(commit)][slot]


def step(history: History) -> None:
    """Add some commit or merge, if people approve it."""
    draw = history.draw
    some = [draw.randrange(max(0, len(history.trees) - 12), len(history.trees)) for _ in range(3)]
    match draw.choice("ppjjmmo"):
        case "p":
            state = draw.choice(sorted(history.sound))
            changes = dict(zip(JUDGED, state, strict=True)) if draw.random() < 0.8 else {}
            history.propose(some[0], {**changes, **({A: draw.randrange(3)} if draw.random() < 0.5 else {})})
        case "j":
            history.join(*some[:2])
        case "m":
            history.merge(*some[:2])
        case _:
            history.merge(*some)


def histories(seed: int, count: int) -> Iterator[tuple[History, int, bool]]:
    """Yield random histories, each with what is pushed to main, and whether that lands."""
    draw = random.Random(seed)
    states = list(product(range(2), repeat=len(JUDGED)))
    for _ in range(count):
        owners = dict(zip(SLOTS, draw.choice(OWNERS), strict=True))
        history = History(draw, owners, frozenset(draw.sample(states, draw.randint(3, 6))))
        for _ in range(draw.randint(1, 4)):
            state = draw.choice(sorted(history.sound))
            tree = {A: 0, **dict(zip(JUDGED, state, strict=True))}
            history.main = history.add(tree, *([history.main] if history.trees else []))
        for _ in range(draw.randint(1, 3)):
            for _ in range(draw.randint(4, 14)):
                step(history)
            head = len(history.trees) - 1
            is_ahead = history.main in history.ancestors(head)
            tip = head if is_ahead else history.merge(history.main, head, is_last=True)
            if tip is not None:
                lands = history.whole(tip)
                yield history, tip, lands
                history.main = tip if lands else history.main


@pytest.mark.parametrize("seed", range(500 if IS_LONG else 6))
def test_no_state_lands_that_nobody_has_approved(seed: int) -> None:
    counted = {True: 0, False: 0}
    for history, tip, lands in histories(seed, 1000):
        counted[lands] += 1
        assert not lands or history.is_sound(history.trees[tip]), history
    assert min(counted.values()) > 20


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


def test_what_an_approved_merge_leaves_out_is_a_change_on_top_of_all_that_it_joins() -> None:
    """So it meets what stands on that elsewhere as any approved change does: a guard is turned off."""
    history = scene()
    guard = approved(history, tree(a=1, guard=1), 0, asked=[A, GUARD])
    door = approved(history, tree(a=1, guard=1, door=1), guard, asked=[DOOR])
    sides = [
        approved(history, tree(a=3), 0, asked=[A]),
        approved(history, tree(a=4, guard=1), guard, asked=[A]),
    ]
    merge = approved(history, tree(a=6), *sides, asked=[A])
    off = approved(history, tree(a=6), approved(history, tree(a=6, guard=1), guard, asked=[A]), asked=[GUARD])
    tips = [history.add(tree(a=6, door=1), door, each) for each in (merge, off)]
    assert [history.whole(each) for each in (merge, *tips)] == [True, True, True]
    history.owners = {**history.owners, GUARD: "2"}
    assert [history.whole(each) for each in (merge, *tips)] == [False, False, True]


@pytest.mark.parametrize("owner", ["1", "2"])
def test_a_merge_of_several_parents_has_all_of_a_commit_or_nothing(owner: str) -> None:
    history = scene()
    history.owners = {**history.owners, GUARD: owner, DOOR: owner}
    whole = approved(history, tree(guard=1, door=1), 0, asked=[GUARD, DOOR])
    sides = [approved(history, tree(a=value), 0, asked=[A]) for value in (1, 2)]
    merge = approved(history, tree(a=3, guard=1, door=1), *sides, whole, asked=[A])
    half = approved(history, tree(a=3, door=1), *sides, whole, asked=[A])
    assert history.whole(merge)
    assert not history.whole(history.add(tree(a=3, door=1), 0, merge))
    assert history.whole(half) == (owner == "1")


def test_a_merge_of_crossing_branches_is_shown_where_their_beginnings_lead_apart() -> None:
    """From the one beginning git takes the one side, and from the other one the other."""
    history = scene()
    began = [approved(history, tree(b=value), 0, asked=[B]) for value in (1, 2)]
    crossed = [approved(history, tree(b=value), *began, asked=[B]) for value in (1, 2)]
    assert history.bases(*crossed) == began
    pairs = zip((1, 2), crossed, strict=True)
    sides = [approved(history, tree(a=value, b=value), base, asked=[A]) for value, base in pairs]
    merge = approved(history, tree(a=3, b=1), *sides, asked=[A])
    assert history.whole(merge)
    history.owners = {**history.owners, B: "2"}
    assert not history.whole(merge)


def test_where_the_sides_of_a_merge_began_is_whole_too() -> None:
    """Both sides have all of a commit, and began in a part of it: so git takes a part of what reverts it."""
    history = scene()
    first = approved(history, tree(guard=1, door=1), 0, asked=[GUARD, DOOR])
    half = history.add(tree(door=1), 0, first)
    again = [approved(history, tree(guard=1, door=1), 0, asked=[GUARD, DOOR]) for _ in range(2)]
    one, other = (history.add(tree(guard=1, door=1), half, each) for each in again)
    back = approved(history, tree(), other, asked=[GUARD, DOOR])
    sides = [
        approved(history, tree(a=1, guard=1, door=1), one, asked=[A]),
        approved(history, tree(a=2), back, asked=[A]),
    ]
    assert history.bases(*sides) == [half]
    assert not history.whole(approved(history, tree(a=3, guard=1), *sides, asked=[A]))


def test_what_a_merge_has_overwritten_has_come_with_it() -> None:
    """A door stands on a guard that is left out: both changed a file in which a merge solves a conflict."""
    history = scene()
    guard = approved(history, tree(a=1, guard=1), 0, asked=[A, GUARD])
    door = approved(history, tree(a=5, guard=1, door=1), guard, asked=[A, DOOR])
    other = approved(history, tree(a=6, guard=1), guard, asked=[A])
    merge = approved(history, tree(a=7, guard=1, door=1), door, other, asked=[A])
    left_out = history.add(tree(), 0, guard)
    assert history.whole(merge)
    assert not history.whole(approved(history, tree(a=9, door=1), left_out, merge, asked=[A]))


def test_git_joins_no_part_of_a_commit_where_one_side_has_come_back_to_the_beginning() -> None:
    """A door opens wide where debugging is off; the other side has it on, and the door as it was."""
    history = scene()
    one = approved(history, tree(b=1, door=1), 0, asked=[B, DOOR])
    wide = approved(history, tree(door=2), one, asked=[B, DOOR])
    other = approved(history, tree(b=1, door=1), 0, asked=[B, DOOR])
    back = approved(history, tree(b=1), other, asked=[DOOR])
    sides = [
        approved(history, tree(a=1, door=2), wide, asked=[A]),
        approved(history, tree(a=2, b=1), back, asked=[A]),
    ]
    assert not history.whole(approved(history, tree(a=3, b=1, door=2), *sides, asked=[A]))


def test_a_copy_of_a_commit_hides_no_part_that_git_leaves_out() -> None:
    """The copy stands on something that was left out, so one side has the first one, and the other none."""
    history = scene()
    first = approved(history, tree(b=1, guard=1), 0, asked=[B, GUARD])
    door = approved(history, tree(b=2, guard=1, door=1), first, asked=[B, DOOR])
    back = approved(history, tree(b=1, guard=1, door=1), door, asked=[B])
    other = approved(history, tree(a=1), 0, asked=[A])
    copy = approved(history, tree(a=1, b=1, guard=1), other, asked=[B, GUARD])
    sides = history.add(tree(), 0, copy), history.add(tree(b=1, guard=1, door=1), back, copy)
    assert not history.whole(approved(history, tree(a=9, door=1), *sides, asked=[A]))


def test_a_merge_comes_where_all_is_as_its_parent_has_it() -> None:
    """From one parent it turns a guard off, by commits that cannot come where a door was opened."""
    history = scene()
    guard = approved(history, tree(guard=1), 0, asked=[GUARD])
    off = approved(history, tree(b=1), guard, asked=[B, GUARD])
    last = approved(history, tree(b=2), off, asked=[B])
    whole = approved(history, tree(b=3, guard=1, door=1), 0, asked=[B, GUARD, DOOR])
    alike = approved(history, tree(b=2, guard=1, door=1), whole, asked=[B])
    one = approved(history, tree(a=1, guard=1), guard, asked=[A])
    other = approved(history, tree(a=2, b=2), last, asked=[A])
    merge = approved(history, tree(a=3, b=2), one, other, asked=[A])
    assert history.whole(merge)
    assert not history.whole(history.add(tree(a=3, b=2, door=1), merge, alike))


def test_what_stands_on_a_merge_lands_where_main_has_all_of_that() -> None:
    """A host has squashed the branch, which goes on."""
    history = scene()
    sides = [approved(history, tree(a=value), 0, asked=[A]) for value in (1, 2)]
    merge = approved(history, tree(a=3), *sides, asked=[A])
    history.main = history.add(tree(a=3), 0)
    above = approved(history, tree(a=3, b=1), merge, asked=[B])
    assert history.whole(history.add(tree(a=3, b=1), history.main, above))


@pytest.mark.parametrize("is_like_it", [False, True])
def test_a_merge_comes_before_what_changes_its_files_beside_it(is_like_it: bool) -> None:
    """By a merge, a commit turns a guard off that cannot come where a door was opened."""
    history = scene()
    guard = approved(history, tree(guard=1), 0, asked=[GUARD])
    off = approved(history, tree(a=1), guard, asked=[A, GUARD])
    value = 7 if is_like_it else 3
    whole = approved(history, tree(a=value, guard=1, door=1), 0, asked=[A, GUARD, DOOR])
    if not is_like_it:
        whole = approved(history, tree(a=7, guard=1, door=1), whole, asked=[A])
    one = approved(history, tree(a=7, guard=1), guard, asked=[A])
    merge = approved(history, tree(a=9), one, off, asked=[A])
    other = history.add(tree(a=7, guard=1, door=1), one, whole)
    assert history.whole(merge)
    assert not history.whole(history.add(tree(a=9, door=1), merge, other))


def test_who_solves_a_conflict_brings_no_files_of_others_that_exclude_each_other() -> None:
    """One commit turns a guard off, another one opens a door: both change a file of somebody else."""
    history = scene()
    history.owners = dict.fromkeys(SLOTS, "1") | {A: "2"}
    guard = approved(history, tree(guard=1), 0, asked=[GUARD])
    off = approved(history, tree(a=1), guard, asked=[A, GUARD])
    whole = approved(history, tree(a=3, guard=1, door=1), 0, asked=[A, GUARD, DOOR])
    joined = history.add(tree(a=3, guard=1, door=1), guard, whole)
    assert not history.whole(approved(history, tree(a=9, door=1), joined, off, asked=[A]))


def test_who_solves_a_conflict_with_what_has_landed_brings_no_files_of_others() -> None:
    """What a commit excludes is on main already: so it would not come there with its other file either."""
    history = scene()
    history.owners = dict.fromkeys(SLOTS, "1") | {A: "2"}
    history.main = history.add(tree(a=3, door=1), 0)
    off = approved(history, tree(a=1, guard=1), 0, asked=[A, GUARD])
    merge = approved(history, tree(a=9, guard=1, door=1), history.main, off, asked=[A])
    assert not history.whole(merge)
    history.owners[GUARD] = "2"
    assert history.whole(merge)


def test_a_merge_brings_nothing_that_stands_on_what_only_another_side_excludes() -> None:
    """One side turns a guard off, another one has it on, and goes on from there to a door."""
    history = scene()
    off = approved(history, tree(guard=2, b=1), 0, asked=[GUARD, B])
    on = approved(history, tree(guard=1, b=2), 0, asked=[GUARD, B])
    back = approved(history, tree(guard=1, b=1), on, asked=[B])
    door = approved(history, tree(guard=1, b=1, door=1), back, asked=[DOOR])
    sides = [
        approved(history, tree(a=1, guard=2, b=1), off, asked=[A]),
        approved(history, tree(a=2, guard=1, b=1), back, asked=[A]),
    ]
    history.owners = {**history.owners, GUARD: "2", B: "2"}
    merge = approved(history, tree(a=3, guard=2, b=1), *sides, asked=[A])
    assert not history.whole(history.add(tree(a=3, guard=2, b=1, door=1), merge, door))


def test_what_an_unapproved_merge_left_out_is_not_below_what_stands_on_it() -> None:
    history = scene()
    guard = approved(history, tree(guard=1), 0, asked=[GUARD])
    left_out = history.add(tree(), 0, guard)
    door = approved(history, tree(door=1), left_out, asked=[DOOR])
    assert not history.whole(door)
    assert history.whole(history.add(tree(guard=1, door=1), door, guard))


def test_who_solves_a_conflict_brings_no_part_that_a_merge_below_has_left() -> None:
    history = scene()
    whole = approved(history, tree(a=1, guard=1, door=1), 0, asked=[A, GUARD, DOOR])
    sides = [
        approved(history, tree(a=2), history.add(tree(a=1), 0, whole), asked=[A]),
        approved(history, tree(a=3), 0, asked=[A]),
    ]
    assert not history.whole(approved(history, tree(a=4), *sides, asked=[A]))
    sides[0] = approved(history, tree(a=2, guard=1, door=1), whole, asked=[A])
    assert history.whole(approved(history, tree(a=4, guard=1, door=1), *sides, asked=[A]))


def test_the_same_change_on_two_sides_needs_what_is_below_it_on_one() -> None:
    history = scene()
    below = [
        approved(history, each, 0, asked=[slot]) for each, slot in ((tree(guard=1), GUARD), (tree(b=1), B))
    ]
    one, other = (approved(history, {**history.trees[each], DOOR: 1}, each, asked=[DOOR]) for each in below)
    left_out = history.add(tree(), below[0], other)
    assert not history.whole(history.add(tree(door=1), left_out, one))
    assert history.whole(history.add(tree(guard=1, door=1), left_out, one))


def test_what_was_taken_back_has_not_landed() -> None:
    """A guard is turned on and off again, as main has it; on another side a door stands on it."""
    history = scene()
    guard = approved(history, tree(guard=1), 0, asked=[GUARD])
    sides = [approved(history, tree(guard=1, b=value), guard, asked=[B]) for value in (3, 4)]
    door = approved(history, tree(guard=1, b=2, door=1), *sides, asked=[B, DOOR])
    off = approved(history, tree(b=1), guard, asked=[GUARD, B])
    back = approved(history, tree(), off, asked=[B])
    assert history.whole(door)
    assert not history.whole(history.add(tree(b=2, door=1), back, door))


def test_the_same_change_on_both_sides_comes_once() -> None:
    """A commit was picked into another branch, and the two are merged."""
    history = scene()
    one = approved(
        history, tree(a=1, guard=1, door=1), approved(history, tree(a=1), 0, asked=[A]), asked=[GUARD, DOOR]
    )
    other = approved(
        history, tree(b=1, guard=1, door=1), approved(history, tree(b=1), 0, asked=[B]), asked=[GUARD, DOOR]
    )
    assert history.whole(history.add(tree(a=1, b=1, guard=1, door=1), one, other))
    assert not history.whole(history.add(tree(a=1, b=1, door=1), one, other))


@pytest.mark.parametrize("is_picked", [True, False])
def test_what_main_has_already_stops_nothing(*, is_picked: bool) -> None:
    """A commit was picked into main, or squashed with the one below it."""
    history = scene()
    first = approved(history, tree(guard=1), 0, asked=[GUARD])
    second = approved(history, tree(guard=2, door=1), first, asked=[GUARD, DOOR])
    if is_picked:
        first = approved(history, tree(b=1), 0, asked=[B])
        second = approved(history, tree(b=1, guard=2, door=1), first, asked=[GUARD, DOOR])
    history.main = history.add(tree(guard=2, door=1), 0)
    third = approved(history, {**history.trees[second], A: 1}, second, asked=[A])
    assert history.whole(history.add({**history.trees[third]}, history.main, third))


def test_a_branch_that_began_in_an_older_main_is_merged_with_a_newer_one() -> None:
    history = scene()
    history.main = history.add(tree(b=1), 0)
    old, new = (
        approved(history, tree(door=1), 0, asked=[DOOR]),
        approved(history, tree(b=2), history.main, asked=[B]),
    )
    assert history.whole(history.add(tree(b=2, door=1), new, old))
    assert not history.whole(history.add(tree(b=1, door=1), new, old))


class Branch:
    """Many commits, each of which makes a file of its own; every second one is a merge with main."""

    def __init__(self, count: int) -> None:
        self.slots: list[Slot] = [(RepoPath(str(number).encode()), False) for number in range(count)]
        self._names = [f"{number}{kind}" for number in range(count) for kind in ("", "m")]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def parents_of(self, commit: str) -> Sequence[str]:
        if commit.endswith("m"):
            return ["main", commit[:-1]]
        return [f"{int(commit) - 1}m"] if commit != "0" else ["main"]

    def begins_of(self, commit: str) -> Sequence[str]:
        return ["main"]

    bases_of = begins_of

    def value_of(self, commit: str, slot: Slot) -> int:
        return int(commit != "main" and int(slot[0].raw) <= int(commit.strip("m")))


@pytest.mark.parametrize(("count", "is_whole"), [(300, True), (1000, False)])
def test_how_much_is_looked_at_has_a_limit(*, count: int, is_whole: bool) -> None:
    branch = Branch(count)
    makes = {
        str(number): [Approved({slot: 0}, {slot: 1}, lambda _: False)]
        for number, slot in enumerate(branch.slots)
    }
    before, result = {slot: {0} for slot in branch.slots}, dict.fromkeys(branch.slots, 1)
    assert (find_part(branch, before, result, makes, Effort()) is None) == is_whole
