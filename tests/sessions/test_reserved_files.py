"""A file that an intent of another worktree declares, changed without one: reported, or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.intents.intent import State
from patchgate.intents.stored_intents import StoredIntents
from tests.intent_world import FIRST, common_dir, declare, intent_of, keep, later, made
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

RULE = "intent-reserved"
PATCH = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A worktree without an intent, beside one whose intent declares `a` and all of `src`."""
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n", "b": "1\n", "src/c": "1\n"}, "First")
    repo.install()
    repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    declare(repo.at(tmp_path / "other"), "a", "src/")
    return repo


def commit(repo: Repo, name: str, content: str, *options: str) -> tuple[bool, int]:
    """Commit a file; tell whether that went well, and how often the rule was named."""
    repo.stage({name: content})
    done = repo.try_git("commit", "-q", "-m", f"Change {name}", *options)
    if done.returncode:
        repo.git("reset", "-q", "--hard")
    return done.returncode == 0, (done.stdout + done.stderr).count(RULE.encode())


def test_it_is_reported_once_with_who_why_and_until_when(repo: Repo) -> None:
    # The first commits teach the fast path; then it would recognise such a change.
    for content in ("2\n", "3\n"):
        assert commit(repo, "b", content) == (True, 0)
    assert commit(repo, "src/c", "2\n") == (True, 1)
    assert commit(repo, "a", "2\n", "-n") == (True, 1)
    assert made(repo) == []
    repo.stage({"a": "3\n", "b": "4\n"})
    report = repo.check()
    assert (report.verdict, report.change["profile"], report.rules) == ("accepted", "commit", [RULE])
    (found,) = report.findings
    assert (found["path"], found["level"]) == ("a", "warning")
    details = found["details"]
    assert (details["intent"], details["reason"]) == (FIRST, "Make the sum right")
    assert details["worktree"] == str(repo.path.parent / "other")
    assert all(each in found["message"] for each in (FIRST, details["until"], details["reason"]))


def test_a_patch_for_this_worktree_is_no_different(repo: Repo, tmp_path: Path) -> None:
    patch = tmp_path / "patch"
    patch.write_bytes(PATCH)
    assert repo.check("--patch", str(patch)).rules == [RULE]


@pytest.mark.parametrize(
    ("key", "is_made", "named"),
    [('[intents]\nreserve = "error"', False, 1), ('[intents]\nreserve = "off"', True, 0)],
)
def test_the_policy_says_how_it_is_reported(repo: Repo, key: str, is_made: bool, named: int) -> None:
    repo.policy(f"{key}\n")
    assert commit(repo, "a", "2\n") == (is_made, named)
    assert commit(repo, "a", "3\n", "-n") == (is_made, named)
    assert commit(repo, "b", "2\n") == (True, 0)


@pytest.mark.parametrize("how", ["removed", "deleted", "over", "dead", "queued", "cleared"])
def test_an_intent_that_has_no_files_reserves_none(repo: Repo, tmp_path: Path, how: str) -> None:
    other, intents = repo.at(tmp_path / "other"), StoredIntents(common_dir(repo))
    intent = intent_of(other, "a")
    if how == "removed":
        repo.git("worktree", "remove", str(other.path))
    elif how == "deleted":
        other.path.rename(tmp_path / "elsewhere")
    elif how == "cleared":
        intents.remove(intent.id)
    else:
        past = {"over": later(intent, 3700), "dead": later(intent, 400), "queued": intent}[how]
        keep(other, replace(past, state=State.QUEUED) if how == "queued" else past)
    assert commit(repo, "a", "2\n") == (True, 0)


def test_a_worktree_that_was_moved_keeps_its_files_and_one_that_was_deleted_blocks_nobody(
    repo: Repo, tmp_path: Path
) -> None:
    repo.git("worktree", "move", str(tmp_path / "other"), str(tmp_path / "moved"))
    declaration = ("intent", "declare", "--lazy", "-m", "Due now", "--allow", "a")
    assert (commit(repo, "a", "2\n"), repo.cli(*declaration).code) == ((True, 1), 1)
    (tmp_path / "moved").rename(tmp_path / "elsewhere")
    done = repo.cli(*declaration)
    assert (done.code, f"{FIRST} " in done.err and " dead" in done.err) == (0, True)


def test_what_comes_from_elsewhere_is_not_this_ones(repo: Repo, tmp_path: Path) -> None:
    repo.policy('[intents]\nreserve = "error"\n')
    other = repo.at(tmp_path / "other")
    other.stage({"a": "2\n"})
    other.git("commit", "-q", "-m", "Change a, as declared")
    done = repo.try_git("merge", "-q", "--no-edit", "other")
    assert (done.returncode, RULE.encode() in done.stderr) == (0, False)


def test_where_the_intents_cannot_be_read_that_is_said_or_undecided(repo: Repo) -> None:
    base = repo.policy("[policy]\n")
    repo.policy('[intents]\nreserve = "error"\n')
    (Path(common_dir(repo)) / "patchgate" / "intents" / f"{FIRST}.json").write_text("damaged\n")
    repo.stage({"b": "2\n"})
    report = repo.check()
    assert (report.verdict, f"git patchgate intent clear {FIRST}" in report.out) == ("undecided", True)
    report = repo.check("--policy-from", base)
    assert (report.verdict, report.rules) == ("accepted", [RULE])


def test_what_a_hook_has_let_pass_is_judged_again_where_an_intent_is_declared_meanwhile(
    repo: Repo, tmp_path: Path
) -> None:
    """While the editor is open another worktree declares the file: then the transaction reports it."""
    repo.stage({"b": "2\n"})
    other = tmp_path / "other"
    command = f"git -C {other} patchgate intent declare --lazy -m 'Due now' --allow b >/dev/null"
    editor = f"unset GIT_DIR GIT_INDEX_FILE; {command} && echo Words >"
    done = repo.try_git("commit", "-q", GIT_EDITOR=editor)
    assert (done.returncode, done.stderr.count(RULE.encode())) == (0, 1), done.stderr.decode()
