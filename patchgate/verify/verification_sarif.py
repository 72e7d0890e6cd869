"""A verification as SARIF 2.1.0: the results of the analyses, each with its state.

The first run is the verification itself. Then one run for each analysis and tool has the results after the
change (`baselineState` new or unchanged) and those that disappeared (absent). Sources: OASIS SARIF 2.1.0,
sections 3.13 (log), 3.20 (invocations), 3.27.24 (`baselineState`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from patchgate import __version__
from patchgate.commands.analysis_results import AnalysisOutcome, AnalysisResult, AnalysisRun
from patchgate.report.json import path_list
from patchgate.report.sarif import BASES, location_of, log_of, message_text, notification
from patchgate.report.verdict import Json, Verdict
from patchgate.verify.verification_result import VerificationResult

_LEVELS = frozenset({"none", "note", "warning", "error"})
_MARK = "patchgate/mark/v1"
_NEW, _UNCHANGED, _ABSENT = "new", "unchanged", "absent"


def render(verification: VerificationResult) -> str:
    """Write a verification as a SARIF log: one line of ASCII, ended by a line feed."""
    comparison = verification.comparison
    new = Counter(comparison.new if comparison else ())
    attributed = _attributed(verification)
    runs: list[Json] = [_own(verification)]
    after = verification.after.runs if verification.after is not None else {}
    gone = _by_analysis(comparison.fixed if comparison else ())
    for name in sorted({*after, *gone}):
        found = [*_states(after[name].results if name in after else (), new, comparison is not None)]
        found += [(each, _ABSENT) for each in gone.get(name, ())]
        runs += analysis_runs(name, after.get(name), found, attributed)
    return log_of(runs)


def _by_analysis(results: Iterable[AnalysisResult]) -> dict[str, list[AnalysisResult]]:
    found: dict[str, list[AnalysisResult]] = {}
    for result in results:
        found.setdefault(result.analysis, []).append(result)
    return found


def _attributed(verification: VerificationResult) -> dict[AnalysisResult, str]:
    whose = "change" if verification.intent is None else "intent"
    found = dict.fromkeys(verification.external_regressions, "external")
    return found | dict.fromkeys(verification.intent_regressions, whose)


def _states(
    results: Sequence[AnalysisResult], new: Counter[AnalysisResult], is_compared: bool
) -> Iterable[tuple[AnalysisResult, str | None]]:
    """Yield each result with its state; None if nothing was compared."""
    for result in results:
        if not is_compared:
            yield result, None
        elif new[result]:
            new[result] -= 1
            yield result, _NEW
        else:
            yield result, _UNCHANGED


def _own(verification: VerificationResult) -> Json:
    """Write the run of the verification itself; it has no results, these belong to the analyses."""
    level = {"accepted": "note", "rejected": "warning"}.get(verification.status.verdict.value, "error")
    notes: list[Json] = [notification(level, verification.reason)]
    notes += [notification("warning", each) for each in verification.warnings]
    scope = verification.scope
    return {
        "tool": {"driver": {"name": "patchgate", "version": __version__}},
        "automationDetails": {"id": "patchgate/verify/"},
        "invocations": [
            {
                "executionSuccessful": verification.status.verdict is not Verdict.UNDECIDED,
                "exitCode": verification.status.verdict.exit_code,
                "toolExecutionNotifications": notes,
            }
        ],
        "results": [],
        "properties": {
            "verdict": verification.status.verdict.value,
            "status": verification.status.value,
            "intent": verification.intent,
            "contract_violations": list(verification.violations),
            "baseline_abuse": list(verification.abuse),
            **path_list("unexpected_files", scope.unexpected if scope else ()),
            **path_list("forbidden_touched", scope.forbidden if scope else ()),
            "next_step": verification.next_step,
        },
    }


def analysis_runs(
    name: str,
    run: AnalysisRun | None,
    found: Sequence[tuple[AnalysisResult, str | None]],
    attributed: dict[AnalysisResult, str],
) -> list[Json]:
    """Write the runs of one analysis: one for each of its tools, at least one."""
    by_tool: dict[str, list[tuple[AnalysisResult, str | None]]] = {}
    for result, state in found:
        by_tool.setdefault(result.tool, []).append((result, state))
    written: list[Json] = []
    for tool, results in by_tool.items() or {name: []}.items():
        rules = {rule: index for index, rule in enumerate(dict.fromkeys(each.rule for each, _ in results))}
        written.append(
            {
                "tool": {"driver": {"name": tool or name, "rules": [{"id": rule} for rule in rules]}},
                "automationDetails": {"id": f"patchgate/{name}/"},
                "invocations": [_invocation(run)],
                "originalUriBaseIds": BASES,
                "results": [_result(each, state, rules, attributed) for each, state in results],
            }
        )
    return written


def _invocation(run: AnalysisRun | None) -> Json:
    if run is None or run.outcome is AnalysisOutcome.NOT_EVALUATED:
        reason = (
            run.reason if run is not None else None
        ) or "this analysis did not run on the tree after the change"
        return {"executionSuccessful": False, "toolExecutionNotifications": [notification("error", reason)]}
    return {"executionSuccessful": True}


def _result(
    result: AnalysisResult, state: str | None, rules: dict[str, int], attributed: dict[AnalysisResult, str]
) -> Json:
    value: dict[str, Json] = {
        "ruleId": result.rule,
        "ruleIndex": rules[result.rule],
        "level": result.level if result.level in _LEVELS else "warning",
        "message": {"text": message_text(result.message)},
        "partialFingerprints": {_MARK: result.mark},
    }
    if state is not None:
        value["baselineState"] = state
    if state == _NEW:
        value["properties"] = {"attribution": attributed.get(result, "external")}
    if result.path is not None:
        # A line number of the tree before does not fit the tree after.
        place = location_of(result.path, None if state == _ABSENT else result.line)
        value["locations"] = [] if place is None else [place]
    places = [location_of(path, None) for path in result.paths[1:]]
    related = [place for place in places if place is not None]
    if related:
        value["relatedLocations"] = related
    return value
