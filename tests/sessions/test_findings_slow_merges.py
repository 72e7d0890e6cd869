"""Merges that cross again and again keep no door busy: git's work for them has a time limit."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git import merges
from patchgate.git.repository import open_repository
from patchgate.hooks.pre_receive import judge_receive
from patchgate.hooks.reference_transaction import judge_transaction
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

LINES = 4
LEVELS = 14


@pytest.fixture
def tip(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> str:
    """A merge for which git would make thousands of others first (more than 45 s), under a low limit."""
    monkeypatch.setattr(merges, "SECONDS", 0.5)
    monkeypatch.setattr(merges, "_MORE_EACH", 0.0)
    tree = repo.ask("rev-parse", "HEAD^{tree}")

    def made(message: str, *parents: str) -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        return repo.ask("commit-tree", tree, *words, "-m", message)

    level = [made(f"Line {number}", "HEAD") for number in range(LINES)]
    for depth in range(LEVELS):
        level = [made(f"Level {depth} {number}", *level[number:], *level[:number]) for number in range(LINES)]
    return made("Merge", level[0], level[1])


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"a": "x\n"})
    return made


def require_named(error: str, repo: Repo, tip: str) -> None:
    for parent in repo.ask("rev-parse", f"{tip}^1", f"{tip}^2").split():
        assert parent[:12] in error
    assert "git rebase" in error


def test_a_check_of_such_a_merge_is_undecided_and_names_it(repo: Repo, tip: str) -> None:
    for revision in (tip, f"HEAD..{tip}"):
        answer = repo.cli("check", revision)
        assert answer.code == 3
        require_named(answer.err, repo, tip)


def test_what_is_staged_for_such_a_merge_is_undecided(repo: Repo, tip: str) -> None:
    one, other = repo.ask("rev-parse", f"{tip}^1", f"{tip}^2").split()
    repo.git("update-ref", "refs/heads/main", one)
    (repo.path / ".git" / "MERGE_HEAD").write_text(other + "\n")
    answer = repo.cli("check")
    assert answer.code == 3
    require_named(answer.err, repo, tip)


def test_a_ref_that_would_get_such_a_merge_is_undecided(repo: Repo, tip: str) -> None:
    old = repo.head()
    line = f"{old} {tip} refs/heads/main\n".encode()
    repository = open_repository(repo.env, str(repo.path))
    with pytest.raises(UndecidedError) as received:
        judge_receive(repository, line)
    with pytest.raises(UndecidedError) as moved:
        judge_transaction(repository, line, lambda: "update-ref", lambda: "update-ref")
    for caught in (received, moved):
        require_named(f"{caught.value.message} {caught.value.hint}", repo, tip)


def test_nothing_of_it_is_left_over(
    repo: Repo, tip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    assert repo.cli("check", tip).code == 3
    assert os.listdir(place) == []


def test_a_range_of_many_small_merges_is_judged(repo: Repo) -> None:
    base = repo.head()
    tree = repo.ask("rev-parse", "HEAD^{tree}")
    side = repo.ask("commit-tree", tree, "-p", base, "-m", "Side")
    tip = base
    for number in range(12):
        tip = repo.ask("commit-tree", tree, "-p", tip, "-p", side, "-m", f"Merge {number}")
    assert repo.check(f"{base}..{tip}").verdict == "accepted"
