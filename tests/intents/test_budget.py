"""The budget of a piece of work: all its attempts and commits together, in every place that checks them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.intents import intent_file
from patchgate.intents.budget import budget_findings
from patchgate.intents.intent import Intent, IntentBudget
from tests.intent_world import SECOND, intent_of, keep
from tests.intents.scope_rule_cases import SPENT, intent, limited
from tests.runs.phase_world import new_file
from tests.world import Repo

pytestmark = pytest.mark.turns(2)


def found(given: Intent, adds: int = 0, kind: str = "staged") -> list[tuple[object, object]]:
    findings = budget_findings(given, SPENT, adds, kind)
    return [(each.details["limit"], each.details["actual"]) for each in findings]


def test_each_limit_is_inclusive_and_only_proposals_are_attempts() -> None:
    assert found(limited(b"a", max_attempts=2), kind="patch") == [(2, 2)]
    assert found(limited(b"a", max_attempts=2), kind="edits") == [(2, 2)]
    assert found(limited(b"a", max_attempts=2)) == []
    assert found(limited(b"a", max_attempts=3), kind="patch") == []
    assert found(limited(b"a", max_added_lines=4), adds=2) == [(4, 5)]
    assert found(limited(b"a", max_added_lines=5), adds=2) == []
    assert found(limited(b"a", max_minutes=1)) == [(1, None)]
    assert found(limited(b"a", max_minutes=2)) == []
    assert found(intent(b"a"), adds=10**6, kind="patch") == []


def test_a_refusal_names_what_is_left() -> None:
    (refused,) = budget_findings(limited(b"a", max_added_lines=10), SPENT, 8, "staged")
    assert "7 of them left" in refused.message
    assert refused.hint == "send at most 7 added lines"


def test_an_intent_without_a_budget_keeps_its_digest_and_one_with_a_budget_is_read_back() -> None:
    plain = intent(b"a")
    assert "budget" not in json.loads(intent_file.serialize(plain).split(b"\n")[1])["declaration"]
    bound = replace(plain, budget=IntentBudget(max_minutes=5))
    assert bound.digest != plain.digest
    for each in (plain, bound):
        assert intent_file.parse(intent_file.serialize(each), each.id).budget == each.budget


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.create(tmp_path)
    repo.commit({"src/a": "1\n", "src/b": "1\n"}, "First")
    repo.install()
    return repo


def begin(repo: Repo, *words: str) -> None:
    declared = repo.cli("intent", "declare", "-m", "count lines", "--allow", "src/", *words)
    assert declared.code == 0, declared.err


def test_the_lines_of_all_commits_count_together(repo: Repo) -> None:
    begin(repo, "--max-added-lines", "5")
    repo.stage({"src/a": "1\n2\n3\n"})
    repo.git("commit", "-m", "Add two lines")
    repo.stage({"src/b": "1\n2\n3\n4\n5\n"})
    refused = repo.check()
    assert refused.errors == ["intent-budget"]
    assert refused.findings[0]["details"]["actual"] == 6
    done = repo.try_git("commit", "-m", "Add four lines")
    assert done.returncode == 1
    assert b"intent-budget" in done.stderr
    # Not through pre-commit either: the transaction sees it.
    assert b"intent-budget" in repo.try_git("commit", "--no-verify", "-m", "Add four lines").stderr
    repo.stage({"src/b": "1\n2\n3\n4\n"})
    repo.git("commit", "-m", "Add three lines")
    shown = repo.cli("intent", "show")
    assert "budget: 0 of 5 added lines left" in shown.out


def test_an_amended_commit_and_lines_that_were_taken_back_count_once(repo: Repo) -> None:
    begin(repo, "--max-added-lines", "2")
    repo.stage({"src/a": "1\n2\n3\n"})
    repo.git("commit", "-m", "Add two lines")
    repo.git("commit", "--amend", "-m", "Add two more lines")
    repo.stage({"src/a": "1\n"})
    repo.git("commit", "-m", "Remove the two lines")
    repo.stage({"src/b": "1\n2\n3\n"})
    repo.git("commit", "-m", "Add two lines elsewhere")


def test_an_agent_does_not_end_an_intent_with_a_budget(repo: Repo) -> None:
    begin(repo, "--max-added-lines", "2")
    assert repo.cli("intent", "clear", CLAUDECODE="1").code == 2
    assert "i-" in repo.cli("intent", "list").out
    assert repo.cli("intent", "clear").code == 0
    declared = repo.cli("intent", "declare", "-m", "count lines", "--allow", "src/", CLAUDECODE="1")
    assert declared.code == 0
    assert repo.cli("intent", "clear", CLAUDECODE="1").code == 0


def test_no_other_worktree_and_no_other_intent_frees_an_agent_of_a_budget(repo: Repo) -> None:
    begin(repo, "--max-added-lines", "2")
    repo.git("worktree", "add", "-q", str(repo.path.parent / "other"))
    other = repo.at(repo.path.parent / "other")
    sent = other.run("apply", "-", "--format", "json", stdin=new_file("src/c", "1\n2\n3\n"))
    assert (sent.code, sent.errors) == (1, ["intent-budget"])
    assert not (other.path / "src" / "c").exists()
    other.stage({"src/a": "1\n2\n3\n4\n"})
    agent = Repo(other.path, other.env | {"PATCHGATE_PROFILE": "agent"})
    refused = agent.try_git("commit", "-m", "Add lines")
    assert b"intent-budget" in refused.stderr
    # A person is only warned, as without a budget; what is not of the intent is free.
    assert other.check().errors == []
    other.git("reset", "-q", "--hard")
    assert other.run("apply", "-", "--format", "json", stdin=new_file("docs", "1\n")).errors == []


def test_an_expired_intent_with_a_budget_binds_agents_until_a_person_ends_it(repo: Repo) -> None:
    limited = replace(intent_of(repo, "src/", ago=2 * 3600), budget=IntentBudget(max_added_lines=9))
    keep(repo, limited)
    sent = repo.run("apply", "-", "--format", "json", stdin=new_file("src/c", "1\n"))
    assert sent.errors == ["intent-budget"]
    # Another intent over its files does not bind instead.
    keep(repo, intent_of(repo, "src/", name=SECOND))
    repo.stage({"src/a": "2\n"})
    assert repo.check().errors == ["intent-budget"]
    assert repo.cli("intent", "clear", limited.id, CLAUDECODE="1").code == 2
    assert repo.cli("intent", "clear", limited.id).code == 0
    assert repo.check().errors == []


def test_a_merge_that_adds_nothing_itself_is_not_refused_and_counts_for_what_follows(repo: Repo) -> None:
    repo.git("branch", "side")
    begin(repo, "--max-added-lines", "2")
    repo.git("worktree", "add", "-q", str(repo.path.parent / "other"), "side")
    other = repo.at(repo.path.parent / "other")
    other.stage({"src/b": "1\n2\n3\n4\n"})
    other.git("commit", "-m", "Add three lines")
    repo.stage({"src/a": "2\n"})
    repo.git("commit", "-m", "Change a line")
    repo.git("merge", "-q", "--no-edit", "side")
    repo.stage({"src/a": "2\n3\n"})
    assert repo.check().errors == ["intent-budget"]


def test_refused_attempts_count_and_a_check_is_none(repo: Repo) -> None:
    begin(repo, "--max-attempts", "2")
    wrong = new_file("src/a", "x\n")
    for _ in range(3):
        assert repo.run("check", "--patch", "-", "--format", "json", stdin=wrong).errors == ["already-exists"]
    for number in range(2):
        refused = repo.run("apply", "-", "--format", "json", stdin=new_file("src/a", f"{number}\n"))
        assert refused.errors == ["already-exists"]
    right = new_file("src/c", "x\n")
    last = repo.run("apply", "-", "--format", "json", stdin=right)
    assert (last.code, last.errors) == (1, ["intent-budget"])
    assert refused.report["retry"] is not None
    assert last.report["retry"] is None
    assert not (repo.path / "src/c").exists()


def test_fewer_lines_may_be_sent_while_some_are_left_and_nothing_once_none_is(repo: Repo) -> None:
    begin(repo, "--max-added-lines", "2")
    many = repo.run("apply", "-", "--format", "json", stdin=new_file("src/c", "1\n2\n3\n"))
    assert (many.errors, many.report["retry"]["allowed"]) == (["intent-budget"], True)
    assert repo.run("apply", "-", "--format", "json", stdin=new_file("src/c", "1\n2\n")).errors == []
    repo.git("add", "src/c")
    repo.git("commit", "-m", "Add two lines")
    none = repo.run("apply", "-", "--format", "json", stdin=new_file("src/d", "1\n"))
    assert (none.errors, none.report["retry"]) == (["intent-budget"], None)


def test_time_that_is_over_refuses_until_the_intent_is_cleared(repo: Repo) -> None:
    keep(repo, replace(intent_of(repo, "src/", ago=61), budget=IntentBudget(max_minutes=1)))
    repo.stage({"src/a": "2\n"})
    assert repo.check().errors == ["intent-budget"]
    assert repo.cli("intent", "clear").code == 0
    assert repo.check().errors == []


@pytest.mark.parametrize(
    "words", [("--max-attempts", "0"), ("--max-minutes", "-1"), ("--max-added-lines", "x")]
)
def test_a_limit_that_is_no_number_is_refused(repo: Repo, words: tuple[str, str]) -> None:
    refused = repo.cli("intent", "declare", "-m", "count lines", "--allow", "src/", *words)
    assert refused.code == 2
    assert repo.cli("intent", "list").out == ""
