"""The state of a run is what its events say, also where some are damaged, missing or impossible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.errors import UndecidedError, UsageError
from patchgate.ledger.ledger import Event
from patchgate.runs.phases import Phase, Scheduling, Work
from patchgate.runs.resume import plan_resume
from patchgate.runs.run_state import (
    ComponentOnDisk,
    RunPlan,
    RunState,
    RunStatus,
    fold,
    inconsistencies,
    read_work,
    write_work,
)
from patchgate.storage.record import Json

RUN = "r-0123456789ab"
LEAF = (Phase.CONTRACT, Phase.TESTS, Phase.IMPLEMENTATION)
PLAN = RunPlan({"a": LEAF, "b": LEAF}, Scheduling.PHASED, 2)
THERE = ComponentOnDisk(has_contract=True, has_tests=True, has_code=True, is_recorded=True)
GONE = ComponentOnDisk(has_contract=False, has_tests=False, has_code=False, is_recorded=False)


def event(action: str, **about: Json) -> Event:
    return Event("run", {"run": RUN, "action": action, **about}, at="2026-01-01T00:00:00Z")


def started() -> Event:
    return event("started", **PLAN.plain(), work_tree="/w", owner={"host": "h", "pid": 1})


def of(action: str, component: str, phase: Phase, **about: Json) -> Event:
    return event(action, component=component, phase=phase.value, **about)


def failed(component: str, phase: Phase) -> Event:
    return of("faulted", component, phase, outcome="failed", reason="its tests failed", fault="tests-failed")


def after(*events: Event) -> RunState:
    return fold(RUN, [started(), *events])


def test_a_run_is_what_its_events_say_in_their_order() -> None:
    state = after(
        of("began", "a", Phase.CONTRACT),
        of("began", "b", Phase.CONTRACT),
        of("finished", "a", Phase.CONTRACT),
        failed("b", Phase.CONTRACT),
        event("paused", reason="b failed", hint="fix it"),
    )
    assert (state.status, state.reason, state.hint) == (RunStatus.PAUSED, "b failed", "fix it")
    assert list(state.done) == [Work("a", Phase.CONTRACT)]
    assert list(state.trouble) == [Work("b", Phase.CONTRACT)]
    assert (state.checkpoint, state.in_flight) == (Work("a", Phase.CONTRACT), set())
    assert (state.phase, state.failed_phase) == (Phase.CONTRACT, Phase.CONTRACT)


def test_what_began_and_did_not_end_is_in_flight() -> None:
    state = after(of("began", "a", Phase.CONTRACT))
    assert (state.in_flight, state.failed_phase) == ({Work("a", Phase.CONTRACT)}, Phase.CONTRACT)


def test_a_run_without_any_event_is_an_error() -> None:
    with pytest.raises(UndecidedError, match="no event of the run"):
        fold("r-ffffffffffff", [started()])


@pytest.mark.parametrize(
    "damaged",
    [
        event("nonsense"),
        event("finished"),
        of("finished", "c", Phase.CONTRACT),
        of("finished", "a", Phase.INTEGRATION),
        event("finished", component="a", phase="cooking"),
        event("paused"),
        event("resumed", cleared=["x"]),
        event("faulted", component="a", phase="tests", outcome=3),
    ],
)
def test_an_event_that_cannot_be_used_leaves_a_partial_state_with_a_warning(damaged: Event) -> None:
    state = after(of("finished", "a", Phase.CONTRACT), damaged, of("finished", "b", Phase.CONTRACT))
    assert len(state.done) == 2
    assert len(state.warnings) == 1


def test_a_run_whose_first_event_is_missing_says_so() -> None:
    state = fold(RUN, [of("finished", "a", Phase.CONTRACT)])
    assert "first event is missing" in state.warnings[0]
    with pytest.raises(UsageError, match="not known"):
        plan_resume(state, RunStatus.INTERRUPTED, {})


def test_damaged_events_are_not_warned_of_without_end() -> None:
    assert len(after(*(event("nonsense") for _ in range(500))).warnings) == 20


ACTIONS = st.sampled_from(["began", "finished", "faulted", "retried"])


@given(st.lists(st.tuples(ACTIONS, st.sampled_from("ab"), st.sampled_from(LEAF)), max_size=30))
def test_folding_at_once_and_event_by_event_give_the_same(steps: list[tuple[str, str, Phase]]) -> None:
    about: dict[str, Json] = {"outcome": "failed", "reason": "x"}
    events = [of(action, name, phase, **about) for action, name, phase in steps]
    whole = after(*events)
    assert set(whole.done).isdisjoint(whole.in_flight) or any(step[0] == "began" for step in steps)
    assert after(*events) == whole
    assert whole.warnings == []


def test_a_work_is_written_and_read_back() -> None:
    for work in PLAN.works:
        assert read_work(write_work(work)) == work
    with pytest.raises(ValueError, match="cooking"):
        read_work("a:cooking")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (THERE, None),
        (ComponentOnDisk(False, True, True, True), "contract is done, but its contract is not there"),
        (ComponentOnDisk(True, False, True, True), "tests is done, but its tests is not there"),
        (ComponentOnDisk(True, True, False, True), "implementation is done, but its implementation"),
        (ComponentOnDisk(True, True, True, False), "its baseline does not match"),
    ],
)
def test_a_phase_that_is_done_without_its_files_is_named(found: ComponentOnDisk, said: str | None) -> None:
    state = after(*(of("finished", "a", phase) for phase in LEAF))
    wrong = inconsistencies(state, {"a": found, "b": THERE})
    assert [said in each for each in wrong] == ([] if said is None else [True])  # type: ignore[operator]


def test_a_phase_that_is_ahead_of_an_earlier_one_is_named() -> None:
    state = after(of("finished", "a", Phase.IMPLEMENTATION))
    assert inconsistencies(state, {"a": THERE, "b": THERE}) == ["a: implementation is done before contract"]


def test_a_component_that_is_not_declared_any_more_is_named() -> None:
    assert inconsistencies(after(), {"a": THERE}) == ["b: the policy does not declare it any more"]


# Resume.


def test_a_run_without_a_checkpoint_is_resumed_from_its_first_phase() -> None:
    strategy = plan_resume(after(), RunStatus.INTERRUPTED, {"a": GONE, "b": GONE})
    assert (strategy.last_checkpoint, strategy.resume_phase) == (None, Phase.CONTRACT)


def test_what_the_disk_shows_as_done_stays_done_and_nothing_else() -> None:
    done = [of("finished", name, phase) for name in "ab" for phase in LEAF[: 3 if name == "a" else 2]]
    state = after(*done, failed("b", Phase.IMPLEMENTATION), event("paused", reason="x"))
    strategy = plan_resume(state, RunStatus.PAUSED, {"a": THERE, "b": GONE})
    assert strategy.completed_components == ("a",)
    assert strategy.cleared == (Work("b", Phase.CONTRACT), Work("b", Phase.TESTS))
    assert strategy.last_checkpoint == Work("b", Phase.TESTS)
    lost = plan_resume(state, RunStatus.PAUSED, {"a": GONE, "b": GONE})
    assert lost.completed_components == ()


def test_a_run_is_never_resumed_later_than_where_it_failed() -> None:
    state = after(failed("a", Phase.TESTS), event("aborted", reason="x"))
    assert plan_resume(state, RunStatus.FAILED, {}, Phase.TESTS).resume_phase is Phase.CONTRACT
    with pytest.raises(UsageError, match="stopped in tests"):
        plan_resume(state, RunStatus.FAILED, {}, Phase.IMPLEMENTATION)


@pytest.mark.parametrize("status", [RunStatus.ACTIVE, RunStatus.COMPLETED])
def test_an_active_or_complete_run_is_not_resumed(status: RunStatus) -> None:
    with pytest.raises(UsageError, match=f"{RUN} is {status.value.removesuffix('d')}"):
        plan_resume(after(), status, {})


def test_an_earlier_phase_that_is_asked_for_is_done_again_with_all_after_it() -> None:
    done = [of("finished", name, phase) for name in "ab" for phase in LEAF]
    state = after(*done, event("paused", reason="x"))
    strategy = plan_resume(state, RunStatus.PAUSED, {"a": THERE, "b": THERE}, Phase.CONTRACT)
    assert len(strategy.cleared) == 6


def test_a_resumed_run_forgets_its_reason_and_keeps_what_was_not_cleared() -> None:
    state = after(
        of("finished", "a", Phase.CONTRACT),
        failed("b", Phase.CONTRACT),
        event("paused", reason="b failed"),
        event("resumed", cleared=["a:contract"], owner={"pid": 2}, reason="b failed"),
    )
    assert (state.status, state.reason, state.resumed) == (RunStatus.ACTIVE, None, 1)
    assert (dict(state.done), dict(state.trouble)) == ({}, {})
