"""How long an author may work, and when a run is idle (requirements D 4.2 and D 1.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.runs.timeouts import (
    ROLE_SECONDS,
    Activity,
    ActivityKind,
    Impatience,
    limit_seconds,
    wall_seconds,
)

KINDS = pytest.mark.parametrize("kind", ActivityKind)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize("role", ["decomposer", "contract_author", "test_author", "code_author"])
def test_an_author_has_300_seconds(role: str) -> None:
    assert limit_seconds(role) == 300


def test_a_trace_analyst_has_180_seconds() -> None:
    assert limit_seconds("trace_analyst") == 180
    assert limit_seconds("trace_analyst", Impatience.PATIENT) == 360


def test_an_unknown_role_has_300_seconds() -> None:
    assert [limit_seconds("somebody"), limit_seconds(None), limit_seconds("")] == [300, 300, 300]


def test_impatience_doubles_or_halves_the_limit() -> None:
    assert [limit_seconds("code_author", each) for each in Impatience] == [600, 300, 150]
    assert limit_seconds("code_author", Impatience("impatient")) == 150


@pytest.mark.parametrize(
    ("timeout", "impatience", "wall"),
    [
        (600, Impatience.NORMAL, 600),
        (600, Impatience.PATIENT, 1200),
        (600, Impatience.IMPATIENT, 300),
        (40, Impatience.IMPATIENT, 30),
        (10, Impatience.IMPATIENT, 10),
        (10, Impatience.PATIENT, 20),
    ],
)
def test_impatience_limits_a_call_in_all(timeout: float, impatience: Impatience, wall: float) -> None:
    assert wall_seconds(timeout, "code_author", impatience) == wall
    assert wall_seconds(timeout, "code_author", impatience, {"trace_analyst": 9000}) == wall
    assert wall_seconds(timeout, "code_author", impatience, {"code_author": 9000}) >= 4500


@given(
    st.sampled_from([None, "new", *ROLE_SECONDS]),
    st.sampled_from(Impatience),
    st.dictionaries(st.sampled_from(["new", *ROLE_SECONDS]), st.floats(0, 1e6)),
)
def test_no_limit_is_under_30_seconds(
    role: str | None, impatience: Impatience, overrides: dict[str, float]
) -> None:
    assert limit_seconds(role, impatience, overrides) >= 30


def test_a_limit_of_the_config_counts_before_impatience_and_for_its_role_alone() -> None:
    overrides = {"code_author": 100.0, "somebody": 80.0}
    assert limit_seconds("code_author", Impatience.PATIENT, overrides) == 200
    assert limit_seconds("code_author", Impatience.IMPATIENT, overrides) == 50
    assert limit_seconds("somebody", Impatience.IMPATIENT, overrides) == 40
    assert limit_seconds("test_author", Impatience.NORMAL, overrides) == 300
    assert limit_seconds("code_author", Impatience.IMPATIENT, {"code_author": 40.0}) == 30


@KINDS
def test_output_and_transitions_are_activity(kind: ActivityKind, clock: Clock) -> None:
    activity = Activity(clock)
    clock.now += 100
    assert activity.idle_seconds == 100
    activity.record(kind)
    assert activity.idle_seconds == 0
    clock.now += 70
    assert activity.idle_seconds == 70


def test_what_does_nothing_for_the_limit_is_idle_and_not_before(clock: Clock) -> None:
    activity = Activity(clock)
    clock.now += 299.9
    assert not activity.is_idle(300)
    clock.now += 0.1
    assert activity.is_idle(300)
    activity.record(ActivityKind.OUTPUT)
    assert not activity.is_idle(300)


def test_nothing_is_idle_within_60_seconds_of_a_transition(clock: Clock) -> None:
    activity = Activity(clock)
    activity.record(ActivityKind.TRANSITION)
    clock.now += 59.9
    assert not activity.is_idle(30)
    clock.now += 0.1
    assert activity.is_idle(30)
    # Other activity does not begin a new minute, and does not end the one of a transition.
    activity.record(ActivityKind.TRANSITION)
    clock.now += 20
    activity.record(ActivityKind.OUTPUT)
    clock.now += 39
    assert not activity.is_idle(30)
    clock.now += 1
    assert activity.is_idle(30)


def test_the_begin_of_a_run_is_activity_but_no_transition(clock: Clock) -> None:
    activity = Activity(clock)
    assert not activity.is_idle(30)
    clock.now += 30
    assert activity.is_idle(30)


def test_a_clock_that_jumps_back_makes_nothing_idle(clock: Clock) -> None:
    activity = Activity(clock)
    clock.now -= 500
    assert activity.idle_seconds == 0
    assert not activity.is_idle(30)
