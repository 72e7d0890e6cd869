"""What a push leaves behind: events in the ledger, and the names of the commits that no hook had judged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patchgate.ledger.ledger import Event, Ledger
from patchgate.ledger.receipts import Receipts, settle
from patchgate.report.verdict import Report
from tests.check.push_world import WEAK, ZERO, Local, commits, pair, rules, snapshot
from tests.world import Repo


@pytest.fixture
def both(tmp_path: Path) -> tuple[Local, Repo]:
    return pair(tmp_path)


@pytest.fixture
def local(both: tuple[Local, Repo]) -> Local:
    return both[0]


@pytest.fixture
def server(both: tuple[Local, Repo]) -> Repo:
    return both[1]


def common(repo: Repo) -> str:
    """The common git directory."""
    return str(repo.path / ".git")


def events(repo: Repo) -> list[Event]:
    """The events in the ledger, oldest first."""
    return list(Ledger(common(repo)).events())


def push_main(repo: Local) -> Report:
    """Judge a push of everything on main that origin lacks."""
    old = repo.ask("rev-parse", "origin/main")
    return repo.judge(f"refs/heads/main {repo.ask('rev-parse', 'main')} refs/heads/main {old}")


def give_receipt(repo: Repo, commit: str) -> None:
    """Write that a commit was judged here."""
    line = (commit, repo.ask("rev-parse", f"{commit}^{{tree}}"), repo.ask("rev-parse", f"{commit}^"))
    assert Receipts(common(repo)).add([line]) is None


def test_a_push_that_is_let_through_is_recorded(local: Local) -> None:
    local.commit({"a": "x\n"})
    local.git("push", "-q", "--no-verify", "origin", "main:refs/heads/topic")
    old = local.head()
    tip = local.commit({"b": "x\n"})
    local.judge(f"x {tip} refs/heads/new {ZERO}", f"(delete) {ZERO} refs/heads/topic {old}")
    about = [dict(event.about) for event in events(local) if event.kind == "pushed"]
    assert about == [
        {"remote": "origin", "ref": "refs/heads/new", "commits": 1, "without_receipt": []},
        {"remote": "origin", "ref": "refs/heads/topic", "commits": 0, "without_receipt": []},
    ]


def test_a_push_that_is_refused_is_recorded_with_its_reasons(local: Local) -> None:
    bad = local.bad()
    report = push_main(local)
    (event,) = events(local)
    assert event.kind == "refused"
    assert event.about["hook"] == "pre-push"
    assert (event.about["ref"], event.about["commit"]) == ("refs/heads/main", bad)
    assert (event.about["rules"], event.about["verdict"]) == (["deny-prefix"], "rejected")
    assert event.about["verdict_id"] == report.changes[0].id


def test_very_many_refusals_fill_no_ledger(local: Local) -> None:
    for number in range(102):
        local.bad(str(number))
    report = push_main(local)
    assert len(commits(report)) == 102
    assert len(events(local)) == 100


def test_a_ledger_that_cannot_be_written_costs_a_warning_and_no_verdict(local: Local) -> None:
    (local.path / ".git/patchgate").write_text("in the way")
    local.commit({"a": "x\n"})
    report = push_main(local)
    assert report.verdict == "accepted"
    assert any("not recorded" in warning for warning in report.warnings)
    local.bad()
    report = push_main(local)
    assert report.verdict == "rejected"
    assert any("not recorded" in warning for warning in report.warnings)


def test_commits_without_a_receipt_are_named(local: Local) -> None:
    assert settle(common(local), [local.head()]) is None
    seen = local.commit({"seen": "x\n"})
    give_receipt(local, seen)
    unseen = [local.commit({f"{number}": "x\n"}) for number in range(3)]
    report = push_main(local)
    named = " ".join(oid[:12] for oid in unseen)
    (warning,) = report.warnings
    assert warning.startswith("3 commits without ")
    assert warning.endswith(f": {named}")
    assert events(local)[-1].about["without_receipt"] == unseen


def test_receipts_spare_no_commit_the_judgement(local: Local) -> None:
    give_receipt(local, local.bad())
    report = push_main(local)
    assert rules(report) == ["deny-prefix"]


def test_many_commits_without_a_receipt_make_no_long_line(local: Local) -> None:
    settle(common(local), [local.head()])
    for number in range(7):
        local.commit({f"{number}": "x\n"})
    (warning,) = push_main(local).warnings
    assert warning.startswith("7 commits without ")
    assert warning.endswith(" and 2 more")


def test_what_was_skipped_is_told_with_its_reason(local: Local) -> None:
    settle(common(local), [local.head()])
    one, two, three = (local.commit({f"{number}": "x\n"}) for number in range(3))
    ledger = Ledger(common(local))
    about = {"hook": "reference-transaction", "ref": "refs/heads/main"}
    ledger.record("skipped", {**about, "reason": "in a hurry\x1b[2J", "commits": [one, "1" * 40]})
    ledger.record("skipped", {**about, "reason": "broken hook", "commits": [two]})
    ledger.record("skipped", {**about, "reason": "of no matter", "commits": ["2" * 40]})
    first, *rest = push_main(local).warnings
    assert first.startswith("3 commits without ")
    assert three[:12] in first
    assert rest == [f"skipped (in a hurry\\x1b[2J): {one[:12]}", f"skipped (broken hook): {two[:12]}"]


def test_a_damaged_ledger_hides_reasons_and_says_so(local: Local) -> None:
    settle(common(local), [local.head()])
    local.commit({"a": "x\n"})
    place = local.path / ".git/patchgate/events.jsonl"
    place.write_text("no record\nno record either\n")
    warnings = push_main(local).warnings
    assert any("damaged" in warning for warning in warnings)


def test_nobody_misses_a_receipt_where_the_hooks_were_never_installed(local: Local) -> None:
    local.commit({"a": "x\n"})
    assert push_main(local).warnings == ()


def test_nobody_misses_the_receipt_of_what_another_remote_has_or_the_installation_settled(
    local: Local, tmp_path: Path
) -> None:
    settled = local.commit({"settled": "x\n"})
    settle(common(local), [settled])
    theirs = local.commit({"theirs": "x\n"})
    local.git("update-ref", "refs/remotes/upstream/main", theirs)
    own = local.commit({"own": "x\n"})
    report = push_main(local)
    assert commits(report) == [settled, theirs, own]
    (warning,) = report.warnings
    assert warning.startswith("1 commit without ")
    assert warning.endswith(f": {own[:12]}")


# Where a framework tells of the first ref only.


def test_everything_that_the_remote_lacks_is_judged_where_nobody_tells_the_refs(local: Local) -> None:
    good = local.commit({"a": "x\n"})
    local.git("checkout", "-q", "-b", "side")
    bad = local.bad()
    local.git("checkout", "-q", "--detach", "main")
    tagged = local.bad("tagged")
    local.git("tag", "-a", "-m", "x", "v1")
    local.git("checkout", "-q", "main")
    report = local.judge_unpushed()
    assert sorted(map(str, commits(report))) == sorted([good, bad, tagged])
    assert {change.source.commit: change.source.ref for change in report.changes}[tagged] == "refs/tags/v1"
    assert rules(report) == ["deny-prefix"] * 2
    assert "first ref" in report.warnings[-1]
    assert report.warnings[-1].endswith("(3 refs)")


def test_what_no_branch_holds_is_judged_too_where_nobody_tells_the_refs(local: Local) -> None:
    local.git("checkout", "-q", "--detach")
    detached = local.bad("detached")
    named = local.git("commit-tree", "-p", detached, "-m", "x", f"{detached}^{{tree}}").decode().strip()
    assert commits(local.judge_unpushed()) == [detached]
    report = local.judge_unpushed(told={"refs/heads/topic": named})
    assert commits(report) == [detached, named]
    assert {change.source.ref for change in report.changes} == {"refs/heads/topic"}


def test_where_the_remote_has_everything_a_framework_hears_nothing(local: Local) -> None:
    local.git("tag", "v1")
    local.git("tag", "-a", "-m", "x", "blob", "HEAD:patchgate.toml")
    report = local.judge_unpushed()
    assert (report.changes, report.warnings) == ((), ())
    assert events(local) == []


def test_a_local_branch_behind_its_remote_is_not_taken_for_a_forced_one(local: Local) -> None:
    local.commit({"a": "x\n"})
    local.git("push", "-q", "--no-verify", "origin", "main")
    local.git("reset", "-q", "--hard", "HEAD~1")
    local.git("checkout", "-q", "-b", "topic")
    fresh = local.commit({"b": "x\n"})
    report = local.judge_unpushed()
    assert (commits(report), rules(report)) == ([fresh], [])
    (event,) = events(local)
    assert dict(event.about) == {"remote": "origin", "ref": None, "commits": 1, "without_receipt": []}


def test_a_framework_and_git_judge_a_protected_branch_alike(local: Local) -> None:
    local.policy(WEAK)
    bad = local.bad()
    refused = [change.source.commit for change in local.judge_unpushed().changes if change.findings]
    assert refused == [bad]


def test_a_shallow_history_is_undecided_under_a_framework_too(
    local: Local, server: Repo, tmp_path: Path
) -> None:
    local.commit({"a": "x\n"})
    local.git("push", "-q", "--no-verify", "origin", "main")
    shallow = Local(tmp_path / "shallow", local.env)
    local.git("clone", "-q", "--depth=1", f"file://{server.path}", str(shallow.path))
    assert shallow.judge_unpushed().verdict == "accepted"
    shallow.forget()
    report = shallow.judge_unpushed("elsewhere")
    assert report.verdict == "undecided"
    assert report.recovery[0].command == "git fetch --deepen=50"


# What an interrupted push leaves.


_INTERRUPTED = """\
import os, signal, sys
from patchgate.git import history
from patchgate.git.repository import open_repository
from patchgate.hooks.pre_push import judge_push

read = history.Walk.read

def slowly(self, commits, detail):
    for number, each in enumerate(read(self, commits, detail)):
        if number == 20:
            os.kill(os.getpid(), getattr(signal, sys.argv[2]))
        yield each

history.Walk.read = slowly
signal.signal(signal.SIGINT, signal.default_int_handler)
judge_push(open_repository(os.environ, os.getcwd()), "origin", "", sys.argv[1].encode())
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_an_interrupted_push_leaves_nothing_behind(local: Local, tmp_path: Path, name: str) -> None:
    start = local.head()
    local.git("checkout", "-q", "-b", "side")
    local.commit({"side": "x\n"})
    local.git("checkout", "-q", "main")
    for number in range(30):
        local.commit({f"{number}": "x\n"})
    local.git("merge", "-q", "--no-edit", "side")
    line = f"x {local.ask('rev-parse', 'HEAD')} refs/heads/main {start}\n"
    # Once to the end, so that the policy is known and nothing is left to be kept of it.
    local.judge(line.rstrip("\n"))
    (local.path / ".git/patchgate/events.jsonl").unlink()
    before = snapshot(local.path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, line, name],
        cwd=local.path,
        env=local.env | {"TMPDIR": str(temporary)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == (-signal.SIGKILL if name == "SIGKILL" else -signal.SIGINT), done.stderr
    assert snapshot(local.path) == before
    if name == "SIGINT":
        assert os.listdir(temporary) == []
