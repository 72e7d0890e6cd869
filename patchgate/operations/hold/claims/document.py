"""An adjudication as JSON: the verifier's verdict as it came, amended, and `metadata`; its schema.

Decides the keys alone. What the verifier wrote is handed back: its keys in their order, its values as they
were. A value is replaced only where the adjudication says something else; keys are added, never renamed. Keys
of ours that are there already (a verdict that is adjudicated again) are made anew. The text is pure ASCII.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from patchgate.verdict.claim import Adjudication, ClaimOutcome, Scan, Skipped, Tier, Unscanned
from patchgate.verdict.json import plain_json
from patchgate.verdict.verdict import Json

MOST_SAMPLES = 20


def render(adjudication: Adjudication, doubts: Sequence[str] = ()) -> str:
    """Write the amended verdict as one line of JSON, ended by a line feed; `doubts` are the config's."""
    return json.dumps(document(adjudication, doubts)) + "\n"


def document(adjudication: Adjudication, doubts: Sequence[str] = ()) -> dict[str, Json]:
    """Build the object that `render` writes, of plain dicts and lists."""
    claim = adjudication.claim
    value = {key: _thawed(each) for key, each in claim.written.items()}
    for key, before, now in (
        ("passed", claim.passed, adjudication.passed),
        ("outcome", ..., adjudication.outcome.value),
        ("reason_code", claim.reason_code, adjudication.reason_code),
        ("severity_class", claim.severity_class, adjudication.severity_class),
        ("confidence", claim.confidence, adjudication.confidence),
        ("contradicted_reason_code", ..., adjudication.contradicted_reason_code),
    ):
        if key not in value or before != now:
            value[key] = now
    written = value.get("metadata")
    value["metadata"] = {**(written if isinstance(written, dict) else {}), **_metadata(adjudication, doubts)}
    return value


def _thawed(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _thawed(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_thawed(each) for each in value]
    return value


def _metadata(adjudication: Adjudication, doubts: Sequence[str]) -> dict[str, Json]:
    scan, coverage = adjudication.scan, adjudication.coverage
    looked = scan or Scan()
    value: dict[str, Json] = {
        "contradiction_detected": adjudication.outcome is ClaimOutcome.CONTRADICTED,
        "contradiction_marker_found": bool(looked.places),
        "contradiction_detected_no_downgrade": adjudication.outcome is ClaimOutcome.UNDECIDED,
        "scan_mode": None if scan is None else _mode(scan),
        "coverage_sufficient": None if coverage is None else coverage.is_sufficient,
        "coverage_insufficient_reason": ";".join(coverage.reasons) or None if coverage else None,
        "scanned_file_count": len(looked.scanned),
        "scanned_total_bytes": looked.total_bytes,
        "matched_file_count": len({each.path for each in looked.places}),
        "candidate_source_counts": {tier.value: looked.source_counts.get(tier, 0) for tier in Tier},
        "skipped_counts": _skipped_counts(looked),
        "skipped_samples": _skipped_samples(looked),
        "samples": [f"{each.path.quoted}:{each.line}" for each in looked.places[:MOST_SAMPLES]],
        "places_total": len(looked.places),
        "guard_enabled": adjudication.guard_enabled,
        "strict_coverage": adjudication.strict_coverage,
        "read_from": adjudication.read_from or None,
        "why": adjudication.why,
        "next_step": adjudication.next_step,
        "warnings": list(dict.fromkeys((*adjudication.warnings, *doubts))),
    }
    plain = plain_json(value)
    assert isinstance(plain, dict)
    return plain


def _mode(scan: Scan) -> str:
    return "targeted_plus_fallback" if scan.used_fallback else "targeted_only"


def _skipped_counts(scan: Scan) -> dict[str, Json]:
    """Count each file that was not scanned whole, once, under its reason."""
    counts = Counter(each.reason for each in scan.skipped)
    return {reason.value: counts[reason] + scan.passed_by.get(reason, 0) for reason in Unscanned}


def _skipped_samples(scan: Scan) -> list[Json]:
    """Name the first files that were not scanned whole, those that count first."""
    order = sorted(scan.skipped, key=lambda each: not each.candidate.tier.is_high_priority)
    return [_skipped(each) for each in order[:MOST_SAMPLES]]


def _skipped(each: Skipped) -> Json:
    path = each.candidate.path
    return {
        "path": each.candidate.given if path is None else path.quoted,
        "tier": each.candidate.tier.value,
        "reason": each.reason.value,
    }


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_FLAG: dict[str, Any] = {"type": "boolean"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def json_schema() -> dict[str, Any]:
    """Build the JSON Schema (draft 2020-12) of `claim --format json`: a verdict that was adjudicated."""
    properties = {
        "passed": _FLAG,
        "outcome": {"enum": [each.value for each in ClaimOutcome]},
        "reason_code": _MAYBE_TEXT,
        "severity_class": _MAYBE_TEXT,
        "confidence": {"type": ["number", "null"]},
        "contradicted_reason_code": {
            **_MAYBE_TEXT,
            "description": "what the verifier's reason_code was, where it was contradicted",
        },
        "metadata": {
            **_open(_metadata_schema()),
            "description": "what was scanned; a verifier's keys are kept",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:patchgate:claim:1",
        "title": "A verifier's verdict, amended by what was scanned",
        # What else the verifier wrote is handed back.
        **_open(properties),
    }


def _metadata_schema() -> dict[str, Any]:
    skipped = {
        "path": _TEXT,
        "tier": {"enum": [each.value for each in Tier]},
        "reason": {"enum": [each.value for each in Unscanned]},
    }
    return {
        "contradiction_detected": _FLAG,
        "contradiction_marker_found": _FLAG,
        "contradiction_detected_no_downgrade": _FLAG,
        "scan_mode": {
            "enum": ["targeted_only", "targeted_plus_fallback", None],
            "description": "null: nothing was scanned",
        },
        "coverage_sufficient": {"type": ["boolean", "null"], "description": "null: nothing was scanned"},
        "coverage_insufficient_reason": {**_MAYBE_TEXT, "description": "several are joined by `;`"},
        **dict.fromkeys(("scanned_file_count", "scanned_total_bytes", "matched_file_count"), _COUNT),
        "candidate_source_counts": _closed({tier.value: _COUNT for tier in Tier}),
        "skipped_counts": _closed({reason.value: _COUNT for reason in Unscanned}),
        "skipped_samples": {"type": "array", "items": _closed(skipped), "maxItems": MOST_SAMPLES},
        "samples": {**_TEXTS, "maxItems": MOST_SAMPLES, "description": "`path:line` of placeholders"},
        "places_total": _COUNT,
        "guard_enabled": _FLAG,
        "strict_coverage": _FLAG,
        "read_from": {**_MAYBE_TEXT, "description": "the tree that was scanned"},
        "why": _TEXT,
        "next_step": _MAYBE_TEXT,
        "warnings": _TEXTS,
    }


def _open(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {**_open(properties), "additionalProperties": False}
