"""Baselines as JSON: `patchgate.baselines/1`, and its schema.

Decides the keys alone. Every key is always there, null where nobody knows.
"""

from __future__ import annotations

import json
import time
from typing import Any

from patchgate.components.baseline import Hashes
from patchgate.components.baselines import Baselines, Told
from patchgate.components.staleness import Freshness, freshness
from patchgate.report.json import BASE64_LIST, finding_documents, path_list, plain_json
from patchgate.report.report_schema import json_schema as report_schema
from patchgate.report.verdict import Json

SCHEMA = "patchgate.baselines/1"


def document(baselines: Baselines) -> str:
    """Write it as one JSON document, ended by a line feed."""
    value: dict[str, Json] = {
        "schema": SCHEMA,
        "commit": baselines.commit,
        "window_days": baselines.window,
        "has_errors": baselines.has_errors,
        "components": [_component(each, baselines) for each in baselines.components],
        **path_list("strays", baselines.strays),
    }
    return json.dumps(plain_json(value)) + "\n"


def _component(told: Told, baselines: Baselines) -> dict[str, Json]:
    standing, verified = told.standing, told.verified
    state = reason = days = at = where = commit = None
    changed: list[str] = []
    if verified is not None:
        state = freshness(verified, baselines.window, baselines.now).value
        reason, days, changed = verified.unknown, verified.days(baselines.now), verified.unlike
        where, commit = verified.where, verified.commit
        if verified.seconds is not None:
            at = _iso(verified.seconds)
    value: dict[str, Json] = {
        "id": standing.component.id,
        "parent": standing.component.parent,
        "baseline": None if standing.baseline is None else standing.component.baseline.quoted,
        **standing.hashes.named(),
        "drifted": None if standing.baseline is None else standing.has_drifted,
        "staleness": state,
        "reason": reason,
        "verified_at": at,
        "verified_by": where,
        "verified_commit": commit,
        "days": days,
        "dependencies": list(standing.dependencies),
        "changed_dependencies": [*changed],
        "tests": None if told.results is None or told.results.tests is None else {**told.results.tests},
        "tests_at": None if told.results is None else _iso(told.results.seconds),
        "tests_by": None if told.results is None else told.results.where,
        "findings": finding_documents(told.findings),
    }
    return value


def _iso(seconds: int) -> str | None:
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return None


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def json_schema() -> dict[str, Any]:
    """Build the JSON Schema of `baseline status --format json`."""
    component = _object(
        {
            "id": _TEXT,
            "parent": _MAYBE_TEXT,
            "baseline": _MAYBE_TEXT,
            **{name: {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"} for name in Hashes().named()},
            "drifted": {"type": ["boolean", "null"]},
            "staleness": {"enum": [*(each.value for each in Freshness), None]},
            "reason": _MAYBE_TEXT,
            "verified_at": _MAYBE_TEXT,
            "verified_by": {"enum": ["commit", "note", "ledger", None]},
            "verified_commit": _MAYBE_TEXT,
            "days": {"type": ["integer", "null"], "minimum": 0},
            "dependencies": _TEXTS,
            "changed_dependencies": _TEXTS,
            "tests": {
                **_object(dict.fromkeys(("passed", "failed", "errors", "skipped"), _COUNT)),
                "type": ["object", "null"],
                "description": "of the newest run on what the baseline records; null: no numbers are known",
            },
            "tests_at": _MAYBE_TEXT,
            "tests_by": {"enum": ["note", "ledger", None]},
            "findings": {"type": "array", "items": report_schema()["$defs"]["finding"]},
        }
    )
    properties = {
        "schema": {"const": SCHEMA},
        "commit": _TEXT,
        "window_days": {"type": "integer", "minimum": 0},
        "has_errors": {"type": "boolean"},
        "components": {"type": "array", "items": component},
        "strays": _TEXTS,
    }
    first = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:patchgate:baselines:1"}
    return {**first, "title": "How the baselines stand", **_object(properties, {"strays_b64": BASE64_LIST})}


def _object(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }
