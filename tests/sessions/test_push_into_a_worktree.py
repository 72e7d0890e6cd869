"""A push into a repository whose worktree has an intent: the intent binds what its own user commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.intent_world import declare, made
from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n", "b": "1\n"}, "First")
    repo.install()
    return repo


def clone(repo: Repo, source: str = "repo") -> Repo:
    other = repo.at(repo.path.parent / "other")
    repo.git("clone", "-q", source, str(other.path), cwd=repo.path.parent)
    return other


def test_a_push_into_a_checked_out_repository_never_meets_its_scope(repo: Repo) -> None:
    repo.git("config", "receive.denyCurrentBranch", "updateInstead")
    other = clone(repo)
    declare(repo, "a")
    # Six files are too many for an agent, whose limits hold for commits under an intent.
    other.commit({**{f"c{number}": "1\n" for number in range(6)}, "b": "2\n"}, "Change b")
    for name, skips in (("main", False), ("fresh", False), ("skipped", True)):
        if skips:
            other.env["PATCHGATE_SKIP"] = "it is judged elsewhere"
        done = other.try_git("push", "-q", "origin", f"HEAD:{name}")
        assert (done.returncode, b"scope" in done.stderr) == (0, False), done.stderr
        assert repo.ask("rev-parse", name) == other.ask("rev-parse", "HEAD")
    assert made(repo) == []
    # The policy still judges what is pushed, and the intent what is committed here.
    repo.stage({"b": "3\n"})
    assert repo.try_git("commit", "-q", "-m", "Change b here").returncode == 1


def test_a_damaged_record_of_an_intent_does_not_stop_a_push_into_its_repository(repo: Repo) -> None:
    other = clone(repo)
    intent = declare(repo, "a")
    (repo.path / ".git/patchgate/intents" / f"{intent.id}.json").write_text("damaged")
    other.commit({"b": "2\n"}, "Change b")
    assert other.try_git("push", "-q", "origin", "HEAD:fresh").returncode == 0


def test_a_push_into_a_bare_repository_never_meets_the_scope_of_its_worktrees(
    repo: Repo, tmp_path: Path
) -> None:
    bare = repo.at(tmp_path / "bare.git")
    repo.git("clone", "-q", "--bare", ".", str(bare.path))
    linked = bare.at(tmp_path / "linked")
    bare.git("worktree", "add", "-q", "-b", "work", str(linked.path))
    linked.install()
    declare(linked, "a")
    other = clone(repo, str(bare.path))
    other.commit({"b": "2\n"}, "Change b")
    for name in ("main", "fresh"):
        done = other.try_git("push", "-q", "origin", f"HEAD:{name}")
        assert done.returncode == 0, done.stderr
    linked.stage({"b": "3\n"})
    assert linked.try_git("commit", "-q", "-m", "Change b here").returncode == 1


def test_what_was_made_here_is_bound_though_it_is_pushed_into_its_own_repository(repo: Repo) -> None:
    declare(repo, "a")
    repo.git("checkout", "-q", "--detach")
    repo.stage({"b": "2\n"})
    repo.git("commit", "-q", "--no-verify", "-m", "Change b")
    done = repo.try_git("push", "-q", ".", "HEAD:refs/heads/fresh")
    assert done.returncode != 0
    assert b"scope-unexpected" in done.stderr
