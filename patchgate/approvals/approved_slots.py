"""What approved commits make of paths: the words in which it is said what lands of them.

Each commit that counts has a number, and so a bit: an integer stands for some commits.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Protocol

from patchgate.git.path import RepoPath
from patchgate.values import dataclass

# Slots of merges that are looked at; a lookup takes some microseconds.
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


@dataclass(frozen=True, slots=True)
class Made:
    """What some commits make of a slot: a bit for each of them, what the first began with, and their end.

    `broken`: they do not follow each other.
    """

    commits: int
    began: Hashable
    value: Hashable
    broken: MissingPart | None = None


Side = Mapping[Slot, Made]
"""What a parent of a merge has at each slot that counts there."""


class Effort:
    """How much may still be looked at, for all refs of a push."""

    def __init__(self, most: int = _MOST_WORK) -> None:
        self._left = most

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self._left < 0

    def spend(self, amount: int) -> bool:
        """Return whether there was as much left."""
        self._left -= amount
        return self._left >= 0


def union(commits: Iterable[int]) -> int:
    """Return all of some commits."""
    return functools.reduce(operator.or_, commits, 0)


def numbers_of(commits: int) -> Iterator[int]:
    """Yield the numbers of some commits."""
    while commits:
        yield first_number(commits)
        commits &= commits - 1


def first_number(commits: int) -> int:
    """Return the number of the first of some commits."""
    return (commits & -commits).bit_length() - 1


class NumberedCommits:
    """The commits that touch slots: each has a number, and so a bit."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._makes: list[Mapping[Slot, Hashable]] = []
        self._below: list[int] = []

    def add(self, commit: str, makes: Mapping[Slot, Hashable], below: int) -> int:
        """Return the bit of another commit, on top of others."""
        self._names.append(commit)
        self._makes.append(makes)
        self._below.append(below)
        return 1 << len(self._names) - 1

    def below(self, commits: int) -> int:
        """Return those that must come before some commits."""
        return union(self._below[number] for number in numbers_of(commits))

    def makes(self, number: int) -> Mapping[Slot, Hashable]:
        """Return what a commit makes of slots."""
        return self._makes[number]

    def part(self, number: int, slot: Slot | None = None) -> MissingPart:
        """Name a commit with a slot, or with the first that it touches."""
        return MissingPart(self._names[number], (slot or min(self._makes[number]))[0])

    def last_part(self, slot: Slot) -> MissingPart:
        """Name the last commit that touches a slot, if there is any."""
        numbers = reversed(range(len(self._names)))
        number = next((each for each in numbers if slot in self._makes[each]), None)
        return MissingPart("", slot[0]) if number is None else self.part(number, slot)
