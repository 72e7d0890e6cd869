"""No change judges itself: control files stand alone, and leave a policy that can be read (section 6)."""

from __future__ import annotations

import pytest

from patchgate.check.case import Case, Governance
from patchgate.errors import Mistake
from patchgate.report.rules import Level
from patchgate.report.verdict import Fixer, Outcome, Verdict
from tests.check.gate_cases import (
    added,
    agents,
    case,
    deleted,
    findings,
    modified,
    moved,
    only,
    outcome,
    path,
    rules,
    verdict,
)

CONFIG = "patchgate.toml"
SIGNERS = ".patchgate/allowed_signers"


def governed(*names: str, **facts: object) -> Governance:
    return Governance(frozenset(path(name) for name in names), **facts)  # type: ignore[arg-type]


def test_a_change_that_touches_no_control_file_does_not_concern_the_gate() -> None:
    for name in ("src/a.py", "pyproject.toml", ".pre-commit-config.yaml", ".patchgate/baselines/core.json"):
        given = case(modified(name))
        assert outcome(given, "governance").outcome is Outcome.NOT_APPLICABLE
        assert rules(given) == []


@pytest.mark.parametrize("name", [CONFIG, SIGNERS, ".patchgate/deep/er", ".patchgate"])
def test_a_control_file_stands_alone(name: str) -> None:
    assert rules(case(modified(name))) == []
    finding = only(case(modified(name), modified("src/a.py")))
    assert finding.rule == "policy-change-not-alone"
    assert finding.path == path(name)
    assert finding.details["split"] == [[path(name)], [path("src/a.py")]]
    assert f"git restore --staged -- {name}" in str(finding.hint)


def test_several_control_files_may_change_together() -> None:
    assert rules(case(modified(CONFIG), modified(SIGNERS), added(".patchgate/new"))) == []


def test_a_refusal_names_three_other_files_and_says_that_there_are_more() -> None:
    three = only(case(modified(CONFIG), *[modified(name) for name in "abc"]))
    assert three.message.endswith(" a, b, c")
    four = only(case(modified(CONFIG), *[modified(name) for name in "abcd"]))
    assert four.message.endswith(" a, b, c, …")
    assert four.details["split"] == [[path(CONFIG)], [path(each) for each in "abcd"]]


def test_a_recaptured_baseline_is_no_policy_change() -> None:
    assert rules(case(modified(".patchgate/baselines/core.json"), modified("src/a.py"))) == []


def test_a_baseline_may_not_change_together_with_the_policy() -> None:
    given = case(modified(".patchgate/baselines/core.json"), modified(CONFIG))
    assert rules(given) == ["policy-change-not-alone"]


def test_a_root_commit_and_a_first_policy_need_not_stand_alone() -> None:
    assert (
        rules(case(added(CONFIG), added("a.py"), governance=governed(CONFIG, must_be_own_commit=False))) == []
    )


def test_what_is_a_control_file_in_this_change_is_told_by_the_facts() -> None:
    for name in ("pyproject.toml", ".pre-commit-config.yaml"):
        given = case(modified(name), modified("a"), governance=governed(name))
        assert rules(given) == ["policy-change-not-alone"]


def test_moving_the_policy_away_removes_it_and_does_not_stand_alone() -> None:
    given = case(moved(CONFIG, "old.toml"), governance=governed(CONFIG, removed=True))
    assert rules(given) == ["policy-change-not-alone", "policy-removed"]


def removal() -> Case:
    return case(deleted(CONFIG), governance=governed(CONFIG, removed=True))


def test_removing_the_policy_is_refused() -> None:
    finding = only(removal())
    assert (finding.rule, finding.level, finding.side) == ("policy-removed", Level.ERROR, "old")
    assert finding.who_can_fix is Fixer.PERSON
    assert "[policy]" in str(finding.hint)
    assert verdict(removal()).verdict is Verdict.REJECTED


@pytest.mark.parametrize("holder", [CONFIG, "pyproject.toml"])
def test_the_file_that_held_the_policy_is_named_whatever_else_changes(holder: str) -> None:
    facts = governed(SIGNERS, holder, removed=True, proposed_faults=(MISTAKES[0],), repaired=True)
    found = findings(case(modified(SIGNERS), modified(holder), governance=facts))
    assert {each.rule: each.path for each in found} == {
        "policy-removed": path(holder),
        "policy-invalid": path(holder),
        "policy-repaired": path(holder),
    }


MISTAKES = (
    Mistake("patchgate.toml", 1, "policy.deni", "unknown", "did you mean `deny`?"),
    Mistake("patchgate.toml", None, "", "two of them"),
)


def test_every_fault_of_a_proposed_policy_is_told() -> None:
    facts = governed(CONFIG, proposed_faults=MISTAKES)
    found = findings(case(modified(CONFIG), governance=facts))
    assert [each.line for each in found] == [1, None]
    assert found[0].hint == MISTAKES[0].hint
    assert found[1].hint
    assert "patchgate.toml:1: policy.deni: " in found[0].message


def test_mending_a_policy_is_noted_and_refuses_nothing() -> None:
    given = case(modified(CONFIG), governance=governed(CONFIG, repaired=True))
    assert (only(given).rule, only(given).level) == ("policy-repaired", Level.NOTE)
    assert verdict(given).verdict is Verdict.ACCEPTED


def test_mending_a_policy_allows_no_other_file() -> None:
    given = case(modified(CONFIG), modified("a"), governance=governed(CONFIG, repaired=True))
    assert rules(given) == ["policy-change-not-alone", "policy-repaired"]


def test_agents_are_bound_alike() -> None:
    assert rules(agents(modified(CONFIG), modified("a"))) == ["agent-settings", "policy-change-not-alone"]
    assert rules(agents(modified(CONFIG))) == ["agent-settings"]
