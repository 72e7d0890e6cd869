"""What analyses told as JSON (`patchgate.analysis/1`) with its schema, and as SARIF 2.1.0.

Decides the keys alone. Every key is always there, null where nobody knows, and no list is cut. In SARIF what
a tool suppressed by itself is left out; what could not be evaluated is a run whose invocation says so.
"""

from __future__ import annotations

import json
from typing import Any

from patchgate.commands.results import AnalysisRun, Evaluated, Measurement
from patchgate.report.json import plain_json
from patchgate.report.json_paths import BASE64, path_member
from patchgate.report.sarif import SCHEMA as SARIF_SCHEMA
from patchgate.report.verdict import Json
from patchgate.verify.analyze import Analysis
from patchgate.verify.document import result_document, result_schema
from patchgate.verify.sarif import analysis_runs

SCHEMA = "patchgate.analysis/1"
_WORDS = ("clean", "findings", "undecided")


def render_json(analysis: Analysis) -> str:
    """Write it as one line of JSON in ASCII, ended by a line feed."""
    runs = analysis.runs
    unstable = {each.analysis for each in analysis.unstable}
    document: Json = {
        "schema": SCHEMA,
        "outcome": _outcome(analysis),
        "what": analysis.what,
        "commit": analysis.commit,
        "tree": runs.tree,
        "analyses": runs.analyses,
        "digest": runs.digest,
        "is_stable": None if analysis.again is None else not unstable and not analysis.silent,
        "unstable": sorted(unstable),
        "runs": [_run(run) for run in _shown(analysis)],
    }
    return json.dumps(plain_json(document)) + "\n"


def render_sarif(analysis: Analysis) -> str:
    """Write it as a SARIF log, one run for each analysis and tool: one line, ended by a line feed."""
    runs = [
        written
        for run in _shown(analysis)
        for written in analysis_runs(run.analysis, run, [(each, None) for each in run.results], {})
    ]
    log: Json = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": runs}
    return json.dumps(plain_json(log)) + "\n"


def _shown(analysis: Analysis) -> list[AnalysisRun]:
    """Give the runs, of an analysis that failed in one of two runs that one."""
    silent = {run.analysis: run for run in analysis.silent}
    return [silent.get(name, run) for name, run in analysis.runs.runs.items()]


def _outcome(analysis: Analysis) -> str:
    clean, findings, undecided = _WORDS
    if analysis.exit_code:
        return undecided
    return findings if any(run.results for run in analysis.runs.runs.values()) else clean


def _run(run: AnalysisRun) -> Json:
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


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_DIGEST: dict[str, Any] = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_OID: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{40}([0-9a-f]{24})?$"}


def json_schema() -> dict[str, Any]:
    """Build the JSON Schema (draft 2020-12) of `analyze --format json`."""
    results = {"type": "array", "items": result_schema()}
    metric = _object({"path": _TEXT, "symbol": _TEXT, "name": _TEXT, "value": {"type": "number"}})
    metric["properties"]["path_b64"] = BASE64
    run = {
        "analysis": _TEXT,
        "outcome": {"enum": [each.value for each in Evaluated]},
        "tool": {**_TEXT, "description": "the file of the program"},
        "key": {**_MAYBE_TEXT, "description": "what the run follows from: tree, settings, program"},
        "digest": {"anyOf": [_DIGEST, {"type": "null"}], "description": "of what was told"},
        "reason": _MAYBE_TEXT,
        "hint": _MAYBE_TEXT,
        "results": results,
        "suppressed": results,
        "metrics": {"type": "array", "items": metric},
        "warnings": _TEXTS,
    }
    document = {
        "schema": {"const": SCHEMA},
        "outcome": {"enum": list(_WORDS)},
        "what": _TEXT,
        "commit": {"anyOf": [_OID, {"type": "null"}], "description": "HEAD, or the commit that was named"},
        "tree": _OID,
        "analyses": {**_DIGEST, "description": "of the settings and the programs together"},
        "digest": {**_DIGEST, "description": "of the tree and all that was told"},
        "is_stable": {"type": ["boolean", "null"], "description": "null: nothing ran twice"},
        "unstable": _TEXTS,
        "runs": {"type": "array", "items": _object(run)},
    }
    first = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:patchgate:analysis:1"}
    return {**first, "title": "What the analyses tell of one tree", **_object(document)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
