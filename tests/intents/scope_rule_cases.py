"""For every rule of scope and verification what breaks it, and the nearest neighbour that does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from patchgate.commands.analysis_results import (
    AnalysisOutcome,
    AnalysisResult,
    AnalysisRun,
    Measurement,
    TreeRuns,
)
from patchgate.intents import scope
from patchgate.intents.budget import SpentBudget, budget_findings
from patchgate.intents.intent import Intent, IntentBudget, IntentScope, Moment, State
from patchgate.policy.settings import ThresholdSettings
from patchgate.report.verdict import Finding
from patchgate.verify.regressions import compare
from patchgate.verify.verification_reasons import findings_of
from patchgate.verify.verification_verdict import VerificationInputs, decide
from tests.check.gate_cases import path

Findings = Callable[[bytes], Sequence[Finding]]
NOW = Moment(1_700_000_000.0)
SPENT = SpentBudget(attempts=2, added_lines=3, seconds=119)
MOST = (ThresholdSettings("limit", "height", 10),)


def intent(*allowed: bytes, forbidden: Sequence[bytes] = ()) -> Intent:
    """Declare these files, an hour long."""
    declared = IntentScope(tuple(map(path, allowed)), (), tuple(map(path, forbidden)))
    return Intent("i-0123abcd", "why", declared, "/tree", "/tree/.git", "1" * 40, "2" * 40, NOW, 3600, 300)


def limited(name: bytes, **limits: int) -> Intent:
    return replace(intent(name), budget=IntentBudget(**limits))


def later(seconds: float) -> Moment:
    return Moment(NOW.wall + seconds)


def _touched(given: Intent, name: bytes, *, controls: bool = False) -> Sequence[Finding]:
    check = scope.check_scope(given.scope, [path(name)], frozenset([path(name)] if controls else []))
    return tuple(scope.scope_findings(given, check))


SCOPE: Mapping[str, tuple[Findings, Findings]] = {
    "scope-unexpected": (
        lambda n: _touched(intent(b"other"), n),
        lambda n: _touched(intent(n), n),
    ),
    "scope-forbidden": (
        lambda n: _touched(intent(n), n, controls=True),
        lambda n: _touched(intent(n, forbidden=[b"elsewhere"]), n),
    ),
    "intent-budget": (
        lambda n: tuple(budget_findings(limited(n, max_added_lines=4), SPENT, 2, "staged")),
        lambda n: tuple(budget_findings(limited(n, max_added_lines=5), SPENT, 2, "staged")),
    ),
    "intent-expired": (
        lambda n: [
            scope.expired_finding(replace(intent(n), reason=n.decode("utf-8", "replace")), later(3601))
        ],
        lambda n: [],
    ),
    "intent-queued": (
        lambda n: [scope.queued_finding(replace(intent(n), state=State.QUEUED))],
        lambda n: [],
    ),
    "intent-reserved": (
        lambda n: tuple(scope.reserved_findings([(path(n), intent(n))], NOW, str)),
        lambda n: tuple(scope.reserved_findings([], NOW, str)),
    ),
    "intent-trailer": (
        lambda n: tuple(scope.trailer_findings(intent(n), [n.decode("utf-8", "surrogateescape")])),
        lambda n: tuple(scope.trailer_findings(intent(n), ["i-0123abcd"])),
    ),
}


def _result(name: bytes) -> AnalysisResult:
    text = name.decode("utf-8", "replace")
    return AnalysisResult(
        "lint", f"lint {text}", f"R1 {text}", "warning", f"bad: {text}", (path(name),), 3, "a" * 32
    )


def _runs(*told: AnalysisResult | Measurement, tree: str = "1", reason: str | None = None) -> TreeRuns:
    results = tuple(each for each in told if isinstance(each, AnalysisResult))
    run = AnalysisRun(
        "lint",
        "k" + tree,
        "" if reason else f"d{len(told)}{tree}",
        AnalysisOutcome.NOT_EVALUATED
        if reason
        else AnalysisOutcome.FINDINGS
        if results
        else AnalysisOutcome.CLEAN,
        reason=reason,
        hint=reason and "install it",
        results=results,
        measurements=tuple(each for each in told if isinstance(each, Measurement)),
    )
    return TreeRuns(tree * 40, "analyses", {"lint": run})


def _verified(
    *told: AnalysisResult | Measurement,
    given: Intent | None = None,
    had: Measurement | None = None,
    grown: Sequence[bytes] = (),
    reason: str | None = None,
) -> Sequence[Finding]:
    before, after = _runs(*([had] if had else [])), _runs(*told, tree="2", reason=reason)
    question = VerificationInputs(
        before,
        after,
        compare(before, after, MOST, {}),
        intent=given,
        scope=scope.check_scope(given.scope, []) if given else None,
        grown=tuple(map(path, grown)),
    )
    return tuple(_findings(question))


def _findings(question: VerificationInputs) -> Iterator[Finding]:
    yield from findings_of(decide(question))


def _height(name: bytes, value: float) -> Measurement:
    return Measurement("lint", path(name), name.decode("utf-8", "replace"), "height", value)


VERIFY: Mapping[str, tuple[Findings, Findings]] = {
    "regression": (
        lambda n: _verified(_result(n), given=intent(n)),
        lambda n: _verified(_result(n), given=intent(b"other")),
    ),
    "regression-external": (
        lambda n: _verified(_result(n), given=intent(b"other")),
        lambda n: _verified(_result(n), given=intent(n)),
    ),
    "threshold-crossed": (
        lambda n: _verified(_height(n, 11), given=intent(n)),
        lambda n: _verified(_height(n, 10), given=intent(n)),
    ),
    "threshold-external": (
        lambda n: _verified(_height(n, 11), given=intent(b"other")),
        lambda n: _verified(_height(n, 10), given=intent(b"other")),
    ),
    "threshold-preexisting": (
        lambda n: _verified(_height(n, 11), had=_height(n, 11), given=intent(n)),
        lambda n: _verified(_height(n, 10), had=_height(n, 11), given=intent(n)),
    ),
    "suppression-abuse": (
        lambda n: _verified(grown=[n]),
        lambda n: _verified(grown=[n], given=intent(n)),
    ),
    "unverified": (
        lambda n: _verified(reason="the analysis `lint` was not found", given=intent(n)),
        lambda n: _verified(given=intent(n)),
    ),
}
SCOPE_CASES = {**SCOPE, **VERIFY}
