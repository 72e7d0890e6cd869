"""What is committed while an intent waits: refused where another has the file, and verified later."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from patchgate.intents.intent import State
from patchgate.intents.stored_intents import StoredIntents
from tests.intent_world import FIRST, SECOND, common_dir, declare, intent_of, keep, later, made
from tests.verify.verify_world import Workshop
from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A worktree whose intent waits for `a`, which one of another worktree has."""
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n", "b": "1\n", "c": "1\n"}, "First")
    repo.install()
    repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    declare(repo.at(tmp_path / "other"), "a")
    keep(repo, later(intent_of(repo, "a", "b", name=SECOND, state=State.QUEUED), 60))
    return repo


def refused(repo: Repo, files: dict[str, str], *options: str) -> str:
    """Try to commit files, which must be refused; take them back, and give what was said."""
    head = repo.head()
    repo.stage(files)
    done = repo.try_git("commit", "-q", "-m", "Change it", *options)
    assert (done.returncode != 0, repo.head()) == (True, head)
    repo.git("reset", "-q", "--hard")
    return done.stderr.decode() + done.stdout.decode()


def test_while_it_waits_commits_touch_only_those_of_its_files_that_no_other_has(repo: Repo) -> None:
    for options in ((), ("-n",)):
        said = refused(repo, {"a": "2\n"}, *options)
        assert f"error[scope-unexpected]: {FIRST} " in said
        assert "--> a" in said
        said = refused(repo, {"c": "2\n"}, *options)
        assert f"error[scope-unexpected]: {SECOND} " in said
        assert "--> c" in said
    repo.stage({"b": "2\n"})
    done = repo.try_git("commit", "-q", "-m", "Change b")
    assert (done.returncode, b"intent-queued" in done.stdout + done.stderr) == (0, True)
    assert made(repo) == [(SECOND, (repo.head(),))]
    assert repo.ask("log", "-1", "--format=%(trailers:key=Patchgate-Intent,valueonly)") == SECOND


def test_a_file_that_is_cleared_is_free_before_anybody_looks(repo: Repo) -> None:
    StoredIntents(common_dir(repo)).remove(FIRST)
    repo.stage({"a": "2\n"})
    assert repo.try_git("commit", "-q", "-m", "Change a").returncode == 0


def test_one_whose_worktree_was_deleted_has_no_files(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "other").rename(tmp_path / "elsewhere")
    repo.stage({"a": "2\n"})
    assert repo.try_git("commit", "-q", "-m", "Change a").returncode == 0
    # A locked worktree may come back: git keeps it, and so does its intent.
    (Path(common_dir(repo)) / "worktrees" / "other" / "locked").touch()
    assert f"error[scope-unexpected]: {FIRST} " in refused(repo, {"a": "3\n"})


def test_beside_an_active_intent_the_one_that_waits_binds_what_it_alone_allows(repo: Repo) -> None:
    declare(repo, "c", name="i-0000000003")
    for name, owner in (("c", "i-0000000003"), ("b", SECOND)):
        repo.stage({name: "2\n"})
        repo.git("commit", "-q", "-m", f"Change {name}")
        assert made(repo)[-1] == (owner, (repo.head(),))
    said = refused(repo, {"b": "3\n", "c": "3\n"})
    assert "error[scope-unexpected]: i-0000000003 does not allow " in said
    assert "--> b" in said


def test_where_the_other_intents_cannot_be_read_nothing_is_free(repo: Repo) -> None:
    (Path(common_dir(repo)) / "patchgate" / "intents" / f"{FIRST}.json").write_text("damaged\n")
    repo.stage({"b": "2\n"})
    assert repo.check().verdict == "undecided"
    # Its own intent is not what is damaged.
    info = repo.cli("verify", "--format", "json", "-q").report
    assert (info["intent"], FIRST in info["reason"]) == (SECOND, False)


def test_what_was_committed_while_an_intent_waited_is_verified_when_it_is_active(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    shop.install()
    shop.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    first = shop.cli("intent", "declare", "-m", "due now", "--allow", "a.py", cwd=tmp_path / "other")
    assert first.code == 0, first.err
    mine = shop.declare("a.py", "b.py", more=("--queue",))
    shop.stage({"b.py": "BAD\n"})
    shop.git("commit", "-q", "-m", "Make it worse")
    # Also what slips past every hook; git dates it by the clock, as outside of tests.
    shop.env["GIT_COMMITTER_DATE"] = f"{int(time.time())} +0000"
    shop.stage({"x.py": "1\n"})
    shop.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Touch another file")
    (owner,) = [each.id for each in shop.intents.all() if each.id != mine]
    assert shop.cli("intent", "clear", owner).code == 0
    found = shop.verify()
    assert (found["intent"], found["status"]) == (mine, "violated")
    assert found["scope"]["unexpected_files"] == ["x.py"]
    assert [each["path"] for each in found["intent_regressions"]] == ["b.py"]
