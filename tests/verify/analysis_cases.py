"""Builders of reports for the tests of comparisons and verifications: a report in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from patchgate.commands.analysis_results import (
    AnalysisOutcome,
    AnalysisResult,
    AnalysisRun,
    Measurement,
    TreeRuns,
)
from patchgate.git.path import RepoPath
from patchgate.intents.intent import Intent, IntentScope, Moment, State

TREES = {"before": "1" * 40, "after": "2" * 40}


def path(name: str | bytes) -> RepoPath:
    """Make a path."""
    return RepoPath(name if isinstance(name, bytes) else name.encode())


def found(where: str, rule: str = "F401", mark: str = "m", line: int = 1, *more: str) -> AnalysisResult:
    """Make a finding of ruff at `where`, which also names the files `more`; without a path if it is empty."""
    paths = tuple(path(name) for name in (where, *more) if name)
    return AnalysisResult("ruff", "ruff", rule, "error", f"{rule} here", paths, line if paths else None, mark)


def measured(where: str, value: float, symbol: str = "f", name: str = "complexity") -> Measurement:
    """Make the measurement of one symbol."""
    return Measurement("ruff", path(where), symbol, name, value)


def report(
    when: str = "after",
    results: Iterable[AnalysisResult] = (),
    measurements: Iterable[Measurement] = (),
    suppressed: Iterable[AnalysisResult] = (),
    *,
    outcome: AnalysisOutcome = AnalysisOutcome.FINDINGS,
    analyses: str = "sha256:a",
) -> TreeRuns:
    """Make the report of one of the two trees."""
    tree = TREES[when]
    run = AnalysisRun(
        "ruff",
        f"key-{tree}",
        f"sha256:{when}",
        outcome,
        "/usr/bin/ruff",
        reason=None if outcome is not AnalysisOutcome.NOT_EVALUATED else "the analysis `ruff` wrote no SARIF",
        hint=None if outcome is not AnalysisOutcome.NOT_EVALUATED else "let it write SARIF",
        results=tuple(results),
        suppressed=tuple(suppressed),
        measurements=tuple(measurements),
    )
    return TreeRuns(tree, analyses, {"ruff": run})


def scope_of(*allowed: str, related: Iterable[str] = (), forbidden: Iterable[str] = ()) -> IntentScope:
    """Make a scope."""
    return IntentScope(tuple(map(path, allowed)), tuple(map(path, related)), tuple(map(path, forbidden)))


def intent_of(
    scope: IntentScope,
    state: State = State.ACTIVE,
    dirty: Mapping[RepoPath, tuple[str | None, ...]] | None = None,
) -> Intent:
    """Make an intent."""
    return Intent(
        "i-1",
        "why",
        scope,
        "/w",
        "/w/.git",
        "3" * 40,
        TREES["before"],
        Moment(1.0),
        3600,
        300,
        dirty or {},
        "sha256:a",
        state,
    )
