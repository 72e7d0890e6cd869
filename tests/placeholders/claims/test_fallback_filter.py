"""The way over all tracked files: it yields what a look at each would, whatever the pieces are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.placeholders.claims.claim import SkipReason
from patchgate.placeholders.claims.claim_scan import HEAVY_FOLDERS, FallbackFilter, excluded_folder
from patchgate.policy.claims_settings import suffix_test

ALLOWED = suffix_test((".md", ""))


@pytest.mark.parametrize("folder", [b".github", b"src/x.egg-info/y", b"a/build/b", b".h"])
def test_what_is_passed_by_is_a_folder_that_is_hidden_or_heavy_or_lies_in_one(folder: bytes) -> None:
    """C13."""
    assert excluded_folder(folder) is not None
    selection = FallbackFilter(ALLOWED)
    assert list(selection.select([[folder + b"/a.md", folder + b"/b.md"]])) == []
    assert selection.skipped == {SkipReason.EXCLUDED: 2}


@pytest.mark.parametrize("folder", [b"", b"src/builds", b"src/build.md", b"x"])
def test_what_is_called_nearly_so_is_not(folder: bytes) -> None:
    assert excluded_folder(folder) is None
    name = folder + b"/a.md" if folder else b"a.md"
    assert list(FallbackFilter(ALLOWED).select([[name]])) == [name]


PARTS = st.sampled_from(["a", "b.md", "build", "build.md", "build0", ".h", "vendor", "vendor-x", "z.go", "z"])
NAMES = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: "/".join(parts).encode())


@given(st.lists(NAMES, max_size=30), st.sets(NAMES, max_size=8), st.integers(1, 7))
def test_a_walk_gives_what_looking_at_each_name_would(
    listed: list[bytes], known: set[bytes], size: int
) -> None:
    """C13, C30: each name once, and what somebody else counts neither given nor counted."""
    names = sorted(set(listed))
    pieces = [names[start : start + size] for start in range(0, len(names), size)]
    selection = FallbackFilter(ALLOWED, known)
    found = list(selection.select(pieces))
    rest = [name for name in names if name not in known]
    kept = [name for name in rest if excluded_folder(name.rpartition(b"/")[0]) is None]
    assert found == [name for name in kept if ALLOWED(name)]
    expected = {SkipReason.EXCLUDED: len(rest) - len(kept), SkipReason.SUFFIX: len(kept) - len(found)}
    assert selection.skipped == +Counter(expected)


def test_a_name_that_is_listed_twice_is_given_once() -> None:
    selection = FallbackFilter(ALLOWED)
    assert list(selection.select([[b"a.md", b"a.md"], [b"a.md", b"b.go", b"b.go", b"c.md"]])) == [
        b"a.md",
        b"c.md",
    ]


def test_a_record_may_hold_more_than_a_name() -> None:
    selection = FallbackFilter(ALLOWED, {b"build/a.md"})
    records = [b"1\ta.md", b"2\tbuild/a.md", b"3\tbuild/b.md", b"4\tc.md"]
    assert list(selection.select([records], lambda record: record.partition(b"\t")[2])) == [
        b"1\ta.md",
        b"4\tc.md",
    ]
    assert selection.skipped == {SkipReason.EXCLUDED: 1}


class Counted:
    """A test of names that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, record: bytes) -> bytes:
        self.asked += 1
        return record


@pytest.mark.parametrize("folder", sorted(HEAVY_FOLDERS)[:3])
def test_a_folder_that_is_passed_by_costs_hardly_more_than_one_file(folder: bytes) -> None:
    """Its end is found by halving, however many files of it somebody else reads."""
    names = [b"%s/%05d.md" % (folder, number) for number in range(20_000)]
    others = {b"other/%05d.md" % number for number in range(5_000)}
    names_of = Counted()
    selection = FallbackFilter(ALLOWED, {names[7], *others})
    assert list(selection.select([names], names_of)) == []
    assert selection.skipped == {SkipReason.EXCLUDED: 19_999}
    assert names_of.asked < 100


def test_a_walk_asks_for_no_more_than_is_wanted() -> None:
    """C3."""
    asked: list[int] = []

    def pieces() -> Iterator[list[bytes]]:
        for number in range(100):
            asked.append(number)
            yield [b"%03d.md" % number]

    assert len(list(islice(FallbackFilter(ALLOWED).select(pieces()), 5))) == 5
    assert len(asked) == 5
