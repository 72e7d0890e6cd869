"""Under an intent, with real hooks: what others made passes, what was made here does not, as it may come."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.intent_world import FIRST, declare, made
from tests.world import Repo

LINES = "".join(f"{number}\n" for number in range(40))


def numbered(**changed: str) -> str:
    """Give forty numbered lines, some of them changed: `l10="ten"`."""
    words = {int(name[1:]): word for name, word in changed.items()}
    return "".join(f"{words.get(number, number)}\n" for number in range(40))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with the hooks, and an intent that allows `a`."""
    found = Repo.create(tmp_path)
    found.commit({"a": "1\n", "b": "1\n"}, "First")
    found.install()
    declare(found, "a")
    return found


def on_no_branch(repo: Repo) -> str:
    """Commit something out of scope past the hooks, on a detached HEAD."""
    repo.git("switch", "-q", "--detach")
    repo.stage({"b": "2\n"})
    repo.git("commit", "-q", "-n", "-m", "Change b")
    oid = repo.head()
    repo.git("switch", "-q", "main")
    return oid


def refused(repo: Repo, *command: str) -> None:
    done = repo.try_git(*command)
    assert done.returncode != 0
    assert b"error[scope-unexpected]" in done.stderr, done.stderr


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "place", [".", "{path}", "{path}/.git", "{path}/.git/", "file://{path}", "../repo", "{link}"]
)
@pytest.mark.parametrize("is_atomic", [True, False])
def test_a_fetch_from_this_very_repository_makes_nothing_somebody_elses(
    repo: Repo, tmp_path: Path, place: str, is_atomic: bool
) -> None:
    oid = on_no_branch(repo)
    (tmp_path / "link").symlink_to(repo.path)
    url = place.format(path=repo.path, link=tmp_path / "link")
    repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    atomic = ["--atomic"] if is_atomic else []
    refused(repo, "fetch", "-q", *atomic, url, f"{oid}:refs/heads/tmp")
    assert repo.try_git("rev-parse", "-q", "--verify", "refs/heads/tmp").returncode != 0
    repo.git("fetch", "-q", url, oid)
    refused(repo, "branch", "tmp", "FETCH_HEAD")
    refused(repo, "merge", "-q", "--ff-only", "FETCH_HEAD")


def test_neither_does_a_fetch_from_another_worktree_of_it(repo: Repo, tmp_path: Path) -> None:
    oid = on_no_branch(repo)
    repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "two"), oid)
    repo.git("fetch", "-q", str(tmp_path / "two"), "HEAD")
    refused(repo, "merge", "-q", "--ff-only", "FETCH_HEAD")
    refused(repo, "branch", "tmp", "FETCH_HEAD")


def test_nor_one_from_a_bundle_or_a_copy(repo: Repo, tmp_path: Path) -> None:
    oid = on_no_branch(repo)
    repo.git("clone", "-q", "--bare", "--no-local", str(repo.path), str(tmp_path / "copy.git"))
    repo.git("push", "-q", "--no-verify", str(tmp_path / "copy.git"), f"{oid}:refs/heads/x")
    refused(repo, "fetch", "-q", str(tmp_path / "copy.git"), "x:tmp")
    repo.git("fetch", "-q", str(tmp_path / "copy.git"), "x")
    refused(repo, "branch", "tmp", "FETCH_HEAD")
    refused(repo, "merge", "-q", "--ff-only", "FETCH_HEAD")


def test_a_tag_on_what_was_made_here_makes_it_nobody_elses(repo: Repo) -> None:
    oid = on_no_branch(repo)
    repo.git("tag", "-m", "Mine", "v1", oid)
    refused(repo, "switch", "-q", "-c", "look", "v1")
    refused(repo, "merge", "-q", "--ff-only", "v1")


@pytest.fixture
def far(repo: Repo, tmp_path: Path) -> Repo:
    """A clone of the remote of `repo`, in which somebody else works."""
    other = repo.at(tmp_path / "elsewhere")
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "far.git"))
    repo.git("clone", "-q", str(tmp_path / "far.git"), str(other.path))
    repo.git("remote", "add", "origin", str(tmp_path / "far.git"))
    repo.git("fetch", "-q", "origin")
    repo.git("branch", "-q", "--set-upstream-to=origin/main")
    return other


def test_a_tag_of_somebody_else_can_be_looked_at(repo: Repo, far: Repo) -> None:
    far.commit({"b": "theirs\n"}, "Of somebody else")
    far.git("tag", "-m", "Theirs", "v1")
    far.git("push", "-q", "origin", "v1")
    repo.git("fetch", "-q", "--tags")
    repo.git("fetch", "-q", "origin")
    for command in (
        ("switch", "-q", "-c", "look", "v1"),
        ("switch", "-q", "main"),
        ("merge", "-q", "--ff-only", "v1"),
    ):
        done = repo.try_git(*command)
        assert done.returncode == 0, done.stderr
        assert b"error" not in done.stderr
    assert made(repo) == []


def before_the_intent(repo: Repo, *files: dict[str, str]) -> None:
    """Let there be commits of this person from before the intent."""
    for number, each in enumerate(files):
        repo.stage(dict(each))
        repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", f"Before the intent {number}")
    declare(repo, "a")


def test_a_pull_replays_what_was_before_also_where_upstream_changed_a_line_nearby(
    repo: Repo, far: Repo
) -> None:
    far.commit({"n": numbered()}, "Add n")
    far.git("push", "-q")
    repo.git("pull", "-q")
    far.commit({"n": numbered(l12="twelve")}, "Change 12")
    far.git("push", "-q")
    before_the_intent(repo, {"n": numbered(l10="ten")})
    done = repo.try_git("pull", "-q", "--rebase")
    assert done.returncode == 0, done.stderr
    assert b"error" not in done.stderr
    assert (repo.path / "n").read_text() == numbered(l10="ten", l12="twelve")
    assert made(repo) == []


def test_a_rebase_may_drop_what_was_nearby(repo: Repo) -> None:
    before_the_intent(
        repo, {"n": numbered()}, {"n": numbered(l9="nine")}, {"n": numbered(l9="nine", l11="eleven")}
    )
    done = repo.try_git("rebase", "-q", "-i", "HEAD~2", GIT_SEQUENCE_EDITOR="sed -i 1s/^pick/drop/")
    # Git asks a person, where the lines stand side by side.
    while done.returncode != 0:
        assert b"error[" not in done.stderr, done.stderr
        repo.stage({"n": numbered(l11="eleven")})
        done = repo.try_git("rebase", "--continue", GIT_EDITOR="true")
    assert (repo.path / "n").read_text() == numbered(l11="eleven")
    assert made(repo) == []


@pytest.mark.sweep(2)
@pytest.mark.parametrize("backend", ["merges", "apply"])
@pytest.mark.parametrize("adds", [True, False])
def test_a_conflict_that_a_person_solves_in_a_rebase_stays_what_was_before(
    repo: Repo, far: Repo, backend: str, adds: bool
) -> None:
    far.commit({"n": numbered()}, "Add n")
    far.git("push", "-q")
    repo.git("pull", "-q")
    far.commit({"n": numbered(l10="theirs")}, "Change 10")
    far.git("push", "-q")
    before_the_intent(repo, {"n": numbered(l10="mine")}, {"m": "1\n"})
    old = repo.head()
    repo.git("fetch", "-q")
    how = ["--apply"] if backend == "apply" else ["--merge"]
    assert repo.try_git("rebase", "-q", *how, "origin/main").returncode != 0
    # What else is put in meanwhile was not there before.
    repo.stage({"n": numbered(l10="both"), **({"b": "beside\n"} if adds else {})})
    done = repo.try_git("rebase", "--continue", GIT_EDITOR="true")
    if adds:
        assert done.returncode != 0
        assert b"error[scope-unexpected]" in done.stderr
        assert b"--> b" in done.stderr
        repo.git("rebase", "--abort")
        assert repo.ask("rev-parse", "main") == old
    else:
        assert done.returncode == 0, done.stderr
        assert b"error" not in done.stderr
        assert (repo.path / "n").read_text() == numbered(l10="both")
        assert repo.ask("symbolic-ref", "HEAD") == "refs/heads/main"
        assert made(repo) == []


def test_two_that_become_one_are_no_replay(repo: Repo) -> None:
    before_the_intent(repo, {"n": "1\n"}, {"n": "1\n2\n"})
    # It is told as the branch had it: every file is as before.
    done = repo.try_git("rebase", "-q", "-i", "HEAD~2", GIT_SEQUENCE_EDITOR="sed -i 2s/^pick/fixup/")
    assert done.returncode == 0, done.stderr
    assert made(repo) == [(FIRST, (repo.head(),))]
