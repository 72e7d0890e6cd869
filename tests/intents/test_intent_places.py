"""Where an intent is: a repository that was moved or copied, and what was staged or dirty when it began."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository, open_repository
from patchgate.intents.actions import clear, declare, find_intents, recover, renew
from patchgate.intents.declaration import DeclareOptions
from patchgate.intents.intent import Intent, Moment, State
from patchgate.intents.intent_file import MARKER, marked_ids
from patchgate.intents.intent_status import Caller, IntentAction, IntentOutcome
from patchgate.intents.queue import IntentQueue
from patchgate.intents.stored_intents import IntentEvent, StoredIntents
from tests.world import Repo

BOOT = "0b1c2d3e-0000-4000-8000-000000000000"


def caller(repo: Repo, seconds: float = 0) -> Caller:
    return Caller(repo.env, Moment(1_700_000_000 + seconds, BOOT, 1000 + seconds))


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def declared(repo: Repo, *allowed: str, queue: bool = False) -> IntentOutcome:
    return declare(opened(repo), DeclareOptions("the work is due", allowed, queue=queue), caller(repo))


def of(outcome: IntentOutcome) -> Intent:
    assert outcome.intent is not None
    return outcome.intent


def stored(repo: Repo) -> tuple[Intent, ...]:
    return StoredIntents(opened(repo).common_dir).all()


def begun(folder: Path) -> Repo:
    repo = Repo.create(folder)
    repo.commit({"a": "1\n", "b": "1\n"}, "Begin")
    return repo


def copied(repo: Repo, *, stays: bool) -> Repo:
    """Copy the repository, or move it, with what git keeps in it."""
    place = repo.path.with_name("copy")
    (shutil.copytree if stays else shutil.move)(str(repo.path), str(place))
    return repo.at(place)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def test_in_a_copy_nothing_is_written_to_the_repository_that_was_copied(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    intent = of(declared(repo, "a"))
    declared(repo, "a", queue=True)
    (repo.path / ".git" / "patchgate-pending").write_bytes(b"what a hook left")
    copy = copied(repo, stays=True)
    before = contents(repo.path)
    assert intent in find_intents(opened(copy), None, caller(copy))
    refused = renew(opened(copy), None, caller(copy, 1))
    assert (refused.action, refused.exit_code) == (IntentAction.REFUSED, 1)
    assert "moved or copied" in (refused.reason or "")
    assert f"intent recover {intent.id}" in (refused.hint or "")
    with pytest.raises(UndecidedError, match="moved or copied") as info:
        IntentQueue(opened(copy), caller(copy).now).save(intent, IntentEvent.RENEWED)
    assert f"intent recover {intent.id}" in (info.value.hint or "")
    taken = recover(opened(copy), intent.id, caller(copy, 2))
    assert taken.action is IntentAction.RECOVERED
    cleared = clear(opened(copy), intent.id, caller(copy, 3))
    # Who waits in the copy is of the other place as well.
    assert (cleared.action, cleared.promoted, cleared.warnings) == (IntentAction.CLEARED, (), ())
    assert contents(repo.path) == before
    assert len(stored(repo)) == 2


def test_a_repository_that_was_moved_takes_its_intents_up_again(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    repo.write("b", "dirty before\n")
    intent = of(declared(repo, "a"))
    moved = copied(repo, stays=False)
    moved.write("c", "out of scope, and made since\n")
    done = recover(opened(moved), intent.id, caller(moved, 1))
    active = of(done)
    assert (done.action, active.state) == (IntentAction.RECOVERED, State.ACTIVE)
    assert (active.git_dir, active.work_tree) == (str(moved.path / ".git"), str(moved.path))
    # It is the same worktree at another place: what was made in it since is the work's.
    assert active.dirty == intent.dirty
    assert renew(opened(moved), None, caller(moved, 2)).action is IntentAction.RENEWED
    assert not repo.path.exists()


def test_an_intent_of_a_moved_repository_can_be_cleared_at_once(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    declared(repo, "a")
    moved = copied(repo, stays=False)
    done = clear(opened(moved), None, caller(moved, 1))
    assert (done.action, done.warnings, stored(moved)) == (IntentAction.CLEARED, (), ())
    assert not (moved.path / ".git" / MARKER).exists()


def test_one_that_is_taken_into_another_worktree_binds_only_there(tmp_path: Path) -> None:
    repo = begun(tmp_path / "one")
    intent = of(declared(repo, "a"))
    moved = copied(repo, stays=False)
    moved.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    other = moved.at(tmp_path / "other")
    active = of(recover(opened(other), intent.id, caller(other, 1)))
    assert marked_ids(active.git_dir) == (intent.id,)
    assert find_intents(opened(moved), None, caller(moved, 2)) == ()
    assert find_intents(opened(other), None, caller(other, 2)) == (active,)


def test_of_a_moved_repository_it_is_told_in_words_and_documents(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    said = repo.cli("intent", "declare", "-m", "due now", "--allow", "a", "--format", "json")
    name = said.report["intent"]["id"]
    moved = copied(repo, stays=False)
    shown = moved.cli("intent", "show").out
    assert "moved or copied" in shown
    assert f"next: git patchgate intent recover {name}" in shown
    info = moved.cli("intent", "show", "--format", "json").report["intents"][0]
    assert (info["current_worktree"], info["worktree_missing"]) == (False, True)
    taken = moved.cli("intent", "recover", name)
    assert (taken.code, taken.err) == (0, "")


def test_a_worktree_that_was_removed_gives_its_live_intent_away(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    other = repo.at(tmp_path / "other")
    intent = of(declared(other, "a"))
    repo.git("worktree", "remove", "--force", str(other.path))
    assert recover(opened(repo), intent.id, caller(repo, 1)).action is IntentAction.RECOVERED


def test_a_repository_below_a_link_is_the_one_that_it_was(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(repo.path)
    intent = of(declared(repo.at(link), "a"))
    assert renew(opened(repo), intent.id, caller(repo, 1)).action is IntentAction.RENEWED


# What was there before


def test_what_was_staged_and_what_the_working_tree_had_are_both_as_before(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    repo.install()
    repo.stage({"b": "staged\n"})
    staged = repo.ask("rev-parse", ":b")
    repo.write("b", "staged\nand more\n")
    later = repo.ask("hash-object", "b")
    said = repo.cli("intent", "declare", "-m", "due now", "--allow", "a", "--format", "json")
    (intent,) = stored(repo)
    assert intent.dirty == {RepoPath(b"b"): (staged, later)}
    assert said.report["intent"]["dirty"] == [{"path": "b", "oids": [staged, later]}]
    repo.git("commit", "-q", "-m", "Commit what was staged before")
    repo.git("commit", "-q", "-a", "-m", "Commit what was changed before")
    repo.write("b", "since\n")
    assert repo.try_git("commit", "-q", "-a", "-m", "Change b since").returncode != 0


def test_a_deletion_that_was_staged_is_as_before_whatever_came_after_it(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    repo.git("rm", "-q", "--cached", "b")
    intent = of(declared(repo, "a"))
    assert intent.dirty == {RepoPath(b"b"): (None,)}
    repo.write("b", "anew\n")
    other = of(declared(repo, "c"))
    assert other.dirty == {RepoPath(b"b"): (None, repo.ask("hash-object", "b"))}
    path = RepoPath(b"b")
    assert other.is_as_before(path, None)
    assert not other.is_as_before(path, repo.ask("rev-parse", "HEAD:b"))
    assert not other.is_as_before(RepoPath(b"z"), None)


# What stands where a file belongs


def test_a_folder_where_an_intent_belongs_is_to_be_removed(tmp_path: Path) -> None:
    repo = begun(tmp_path)
    intent = of(declared(repo, "a"))
    place = repo.path / ".git" / "patchgate" / "intents" / f"{intent.id}.json"
    place.unlink()
    place.mkdir()
    for call in (
        lambda: find_intents(opened(repo), None, caller(repo)),
        lambda: clear(opened(repo), intent.id, caller(repo)),
    ):
        with pytest.raises(UndecidedError) as info:
            call()
        assert "folder" in (info.value.hint or "")
    place.rmdir()
    assert declared(repo, "a").action is IntentAction.DECLARED


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_stands_where_the_marker_belongs_is_to_be_removed(tmp_path: Path, kind: str) -> None:
    repo = begun(tmp_path)
    place = repo.path / ".git" / MARKER
    if kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(repo.path / "a")
    with pytest.raises(UndecidedError) as info:
        find_intents(opened(repo), None, caller(repo))
    assert (info.value.hint or "").startswith("remove ")


def test_a_repository_whose_path_holds_a_line_feed_is_told(tmp_path: Path) -> None:
    repo = begun(tmp_path / "two\nlines")
    for arguments in (("intent", "list"), ("check",)):
        said = repo.cli(*arguments)
        assert (said.code, said.out) == (3, "")
        assert "line feed" in said.err
        assert "not found" not in said.err
    os.rename(repo.path.parent, tmp_path / "one line")
    whole = repo.at(tmp_path / "one line" / repo.path.name)
    whole.write("fol\nder/c")
    assert "line feed" in whole.cli("intent", "list", cwd=whole.path / "fol\nder").err
    # Git's folder of a linked worktree is elsewhere, so there it may.
    whole.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "l\nf"))
    other = whole.at(tmp_path / "l\nf")
    assert opened(other).work_tree == str(other.path)
    assert other.cli("intent", "declare", "-m", "the work is due", "--allow", "a").code == 0
    assert other.cli("intent", "list").code == 0
