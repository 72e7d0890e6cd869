"""Thresholds before and after: what fails, by which signals, and whose they are."""

from __future__ import annotations

from patchgate.commands.analysis_results import (
    AnalysisComparison,
    Measurement,
    ThresholdState,
    WorsenedMetric,
)
from patchgate.git.path import RepoPath
from patchgate.intents.intent import IntentScope
from patchgate.policy.settings import ThresholdSettings
from patchgate.verify.regressions import compare, is_caused_by
from patchgate.verify.verification_verdict import ownership_test, split_by_owner
from tests.verify.analysis_cases import found, measured, path, report, scope_of

LIMIT = ThresholdSettings("complexity", "complexity", 10)
NEW = ThresholdSettings("no-new", "findings:new", 0)


def compared(
    before: list[Measurement], after: list[Measurement], *thresholds: ThresholdSettings
) -> AnalysisComparison:
    """Compare the metrics of two trees."""
    return compare(report("before", measurements=before), report("after", measurements=after), thresholds, {})


def state(before: list[Measurement], after: list[Measurement]) -> ThresholdState:
    """Give the state of the threshold on complexity."""
    (only,) = compared(before, after, LIMIT).thresholds
    return only


def causes(
    compared: AnalysisComparison, scope: IntentScope, dirty: frozenset[RepoPath] = frozenset()
) -> bool:
    """Tell whether the work of a scope made the only threshold of a comparison worse."""
    is_own = ownership_test(scope, dirty, AnalysisComparison())
    own, worsened = split_by_owner(compared.new, is_own)[0], split_by_owner(compared.worsened, is_own)[0]
    (only,) = compared.thresholds
    return is_caused_by(only, (*own, *worsened))


def test_a_limit_is_inclusive() -> None:
    assert not state([], [measured("a.py", 10)]).fails_after
    assert state([], [measured("a.py", 10.5)]).fails_after


def test_a_threshold_that_failed_before_has_not_worsened() -> None:
    """A9: only what held before and fails after is worse, even where the value rises."""
    found = state([measured("a.py", 11)], [measured("a.py", 15)])
    assert found.failed_before
    assert found.fails_after
    assert not found.has_worsened


def test_a_threshold_that_held_before_and_fails_after_has_worsened() -> None:
    """A9."""
    found = state([measured("a.py", 9)], [measured("a.py", 12), measured("b.py", 3)])
    assert (found.before, found.after) == (9, 12)
    assert found.has_worsened
    assert found.over == (WorsenedMetric(path("a.py"), "f", "complexity", 9, 12),)


def test_a_new_symbol_over_a_threshold_worsened_from_nothing() -> None:
    """A10: one under the limit did not, and one whose metric no threshold limits neither."""
    after = [measured("a.py", 11, "big"), measured("a.py", 9, "small"), measured("a.py", 99, "x", "lines")]
    assert compared([], after, LIMIT).worsened == (
        WorsenedMetric(path("a.py"), "big", "complexity", None, 11),
    )


def test_the_least_of_two_limits_of_one_metric_decides_on_a_new_symbol() -> None:
    lower = ThresholdSettings("low", "complexity", 5)
    assert len(compared([], [measured("a.py", 7)], LIMIT, lower).worsened) == 1
    assert len(compared([], [measured("a.py", 7)], lower, LIMIT).worsened) == 1
    assert len(compared([], [measured("a.py", 7)], LIMIT).worsened) == 0


def test_a_higher_value_is_worse_and_a_lower_or_equal_one_is_not() -> None:
    before = [measured("a.py", 3, name) for name in "abc"]
    after = [measured("a.py", value, name) for value, name in ((2, "a"), (3, "b"), (4, "c"))]
    assert compared(before, after).worsened == (WorsenedMetric(path("a.py"), "c", "complexity", 3, 4),)


def test_of_two_values_of_one_symbol_the_higher_counts() -> None:
    doubled = [measured("a.py", 4), measured("a.py", 2)]
    assert compared(doubled, [measured("a.py", 4)]).worsened == ()
    assert compared([measured("a.py", 4)], doubled).worsened == ()
    assert compared([measured("a.py", 3)], doubled[::-1]).worsened[0].after == 4


def test_a_renamed_file_keeps_its_metrics() -> None:
    before, after = (
        report(when, measurements=[measured(name, 12)])
        for when, name in (("before", "a.py"), ("after", "b.py"))
    )
    moved = compare(before, after, (LIMIT,), {path("b.py"): path("a.py")})
    assert moved.worsened == ()
    assert moved.thresholds[0].over[0] == WorsenedMetric(path("b.py"), "f", "complexity", 12, 12)
    assert compare(before, after, (LIMIT,), {}).worsened[0].before is None


def test_a_metric_that_nobody_tells_does_not_fail() -> None:
    assert state([], []) == ThresholdState("complexity", "complexity", 10, None, None, False, False)


def test_a_metric_that_is_told_no_more_does_not_fail_and_has_no_value() -> None:
    gone = state([measured("a.py", 12)], [])
    assert (gone.before, gone.after, gone.failed_before, gone.fails_after) == (12, None, True, False)


def test_the_values_of_another_metric_count_for_nothing() -> None:
    lines = [measured("a.py", 500, "f", "lines")]
    both = state([*lines, measured("a.py", 3)], [*lines, measured("a.py", 4)])
    assert (both.before, both.after, both.failed_before, both.fails_after, both.over) == (
        3,
        4,
        False,
        False,
        (),
    )


def test_new_findings_are_counted_against_their_limit() -> None:
    two = ThresholdSettings("two", "findings:new", 2)
    before, after = report("before", [found("a.py")]), [found("a.py"), found("b.py"), found("c.py")]
    none, some = compare(before, report("after", after), (NEW, two), {}).thresholds
    assert (none.before, none.after, none.fails_after, none.has_worsened) == (0, 2, True, True)
    assert none.over == (found("b.py"), found("c.py"))
    assert (some.after, some.fails_after, some.over) == (2, False, ())


def test_all_findings_are_counted_and_the_new_ones_are_over_the_limit() -> None:
    limit = ThresholdSettings("all", "findings", 1)
    one, two = [found("a.py")], [found("a.py"), found("b.py")]
    (crossed,) = compare(report("before", one), report("after", two), (limit,), {}).thresholds
    assert (crossed.before, crossed.after, crossed.has_worsened) == (1, 2, True)
    assert crossed.over == (found("b.py"),)
    (stood,) = compare(report("before", two), report("after", two), (limit,), {}).thresholds
    assert (stood.failed_before, stood.fails_after, stood.over) == (True, True, ())


def test_what_an_intent_caused_is_told_by_its_own_symbols_of_that_metric() -> None:
    """A10 and A11: one of its symbols rose and the threshold got worse; over the limit it need not be."""
    before = [measured("in.py", 1), measured("out.py", 9)]
    for after, is_caused in (
        ([measured("in.py", 2), measured("out.py", 12)], True),
        ([measured("in.py", 1), measured("out.py", 12)], False),
        ([measured("in.py", 0), measured("out.py", 12)], False),
        ([measured("in.py", 1), measured("in.py", 5, "new"), measured("out.py", 12)], False),
        ([measured("in.py", 1), measured("in.py", 9, name="lines"), measured("out.py", 12)], False),
        ([measured("in.py", 2), measured("out.py", 10)], False),
    ):
        assert causes(compared(before, after, LIMIT), scope_of("in.py")) is is_caused
    # Every signal counts, not the largest ones alone.
    many = [measured(f"out{number}.py", 90 + number) for number in range(25)]
    crossed = compared([], [*many, measured("in.py", 11)], LIMIT)
    assert len(crossed.thresholds[0].over) == 26
    assert causes(crossed, scope_of("in.py"))
    new = compared([measured("in.py", 1, "old")], [measured("in.py", 11, "new")], LIMIT)
    assert causes(new, scope_of("in.py"))


def test_a_threshold_that_failed_before_counts_where_it_is_worse() -> None:
    """A9: one that fails as it did before is nobody's; a higher value, or another symbol, is the change's."""
    before = [measured("in.py", 11), measured("out.py", 15)]
    for after, is_worse in (
        (before, False),
        ([measured("in.py", 12), measured("out.py", 15)], True),
        ([measured("in.py", 11), measured("out.py", 14)], False),
        ([*before, measured("new.py", 11)], True),
        ([*before, measured("new.py", 10)], False),
        ([measured("in.py", 11), measured("out.py", 30)], True),
    ):
        found = state(before, after)
        assert (found.failed_before, found.fails_after, found.has_worsened) == (True, True, False)
        assert (found.is_worse, found.is_preexisting) == (is_worse, not is_worse)
    assert not state([measured("in.py", 11)], [measured("in.py", 9)]).is_preexisting
    assert causes(compared(before, [measured("in.py", 12), before[1]], LIMIT), scope_of("in.py"))
    assert not causes(
        compared(before, [measured("in.py", 11), measured("out.py", 16)], LIMIT), scope_of("in.py")
    )


def test_of_all_findings_the_number_says_whether_it_is_worse() -> None:
    limit = ThresholdSettings("all", "findings", 1)
    before = report("before", [found("a.py"), found("b.py")])
    for after, is_worse in ((["a.py", "c.py"], False), (["a.py", "b.py", "c.py"], True), (["a.py"], False)):
        (only,) = compare(before, report("after", map(found, after)), (limit,), {}).thresholds
        assert only.is_worse is is_worse


def test_a_finding_without_a_path_that_is_over_the_limit_is_the_intents() -> None:
    """A5."""
    for name, is_caused in (("", True), ("out.py", False)):
        new = compare(report("before"), report("after", [found(name)]), (NEW,), {})
        assert causes(new, scope_of("in.py")) is is_caused


def test_nothing_that_is_over_a_limit_in_a_dirty_file_is_a_cause() -> None:
    scope, dirty = scope_of("in.py", "was.py"), frozenset({path("was.py")})
    crossed = compared([], [measured("was.py", 12)], LIMIT)
    assert not causes(crossed, scope, dirty)
    assert causes(crossed, scope)
    assert causes(compared([], [measured("was.py", 12), measured("in.py", 11)], LIMIT), scope, dirty)
    new = compare(report("before"), report("after", [found("was.py")]), (NEW,), {})
    assert not causes(new, scope, dirty)
    both = compare(report("before"), report("after", [found("was.py"), found("")]), (NEW,), {})
    assert causes(both, scope, dirty)


def test_two_thresholds_of_one_metric_are_held_apart() -> None:
    """A9: one of them failed before, the other is crossed now."""
    low, high = ThresholdSettings("low", "complexity", 5), LIMIT
    first, second = compared([measured("a.py", 8)], [measured("a.py", 12)], low, high).thresholds
    assert (first.has_worsened, second.has_worsened) == (False, True)
