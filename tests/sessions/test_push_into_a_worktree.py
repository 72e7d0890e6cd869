"""A push into a repository whose worktree has an intent: the intent binds what its own user commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.intent_world import FIRST, declare, made
from tests.world import Repo

pytestmark = pytest.mark.turns(3)


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
        assert repo.ask("rev-parse", name) == other.head()
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


# What plumbing made here comes in by a push of this very repository.


def crafted(repo: Repo, *paths: str) -> str:
    """Make a commit of these files by plumbing alone: no reflog has it."""
    repo.stage(dict.fromkeys(paths, "2\n"))
    tree = repo.ask("write-tree")
    repo.git("reset", "-q", "--hard")
    return repo.ask("commit-tree", "-p", "HEAD", "-m", "Change", tree)


def test_what_plumbing_made_is_bound_where_it_is_pushed_from_the_same_repository(
    repo: Repo, tmp_path: Path
) -> None:
    declare(repo, "a")
    (repo.path / "folder").mkdir()
    repo.git("remote", "add", "self", str(repo.path))
    repo.git("config", "alias.p", "push")
    outside, there, git = crafted(repo, "b"), str(repo.path), str(repo.path / ".git")
    target = f"{outside}:refs/heads/fresh"
    empty = tmp_path / "empty"
    empty.mkdir()
    for command, place, environment in (
        (("push", ".", target), repo.path, {}),
        (("push", "self", target), repo.path, {}),
        (("push", f"file://{there}", target), repo.path / "folder", {}),
        (("push", there, target), repo.path / ".git", {}),
        (("-c", "x.y=z", "p", "-q", ".", target), repo.path, {}),
        (("send-pack", there, target), repo.path, {}),
        (("-C", there, "push", ".", target), empty, {}),
        (("--git-dir", git, "push", there, target), empty, {}),
        ((f"--git-dir={git}", "push", there, target), empty, {}),
        (("push", there, target), empty, {"GIT_DIR": git}),
        (("push", "--receive-pack=sh -c 'git receive-pack \"$0\"'", ".", target), repo.path, {}),
    ):
        repo.env |= environment
        done = repo.try_git(*command, cwd=place)
        for name in environment:
            del repo.env[name]
        assert (done.returncode != 0, b"scope-unexpected" in done.stderr) == (True, True), (command, done)
    within = crafted(repo, "a")
    assert repo.try_git("push", "-q", ".", f"{within}:refs/heads/within").returncode == 0
    assert made(repo) == [(FIRST, (within,))]


def test_the_limits_of_agents_hold_for_what_is_pushed_from_the_same_repository(repo: Repo) -> None:
    names = [f"c{number}" for number in range(6)]
    declare(repo, *names)
    done = repo.try_git("push", "-q", ".", f"{crafted(repo, *names)}:refs/heads/fresh")
    assert done.returncode != 0
    assert b"max-files" in done.stderr


def test_a_skip_records_what_is_pushed_from_the_same_repository_under_its_intent(repo: Repo) -> None:
    declare(repo, "a")
    outside = crafted(repo, "b")
    repo.env["PATCHGATE_SKIP"] = "it is judged elsewhere"
    assert repo.try_git("push", "-q", ".", f"{outside}:refs/heads/fresh").returncode == 0
    assert made(repo) == [(FIRST, (outside,))]


def test_the_intent_of_the_worktree_that_pushes_binds_what_it_brings_into_another(repo: Repo) -> None:
    linked = repo.at(repo.path.parent / "linked")
    repo.git("worktree", "add", "-q", "-b", "work", str(linked.path))
    declare(linked, "a")
    outside = crafted(linked, "b")
    for url in (".", str(repo.path), str(repo.path / ".git")):
        done = linked.try_git("push", "-q", url, f"{outside}:refs/heads/fresh")
        assert (done.returncode != 0, b"scope-unexpected" in done.stderr) == (True, True), (url, done)
    # A worktree without an intent pushes what it made.
    assert repo.try_git("push", "-q", ".", f"{crafted(repo, 'c')}:refs/heads/fresh").returncode == 0


def test_a_push_of_another_repository_is_free_wherever_it_is_made(repo: Repo, tmp_path: Path) -> None:
    inside = repo.at(repo.path / "inside")
    repo.git("clone", "-q", str(repo.path), str(inside.path))
    other = clone(repo)
    declare(repo, "a")
    for number, each in enumerate((inside, other)):
        each.commit({"b": f"{number}\n"}, "Change b")
        done = each.try_git("push", "-q", "origin", f"HEAD:refs/heads/x{number}")
        assert done.returncode == 0, done.stderr
    git = str(other.path / ".git")
    other.commit({"b": "9\n"}, "Change b")
    done = repo.try_git(f"--git-dir={git}", "push", "-q", "origin", "HEAD:refs/heads/y")
    assert done.returncode == 0, done.stderr
    other.commit({"b": "10\n"}, "Change b")
    other.env["PATCHGATE_SKIP"] = "it is judged elsewhere"
    assert other.try_git("push", "-q", "origin", "HEAD:refs/heads/z").returncode == 0
    assert made(repo) == []
