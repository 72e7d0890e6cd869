"""A verification as JSON: `patchgate.verification/1`, and its schema.

Decides the keys alone. Every key is always there, null where nobody knows, and no list is cut: cutting is for
people. The text is pure ASCII.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from patchgate.commands.results import AnalysisRun, Evaluated, Result, ThresholdState, TreeRuns, Worsened
from patchgate.intents.intent import ScopeCheck
from patchgate.report.json import BASE64, BASE64_LIST, path_list, path_member, plain_json
from patchgate.report.verdict import Json, Verdict
from patchgate.verify.abuse import TRIGGERS
from patchgate.verify.result import Status, Verification

SCHEMA = "patchgate.verification/1"


def render(verification: Verification) -> str:
    """Write a verification as one line of JSON, ended by a line feed."""
    return json.dumps(document(verification)) + "\n"


def document(verification: Verification) -> dict[str, Json]:
    """Build the object that `render` writes, of plain dicts and lists."""
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
            **path_list("baselines", verification.baselines),
            "suppressed": [result_document(each) for each in verification.suppressed],
        },
        "contract_violations": list(verification.violations),
        "told": list(verification.told),
        "next_step": verification.next_step,
        "external_commits": [
            {"commit": each.oid, "subject": each.subject} for each in verification.external_commits
        ],
        **path_list("dirty_before", verification.dirty),
        "warnings": list(verification.warnings),
    }
    plain = plain_json(value)
    assert isinstance(plain, dict)
    return plain


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


def result_document(result: Result) -> Json:
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


def _worsened(each: Worsened) -> Json:
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
            result_document(each) if isinstance(each, Result) else _worsened(each) for each in state.over
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


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_BOOL: dict[str, Any] = {"type": "boolean"}
_MAYBE_BOOL: dict[str, Any] = {"type": ["boolean", "null"]}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_MAYBE_COUNT: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}
_NUMBER: dict[str, Any] = {"type": "number"}
_MAYBE_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_DIGEST: dict[str, Any] = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_OID: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{40}([0-9a-f]{24})?$"}
_BASE64: dict[str, Any] = {"path_b64": BASE64}


def json_schema() -> dict[str, Any]:
    """Build the JSON Schema (draft 2020-12) of `verify --format json`."""
    abuse = {
        "detected": _BOOL,
        "triggers": {"type": "array", "items": {"enum": list(TRIGGERS)}},
        "baselines": {**_TEXTS, "description": "the listed files that grew; with new findings, that changed"},
        "suppressed": _list(result_schema()),
    }
    properties = {
        "schema": {"const": SCHEMA},
        "verdict": {"enum": [each.value for each in Verdict]},
        "status": {"enum": [each.value for each in Status]},
        "reason": _TEXT,
        "intent": _MAYBE_TEXT,
        "base": {**_maybe(_OID), "description": "where it leaves what --base named"},
        "before": _maybe(_runs_schema()),
        "after": _maybe(_runs_schema()),
        "intent_regressions": _list(result_schema()),
        "external_regressions": _list(result_schema()),
        "fixed": _MAYBE_COUNT,
        "unchanged": _MAYBE_COUNT,
        "intent_worsened": _list(_worsened_schema()),
        "external_worsened": _list(_worsened_schema()),
        "thresholds": _list(_threshold_schema()),
        "gate_worsened": _BOOL,
        "before_gate": {
            **_MAYBE_BOOL,
            "description": "whether a threshold failed; null: not compared",
        },
        "after_gate": {**_MAYBE_BOOL, "description": "whether a threshold fails; null: not compared"},
        "intent_caused_gate": _BOOL,
        "scope": _maybe(_scope_schema()),
        "baseline_abuse": _object(abuse, {"baselines_b64": BASE64_LIST}),
        "contract_violations": _TEXTS,
        "told": {**_TEXTS, "description": "violations that strictness relaxed only tells"},
        "next_step": _MAYBE_TEXT,
        "external_commits": _list(_object({"commit": _OID, "subject": _TEXT})),
        "dirty_before": _TEXTS,
        "warnings": _TEXTS,
    }
    first = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:patchgate:verification:1"}
    return {
        **first,
        "title": "Whether it got worse, and whose regression it is",
        **_object(properties, {"dirty_before_b64": BASE64_LIST}),
    }


def _object(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _maybe(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [*schemas, {"type": "null"}]}


def _runs_schema() -> dict[str, Any]:
    run = {
        "analysis": _TEXT,
        "tool": _TEXT,
        "outcome": {"enum": [each.value for each in Evaluated]},
        "digest": _MAYBE_TEXT,
        "reason": _MAYBE_TEXT,
        "hint": _MAYBE_TEXT,
        "findings": _COUNT,
        "suppressed": _COUNT,
        "metrics": _COUNT,
        "warnings": _TEXTS,
    }
    runs = {"tree": _OID, "digest": _DIGEST, "analyses": _TEXT, "is_evaluated": _BOOL}
    return _object({**runs, "runs": _list(_object(run))})


def result_schema() -> dict[str, Any]:
    properties = {
        "analysis": _TEXT,
        "tool": _TEXT,
        "rule": _TEXT,
        "level": {"enum": ["error", "warning", "note", "none"]},
        "message": _TEXT,
        "path": _MAYBE_TEXT,
        "line": {"type": ["integer", "null"], "minimum": 1},
        "paths": _TEXTS,
    }
    return _object(properties, {**_BASE64, "paths_b64": BASE64_LIST})


def _worsened_schema() -> dict[str, Any]:
    properties = {
        "path": _TEXT,
        "symbol": _TEXT,
        "metric": _TEXT,
        "before": {**_MAYBE_NUMBER, "description": "null: the symbol is new"},
        "after": _NUMBER,
    }
    return _object(properties, _BASE64)


def _threshold_schema() -> dict[str, Any]:
    over: Sequence[dict[str, Any]] = (result_schema(), _worsened_schema())
    properties = {
        "name": _TEXT,
        "metric": _TEXT,
        "max": _NUMBER,
        "before": _MAYBE_NUMBER,
        "after": _MAYBE_NUMBER,
        "failed_before": _BOOL,
        "fails_after": _BOOL,
        "preexisting": {**_BOOL, "description": "it fails as it did before"},
        "over": _list({"anyOf": list(over)}),
    }
    return _object(properties)


def _scope_schema() -> dict[str, Any]:
    names = ("unexpected_files", "forbidden_touched", "expanded", "untouched")
    encoded = {f"{name}_b64": BASE64_LIST for name in names}
    return _object({"is_clean": _BOOL, **dict.fromkeys(names, _TEXTS)}, encoded)
