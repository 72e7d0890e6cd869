"""Whose commits those of a range are: by the ledger, by the reflog of the worktree, by a trailer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from patchgate.ledger.ledger import Ledger
from tests.verify.verify_world import Workshop, hours_ago

pytestmark = pytest.mark.turns(3)

BAD = "1\nBAD one\n"


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop.open(tmp_path)


def begin(shop: Workshop, *allowed: str) -> str:
    """Declare, and let git date what is made from now on by the clock."""
    name = shop.declare(*allowed)
    shop.env["GIT_COMMITTER_DATE"] = f"{int(time.time())} +0000"
    return name


def own(told: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Give the files that were not declared, and the subjects of what is somebody else's."""
    others = [each["subject"] for each in told["external_commits"]]
    return told["scope"]["unexpected_files"], others


def theirs(shop: Workshop, folder: Path, message: str = "Theirs") -> Workshop:
    """Let somebody else commit to `b.py` in a clone, and fetch it."""
    shop.git("clone", "-q", str(shop.path), str(folder))
    other = Workshop(folder, shop.env)
    other.commit({"b.py": BAD}, message)
    shop.git("remote", "add", "origin", str(folder))
    shop.git("fetch", "-q", "origin")
    return other


def test_what_is_committed_without_any_hook_is_the_works_own(shop: Workshop) -> None:
    begin(shop, "a.py")
    shop.commit({"b.py": "2\n"}, "Past everything")
    assert own(shop.verify("HEAD")) == (["b.py"], [])


def test_so_is_what_is_committed_on_a_detached_head_where_the_hooks_do_not_look(shop: Workshop) -> None:
    shop.install()
    begin(shop, "a.py")
    shop.git("checkout", "-q", "--detach")
    shop.commit({"b.py": "2\n"}, "On no branch")
    assert own(shop.verify("HEAD")) == (["b.py"], [])


def test_an_amend_takes_no_commit_away_with_its_trailer(shop: Workshop) -> None:
    name = begin(shop, "a.py")
    shop.commit({"b.py": "2\n"}, f"Change b\n\nPatchgate-Intent: {name}")
    shop.git("commit", "-q", "--amend", "-m", "No trailer")
    assert own(shop.verify("HEAD")) == (["b.py"], [])


def test_what_was_made_while_the_time_was_over_stays_the_works_after_its_recovery(shop: Workshop) -> None:
    name = begin(shop, "a.py")
    shop.rewrite(name, renewed=hours_ago(2))
    shop.commit({"b.py": "2\n"}, "In the pause")
    assert shop.cli("intent", "recover", name).code == 0
    told = shop.verify("HEAD")
    assert (told["status"], *own(told)) == ("violated", ["b.py"], [])


def test_what_a_pull_brings_is_somebody_elses_and_its_merge_the_works(shop: Workshop, tmp_path: Path) -> None:
    theirs(shop, tmp_path / "theirs")
    begin(shop, "a.py")
    shop.commit({"a.py": "2\n"}, "Mine")
    shop.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    assert own(shop.verify("HEAD")) == ([], ["Theirs"])


def test_a_commit_from_before_that_a_rebase_makes_anew_stays_what_it_was(
    shop: Workshop, tmp_path: Path
) -> None:
    theirs(shop, tmp_path / "theirs")
    shop.commit({"c.py": "1\n"}, "Before")
    begin(shop, "a.py")
    shop.commit({"a.py": "2\n"}, "Mine")
    shop.git("pull", "-q", "--rebase", "origin", "main")
    assert own(shop.verify("HEAD")) == ([], ["Theirs", "Before"])


def test_what_another_worktree_makes_is_not_this_ones(shop: Workshop, tmp_path: Path) -> None:
    begin(shop, "a.py")
    shop.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "two"))
    Workshop(tmp_path / "two", shop.env).commit({"b.py": "2\n"}, "Of the other")
    shop.git("merge", "-q", "--ff-only", "side")
    assert own(shop.verify("HEAD")) == ([], ["Of the other"])


def test_a_copied_trailer_makes_no_commit_of_a_remote_the_works_and_is_named(
    shop: Workshop, tmp_path: Path
) -> None:
    name = begin(shop, "a.py")
    other = theirs(shop, tmp_path / "theirs", f"Squashed\n\nPatchgate-Intent: {name}")
    shop.git("merge", "-q", "--ff-only", "origin/main")
    told = shop.verify("HEAD")
    assert own(told) == ([], ["Squashed"])
    tip = other.head()[:12]
    assert any(tip in each and name in each for each in told["warnings"]), told["warnings"]
    # Nobody else has it yet: then nothing speaks against its word.
    shop.git("update-ref", "-d", "refs/remotes/origin/main")
    assert own(shop.verify("HEAD")) == (["b.py"], [])


def test_what_was_made_under_another_intent_is_not_this_ones_whatever_it_says(shop: Workshop) -> None:
    name = begin(shop, "a.py")
    made = shop.commit({"b.py": "2\n"}, f"Copied\n\nPatchgate-Intent: {name}")
    ledger = Ledger(str(shop.path / ".git"))
    ledger.record("made", {"intent": "i-0000000001", "ref": "refs/heads/main", "commits": [made]})
    assert own(shop.verify("HEAD")) == ([], ["Copied"])
    ledger.record("made", {"intent": name, "ref": "refs/heads/main", "commits": [made]})
    assert own(shop.verify("HEAD")) == (["b.py"], [])


def test_of_two_intents_the_one_that_a_commit_names_answers_for_it(shop: Workshop) -> None:
    first, second = begin(shop, "a.py"), begin(shop, "b.py")
    shop.commit({"b.py": "2\n"}, f"Change b\n\nPatchgate-Intent: {second}")
    assert own(shop.verify("HEAD", "--intent", first)) == ([], ["Change b"])
    assert own(shop.verify("HEAD", "--intent", second)) == ([], [])
    # Of one that names neither, or one that is not there, each answers.
    shop.commit({"c.py": "2\n"}, "Change c\n\nPatchgate-Intent: i-ffffffffff")
    for name in (first, second):
        assert own(shop.verify("HEAD", "--intent", name))[0] == ["c.py"]


def test_where_no_hook_stands_a_verification_says_so(shop: Workshop) -> None:
    name = begin(shop, "a.py")
    (warning,) = shop.verify()["warnings"]
    assert name in warning
    assert "git patchgate install" in warning
    shop.install()
    assert shop.verify()["warnings"] == []


def test_what_is_staged_here_is_not_held_against_the_intent_of_another_worktree(
    shop: Workshop, tmp_path: Path
) -> None:
    name = begin(shop, "a.py")
    shop.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "two"))
    other = Workshop(tmp_path / "two", shop.env)
    other.stage({"b.py": "2\n"})
    done = other.cli("verify", "--intent", name)
    assert done.code == 2
    assert f"error: {name} " in done.err
    assert f"help: git -C {shop.path} patchgate verify" in done.err
    assert own(other.verify("HEAD", "--intent", name)) == ([], [])


def test_under_an_intent_a_policy_without_analyses_leaves_it_unverified_and_its_scope_is_told(
    shop: Workshop,
) -> None:
    shop.commit({"patchgate.toml": '[policy]\n[verify]\nsuppressions = ["known.json"]\n'})
    done = shop.cli("verify")
    assert done.code == 2
    begin(shop, "a.py")
    shop.stage({"a.py": "2\n"})
    told = shop.verify()
    assert told["status"] == "unverified"
    assert "no analysis" in told["reason"]
    assert told["next_step"].startswith("add [commands.NAME]")
    shop.stage({"b.py": "2\n", "known.json": '["x"]\n'})
    told = shop.verify()
    assert told["status"] == "violated"
    assert told["scope"]["unexpected_files"] == ["b.py", "known.json"]
    assert told["baseline_abuse"]["detected"]


@pytest.mark.parametrize("command", ["analyze", "commit-msg"])
def test_a_command_that_works_here_renews_the_lease(shop: Workshop, command: str) -> None:
    name = begin(shop, "a.py")
    shop.install()
    seen = shop.path / ".git" / "patchgate" / "intents" / f"{name}.seen"
    seen.unlink(missing_ok=True)
    shop.rewrite(name, seen=hours_ago(1))
    if command == "analyze":
        assert shop.cli("analyze", "-q").code == 0
    else:
        shop.write("../message", "Change a\n")
        assert shop.cli("hook", "commit-msg", str(shop.path.parent / "message")).code == 0
    assert seen.exists()
