"""Compare the analyses of two trees, and check the thresholds before and after.

Two results are equal by analysis, tool, rule, path and mark, each as often as it occurs; line numbers do not
count. A symbol is identified by file, name and metric; of two values the higher counts. Does not decide who
caused a regression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from patchgate.commands.analysis_results import (
    AnalysisComparison,
    AnalysisResult,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.commands.finding_identity import differing, exact_keys
from patchgate.git.path import RepoPath
from patchgate.policy.settings import ThresholdSettings
from patchgate.policy.validators import FINDINGS, NEW_FINDINGS

Values: TypeAlias = dict[tuple[RepoPath, str, str], float]
"""The value of each path, symbol and metric."""


def highest_values(runs: TreeRuns, moved: Mapping[RepoPath, RepoPath]) -> Values:
    """Return the highest value of each symbol and metric.

    Args:
        runs: the runs of one tree.
        moved: renamed files: path in this tree to path in the other tree.
    """
    values: Values = {}
    for name in sorted(runs.runs):
        for each in runs.runs[name].measurements:
            key = (moved.get(each.path, each.path), each.symbol, each.name)
            values[key] = max(each.value, values.get(key, each.value))
    return values


def find_worsened(
    before: Values, after: Values, thresholds: Sequence[ThresholdSettings]
) -> tuple[WorsenedMetric, ...]:
    """Return the metrics that are higher than before, and new symbols over a threshold."""
    least: dict[str, float] = {}
    for threshold in thresholds:
        least[threshold.metric] = min(threshold.max, least.get(threshold.metric, threshold.max))
    found = []
    for key, value in after.items():
        old = before.get(key)
        limit = least.get(key[2])
        if (value > old) if old is not None else (limit is not None and value > limit):
            found.append(WorsenedMetric(*key, old, value))
    return tuple(sorted(found, key=lambda each: (each.path.raw, each.symbol, each.name)))


def threshold_states(
    thresholds: Sequence[ThresholdSettings],
    before: Values,
    after: Values,
    *,
    findings: tuple[int, int],
    new: tuple[AnalysisResult, ...],
) -> tuple[ThresholdState, ...]:
    """Check every threshold on both trees, in the order of the policy.

    Args:
        thresholds: the limits; a limit is inclusive.
        before: the values of the tree before.
        after: those of the tree after.
        findings: the number of findings before and after.
        new: the new findings.
    """
    numbers = {FINDINGS: findings, NEW_FINDINGS: (0, len(new))}
    # Grouped once: there may be many thresholds, and many values.
    old_values, values = _by_metric(before), _by_metric(after)
    found = []
    for each in thresholds:
        if each.metric in numbers:
            old, now = numbers[each.metric]
            fails = now > each.max
            over = new if fails else ()
            state = ThresholdState(each.name, each.metric, each.max, old, now, old > each.max, fails, over)
        else:
            state = _of_metric(each, old_values.get(each.metric, {}), values.get(each.metric, {}))
        found.append(state)
    return tuple(found)


def is_caused_by(state: ThresholdState, own: Sequence[AnalysisResult | WorsenedMetric]) -> bool:
    """Check whether the work made a threshold worse (A10).

    Args:
        own: its new findings, and its symbols with a higher metric.
    """
    if not state.is_worse:
        return False
    if state.metric in {FINDINGS, NEW_FINDINGS}:
        return any(isinstance(each, AnalysisResult) for each in own)
    return any(isinstance(each, WorsenedMetric) and each.name == state.metric for each in own)


def _by_metric(values: Values) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for key, value in values.items():
        found.setdefault(key[2], {})[key] = value
    return found


def _of_metric(threshold: ThresholdSettings, before: Values, after: Values) -> ThresholdState:
    """Check a threshold on the values of its metric."""
    old, now = max(before.values(), default=None), max(after.values(), default=None)
    over = sorted(
        (key for key, value in after.items() if value > threshold.max),
        key=lambda key: (-after[key], key[0].raw, key[1]),
    )
    return ThresholdState(
        threshold.name,
        threshold.metric,
        threshold.max,
        old,
        now,
        old is not None and old > threshold.max,
        now is not None and now > threshold.max,
        tuple(WorsenedMetric(*key, before.get(key), after[key]) for key in over),
    )


_LooseKey: TypeAlias = tuple[str, str, str, bytes | None]


def compare(
    before: TreeRuns,
    after: TreeRuns,
    thresholds: Sequence[ThresholdSettings],
    renamed: Mapping[RepoPath, RepoPath],
) -> AnalysisComparison:
    """Compare the analyses of two trees.

    Args:
        before: the runs on the tree before.
        after: the runs of the same analyses on the tree after.
        thresholds: the limits of the policy.
        renamed: renamed files: new path to old path.
    """
    moved = {old: new for new, old in renamed.items()}
    had, has = _all(before, suppressed=False), _all(after, suppressed=False)
    new, fixed = differing(had, has, moved)
    was_hidden, is_hidden = _all(before, suppressed=True), _all(after, suppressed=True)
    hidden, _ = differing(was_hidden, is_hidden, moved)
    old_values, values = highest_values(before, moved), highest_values(after, {})
    in_order = _in_order(new)
    return AnalysisComparison(
        new=in_order,
        fixed=_in_order(_still_there(fixed, hidden, moved)),
        unchanged=len(has) - len(new),
        worsened=find_worsened(old_values, values, thresholds),
        thresholds=threshold_states(
            thresholds, old_values, values, findings=(len(had), len(has)), new=in_order
        ),
        suppressed=_in_order(_more_of_a_kind(hidden, was_hidden, is_hidden, moved)),
    )


def _all(runs: TreeRuns, *, suppressed: bool) -> list[AnalysisResult]:
    return [
        result
        for name in sorted(runs.runs)
        for result in (runs.runs[name].suppressed if suppressed else runs.runs[name].results)
    ]


def _more_of_a_kind(
    hidden: Iterable[AnalysisResult],
    before: Iterable[AnalysisResult],
    after: Iterable[AnalysisResult],
    moved: Mapping[RepoPath, RepoPath],
) -> list[AnalysisResult]:
    """Keep as many new suppressions as there are more of their kind; the last in the file."""
    more = Counter(_loose_keys(after, {})) - Counter(_loose_keys(before, moved))
    found: list[AnalysisResult] = []
    for each in reversed(_in_order(hidden)):
        (kind,) = _loose_keys([each], {})
        if more[kind]:
            more[kind] -= 1
            found.append(each)
    return found


def _loose_keys(results: Iterable[AnalysisResult], moved: Mapping[RepoPath, RepoPath]) -> list[_LooseKey]:
    """Return the keys to count suppressed results by: the identity without the mark."""
    return [key[:4] for key in exact_keys(results, moved)]


def _still_there(
    fixed: Iterable[AnalysisResult], hidden: Sequence[AnalysisResult], moved: Mapping[RepoPath, RepoPath]
) -> list[AnalysisResult]:
    """Remove results that are only suppressed now: they were not fixed."""
    left = Counter(exact_keys(hidden, {}))
    found: list[AnalysisResult] = []
    for result in fixed:
        (key,) = exact_keys([result], moved)
        if left[key]:
            left[key] -= 1
        else:
            found.append(result)
    return found


def _in_order(results: Iterable[AnalysisResult]) -> tuple[AnalysisResult, ...]:
    return tuple(
        sorted(
            results,
            key=lambda each: (
                each.paths[0].raw if each.paths else b"",
                each.line or 0,
                each.analysis,
                each.rule,
                each.mark,
            ),
        )
    )
