"""The loop starts what is ready, records it, tries again what is temporary, and stops where it must."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.repository import open_repository
from patchgate.ledger.ledger import Ledger
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult
from patchgate.runs.phases import Phase, Schedule, Scheduling, Work
from patchgate.runs.run_loop import LoopEnvironment, LoopSettings, RunLoop
from patchgate.runs.run_record import RunRecord, find_run, this_process
from patchgate.runs.run_state import RunAction, RunPlan, RunState, RunStatus
from patchgate.runs.triage import FaultKind
from tests.world import Repo

LEAF = (Phase.CONTRACT, Phase.TESTS, Phase.IMPLEMENTATION)
PASSED = PhaseResult(PhaseOutcome.PASSED, "passed")
Perform = Callable[[Work], PhaseResult]


def fault(kind: FaultKind, subject: str = "", hint: str | None = None) -> PhaseResult:
    return PhaseResult(PhaseOutcome.FAULT, f"it had {kind.value}", hint, kind=kind, subject=subject)


def run(
    folder: Path,
    perform: Perform,
    names: Sequence[str] = ("a", "b", "c"),
    *,
    needs: Mapping[str, Sequence[str]] | None = None,
    retries: int = 3,
    phases: Sequence[Phase] = LEAF,
    report: Callable[[str], None] = lambda sentence: None,
) -> tuple[RunState, list[tuple[str, str]]]:
    """Run some components; give the last state by the ledger, and the events as action and work."""
    repo = Repo.create(folder)
    opened = open_repository(repo.env, str(repo.path))
    plan = RunPlan({name: tuple(phases) for name in names}, Scheduling.PHASED, 2)
    record = RunRecord(opened, "r-0123456789ab")
    record.write(RunAction.STARTED, {**plan.plain(), "work_tree": "", "owner": this_process()})
    schedule = Schedule(
        phases=plan.phases,
        needs={name: (needs or {}).get(name, ()) for name in names},
        parents=dict.fromkeys(names),
        scheduling=plan.scheduling,
        most=plan.jobs,
    )
    environment = LoopEnvironment(perform, report=report, chance=lambda: 0.0)
    loop = RunLoop(record, schedule, LoopSettings(plan.jobs, retries, 3), environment)
    told = loop.run()
    events = [event.about for event in Ledger(opened.common_dir).find_events({"run"})]
    assert find_run(opened, None) == told
    words = [(str(each["action"]), f"{each.get('component', '')} {each.get('phase', '')}") for each in events]
    return told, words


def test_a_run_in_which_everything_passes_is_complete(tmp_path: Path) -> None:
    state, events = run(tmp_path, lambda work: PASSED)
    assert (state.status, state.left, state.reason) == (RunStatus.COMPLETED, [], None)
    assert [action for action, _ in events].count("finished") == 9
    assert events[-1] == ("completed", " ")
    for work in state.done:
        told = f"{work.component} {work.phase.value}"
        assert events.index(("began", told)) < events.index(("finished", told))


def test_a_component_that_fails_pauses_the_run_when_the_others_are_done(tmp_path: Path) -> None:
    bad = PhaseResult(PhaseOutcome.FAILED, "its tests failed", kind=FaultKind.TESTS_FAILED)
    state, _ = run(
        tmp_path,
        lambda work: bad if work == Work("a", Phase.TESTS) else PASSED,
        needs={"c": ["a"]},
    )
    assert state.status is RunStatus.PAUSED
    assert "a (tests); 2 components cannot go on" in (state.reason or "")
    assert "run resume r-0123456789ab" in (state.hint or "")
    assert state.completed_components == ["b"]
    assert state.trouble[Work("a", Phase.TESTS)].reason == "its tests failed"


def test_a_temporary_fault_is_tried_again_until_it_passes(tmp_path: Path) -> None:
    tries: dict[Work, int] = {}

    def perform(work: Work) -> PhaseResult:
        tries[work] = tries.get(work, 0) + 1
        return PASSED if work.component != "a" or tries[work] > 2 else fault(FaultKind.CONNECTION)

    state, events = run(tmp_path, perform)
    assert state.status is RunStatus.COMPLETED
    assert events.count(("retried", "a contract")) == 2
    assert state.tries[Work("a", Phase.CONTRACT)] == 3


@pytest.mark.parametrize("retries", [0, 2])
def test_a_temporary_fault_is_not_tried_for_ever(tmp_path: Path, retries: int) -> None:
    state, events = run(tmp_path, lambda work: fault(FaultKind.TEMPORARY), ["a"], retries=retries)
    assert state.status is RunStatus.PAUSED
    assert events.count(("retried", "a contract")) == retries


def test_a_permanent_fault_fails_the_run_at_once(tmp_path: Path) -> None:
    state, events = run(
        tmp_path,
        lambda work: fault(FaultKind.DISK_FULL, hint="free disk space") if work.component == "a" else PASSED,
        list("abcdefgh"),
    )
    assert (state.status, state.reason) == (RunStatus.FAILED, "it had disk-full")
    assert (state.hint or "").startswith("free disk space, then git patchgate run resume")
    assert len([action for action, _ in events if action == "began"]) <= 3


def test_the_same_fault_of_several_components_pauses_the_run_with_what_to_do(tmp_path: Path) -> None:
    same = fault(FaultKind.IMPORT_ERROR, "requests")
    state, events = run(tmp_path, lambda work: same, list("abcdefgh"), phases=[Phase.TESTS])
    assert state.status is RunStatus.PAUSED
    assert "requests" in (state.reason or "")
    assert "git patchgate doctor" in (state.hint or "")
    assert len([action for action, _ in events if action == "faulted"]) in {3, 4}


def test_nothing_collected_anywhere_pauses_the_run_after_two_components(tmp_path: Path) -> None:
    state, events = run(
        tmp_path, lambda work: fault(FaultKind.NOTHING_COLLECTED), list("abcdefgh"), phases=[Phase.TESTS]
    )
    assert state.status is RunStatus.PAUSED
    assert len([action for action, _ in events if action == "faulted"]) in {2, 3}


def test_different_faults_are_no_pattern(tmp_path: Path) -> None:
    state, _ = run(
        tmp_path,
        lambda work: fault(FaultKind.IMPORT_ERROR, work.component),
        list("abcdef"),
        phases=[Phase.TESTS],
    )
    assert "not done: a (tests)" in (state.reason or "")


def test_what_waits_for_a_maintainer_pauses_the_run_and_is_no_fault(tmp_path: Path) -> None:
    waits = PhaseResult(PhaseOutcome.WAITING, "the chain is exhausted", "git patchgate attempts reset a-1")
    state, _ = run(tmp_path, lambda work: waits, list("abcdef"), phases=[Phase.TESTS])
    assert state.status is RunStatus.PAUSED
    assert {(each.outcome, each.kind, each.signature) for each in state.trouble.values()} == {
        ("waiting", None, None)
    }
    assert len(state.trouble) == 6


def test_answers_that_are_refused_everywhere_for_one_rule_pause_the_run(tmp_path: Path) -> None:
    waits = PhaseResult(
        PhaseOutcome.WAITING, "five answers", "reset", kind=FaultKind.PATCH_REFUSED, subject="command-failed"
    )
    state, events = run(tmp_path, lambda work: waits, list("abcdefgh"), phases=[Phase.TESTS])
    assert state.status is RunStatus.PAUSED
    assert "command-failed" in (state.reason or "")
    assert len([action for action, _ in events if action == "faulted"]) in {3, 4}


def test_the_hint_of_the_only_failure_is_that_of_the_run(tmp_path: Path) -> None:
    waits = PhaseResult(PhaseOutcome.WAITING, "five answers", "git patchgate attempts reset a-1")
    state, _ = run(tmp_path, lambda work: waits if work.component == "a" else PASSED, phases=[Phase.TESTS])
    assert state.hint == f"git patchgate attempts reset a-1, then git patchgate run resume {state.id}"


def test_where_the_ledger_cannot_be_written_nothing_more_is_started(tmp_path: Path) -> None:
    asked: list[Work] = []

    def perform(work: Work) -> PhaseResult:
        asked.append(work)
        ledger = tmp_path / "repo/.git/patchgate/events.jsonl"
        ledger.rename(ledger.with_suffix(".away"))
        ledger.mkdir()
        return PASSED

    with pytest.raises(UndecidedError, match="the run stopped"):
        run(tmp_path, perform, ["a"])
    assert asked == [Work("a", Phase.CONTRACT)]


def test_a_wait_before_a_retry_is_never_said_to_be_0_seconds(tmp_path: Path) -> None:
    told: list[str] = []
    left = [fault(FaultKind.TEMPORARY)]
    run(
        tmp_path, lambda work: left.pop() if left else PASSED, ["a"], phases=[Phase.TESTS], report=told.append
    )
    assert [each for each in told if "tried again in 1 s" in each]


def test_an_interrupt_pauses_the_run_and_says_so(tmp_path: Path) -> None:
    def perform(work: Work) -> PhaseResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, perform, ["a"])
    repo = Repo(tmp_path / "repo", {**Repo.create(tmp_path / "other").env})
    state = find_run(open_repository(repo.env, str(repo.path)), None)
    assert (state.status, state.reason) == (RunStatus.PAUSED, "stopped by an interrupt")
