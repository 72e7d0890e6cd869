"""Baselines as JSON: `patchgate.baselines/1`, and its schema.

Decides the keys alone. Every key is always there, null where nobody knows.
"""

from __future__ import annotations

import json
import time

from patchgate.components.baseline import Hashes
from patchgate.components.baselines import Baselines, Told
from patchgate.components.staleness import Freshness, freshness
from patchgate.report.json import finding_documents, path_list, plain_json
from patchgate.report.schema import (
    COUNT,
    FINDING,
    HEX,
    MAYBE_COUNT,
    Schema,
    Shape,
    about,
    document_schema,
    one_of,
    or_null,
    path_keys,
)
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


def json_schema() -> Schema:
    """Build the JSON Schema of `baseline status --format json`."""
    tests = or_null(dict.fromkeys(("passed", "failed", "errors", "skipped"), COUNT))
    component: Shape = {
        "id": str,
        "parent": str | None,
        "baseline": str | None,
        **dict.fromkeys(Hashes().named(), or_null(HEX)),
        "drifted": bool | None,
        "staleness": Freshness | None,
        "reason": str | None,
        "verified_at": str | None,
        "verified_by": one_of("commit", "note", "ledger", None),
        "verified_commit": str | None,
        "days": MAYBE_COUNT,
        "dependencies": [str],
        "changed_dependencies": [str],
        "tests": about(tests, "of the newest run on what the baseline records; null: no numbers are known"),
        "tests_at": str | None,
        "tests_by": one_of("note", "ledger", None),
        "findings": [FINDING],
    }
    baselines: dict[str, Shape] = {
        "commit": str,
        "window_days": COUNT,
        "has_errors": bool,
        "components": [component],
        **path_keys("strays"),
    }
    return document_schema(SCHEMA, "How the baselines stand", baselines)
