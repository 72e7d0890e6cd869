"""What a fault means for a run: transient, permanent, systemic or failed (requirements D 1.2 and D 1.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.runs.phases import Phase
from patchgate.runs.triage import (
    FaultClass,
    FaultKind,
    RunFault,
    SystemicPattern,
    backoff,
    classify,
    find_systemic,
    is_retried,
)

TRANSIENT = (FaultKind.TEMPORARY, FaultKind.TIME_OUT, FaultKind.CONNECTION, FaultKind.LOCKED)
PERMANENT = (
    *(FaultKind.CONFIG, FaultKind.MISSING_FILE, FaultKind.NOT_STARTED),
    *(FaultKind.DISK_FULL, FaultKind.BUDGET_SPENT),
)
# Of these, three equal ones say nothing of the environment.
OWN = (
    *(FaultKind.TESTS_FAILED, FaultKind.CHECK_FAILED),
    *(FaultKind.PATCH_REFUSED, FaultKind.ANSWER_UNUSABLE),
)


def fault(component: str, kind: FaultKind, subject: str = "", sample: str = "") -> RunFault:
    return RunFault(component, Phase.TESTS, kind, subject, sample)


def same(names: str, kind: FaultKind, subject: str = "", sample: str = "") -> list[RunFault]:
    return [fault(name, kind, subject, sample) for name in names]


def find(faults: list[RunFault], completed: int | None = None, threshold: int = 3) -> SystemicPattern | None:
    many = len({each.component for each in faults}) if completed is None else completed
    return find_systemic(faults, threshold=threshold, completed=many)


@pytest.mark.parametrize("kind", TRANSIENT)
def test_exit_code_75_time_outs_connections_and_locks_are_transient(kind: FaultKind) -> None:
    assert classify(fault("a", kind)) is FaultClass.TRANSIENT


@pytest.mark.parametrize("kind", PERMANENT)
def test_config_missing_files_a_full_disk_and_a_spent_budget_are_permanent(kind: FaultKind) -> None:
    assert classify(fault("a", kind)) is FaultClass.PERMANENT


def test_everything_else_is_the_components_own_failure() -> None:
    others = set(FaultKind) - {*TRANSIENT, *PERMANENT}
    assert {*OWN, FaultKind.IMPORT_ERROR, FaultKind.NOTHING_COLLECTED} <= others
    assert {classify(fault("a", kind)) for kind in others} == {FaultClass.FAILED}


def test_a_transient_fault_is_tried_again_up_to_max_retries() -> None:
    slow = fault("a", FaultKind.TIME_OUT)
    assert [is_retried(slow, tries, 3) for tries in (1, 2, 3, 4)] == [True, True, True, False]
    assert not is_retried(slow, 1, 0)


def test_no_other_fault_is_tried_again() -> None:
    others = [kind for kind in FaultKind if kind not in TRANSIENT]
    assert not any(is_retried(fault("a", kind), 1, 3) for kind in others)


def test_the_wait_doubles_with_each_try_up_to_a_minute() -> None:
    assert [backoff(tries, 1.0) for tries in (1, 2, 3, 4, 5, 6, 100_000)] == [2, 4, 8, 16, 32, 60, 60]


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_wait_is_a_part_of_the_longest_one_that_chance_chooses(tries: int, chance: float) -> None:
    assert backoff(tries, chance) == chance * backoff(tries, 1.0)
    assert 0 <= backoff(tries, chance) <= 60


def test_two_components_that_collected_nothing_are_a_pattern_already() -> None:
    found = find(same("ba", FaultKind.NOTHING_COLLECTED, sample="no tests ran in 0.01s"))
    assert found is not None
    assert found.pattern is FaultKind.NOTHING_COLLECTED
    assert found.affected_components == ("a", "b")
    assert found.sample_error == "no tests ran in 0.01s"
    assert found.recommendation == (
        "2 of 2 collected no tests: compare `tests` and `test_command` of these components with their files; "
        "run git patchgate doctor"
    )
    assert find(same("a", FaultKind.NOTHING_COLLECTED)) is None


def test_where_another_component_had_tests_only_the_threshold_makes_a_pattern() -> None:
    assert find(same("ab", FaultKind.NOTHING_COLLECTED), completed=3) is None
    found = find(same("abc", FaultKind.NOTHING_COLLECTED), completed=4)
    assert found is not None
    assert found.recommendation.startswith("3 of 4 collected no tests: ")


@pytest.mark.parametrize(
    ("subject", "cause"),
    [
        ("pytest", "pytest is not on the PATH of hooks"),
        ("python -m pytest", "pytest is not installed for the Python of hooks"),
    ],
)
def test_the_recommendation_names_the_missing_tool_and_the_next_command(subject: str, cause: str) -> None:
    found = find(same("abcde", FaultKind.NOTHING_COLLECTED, subject))
    assert found is not None
    assert found.recommendation == f"5 of 5 collected no tests: {cause}; run git patchgate doctor"


def test_the_same_import_error_is_a_pattern_at_the_threshold() -> None:
    faults = same("cab", FaultKind.IMPORT_ERROR, "requests", "No module named 'requests'")
    assert find(faults[:2]) is None
    found = find(faults, completed=4)
    assert found is not None
    assert found.signature == "import-error:requests"
    assert found.affected_components == ("a", "b", "c")
    assert found.recommendation == (
        "3 of 4 cannot import requests: install it where commands find it ([environment] in the config), "
        "or fix the import; run git patchgate doctor"
    )


def test_the_same_time_out_is_a_pattern_at_the_threshold() -> None:
    faults = same("abc", FaultKind.TIME_OUT, "coder")
    assert find(faults[:2]) is None
    found = find(faults)
    assert found is not None
    assert found.pattern is FaultKind.TIME_OUT
    assert found.recommendation.startswith("3 of 3 took too long (coder): ")
    assert found.recommendation.endswith("then git patchgate run resume")


def test_different_faults_are_no_pattern() -> None:
    assert find([]) is None
    modules = [fault(name, FaultKind.IMPORT_ERROR, f"module_{name}") for name in "abcde"]
    assert find(modules) is None
    mixed = [
        fault("a", FaultKind.NOTHING_COLLECTED),
        fault("b", FaultKind.IMPORT_ERROR, "requests"),
        fault("c", FaultKind.TIME_OUT, "coder"),
        fault("d", FaultKind.TIME_OUT, "tester"),
    ]
    assert find(mixed) is None


@pytest.mark.parametrize("kind", [*OWN, *PERMANENT])
def test_what_the_environment_did_not_cause_or_ends_a_run_is_no_pattern(kind: FaultKind) -> None:
    assert find(same("abcdef", kind)) is None


def test_one_component_is_counted_once_however_often_it_fails() -> None:
    assert find([fault("a", FaultKind.TIME_OUT, "coder") for _ in range(5)], completed=1) is None
    assert find([fault("a", FaultKind.NOTHING_COLLECTED)] * 2, completed=1) is None


def test_the_threshold_is_the_configs() -> None:
    faults = same("abcde", FaultKind.IMPORT_ERROR, "requests")
    assert [find(faults, threshold=most) is not None for most in (1, 5, 6)] == [True, True, False]
    nothing = same("ab", FaultKind.NOTHING_COLLECTED)
    assert find(nothing, threshold=100) is not None
    assert find(nothing[:1], threshold=1) is not None


def test_of_two_patterns_the_one_with_more_components_is_found() -> None:
    few, many = same("abc", FaultKind.IMPORT_ERROR, "x"), same("defg", FaultKind.LOCKED, "index.lock")
    for faults in (few + many, many + few):
        found = find(faults)
        assert found is not None
        assert (found.signature, found.affected_components) == ("locked:index.lock", tuple("defg"))


@given(st.permutations(same("abc", FaultKind.IMPORT_ERROR, "x") + same("bcd", FaultKind.TIME_OUT, "coder")))
def test_the_order_of_the_faults_does_not_matter(faults: list[RunFault]) -> None:
    found = find(faults)
    assert found is not None
    assert found.signature == "import-error:x"
    assert found.affected_components == ("a", "b", "c")


def test_a_fault_of_the_pattern_is_systemic_and_another_is_not() -> None:
    faults = same("abc", FaultKind.TIME_OUT, "coder")
    found = find(faults)
    assert {classify(each, found) for each in faults} == {FaultClass.SYSTEMIC}
    assert classify(fault("d", FaultKind.TIME_OUT, "tester"), found) is FaultClass.TRANSIENT
    assert classify(fault("d", FaultKind.TESTS_FAILED), found) is FaultClass.FAILED
    assert classify(fault("d", FaultKind.DISK_FULL), found) is FaultClass.PERMANENT


@pytest.mark.parametrize("kind", [kind for kind in FaultKind if kind not in {*OWN, *PERMANENT}])
@pytest.mark.parametrize("subject", ["", "thing {0}"])
def test_every_recommendation_says_how_many_and_ends_with_a_command(kind: FaultKind, subject: str) -> None:
    found = find(same("abc", kind, subject, "it said {no}"), completed=7)
    assert found is not None
    assert found.recommendation.startswith("3 of 7 ")
    assert found.recommendation.endswith(("run git patchgate doctor", "then git patchgate run resume"))
    assert "{about}" not in found.recommendation
