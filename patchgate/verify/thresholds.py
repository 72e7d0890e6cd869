"""What the thresholds say before and after, and by which signals each of them is passed.

Decides when a metric is worse, when a threshold fails, which signals are over it, and whether a piece of work
caused that: it did where the threshold is worse, and the metric rose in one of the work's own files. What is
the same symbol is its file, its name and the metric; of two values of one, the higher counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from patchgate.commands.results import Result, ThresholdState, TreeRuns, Worsened
from patchgate.git.path import RepoPath
from patchgate.policy.analysis_texts import FINDINGS, NEW_FINDINGS
from patchgate.policy.settings import ThresholdSettings

Values: TypeAlias = dict[tuple[RepoPath, str, str], float]
"""The value of each path, symbol and metric."""


def highest(runs: TreeRuns, moved: Mapping[RepoPath, RepoPath]) -> Values:
    """Gather what the analyses measured.

    Args:
        runs: of one tree.
        moved: files that have another path in the other tree: path here to path there.
    """
    values: Values = {}
    for name in sorted(runs.runs):
        for each in runs.runs[name].measurements:
            key = (moved.get(each.path, each.path), each.symbol, each.name)
            values[key] = max(each.value, values.get(key, each.value))
    return values


def worse(before: Values, after: Values, thresholds: Sequence[ThresholdSettings]) -> tuple[Worsened, ...]:
    """Give the metrics that are higher than before, and new symbols that are over a threshold."""
    least: dict[str, float] = {}
    for threshold in thresholds:
        least[threshold.metric] = min(threshold.max, least.get(threshold.metric, threshold.max))
    found = []
    for key, value in after.items():
        old = before.get(key)
        limit = least.get(key[2])
        if (value > old) if old is not None else (limit is not None and value > limit):
            found.append(Worsened(*key, old, value))
    return tuple(sorted(found, key=lambda each: (each.path.raw, each.symbol, each.name)))


def states(
    thresholds: Sequence[ThresholdSettings],
    before: Values,
    after: Values,
    *,
    findings: tuple[int, int],
    new: tuple[Result, ...],
) -> tuple[ThresholdState, ...]:
    """Hold both trees against every threshold, in the order of the policy.

    Args:
        thresholds: the limits; a limit is inclusive.
        before: the values of the tree before.
        after: those of the tree after.
        findings: how many findings there were, and are.
        new: the findings that were not there before.
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


def caused_by(state: ThresholdState, own: Sequence[Result | Worsened]) -> bool:
    """Tell whether a piece of work made a threshold worse (A10).

    Args:
        own: its own new findings, and its own symbols of which a metric rose.
    """
    if not state.is_worse:
        return False
    if state.metric in {FINDINGS, NEW_FINDINGS}:
        return any(isinstance(each, Result) for each in own)
    return any(isinstance(each, Worsened) and each.name == state.metric for each in own)


def _by_metric(values: Values) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for key, value in values.items():
        found.setdefault(key[2], {})[key] = value
    return found


def _of_metric(threshold: ThresholdSettings, before: Values, after: Values) -> ThresholdState:
    """Hold the values of the metric of a threshold against it."""
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
        tuple(Worsened(*key, before.get(key), after[key]) for key in over),
    )
