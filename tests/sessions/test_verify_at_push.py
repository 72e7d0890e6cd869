"""Real pushes through the installed hooks, where the policy asks for a verification."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.verify.verify_world import IFS, NEW, Workshop

pytestmark = pytest.mark.turns(3)

BAD = "1\nBAD one\n"
ON_PUSH = "[verify]\non_push = true\n"


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stdout + done.stderr).decode("utf-8", "backslashreplace")


def connected(tmp_path: Path, more: str = ON_PUSH) -> Workshop:
    """Make a workshop with hooks whose first commit is on its server."""
    shop = Workshop.open(tmp_path, more=more)
    shop.git("init", "-q", "--bare", str(tmp_path / "server.git"))
    shop.git("remote", "add", "origin", "../server.git")
    shop.git("push", "-q", "-u", "origin", "main")
    shop.git("remote", "set-head", "origin", "main")
    shop.install()
    return shop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return connected(tmp_path)


def land(shop: Workshop, files: dict[str, str], message: str = "Change it well") -> str:
    """Commit through the hooks."""
    shop.stage(dict(files))
    done = shop.try_git("commit", "-q", "-m", message)
    assert done.returncode == 0, said(done)
    return shop.head()


def events(shop: Workshop, kind: str) -> list[dict[str, Any]]:
    raw = (shop.path / ".git" / "patchgate" / "events.jsonl").read_text()
    found = [json.loads(line)["event"] for line in raw.splitlines()]
    return [each for each in found if each["kind"] == kind]


def test_a_regression_is_refused_at_the_push_and_nothing_is_pushed(shop: Workshop) -> None:
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q")
    assert done.returncode == 1
    assert "error[regression]: B1: BAD one" in said(done)
    assert "--> a.py:2" in said(done)
    assert shop.ask("rev-parse", "origin/main") == shop.ask("rev-parse", "HEAD~1")
    assert events(shop, "pushed") == []
    (refused,) = events(shop, "refused")
    assert refused["rules"] == ["regression", "threshold-crossed"]
    assert refused["ref"] == "refs/heads/main"


def test_what_makes_nothing_worse_is_pushed_in_silence(shop: Workshop) -> None:
    land(shop, {"a.py": "2\n"})
    done = shop.try_git("push", "-q")
    assert (done.returncode, said(done)) == (0, "")
    assert shop.runs == 4


def test_a_verification_of_pushes_can_be_turned_on_where_a_threshold_fails_already(tmp_path: Path) -> None:
    """A9: what failed before is reported, and only what is worse is refused."""
    shop = connected(tmp_path, more="")
    shop.commit({"a.py": "1\nif a\nif b\nif c\n"})
    shop.git("push", "-q", "--no-verify")
    shop.policy((shop.path / "patchgate.toml").read_text() + ON_PUSH)
    done = shop.try_git("push", "-q")
    assert done.returncode == 0, said(done)
    assert "note[threshold-preexisting]" in said(done)
    shop.commit({"a.py": "1\n" + "if a\n" * 4})
    done = shop.try_git("push", "-q")
    assert (done.returncode, "error[threshold-crossed]" in said(done)) == (1, True)


def test_a_verification_of_pushes_can_be_turned_on_with_the_tool_that_it_needs(tmp_path: Path) -> None:
    shop = connected(tmp_path, more="")
    shop.policy("[policy]\n")
    shop.git("push", "-q", "--no-verify")
    teller = shop.teller.read_text()
    asks = '[analyses.told]\ncommand = ["python3", "teller.py", "sarif"]\n' + ON_PUSH
    # What cannot be analysed even now is no beginning.
    shop.policy(asks)
    assert "error[unverified]" in said(shop.try_git("push", "-q"))
    shop.commit({"teller.py": teller, ".gitignore": "runs\n"})
    done = shop.try_git("push", "-q")
    assert done.returncode == 0, said(done)
    assert "warning[unverified]" in said(done)
    # From now on the remote asks for it, also of a branch that leaves it before the tool was there.
    shop.git("switch", "-q", "-c", "old", "HEAD~2")
    shop.commit({"a.py": "2\n"})
    shop.git("switch", "-q", "main")
    assert "error[unverified]" in said(shop.try_git("push", "-q", "origin", "old"))


def test_nothing_runs_where_the_policy_does_not_ask(tmp_path: Path) -> None:
    shop = connected(tmp_path, more="")
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q", PATCHGATE_FULL="1")
    assert (done.returncode, said(done)) == (0, "")
    assert shop.runs == 0


def test_a_regression_that_is_mended_before_the_push_is_none(shop: Workshop) -> None:
    land(shop, {"a.py": BAD})
    land(shop, {"a.py": "3\n"})
    assert shop.try_git("push", "-q").returncode == 0


def test_a_new_branch_is_held_against_where_it_leaves_what_the_remote_has(shop: Workshop) -> None:
    shop.git("switch", "-q", "-c", "old-debt")
    land(shop, {"b.py": BAD})
    shop.git("push", "-q", "--no-verify", "origin", "old-debt")
    shop.git("switch", "-q", "-c", "topic")
    land(shop, {"a.py": "2\n"})
    done = shop.try_git("push", "-q", "origin", "topic")
    assert done.returncode == 0, said(done)
    land(shop, {"a.py": BAD})
    assert "error[regression]" in said(shop.try_git("push", "-q", "origin", "topic"))


def test_what_another_branch_of_the_remote_has_excuses_nothing(shop: Workshop) -> None:
    land(shop, {"a.py": BAD})
    shop.git("push", "-q", "--no-verify", "origin", "HEAD:refs/heads/topic")
    assert "error[regression]" in said(shop.try_git("push", "-q", "origin", "main"))


def test_each_branch_is_told_by_itself(shop: Workshop) -> None:
    shop.git("branch", "good")
    shop.git("switch", "-q", "-c", "bad")
    land(shop, {"a.py": BAD})
    shop.git("switch", "-q", "good")
    land(shop, {"b.py": "2\n"})
    done = shop.try_git("push", "-q", "origin", "good", "bad")
    assert done.returncode == 1
    assert "3 changes: 2 accepted, 1 rejected" in said(done)
    (refused,) = events(shop, "refused")
    assert (refused["ref"], refused["source"]) == ("refs/heads/bad", "ref")


def test_a_deleted_branch_and_a_tag_are_not_verified(shop: Workshop) -> None:
    shop.git("push", "-q", "--no-verify", "origin", "HEAD:refs/heads/gone")
    shop.git("tag", "v1")
    runs = shop.runs
    assert shop.try_git("push", "-q", "origin", "--delete", "gone").returncode == 0
    assert shop.try_git("push", "-q", "origin", "v1").returncode == 0
    assert shop.runs == runs


def test_with_an_intent_somebody_elses_regression_is_told_and_let_through(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.git("switch", "-q", "-c", "theirs", "HEAD")
    shop.stage({"b.py": BAD})
    shop.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Change theirs")
    shop.git("-c", "core.hooksPath=/dev/null", "push", "-q", "origin", "theirs")
    shop.git("switch", "-q", "main")
    shop.git("-c", "core.hooksPath=/dev/null", "merge", "-q", "--ff-only", "theirs")
    land(shop, {"a.py": "2\n"})
    done = shop.try_git("push", "-q")
    assert done.returncode == 0, said(done)
    assert "note[regression-external]: B1: BAD one" in said(done)
    assert "note[threshold-external]" in said(done)
    assert "error" not in said(done)


def test_with_an_intent_its_own_regression_is_refused(shop: Workshop) -> None:
    shop.declare("a.py")
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q")
    assert done.returncode == 1
    assert "error[regression]" in said(done)


def test_a_commit_without_hooks_does_not_get_past_the_scope(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.stage({"b.py": "2\n"})
    message = f"Change b\n\nPatchgate-Intent: {name}"
    shop.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", message)
    done = shop.try_git("push", "-q")
    assert done.returncode == 1
    assert "error[scope-unexpected]" in said(done)


def test_a_commit_that_no_message_hook_saw_is_the_intents_own_by_the_ledger(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.stage({"a.py": "2\n"})
    done = shop.try_git("commit", "-q", "--no-verify", "-m", "Change a")
    assert done.returncode == 0, said(done)
    assert b"Patchgate-Intent" not in shop.git("log", "-1", "--format=%B")
    told = shop.verify("HEAD")
    assert (told["status"], told["external_commits"]) == ("accepted", [])
    assert told["scope"]["untouched"] == []


def test_a_branch_below_which_the_intent_did_not_begin_is_verified_without_it(shop: Workshop) -> None:
    shop.git("branch", "other")
    land(shop, {"b.py": "2\n"})
    shop.declare("a.py")
    shop.git("switch", "-q", "other")
    shop.stage({"b.py": BAD})
    shop.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Change b")
    done = shop.try_git("push", "-q", "origin", "other")
    assert "error[regression]" in said(done)
    assert "regression-external" not in said(done)


def test_an_analysis_that_cannot_be_evaluated_stops_the_push_as_undecided(shop: Workshop) -> None:
    land(shop, {"stop": "x\n"})
    done = shop.try_git("push", "-q")
    assert done.returncode == 1
    assert "error[unverified]" in said(done)
    assert "\nundecided: verify " in said(done)
    assert "; 1 error" in said(done)
    assert shop.ask("rev-parse", "origin/main") == shop.ask("rev-parse", "HEAD~1")


def test_the_policy_chooses_how_loud_a_rule_is(tmp_path: Path) -> None:
    rules = '[rules]\nregression = "warning"\nthreshold-crossed = "off"\n'
    shop = connected(tmp_path, more=ON_PUSH + rules)
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q")
    assert done.returncode == 0
    assert "warning[regression]" in said(done)
    assert "threshold-crossed" not in said(done)


def test_the_policy_of_head_asks_and_not_that_of_what_is_pushed(shop: Workshop) -> None:
    land(shop, {"a.py": BAD})
    shop.git("branch", "bad")
    shop.git("reset", "-q", "--hard", "HEAD~1")
    done = shop.try_git("push", "-q", "origin", "bad")
    assert done.returncode == 1
    # With a policy of its own the pushed branch would say otherwise.
    shop.git("switch", "-q", "bad")
    shop.stage({"patchgate.toml": shop.policy_text(NEW, IFS)})
    shop.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Ask for nothing")
    shop.git("switch", "-q", "main")
    assert shop.try_git("push", "-q", "origin", "bad").returncode == 1


def test_an_observed_refusal_is_told_and_lets_the_push_through(tmp_path: Path) -> None:
    shop = connected(tmp_path, more=ON_PUSH + '[hooks]\nmode = "observe"\n')
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q")
    assert done.returncode == 0
    assert "error[regression]" in said(done)
    assert events(shop, "observed")


def test_under_a_framework_every_branch_that_brings_something_is_verified(shop: Workshop) -> None:
    land(shop, {"a.py": BAD})
    done = shop.run("hook", "pre-push", PRE_COMMIT="1", PRE_COMMIT_REMOTE_NAME="origin")
    assert done.code == 1
    assert "refs/heads/main: rejected" in done.out
    assert "error[regression]" in done.out


def test_a_server_runs_nothing(shop: Workshop, tmp_path: Path) -> None:
    server = shop.at(tmp_path / "server.git")
    server.run("install", cwd=server.path)
    runs = shop.runs
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q", "--no-verify")
    assert done.returncode == 0, said(done)
    assert shop.runs == runs


def first_push(tmp_path: Path) -> Workshop:
    """Make a workshop with an old finding, and a server that has nothing yet."""
    shop = Workshop.open(tmp_path, {"b.py": BAD}, more=ON_PUSH)
    shop.git("init", "-q", "--bare", str(tmp_path / "server.git"))
    shop.git("remote", "add", "origin", "../server.git")
    shop.install()
    return shop


def test_the_first_push_to_a_remote_that_has_nothing_is_not_verified(tmp_path: Path) -> None:
    shop = first_push(tmp_path)
    done = shop.try_git("push", "-q", "origin", "main", "main:refs/heads/other")
    assert (done.returncode, said(done)) == (0, "")
    assert shop.runs == 0
    shop.git("switch", "-q", "-c", "topic")
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q", "origin", "topic")
    assert "error[regression]" in said(done)
    assert "b.py" not in said(done)


def test_a_remote_of_which_one_branch_is_known_by_the_push_itself_has_something(tmp_path: Path) -> None:
    shop = first_push(tmp_path)
    shop.git("push", "-q", "origin", "main")
    shop.git("update-ref", "-d", "refs/remotes/origin/main")
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q", "origin", "main", "main:refs/heads/other")
    assert done.returncode == 1
    assert "error[regression]" in said(done)


def test_an_intent_holds_also_at_the_first_push(tmp_path: Path) -> None:
    shop = first_push(tmp_path)
    shop.declare("a.py")
    land(shop, {"a.py": BAD})
    done = shop.try_git("push", "-q", "origin", "main")
    assert "error[regression]" in said(done)
    assert "b.py" not in said(done)


def test_a_url_is_a_remote_of_which_nothing_is_known(tmp_path: Path) -> None:
    shop = first_push(tmp_path)
    done = shop.try_git("push", "-q", str(tmp_path / "server.git"), "main")
    assert "error[regression]" in said(done)


def test_an_intent_excuses_nothing_that_the_push_brings_from_before_it(shop: Workshop) -> None:
    land(shop, {"a.py": BAD})
    assert shop.try_git("push", "-q").returncode == 1
    shop.declare("free.py")
    done = shop.try_git("push", "-q")
    assert done.returncode == 1, said(done)
    assert "error[regression]: B1: BAD one" in said(done)
