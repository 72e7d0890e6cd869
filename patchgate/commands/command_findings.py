"""The findings and metrics of a command, and which of them a change brings: by the identity of `verify`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from patchgate.commands.analysis import add_output
from patchgate.commands.analysis_results import AnalysisOutcome, AnalysisResult, AnalysisRun, Measurement
from patchgate.commands.command_answer import MOST_LINES
from patchgate.commands.command_plan import CommandEnvironment, CommandPlan, answers_of, plan_before
from patchgate.commands.command_target import CommandTarget
from patchgate.commands.command_trial import CommandTrial, run_trials
from patchgate.commands.finding_identity import ExactKey, exact_keys, surplus
from patchgate.commands.remembered_answers import RememberedAnswers, digest
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.policy.settings import ThresholdSettings
from patchgate.values import dataclass, replace

_MOST_LINE = 400


@dataclass(frozen=True, slots=True)
class NewFindings:
    """What refuses a change: how many findings, the first of them as lines, the place of the first.

    `old` counts the findings that were there before.
    """

    count: int
    lines: tuple[str, ...]
    old: int
    path: RepoPath | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class _Before:
    """The findings of the tree before by identity, and the highest value of each metric."""

    counts: Counter[ExactKey]
    values: Mapping[tuple[str, str, str], float]


def judge_findings(
    trial: CommandTrial,
    target: CommandTarget,
    environment: CommandEnvironment,
    answers: RememberedAnswers,
    thresholds: Sequence[ThresholdSettings],
) -> NewFindings | tuple[str, str | None]:
    """Read what a command reported, and compare it with the tree before if it is `new_only`.

    Returns:
        What refuses the change; or why there is no answer, as a predicate with its next step.

    Raises:
        UndecidedError: the scratch tree of the tree before cannot be made.
    """
    run = _read(trial, target, environment)
    settings = trial.plan.settings
    if run.outcome is AnalysisOutcome.NOT_EVALUATED:
        return _predicate(run), run.hint
    limits = _limits(thresholds)
    results, over = list(run.results), [each for each in run.measurements if _is_over(each, limits)]
    everything = len(results) + len(over)
    if settings.new_only and everything:
        known = _before(trial.plan, target, environment, answers)
        if isinstance(known, tuple):
            return known
        moved = target.moved()
        keys = exact_keys(results, moved)
        results = surplus(results, keys, Counter(keys), known.counts)
        over = [each for each in over if _is_worse(each, known, moved)]
    results.sort(key=lambda each: (each.path.raw if each.path else b"", each.line or 0))
    lines = [_result_line(each) for each in results] + [_metric_line(each, limits) for each in over]
    first = results[0] if results else None
    return NewFindings(
        count=len(lines),
        lines=tuple(lines[:MOST_LINES]),
        old=everything - len(lines),
        path=first.path if first is not None else next((each.path for each in over), None),
        line=first.line if first is not None else None,
    )


def _read(trial: CommandTrial, target: CommandTarget, environment: CommandEnvironment) -> AnalysisRun:
    run = AnalysisRun(trial.plan.name, "", "", AnalysisOutcome.NOT_EVALUATED)
    mask = environment.mask_of(trial.plan.settings.env)
    for ended, (_, output, _) in zip(trial.ended, trial.parts, strict=False):
        run = add_output(
            run,
            trial.plan.settings,
            ended,
            output,
            place=trial.place,
            text_of=target.lines(),
            mask=mask,
        )
        if run.reason is not None:
            return replace(run, outcome=AnalysisOutcome.NOT_EVALUATED)
    return run


def _predicate(run: AnalysisRun) -> str:
    return (run.reason or "").removeprefix(f"the analysis `{run.analysis}` ")


def _before(
    plan: CommandPlan, target: CommandTarget, environment: CommandEnvironment, answers: RememberedAnswers
) -> _Before | tuple[str, str | None]:
    """Return what the command reports of the tree before; it is remembered."""
    before = target.before()
    old = plan_before(plan, target, environment.environ)
    if not old.files and plan.files:
        return _Before(Counter(), {})
    name = digest(["before", sorted(answers_of(old, before).values())])
    kept = answers.value(old.context, name) if plan.settings.remember else None
    if kept is not None:
        return _from_json(kept)
    found: list[_Before | tuple[str, str | None]] = []

    def use(trial: CommandTrial) -> None:
        if trial.fault is not None:
            found.append((f"{trial.fault[0]}, on the tree before", trial.fault[1]))
            return
        run = _read(trial, before, environment)
        if run.outcome is AnalysisOutcome.NOT_EVALUATED:
            found.append((f"{_predicate(run)}, on the tree before", run.hint))
            return
        plain = _to_json(run)
        if plan.settings.remember:
            answers.keep(old.context, values={name: plain})
        found.append(_from_json(plain))

    run_trials(before, [old], environment, use)
    return found[0]


def _to_json(run: AnalysisRun) -> dict[str, Any]:
    keys = [
        [*key[:3], None if key[3] is None else key[3].decode("utf-8", "surrogateescape"), key[4]]
        for key in exact_keys(run.results, {})
    ]
    values = [
        [each.path.raw.decode("utf-8", "surrogateescape"), each.symbol, each.name, each.value]
        for each in run.measurements
    ]
    return {"keys": keys, "values": values}


def _from_json(plain: Mapping[str, Any]) -> _Before:
    counts: Counter[ExactKey] = Counter(
        (tool, name, rule, None if path is None else path.encode("utf-8", "surrogateescape"), mark)
        for tool, name, rule, path, mark in plain["keys"]
    )
    values: dict[tuple[str, str, str], float] = {}
    for path, symbol, name, value in plain["values"]:
        key = (path, symbol, name)
        values[key] = max(value, values.get(key, value))
    return _Before(counts, values)


def _limits(thresholds: Sequence[ThresholdSettings]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for each in thresholds:
        limits[each.metric] = min(each.max, limits.get(each.metric, each.max))
    return limits


def _is_over(measured: Measurement, limits: Mapping[str, float]) -> bool:
    limit = limits.get(measured.name)
    return limit is not None and measured.value > limit


def _is_worse(measured: Measurement, before: _Before, moved: Mapping[RepoPath, RepoPath]) -> bool:
    path = moved.get(measured.path, measured.path).raw.decode("utf-8", "surrogateescape")
    value = before.values.get((path, measured.symbol, measured.name))
    return value is None or measured.value > value


def _result_line(found: AnalysisResult) -> str:
    where = "" if found.path is None else f"{found.path.quoted}:{found.line or 1}: "
    return printable(f"{where}{found.rule} {found.message}".replace("\n", " "), _MOST_LINE)


def _metric_line(measured: Measurement, limits: Mapping[str, float]) -> str:
    what = f"{measured.name} {measured.value:g} of {measured.symbol or 'the file'}"
    return printable(f"{measured.path.quoted}: {what} is more than {limits[measured.name]:g}", _MOST_LINE)
