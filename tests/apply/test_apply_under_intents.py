"""Apply and `check --patch` while an intent is active: a proposal for this worktree keeps to its scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.intent_world import declare, seen
from tests.proposals import ABC, change_of, check, deletion, snapshot
from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "sub/g": ABC, "patchgate.toml": "[policy]\n"})
    return made


def test_a_patch_for_a_declared_file_is_applied(repo: Repo) -> None:
    declare(repo, "f")
    answer = repo.run("apply", "-", "--format", "json", stdin=change_of())
    assert (answer.code, answer.verdict) == (0, "accepted")
    assert {"gate": "scope", "outcome": "pass"}.items() <= answer.change["context_gates"][0].items()
    assert (repo.path / "f").read_text() == "a\nB\nc\n"


def test_a_patch_for_another_file_is_refused_and_nothing_is_written(repo: Repo) -> None:
    declare(repo, "sub/g")
    before = snapshot(repo)
    answer = repo.run("apply", "-", "--format", "json", stdin=change_of())
    assert (answer.code, answer.errors) == (1, ["scope-unexpected"])
    assert (answer.change["stage"], answer.change["code"]) == ("scope", "SCOPE_VIOLATED")
    assert snapshot(repo) == before
    assert check(repo, change_of()).errors == ["scope-unexpected"]


def test_a_patch_to_a_control_file_is_forbidden_to_an_intent(repo: Repo) -> None:
    declare(repo, "f")
    answer = check(repo, deletion(b"patchgate.toml", b"[policy]"))
    assert "scope-forbidden" in answer.errors


def test_a_patch_against_another_commit_that_is_only_judged_is_held_against_no_intent(repo: Repo) -> None:
    declare(repo, "sub/g")
    assert check(repo, change_of(), "--base", "HEAD").verdict == "accepted"
    landing = repo.run("apply", "-", "--base", "HEAD", "--format", "json", stdin=change_of())
    assert landing.errors == ["scope-unexpected"]


def test_applying_keeps_the_lease(repo: Repo) -> None:
    declare(repo, "f", ago=100)
    assert seen(repo) == 0.0
    repo.run("apply", "-", stdin=change_of())
    assert seen(repo) > 0.0
