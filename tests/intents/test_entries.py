"""Entries of an intent: which paths each takes, and whether two can take the same one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.git.path import RepoPath
from patchgate.intents.intent import can_overlap, matches, path_matcher


def path(name: str) -> RepoPath:
    return RepoPath(name.encode("utf-8"))


@pytest.mark.parametrize(
    ("one", "other", "is_so"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("src/", "src/a", True),
        ("src/", "src", False),
        ("src/", "src/deep/", True),
        ("src/", "src2/", False),
        ("src/*.py", "src/a*", True),
        ("src/*.py", "src/*.md", False),
        ("src/*.py", "*/x.py", True),
        ("*.py", "docs/", True),
        ("?", "a", True),
        ("?", "ab", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[id].tsx", "[id].tsx", True),
        ("[id].tsx", "i.tsx", True),
        ("[id].tsx", "x.tsx", False),
        ("[a-c]", "[b-d]", True),
        ("x[", "x[", True),
        ("x[!]", "x[!]", True),
        ("x[!]", "xa", False),
        ("x[]]", "x]", True),
        ("ü*", "*ü", True),
    ],
)
def test_whether_two_entries_can_take_one_path(one: str, other: str, is_so: bool) -> None:
    assert can_overlap(path(one), path(other)) is is_so
    assert can_overlap(path(other), path(one)) is is_so


SIGNS = st.text(alphabet="ab/*?[]!", min_size=1, max_size=6).map(path)
TEXTS = [path("".join(each)) for size in range(1, 5) for each in product("ab/", repeat=size)]


@given(SIGNS, SIGNS)
def test_two_entries_that_take_one_path_are_known_to_meet(one: RepoPath, other: RepoPath) -> None:
    shared = [each for each in (*TEXTS, one, other) if matches(one, each) and matches(other, each)]
    if shared:
        assert can_overlap(one, other), shared


@given(SIGNS)
def test_every_entry_takes_itself_and_meets_itself(one: RepoPath) -> None:
    assert matches(one, one)
    assert can_overlap(one, one)


@given(st.lists(SIGNS, max_size=4), SIGNS)
def test_what_is_made_of_all_entries_tells_what_each_does(entries: list[RepoPath], one: RepoPath) -> None:
    is_taken = path_matcher(entries)
    for path in (one, *TEXTS[:40]):
        assert is_taken(path) is any(matches(entry, path) for entry in entries)
