"""Two intents in one worktree: which one binds a commit, and that hook, message and verification agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.intent_world import FIRST, SECOND, declare, intent_of, keep, later, made
from tests.world import Repo

pytestmark = pytest.mark.turns(3)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n", "b": "1\n", "c": "1\n"}, "First")
    repo.install()
    return repo


@pytest.fixture
def two(repo: Repo) -> Repo:
    """The first, older one allows `a`, the second `b`."""
    keep(repo, later(intent_of(repo, "a"), 60))
    declare(repo, "b", name=SECOND)
    return repo


def named(repo: Repo) -> str:
    return repo.ask("log", "-1", "--format=%(trailers:key=Patchgate-Intent,valueonly,separator=%x20)")


def bound(repo: Repo) -> str:
    """Give the intent of HEAD, of which its message and the ledger tell the same."""
    name, commits = made(repo)[-1]
    assert commits == (repo.head(),)
    assert named(repo) == name
    return name


def test_what_was_dirty_before_chooses_no_intent(repo: Repo) -> None:
    repo.write("c", "2\n")
    oid = repo.ask("hash-object", "c")
    keep(repo, later(intent_of(repo, "a", dirty={"c": oid}), 60))
    declare(repo, "b", name=SECOND, dirty={"c": oid})
    repo.stage({"a": "2\n"})
    done = repo.try_git("commit", "-q", "-m", "Change a, and what was there")
    assert (done.returncode, done.stderr) == (0, b"")
    assert bound(repo) == FIRST


@pytest.mark.parametrize("options", [["-m", "Better words"], ["-m", "Better words", "-n"], ["--no-edit"]])
def test_an_amend_of_the_message_alone_leaves_a_commit_with_its_intent(two: Repo, options: list[str]) -> None:
    two.stage({"a": "2\n"})
    two.git("commit", "-q", "-m", "Change a")
    two.git("commit", "-q", "--amend", *options)
    assert made(two)[-1] == (FIRST, (two.head(),))
    assert named(two) == ("" if "-n" in options else FIRST)


def test_an_amend_of_what_two_intents_could_have_made_stays_with_the_one_that_did(repo: Repo) -> None:
    keep(repo, later(intent_of(repo, "a"), 60))
    repo.stage({"a": "2\n"})
    repo.git("commit", "-q", "-m", "Change a")
    keep(repo, intent_of(repo, "b", related=["a"], name=SECOND))
    repo.git("commit", "-q", "--amend", "-m", "Better words")
    assert bound(repo) == FIRST
    # What is new in it binds it as ever.
    repo.stage({"b": "2\n"})
    repo.git("commit", "-q", "--amend", "-m", "Change b as well")
    assert bound(repo) == SECOND


def test_a_commit_from_before_whose_message_alone_is_amended_is_no_intents(repo: Repo) -> None:
    repo.stage({"a": "2\n"})
    repo.git("commit", "-q", "-m", "Before")
    keep(repo, later(intent_of(repo, "a"), 60))
    declare(repo, "b", name=SECOND)
    repo.git("commit", "-q", "--amend", "-m", "Better words")
    assert made(repo) == []
    # What is new in it is.
    repo.stage({"b": "2\n"})
    repo.git("commit", "-q", "--amend", "-m", "Change b as well")
    assert bound(repo) == SECOND


def test_an_empty_commit_is_the_one_that_its_message_names(two: Repo) -> None:
    two.stage({"a": "2\n"})
    two.git("commit", "-q", "-m", "Change a")
    two.git("commit", "-q", "--allow-empty", "-m", "Nothing")
    assert bound(two) == FIRST
    two.git("commit", "-q", "--allow-empty", "-m", f"Nothing\n\nPatchgate-Intent: {SECOND}")
    assert bound(two) == SECOND


def test_a_rebase_leaves_each_commit_with_its_intent(two: Repo) -> None:
    two.git("branch", "base")
    for name in ("a", "b"):
        two.stage({name: "2\n"})
        two.git("commit", "-q", "-m", f"Change {name}")
    two.git("checkout", "-q", "base")
    two.git("commit", "-q", "--allow-empty", "-m", "Meanwhile", "-n")
    two.git("checkout", "-q", "main")
    told = len(made(two))
    two.git("rebase", "-q", "base")
    first, second = two.ask("rev-list", "--reverse", "base..").split()
    assert sorted(made(two)[told:]) == [(FIRST, (first,)), (SECOND, (second,))]


def test_of_a_merge_message_and_ledger_name_the_intent_of_what_it_did_itself(two: Repo) -> None:
    two.git("branch", "theirs")
    two.stage({"a": "2\n"})
    two.git("commit", "-q", "-m", "Change a")
    two.git("checkout", "-q", "theirs")
    two.stage({"a": "3\n", "c": "3\n"})
    two.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Theirs")
    two.git("checkout", "-q", "main")
    assert two.try_git("merge", "-q", "theirs").returncode != 0
    two.stage({"a": "4\n"})
    done = two.try_git("commit", "-q", "-m", "Merge it")
    assert (done.returncode, done.stderr) == (0, b"")
    assert bound(two) == FIRST
