"""A verification as JSON, and its JSON Schema.

Decides keys and layout only. Every key is always there, null where the value is not known. No list is cut.
"""

from __future__ import annotations

from patchgate.commands.analysis_results import (
    AnalysisOutcome,
    AnalysisResult,
    AnalysisRun,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.intents.intent import ScopeCheck
from patchgate.report.json import json_line, path_list, path_member
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
from patchgate.verify.suppression_abuse import TRIGGERS
from patchgate.verify.verification_result import VerificationResult, VerificationStatus

SCHEMA = "patchgate.verification/2"


def render(verification: VerificationResult) -> str:
    """Write a verification as one line of JSON with a newline."""
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
            **path_list("suppression_files", verification.suppression_files),
            "suppressed": [result_document(each) for each in verification.suppressed],
        },
        "contract_violations": list(verification.violations),
        "reported": list(verification.reported_only),
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
        "analyses_digest": runs.analyses,
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
        "exceeded_by": [
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
_RUNS = maybe({"tree": OID, "digest": DIGEST, "analyses_digest": str, "is_evaluated": bool, "runs": [_RUN]})
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
    "exceeded_by": [Schema(anyOf=[schema_of(RESULT), schema_of(_WORSENED)])],
}
_SCOPE: Shape = {
    "is_clean": bool,
    **path_keys("unexpected_files", "forbidden_touched", "expanded", "untouched"),
}
_ABUSE: Shape = {
    "detected": bool,
    "triggers": [one_of(*TRIGGERS)],
    **path_keys("suppression_files"),
    "suppression_files": about([str], "the suppression files that grew; with new findings, all that changed"),
    "suppressed": [RESULT],
}


def json_schema() -> Schema:
    """Build the JSON Schema (draft 2020-12) of `verify --format json`."""
    verification: dict[str, Shape] = {
        "verdict": Verdict,
        "status": VerificationStatus,
        "reason": str,
        "intent": str | None,
        "base": about(maybe(OID), "the merge base with --base"),
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
        "reported": about([str], "violations that strictness relaxed reports without refusing"),
        "next_step": str | None,
        "external_commits": [{"commit": OID, "subject": str}],
        **path_keys("dirty_before"),
        "warnings": [str],
    }
    return document_schema(SCHEMA, "Whether quality dropped, and who caused it", verification)
