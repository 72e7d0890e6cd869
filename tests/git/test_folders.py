"""Folders above many paths: each is visited once, and their names have a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.errors import UndecidedError
from patchgate.git import model
from patchgate.git.model import Descent, folders_above
from patchgate.git.path import RepoPath

paths = st.lists(
    st.lists(st.sampled_from([b"a", b"b", b"", b"cc"]), min_size=1, max_size=5).map(b"/".join).map(RepoPath)
)


@given(paths)
def test_they_are_the_parents_of_all(given_paths: list[RepoPath]) -> None:
    assert folders_above(given_paths) == {above for path in given_paths for above in path.parents()}


@given(paths)
def test_each_folder_is_visited_once_after_the_one_above_it(given_paths: list[RepoPath]) -> None:
    visited: list[bytes] = []

    def step(above: bytes, folder: bytes) -> bytes:
        assert above == folder.rpartition(b"/")[0]
        visited.append(folder)
        return folder

    descent = Descent(b"", step)
    for path in given_paths:
        assert descent.at(path.parent) == path.parent
    assert len(visited) == len(set(visited))
    assert {b"", *visited} == {b"", *folders_above(given_paths)}


def test_more_names_than_the_limit_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MAX_FOLDER_BYTES", 1 + 3 + 5)
    assert len(folders_above([RepoPath(b"d/" * 3 + b"f")] * 2)) == 4
    with pytest.raises(UndecidedError, match=" 9 bytes"):
        folders_above([RepoPath(b"d/" * 3 + b"f"), RepoPath(b"e/f")])


def test_a_path_may_have_as_many_folders_as_git_accepts() -> None:
    assert len(folders_above([RepoPath(b"d/" * 2047 + b"f")])) == 2048
