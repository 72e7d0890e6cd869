"""A verification as JSON, an analysis as JSON, as SARIF 2.1.0 and as text, and the schemas of the JSON.

Decides keys and layout alone. In JSON every key is always there, null where nobody knows, and no list is cut;
in text foreign words are escaped and long lists cut. In SARIF what a tool suppressed is left out, and what
could not be evaluated is a run whose invocation says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchgate.commands.analysis_results import (
    AnalysisOutcome,
    AnalysisResult,
    AnalysisRun,
    Measurement,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.intents.intent import ScopeCheck
from patchgate.report.json import json_line, path_list, path_member
from patchgate.report.sarif import log_of
from patchgate.report.schema import (
    COUNT,
    DIGEST,
    MAYBE_COUNT,
    OID,
    ORDINAL,
    Schema,
    Shape,
    about,
    document_schema,
    maybe,
    one_of,
    or_null,
    path_key,
    path_keys,
    schema_of,
)
from patchgate.report.verdict import Json, Verdict
from patchgate.report.wording import SHORT_OID, count, number, safe, show_path
from patchgate.verify.analyze import Analysis, UnstableAnalysis
from patchgate.verify.suppression_abuse import TRIGGERS
from patchgate.verify.verification_reasons import MOST_NAME
from patchgate.verify.verification_result import VerificationResult, VerificationStatus
from patchgate.verify.verification_sarif import analysis_runs
from patchgate.verify.verification_text import list_results, show_result

SCHEMA = "patchgate.verification/1"


def render(verification: VerificationResult) -> str:
    """Write a verification as one line of JSON, ended by a line feed."""
    comparison = verification.comparison
    value: dict[str, Json] = {
        "schema": SCHEMA,
        "verdict": verification.status.verdict.value,
        "status": verification.status.value,
        "reason": verification.reason,
        "intent": verification.intent,
        "base": verification.base,
        "before": _runs(verification.before),
        "after": _runs(verification.after),
        "intent_regressions": [result_document(each) for each in verification.intent_regressions],
        "external_regressions": [result_document(each) for each in verification.external_regressions],
        "fixed": None if comparison is None else len(comparison.fixed),
        "unchanged": None if comparison is None else comparison.unchanged,
        "intent_worsened": [_worsened(each) for each in verification.intent_worsened],
        "external_worsened": [_worsened(each) for each in verification.external_worsened],
        "thresholds": [] if comparison is None else [_threshold(each) for each in comparison.thresholds],
        "gate_worsened": verification.gate_worsened,
        "before_gate": verification.before_gate,
        "after_gate": verification.after_gate,
        "intent_caused_gate": verification.intent_caused_gate,
        "scope": _scope(verification.scope),
        "baseline_abuse": {
            "detected": bool(verification.abuse),
            "triggers": list(verification.abuse),
            **path_list("baselines", verification.suppression_files),
            "suppressed": [result_document(each) for each in verification.suppressed],
        },
        "contract_violations": list(verification.violations),
        "told": list(verification.reported_only),
        "next_step": verification.next_step,
        "external_commits": [
            {"commit": each.oid, "subject": each.subject} for each in verification.external_commits
        ],
        **path_list("dirty_before", verification.dirty),
        "warnings": list(verification.warnings),
    }
    return json_line(value)


def _runs(runs: TreeRuns | None) -> Json:
    if runs is None:
        return None
    return {
        "tree": runs.tree,
        "digest": runs.digest,
        "analyses": runs.analyses,
        "is_evaluated": runs.is_evaluated,
        "runs": [_run(runs.runs[name]) for name in sorted(runs.runs)],
    }


def _run(run: AnalysisRun) -> Json:
    return {
        "analysis": run.analysis,
        "tool": run.tool,
        "outcome": run.outcome.value,
        "digest": run.digest or None,
        "reason": run.reason,
        "hint": run.hint,
        "findings": len(run.results),
        "suppressed": len(run.suppressed),
        "metrics": len(run.measurements),
        "warnings": list(run.warnings),
    }


def result_document(result: AnalysisResult) -> Json:
    return {
        "analysis": result.analysis,
        "tool": result.tool,
        "rule": result.rule,
        "level": result.level,
        "message": result.message,
        **path_member("path", result.path),
        "line": result.line,
        **path_list("paths", result.paths),
    }


def _worsened(each: WorsenedMetric) -> Json:
    return {
        **path_member("path", each.path),
        "symbol": each.symbol,
        "metric": each.name,
        "before": each.before,
        "after": each.after,
    }


def _threshold(state: ThresholdState) -> Json:
    return {
        "name": state.name,
        "metric": state.metric,
        "max": state.max,
        "before": state.before,
        "after": state.after,
        "failed_before": state.failed_before,
        "fails_after": state.fails_after,
        "preexisting": state.is_preexisting,
        "over": [
            result_document(each) if isinstance(each, AnalysisResult) else _worsened(each)
            for each in state.over
        ],
    }


def _scope(check: ScopeCheck | None) -> Json:
    if check is None:
        return None
    return {
        "is_clean": check.is_clean,
        **path_list("unexpected_files", check.unexpected),
        **path_list("forbidden_touched", check.forbidden),
        **path_list("expanded", check.expanded),
        **path_list("untouched", check.untouched),
    }


RESULT: Shape = {
    "analysis": str,
    "tool": str,
    "rule": str,
    "level": one_of("error", "warning", "note", "none"),
    "message": str,
    **path_key("path", str | None),
    "line": or_null(ORDINAL),
    **path_keys("paths"),
}
_RUN: Shape = {
    "analysis": str,
    "tool": str,
    "outcome": AnalysisOutcome,
    "digest": str | None,
    "reason": str | None,
    "hint": str | None,
    "findings": COUNT,
    "suppressed": COUNT,
    "metrics": COUNT,
    "warnings": [str],
}
_RUNS = maybe({"tree": OID, "digest": DIGEST, "analyses": str, "is_evaluated": bool, "runs": [_RUN]})
_WORSENED: Shape = {
    **path_key("path"),
    "symbol": str,
    "metric": str,
    "before": about(float | None, "null: the symbol is new"),
    "after": float,
}
_THRESHOLD: Shape = {
    "name": str,
    "metric": str,
    "max": float,
    "before": float | None,
    "after": float | None,
    "failed_before": bool,
    "fails_after": bool,
    "preexisting": about(bool, "it fails as it did before"),
    "over": [Schema(anyOf=[schema_of(RESULT), schema_of(_WORSENED)])],
}
_SCOPE: Shape = {
    "is_clean": bool,
    **path_keys("unexpected_files", "forbidden_touched", "expanded", "untouched"),
}
_ABUSE: Shape = {
    "detected": bool,
    "triggers": [one_of(*TRIGGERS)],
    **path_keys("baselines"),
    "baselines": about([str], "the listed files that grew; with new findings, that changed"),
    "suppressed": [RESULT],
}


def json_schema() -> Schema:
    """Build the JSON Schema (draft 2020-12) of `verify --format json`."""
    verification: dict[str, Shape] = {
        "verdict": Verdict,
        "status": VerificationStatus,
        "reason": str,
        "intent": str | None,
        "base": about(maybe(OID), "where it leaves what --base named"),
        "before": _RUNS,
        "after": _RUNS,
        "intent_regressions": [RESULT],
        "external_regressions": [RESULT],
        "fixed": MAYBE_COUNT,
        "unchanged": MAYBE_COUNT,
        "intent_worsened": [_WORSENED],
        "external_worsened": [_WORSENED],
        "thresholds": [_THRESHOLD],
        "gate_worsened": bool,
        "before_gate": about(bool | None, "whether a threshold failed; null: not compared"),
        "after_gate": about(bool | None, "whether a threshold fails; null: not compared"),
        "intent_caused_gate": bool,
        "scope": maybe(_SCOPE),
        "baseline_abuse": _ABUSE,
        "contract_violations": [str],
        "told": about([str], "violations that strictness relaxed only tells"),
        "next_step": str | None,
        "external_commits": [{"commit": OID, "subject": str}],
        **path_keys("dirty_before"),
        "warnings": [str],
    }
    return document_schema(SCHEMA, "Whether it got worse, and whose regression it is", verification)


_MOST_RESULTS = 50
_MOST_ONCE = 5


def analysis_text(analysis: Analysis) -> str:
    """Write it: a block for each analysis, and the outcome in the last line."""
    lines: list[str] = []
    for run in analysis.runs.runs.values():
        if run.outcome is not AnalysisOutcome.NOT_EVALUATED:
            lines += _block(run)
    for run in analysis.not_evaluated:
        lines.append(f"not evaluated: {safe(run.reason or run.analysis).rstrip('.')}")
        lines += [f"  help: {safe(run.hint)}"] if run.hint else []
    for each in analysis.unstable:
        lines += _twice(each)
    return "".join(f"{line}\n" for line in (*lines, _closing(analysis)))


def analysis_warnings(analysis: Analysis) -> Iterator[str]:
    """Say what else went wrong in the runs, each thing once."""
    runs = [*analysis.runs.runs.values(), *(analysis.again.runs.values() if analysis.again else ())]
    yield from dict.fromkeys(safe(warning) for run in runs for warning in run.warnings)


def _block(run: AnalysisRun) -> list[str]:
    said = []
    if run.results or not run.measurements:
        said.append(count(len(run.results), "finding") if run.results else "clean")
    if run.suppressed:
        said.append(f"{len(run.suppressed)} suppressed")
    if run.measurements:
        said.append(count(len(run.measurements), "value"))
    title = f"{run.analysis}: {', '.join(said)}"
    listed = list_results(title, run.results, _MOST_RESULTS) or [title]
    return [*listed, *(f"  {line}" for line in _highest(run))]


def _highest(run: AnalysisRun) -> Iterator[str]:
    """Name of each metric the symbol that has the most."""
    highest: dict[str, Measurement] = {}
    for each in run.measurements:
        if each.name not in highest or each.value > highest[each.name].value:
            highest[each.name] = each
    for name in sorted(highest):
        yield f"highest {_value(highest[name])}"


def _value(each: Measurement) -> str:
    symbol = f" {safe(each.symbol, MOST_NAME)}" if each.symbol else ""
    return f"{safe(each.name, MOST_NAME)}  {number(each.value)}  {show_path(each.path)}{symbol}"


def _twice(each: UnstableAnalysis) -> Iterator[str]:
    told = f": {len(each.differences)} in one run only" if each.differences else ""
    yield f"{each.analysis}: told other things the second time{told}"
    for one in each.differences[:_MOST_ONCE]:
        yield f"  {show_result(one) if isinstance(one, AnalysisResult) else _value(one)}"
    if len(each.differences) > _MOST_ONCE:
        yield f"  … and {len(each.differences) - _MOST_ONCE} more"
    yield "  help: pin its version, and leave out what depends on the time, the network or the order of files"


def _closing(analysis: Analysis) -> str:
    runs = analysis.runs.runs.values()
    found = sum(len(run.results) for run in runs)
    where = f"{safe(analysis.what, MOST_NAME)}, tree {analysis.runs.tree[:SHORT_OID]}"
    if analysis.not_evaluated:
        names = ", ".join(run.analysis for run in analysis.not_evaluated)
        return f"undecided: {names} could not be evaluated ({where})"
    if analysis.unstable:
        names = ", ".join(each.analysis for each in analysis.unstable)
        return f"undecided: {names} told two things of one tree ({where})"
    stable = ", twice the same" if analysis.again is not None else ""
    if found:
        return f"findings: {found}{stable} ({where})"
    return f"clean: no findings{stable} ({where})"


ANALYSIS_SCHEMA = "patchgate.analysis/1"
_WORDS = ("clean", "findings", "undecided")


def analysis_json(analysis: Analysis) -> str:
    """Write it as one line of JSON in ASCII, ended by a line feed."""
    runs = analysis.runs
    unstable = {each.analysis for each in analysis.unstable}
    document: Json = {
        "schema": ANALYSIS_SCHEMA,
        "outcome": _analysis_outcome(analysis),
        "what": analysis.what,
        "commit": analysis.commit,
        "tree": runs.tree,
        "analyses": runs.analyses,
        "digest": runs.digest,
        "is_stable": None if analysis.again is None else not unstable and not analysis.not_evaluated,
        "unstable": sorted(unstable),
        "runs": [_analysis_run(run) for run in _shown(analysis)],
    }
    return json_line(document)


def analysis_sarif(analysis: Analysis) -> str:
    """Write it as a SARIF log, one run for each analysis and tool: one line, ended by a line feed."""
    runs = [
        written
        for run in _shown(analysis)
        for written in analysis_runs(run.analysis, run, [(each, None) for each in run.results], {})
    ]
    return log_of(runs)


def _shown(analysis: Analysis) -> list[AnalysisRun]:
    """Give the runs, of an analysis that failed in one of two runs that one."""
    silent = {run.analysis: run for run in analysis.not_evaluated}
    return [silent.get(name, run) for name, run in analysis.runs.runs.items()]


def _analysis_outcome(analysis: Analysis) -> str:
    clean, findings, undecided = _WORDS
    if analysis.exit_code:
        return undecided
    return findings if any(run.results for run in analysis.runs.runs.values()) else clean


def _analysis_run(run: AnalysisRun) -> Json:
    return {
        "analysis": run.analysis,
        "outcome": run.outcome.value,
        "tool": run.tool,
        "key": run.key or None,
        "digest": run.digest or None,
        "reason": run.reason,
        "hint": run.hint,
        "results": [result_document(each) for each in run.results],
        "suppressed": [result_document(each) for each in run.suppressed],
        "metrics": [_measured(each) for each in run.measurements],
        "warnings": list(run.warnings),
    }


def _measured(each: Measurement) -> Json:
    return {**path_member("path", each.path), "symbol": each.symbol, "name": each.name, "value": each.value}


def analysis_schema() -> Schema:
    """Build the JSON Schema (draft 2020-12) of `analyze --format json`."""
    run: Shape = {
        "analysis": str,
        "outcome": AnalysisOutcome,
        "tool": about(str, "the file of the program"),
        "key": about(str | None, "what the run follows from: tree, settings, program"),
        "digest": about(maybe(DIGEST), "of what was told"),
        "reason": str | None,
        "hint": str | None,
        "results": [RESULT],
        "suppressed": [RESULT],
        "metrics": [{**path_key("path"), "symbol": str, "name": str, "value": float}],
        "warnings": [str],
    }
    analysis: dict[str, Shape] = {
        "outcome": one_of(*_WORDS),
        "what": str,
        "commit": about(maybe(OID), "HEAD, or the commit that was named"),
        "tree": OID,
        "analyses": about(DIGEST, "of the settings and the programs together"),
        "digest": about(DIGEST, "of the tree and all that was told"),
        "is_stable": about(bool | None, "null: nothing ran twice"),
        "unstable": [str],
        "runs": [run],
    }
    return document_schema(ANALYSIS_SCHEMA, "What the analyses tell of one tree", analysis)
