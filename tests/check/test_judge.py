"""The order of the gates, what a crash does, and that accepted is computed from evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from patchgate.check.case import Case
from patchgate.check.gate import ORDER, Gate, judge
from patchgate.errors import UndecidedError
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, GateOutcome, Outcome, Verdict
from tests.check.gate_cases import added, agents, case, findings, rules, verdict

DENIED = case(added("runs/x"), added(".git/x"), toml='policy.deny_prefixes = ["runs"]')


def crash(given: Case) -> Iterator[Finding]:
    yield from findings(DENIED)
    raise ValueError(given.profile)


def give_up(given: Case) -> Iterator[Finding]:
    raise UndecidedError("object 9af3 is missing", "fetch it")
    yield from findings(given)


def interrupt(given: Case) -> Iterator[Finding]:
    raise KeyboardInterrupt
    yield from findings(given)


def test_every_gate_of_the_order_reports_once_and_in_order() -> None:
    for given in (case(), case(added("a")), DENIED):
        assert [each.gate for each in judge(given)[0]] == [gate.name for gate in ORDER]
    assert [gate.name for gate in ORDER] == [
        *("paths", "policy", "content", "shape", "governance", "contracts", "drift", "placeholders"),
    ]


def test_findings_come_in_the_order_of_the_gates_and_then_of_the_paths() -> None:
    names = ["b/node_modules/x", "a/node_modules/x", "z\n", "a\n"]
    found = findings(case(*[added(name) for name in names]))
    assert [(each.rule, each.path and each.path.raw) for each in found] == [
        ("path-control", b"a\n"),
        ("path-control", b"z\n"),
        ("deny-class", b"a/node_modules/x"),
        ("deny-class", b"b/node_modules/x"),
    ]


def test_an_empty_change_is_accepted() -> None:
    assert verdict(case()).verdict is Verdict.ACCEPTED
    assert verdict(agents(toml="policy.allow_roots = []")).verdict is Verdict.ACCEPTED


def test_a_gate_fails_where_it_has_an_error_and_passes_with_less() -> None:
    outcomes = {each.gate: each.outcome for each in judge(DENIED)[0]}
    assert outcomes == {
        "paths": Outcome.FAIL,
        "policy": Outcome.FAIL,
        "content": Outcome.PASS,
        "shape": Outcome.PASS,
        "governance": Outcome.NOT_APPLICABLE,
        "contracts": Outcome.NOT_APPLICABLE,
        "drift": Outcome.NOT_APPLICABLE,
        "placeholders": Outcome.NOT_APPLICABLE,
    }
    mild = case(added("runs/x"), toml='policy.deny_prefixes = ["runs"]\nrules.deny-prefix = "warning"')
    assert {each.outcome for each in judge(mild)[0]} == {Outcome.PASS, Outcome.NOT_APPLICABLE}
    assert rules(mild) == ["deny-prefix"]


@pytest.mark.parametrize("position", range(len(ORDER)))
def test_a_gate_that_crashes_makes_the_verdict_undecided_and_is_named(position: int) -> None:
    broken = replace(ORDER[position], examine=crash, applies=lambda given: True)
    order = (*ORDER[:position], broken, *ORDER[position + 1 :])
    given = case(added("a"))
    outcomes, found = judge(given, order)
    assert found == ()
    assert outcomes[position].outcome is Outcome.UNDECIDED
    reason = str(outcomes[position].reason)
    assert broken.name in reason
    assert "ValueError" in reason
    assert replace(verdict(given), gates=outcomes, findings=found).verdict is Verdict.UNDECIDED


def test_a_crash_keeps_what_the_other_gates_found() -> None:
    outcomes, found = judge(DENIED, (Gate("broken", crash), *ORDER))
    assert [each.rule for each in found] == ["path-git-dir", "deny-prefix"]
    assert replace(verdict(DENIED), gates=outcomes, findings=found).verdict is Verdict.REJECTED


def test_a_gate_whose_condition_crashes_is_undecided_too() -> None:
    def fails(given: Case) -> bool:
        raise RecursionError

    outcomes, _ = judge(case(), (Gate("broken", crash, fails),))
    assert outcomes[0].outcome is Outcome.UNDECIDED


def test_a_gate_that_cannot_decide_gives_its_own_reason() -> None:
    outcomes, _ = judge(case(added("a")), (Gate("blind", give_up),))
    assert outcomes == (GateOutcome("blind", Outcome.UNDECIDED, "object 9af3 is missing"),)


def test_an_interrupt_is_not_taken_for_a_crash() -> None:
    with pytest.raises(KeyboardInterrupt):
        judge(case(added("a")), (Gate("broken", interrupt),))


@pytest.mark.parametrize("missing", [Outcome.NOT_RUN, Outcome.UNDECIDED, Outcome.FAIL])
@pytest.mark.parametrize("position", range(len(ORDER)))
def test_a_gate_without_a_pass_keeps_a_change_from_being_accepted(position: int, missing: Outcome) -> None:
    accepted = verdict(case(added("a")))
    assert accepted.verdict is Verdict.ACCEPTED
    gates = list(accepted.gates)
    gates[position] = replace(gates[position], outcome=missing)
    assert replace(accepted, gates=tuple(gates)).verdict is Verdict.UNDECIDED


def test_without_any_gate_nothing_is_accepted() -> None:
    assert replace(verdict(case()), gates=()).verdict is Verdict.UNDECIDED


def test_a_circumstance_that_is_not_known_keeps_a_change_from_being_accepted() -> None:
    accepted = verdict(case(added("a")))
    unknown = (GateOutcome("scope", Outcome.NOT_RUN),)
    assert replace(accepted, context_gates=unknown).verdict is Verdict.UNDECIDED


def test_an_error_outweighs_what_is_undecided() -> None:
    given = verdict(DENIED)
    gates = tuple(replace(each, outcome=Outcome.UNDECIDED) for each in given.gates)
    assert replace(given, gates=gates).verdict is Verdict.REJECTED


def test_the_decisive_finding_is_the_first_error() -> None:
    given = verdict(DENIED)
    assert given.decisive is given.findings[0]
    assert given.decisive.definition.code == "PATCH_POLICY_DENY"
    milder = tuple(replace(each, level=Level.WARNING) for each in given.findings)
    assert replace(given, findings=milder).decisive is None


def test_the_verdict_id_does_not_depend_on_what_was_found() -> None:
    given = verdict(DENIED)
    assert replace(given, findings=(), gates=(), profile="x").id == given.id
    assert replace(given, policy=replace(given.policy, digest="sha256:" + "0" * 64)).id != given.id


def test_accepted_undecided_and_rejected_have_their_exit_codes() -> None:
    assert [each.exit_code for each in (Verdict.ACCEPTED, Verdict.REJECTED, Verdict.UNDECIDED)] == [0, 1, 3]
