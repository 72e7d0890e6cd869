"""Which results whole approved commits lead to: compared with all orders that there are."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from patchgate.approvals.whole_commits import Effort, Slot, WholeCommit, find_missing
from patchgate.git.path import RepoPath

SLOTS: list[Slot] = [(RepoPath(name), False) for name in (b"a", b"b", b"c")]
State = tuple[int, ...]


def commit(name: str, begins: Mapping[Slot, int], makes: Mapping[Slot, int], *below: str) -> WholeCommit:
    return WholeCommit(name, {slot: {value} for slot, value in begins.items()}, makes, frozenset(below))


def random_commits(draw: random.Random) -> list[WholeCommit]:
    made: list[WholeCommit] = []
    for number in range(draw.randint(1, 5)):
        slots = draw.sample(SLOTS, draw.randint(1, 3))
        begins = {slot: draw.randrange(3) for slot in slots}
        makes = {slot: (begins[slot] + draw.randint(1, 2)) % 3 for slot in slots}
        below = [each.commit for each in made if draw.random() < 0.3]
        made.append(commit(str(number), begins, makes, *below))
    return made


def reachable(start: State, commits: list[WholeCommit]) -> set[State]:
    """Try every order of every choice of commits."""
    found: set[tuple[State, frozenset[str]]] = set()
    waiting = [(start, frozenset[str]())]
    while waiting:
        state, done = waiting.pop()
        if (state, done) in found:
            continue
        found.add((state, done))
        for each in commits:
            values = dict(zip(SLOTS, state, strict=True))
            is_made = all(values[slot] == made for slot, made in each.makes.items())
            fits = is_made or all(values[slot] in begins for slot, begins in each.begins.items())
            if each.commit not in done and each.below <= done and fits:
                after = {**values, **each.makes}
                waiting.append((tuple(int(str(after[slot])) for slot in SLOTS), done | {each.commit}))
    return {state for state, _ in found}


@pytest.mark.parametrize("seed", range(20))
def test_a_result_is_whole_exactly_if_some_order_makes_it(seed: int) -> None:
    draw = random.Random(seed)
    counted = {True: 0, False: 0}
    for _ in range(100):
        commits = random_commits(draw)
        start: State = (0, 0, 0)
        there = reachable(start, commits)
        for result in {tuple(draw.randrange(3) for _ in SLOTS) for _ in range(6)} | {max(there)}:
            before = {slot: frozenset([value]) for slot, value in zip(SLOTS, start, strict=True)}
            # A slot of no commit is compared elsewhere.
            named = {slot for each in commits for slot in each.makes}
            wanted = {slot: value for slot, value in zip(SLOTS, result, strict=True) if slot in named}
            missing = find_missing(before, wanted, commits, Effort())
            is_there = any(
                all(dict(zip(SLOTS, each, strict=True))[s] == v for s, v in wanted.items()) for each in there
            )
            counted[is_there] += 1
            assert (missing is None) == is_there
            if missing is not None:
                blamed = next(each for each in commits if each.commit == missing.commit)
                assert (missing.path, False) in blamed.makes
    assert min(counted.values()) > 50


def test_a_merge_comes_instead_of_what_it_settles() -> None:
    a, b, _ = SLOTS
    one, two = commit("1", {a: 0}, {a: 1}), commit("2", {a: 0, b: 0}, {a: 2, b: 2})
    merges = [
        WholeCommit("3", {a: {1}, b: {0}}, {a: 3, b: 2}, frozenset("1"), settles=frozenset("12")),
        WholeCommit("3", {a: {2}}, {a: 3}, frozenset("2"), settles=frozenset("12")),
    ]
    above = commit("4", {b: 2}, {b: 4}, "1", "2", "3")
    before: dict[Slot, frozenset[int]] = {a: frozenset([0]), b: frozenset([0])}
    assert find_missing(before, {a: 3, b: 4}, [one, two, *merges, above], Effort()) is None
    for result in ({a: 1, b: 4}, {a: 3, b: 0}):
        assert find_missing(before, result, [one, two, *merges, above], Effort()) is not None


def test_what_a_commit_begins_with_nothing_is_there_already() -> None:
    a, b, _ = SLOTS
    merge = WholeCommit("1", {a: {0}, b: frozenset()}, {a: 1, b: 2}, frozenset())
    for value in (0, 2):
        before: dict[Slot, frozenset[int]] = {a: frozenset([0]), b: frozenset([value])}
        assert (find_missing(before, {a: 1, b: value}, [merge], Effort()) is None) == (value == 2)


def test_of_many_commits_that_no_order_joins_not_all_orders_are_tried() -> None:
    a, b, c = SLOTS
    many = [commit(str(number), {c: number}, {c: number + 1}) for number in range(300)]
    crossed = [commit("a", {a: 0}, {a: 1}), commit("b", {b: 0, a: 5}, {b: 1, a: 6})]
    before: dict[Slot, frozenset[int]] = {slot: frozenset([0]) for slot in SLOTS}
    assert find_missing(before, {a: 1, b: 0, c: 300}, many + crossed, Effort()) is None
    assert find_missing(before, {a: 1, b: 1, c: 300}, many + crossed, Effort()) is not None
