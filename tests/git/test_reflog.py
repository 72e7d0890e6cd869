"""What a reflog shows as made in its worktree: every way of git to commit, and none that only moves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git import refs as reflog
from patchgate.git.refs import commits_made_in, git_dirs
from patchgate.git.repository import open_repository
from tests.world import Repo

OLD, NEW = "1" * 40, "2" * 40
LINES = "".join(f"{number}\n" for number in range(40))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a side branch that does not conflict with main."""
    made = Repo.create(tmp_path)
    made.commit({"a": LINES}, "First")
    made.git("switch", "-q", "-c", "side")
    made.commit({"b": LINES}, "Side: one")
    made.commit({"c": LINES}, "Side: two")
    made.git("switch", "-q", "main")
    made.commit({"a": LINES + "end\n"}, "Main")
    return made


def git_dir(repo: Repo) -> str:
    return repo.ask("rev-parse", "--absolute-git-dir")


def made(repo: Repo, since: float = 0.0) -> dict[str, str]:
    return commits_made_in(git_dir(repo), since)


def newly(repo: Repo, *commands: tuple[str, ...], todo: str = "") -> list[tuple[str, str]]:
    """Run git commands; give what is made by them: the action, and the subject of the commit."""
    before = made(repo)
    for command in commands:
        repo.git(*command, GIT_EDITOR="true", GIT_SEQUENCE_EDITOR=f"sed -i {todo}" if todo else "true")
    found = {oid: action for oid, action in made(repo).items() if oid not in before}
    assert repo.head() in made(repo)
    return [(action, repo.ask("log", "-1", "--format=%s", oid)) for oid, action in found.items()]


def test_commits_of_every_kind_are_made(repo: Repo) -> None:
    assert [*made(repo).values()] == ["commit (initial)", "commit", "commit", "commit"]
    repo.stage({"n": "1\n"})
    # What the subject says is no action.
    assert newly(repo, ("commit", "-q", "-m", "checkout: moving from a to b")) == [
        ("commit", "checkout: moving from a to b")
    ]
    amend = ("commit", "-q", "--amend", "-m", "Better")
    assert newly(repo, amend) == [("commit (amend)", "Better")]
    assert newly(repo, ("merge", "-q", "--no-ff", "-m", "Join", "side")) == [("merge", "Join")]
    assert newly(repo, ("revert", "--no-edit", "-m1", "HEAD"))[0][0] == "revert"
    assert newly(repo, ("cherry-pick", "side~1")) == [("cherry-pick", "Side: one")]


def test_a_merge_a_pick_and_a_revert_that_a_person_finished_are_made(repo: Repo) -> None:
    repo.stage({"b": "other\n"})
    repo.git("commit", "-q", "-m", "Other")
    assert repo.try_git("merge", "-q", "side").returncode != 0
    repo.git("add", "b")
    assert newly(repo, ("commit", "-q", "-m", "Join"))[0] == ("commit (merge)", "Join")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    assert repo.try_git("cherry-pick", "side~1").returncode != 0
    repo.stage({"b": "neither\n"})
    assert newly(repo, ("cherry-pick", "--continue"))[0][0] in {"commit (cherry-pick)", "cherry-pick"}


def test_what_a_mailed_patch_becomes_is_made(repo: Repo, tmp_path: Path) -> None:
    patch = tmp_path / "patch"
    patch.write_bytes(repo.git("format-patch", "-2", "--stdout", "side"))
    assert newly(repo, ("am", "-q", str(patch))) == [("am", "Side: one"), ("am", "Side: two")]


@pytest.mark.parametrize("backend", ["--merge", "--apply"])
def test_what_a_rebase_makes_anew_is_made(repo: Repo, backend: str) -> None:
    found = newly(repo, ("switch", "-q", "side"), ("rebase", "-q", backend, "main"))
    assert [subject for _, subject in found] == ["Side: one", "Side: two"]
    assert {action for action, _ in found} == {"rebase (pick)"}


def test_every_step_of_a_rebase_by_hand_is_told(repo: Repo) -> None:
    repo.git("switch", "-q", "side")
    steps = newly(repo, ("rebase", "-q", "-i", "main"), todo="-e 1s/^pick/reword/ -e 2s/^pick/squash/")
    assert {action for action, _ in steps} >= {"rebase (reword)", "rebase (squash)"}
    repo.stage({"d": "1\n"})
    repo.git("commit", "-q", "--fixup=HEAD")
    autosquash = ("rebase", "-q", "-i", "--autosquash", "main")
    assert "rebase (fixup)" in {action for action, _ in newly(repo, autosquash)}
    repo.git("rebase", "-q", "-i", "HEAD~1", GIT_SEQUENCE_EDITOR="sed -i 1s/^pick/edit/")
    repo.stage({"d": "2\n"})
    assert {action for action, _ in newly(repo, ("rebase", "--continue"))} <= {
        "rebase (continue)",
        "rebase (edit)",
        "commit (amend)",
    }


def test_a_conflict_that_was_solved_in_a_rebase_is_made(repo: Repo) -> None:
    repo.commit({"b": "other\n"}, "Other")
    repo.git("switch", "-q", "side")
    assert repo.try_git("rebase", "-q", "main").returncode != 0
    repo.stage({"b": "neither\n"})
    found = newly(repo, ("rebase", "--continue"))
    assert ("rebase (continue)", "Side: one") in found


@pytest.mark.parametrize("how", [("--rebase",), ("--no-rebase", "--no-edit"), ("-q", "--rebase=merges")])
def test_what_a_pull_makes_is_made_and_what_it_brings_is_not(
    repo: Repo, tmp_path: Path, how: tuple[str, ...]
) -> None:
    # A colon in a URL is no end of the action.
    place = f"file://{tmp_path}/far:x: y"
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "far:x: y"))
    far = repo.at(tmp_path / "elsewhere")
    repo.git("clone", "-q", place, str(far.path))
    theirs = far.commit({"z": "1\n"}, "Of somebody else")
    far.git("push", "-q", "origin", "main")
    mine = repo.commit({"y": "1\n"}, "Mine")
    assert newly(repo, ("pull", "-q", *how, place, "main"))[0][0] in {"pull (pick)", "pull"}
    assert theirs not in made(repo)
    assert mine in made(repo)


def test_what_only_moves_makes_nothing(repo: Repo, tmp_path: Path) -> None:
    theirs = repo.ask("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "commit: of nobody")
    moves: list[tuple[str, ...]] = [
        ("merge", "-q", "--ff-only", theirs),
        ("reset", "-q", "--hard", "HEAD~1"),
        ("checkout", "-q", theirs),
        ("switch", "-q", "main"),
        ("update-ref", "-m", "rebase (finish): commit: x", "HEAD", theirs),
        ("reset", "-q", "--soft", "HEAD~1"),
        ("pull", "-q", "--ff-only", ".", theirs),
        ("branch", "-m", "main", "other"),
        ("rebase", "-q", "--force-rebase", "HEAD"),
        ("stash", "push", "-q", "-u"),
    ]
    repo.write("dirt")
    before = made(repo)
    for move in moves:
        repo.git(*move)
    assert repo.head() == theirs
    assert made(repo) == before
    clone = repo.at(tmp_path / "clone")
    repo.git("clone", "-q", str(repo.path), str(clone.path))
    assert made(clone) == {}


def test_a_worktree_has_its_own(repo: Repo, tmp_path: Path) -> None:
    other = repo.at(tmp_path / "two")
    repo.git("worktree", "add", "-q", "--detach", str(other.path))
    assert made(other) == {}
    theirs = other.commit({"x": "1\n"}, "There")
    assert made(other) == {theirs: "commit"}
    assert theirs not in made(repo)
    opened = open_repository(repo.env, str(other.path))
    assert git_dirs(opened) == (git_dir(repo), git_dir(other))


def line(new: str, stamp: int | str, message: str = "commit: x", old: str = OLD) -> str:
    return f"{old} {new} A U Thor <author@example.com> {stamp} +0000\t{message}\n"


def write(folder: Path, *lines: str | bytes) -> str:
    (folder / "logs").mkdir(exist_ok=True)
    raw = b"".join(each if isinstance(each, bytes) else each.encode() for each in lines)
    (folder / "logs/HEAD").write_bytes(raw)
    return str(folder)


def test_only_what_is_as_new_as_asked_for_counts(tmp_path: Path) -> None:
    log = write(tmp_path, line("a" * 40, 99), line("b" * 40, 100), line("c" * 40, 101))
    assert [*commits_made_in(log, 100.9)] == ["b" * 40, "c" * 40]
    assert [*commits_made_in(log, 101)] == ["c" * 40]
    assert commits_made_in(log, 102) == {}


def test_what_comes_later_in_the_log_is_no_older_whatever_date_it_claims(tmp_path: Path) -> None:
    log = write(tmp_path, line("a" * 40, 5), line("b" * 40, 100, "checkout: moving"), line("c" * 40, 7))
    assert [*commits_made_in(log, 100)] == ["c" * 40]


def test_what_git_would_pass_by_is_passed_by(tmp_path: Path) -> None:
    good = line(NEW, 100)
    bad: list[str | bytes] = [
        b"\0" * 80 + b"\n",
        "\n",
        line("2" * 39, 100),
        line("g" * 40, 100),
        line(NEW, "x"),
        line("3" * 64, 100),
        good[:-1].replace("\t", " ") + "\n",
        line("0" * 40, 100),
        line("4" * 40, 100, "commit"),
        line("5" * 40, 100, "commit (amend"),
        line("6" * 40, 100, "committed: x"),
        line("7" * 40, 100, "commit (new): x", old="7" * 40),
    ]
    assert commits_made_in(write(tmp_path, *bad), 0) == {}
    assert commits_made_in(write(tmp_path, *bad, good, line("8" * 40, 100)[:60]), 0) == {NEW: "commit"}
    # In a name there may be anything, and a subject has any bytes.
    odd = f"{OLD} {NEW} A > B <x> 5 +0000 <> ".encode() + b"100 -0730\tcommit: \xff\t\r\n"
    assert commits_made_in(write(tmp_path, odd), 50) == {NEW: "commit"}
    long = f"{'1' * 64} {'2' * 64} A <a> 100 +0000\tam: x\n"
    assert commits_made_in(write(tmp_path, long), 0) == {"2" * 64: "am"}


def test_no_reflog_shows_nothing_and_one_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert commits_made_in(str(tmp_path), 0) == {}
    assert commits_made_in(str(tmp_path / "gone"), 0) == {}
    (tmp_path / "logs").mkdir()
    os.mkfifo(tmp_path / "logs/HEAD")
    with pytest.raises(UndecidedError, match="logs/HEAD"):
        commits_made_in(str(tmp_path), 0)
    (tmp_path / "logs/HEAD").unlink()
    (tmp_path / "logs/HEAD").mkdir()
    with pytest.raises(UndecidedError, match="logs/HEAD") as told:
        commits_made_in(str(tmp_path), 0)
    assert told.value.hint


def test_of_a_very_long_one_the_end_is_read_if_it_reaches_back_far_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line(f"{number:040x}", number) for number in range(1, 100)]
    log = write(tmp_path, *lines)
    monkeypatch.setattr(reflog, "_MOST_BYTES", 20 * len(lines[-1]))
    assert [*commits_made_in(log, 90)] == [f"{number:040x}" for number in range(90, 100)]
    with pytest.raises(UndecidedError, match="too long") as told:
        commits_made_in(log, 50)
    assert told.value.hint
