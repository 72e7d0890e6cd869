"""An adjudication as JSON: the verifier's verdict, amended, with `metadata`; and its schema.

The verifier's keys keep their order and their values. A value is replaced only where the adjudication
differs; keys are added, never renamed. Keys of an earlier adjudication are replaced. The output is ASCII.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from patchgate.placeholders.claims.claim import (
    MOST_SAMPLES,
    Adjudication,
    ClaimOutcome,
    ScanMode,
    ScanResult,
    Skipped,
    SkipReason,
    Tier,
)
from patchgate.report.json import path_member, plain_json
from patchgate.report.schema import COUNT, DRAFT, Schema, Shape, about, path_key, schema_of
from patchgate.report.verdict import Json


def render(adjudication: Adjudication, config_warnings: Sequence[str] = ()) -> str:
    """Write the amended verdict as one line of JSON; `config_warnings` are added to its warnings."""
    return json.dumps(document(adjudication, config_warnings)) + "\n"


def document(adjudication: Adjudication, config_warnings: Sequence[str] = ()) -> dict[str, Json]:
    """Build the object that `render` writes, from plain dicts and lists."""
    claim = adjudication.claim
    value = dict(claim.written)
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
    ours = _metadata(adjudication, config_warnings)
    value["metadata"] = {**written, **ours} if isinstance(written, Mapping) else ours
    # This changes nothing in a verdict from JSON; a path in the options may be changed.
    plain = plain_json(value)
    assert isinstance(plain, dict)
    return plain


def telemetry(adjudication: Adjudication) -> dict[str, Any]:
    """Return the fields of a scan that the answer and the event in the ledger share; no sentences."""
    looked, mode, strict = adjudication.scan_result, adjudication.scan_mode, adjudication.strict
    strictly = adjudication.strict_outcome
    return {
        "contradiction_detected": adjudication.is_contradicted,
        "contradiction_marker_found": adjudication.marker_found,
        "corroborated": adjudication.corroborated,
        "contradiction_detected_no_downgrade": adjudication.is_undecided,
        "scan_mode": None if mode is None else mode.value,
        "coverage_sufficient": adjudication.coverage_sufficient,
        "coverage_insufficient_reason": adjudication.coverage_insufficient_reason,
        "cap_exhausted": looked.is_cap_exhausted,
        "scanned_file_count": len(looked.scanned),
        "scanned_total_bytes": looked.total_bytes,
        "matched_file_count": looked.matched_files,
        "candidate_source_counts": {tier.value: looked.source_counts.get(tier, 0) for tier in Tier},
        "skipped_counts": _skipped_counts(looked),
        "skipped_samples": [_skipped(each) for each in looked.unread[:MOST_SAMPLES]],
        "places_total": len(looked.placeholders),
        "guard_enabled": adjudication.guard_enabled,
        "strict_coverage": adjudication.strict_coverage,
        "strict_outcome": None if strictly is None else strictly.value,
        "strict_insufficient_reason": None if strict is None else strict.joined,
        "read_from": adjudication.read_from or None,
    }


def _metadata(adjudication: Adjudication, config_warnings: Sequence[str]) -> dict[str, Json]:
    looked = adjudication.scan_result
    return {
        **telemetry(adjudication),
        "samples": [*looked.samples],
        "reason": adjudication.why,
        "next_step": adjudication.next_step,
        "warnings": list(dict.fromkeys((*adjudication.warnings, *config_warnings))),
    }


def _skipped_counts(scan: ScanResult) -> dict[str, int]:
    """Count the files that were not scanned whole, by reason."""
    counts = Counter(each.reason for each in scan.skipped)
    return {reason.value: counts[reason] + scan.fallback_skipped.get(reason, 0) for reason in SkipReason}


def _skipped(each: Skipped) -> Json:
    path = each.candidate.path
    return {
        **({"path": each.candidate.given} if path is None else path_member("path", path)),
        "tier": each.candidate.tier.value,
        "reason": each.reason.value,
    }


_SKIPPED: Shape = {**path_key("path"), "tier": Tier, "reason": SkipReason}
_METADATA: Shape = {
    "contradiction_detected": bool,
    "contradiction_marker_found": bool,
    "corroborated": about(
        bool | None,
        "a placeholder is in the claim's own files, or the claim names no file; null: none was found",
    ),
    "contradiction_detected_no_downgrade": bool,
    "scan_mode": about(ScanMode | None, "null: nothing was scanned"),
    "coverage_sufficient": about(bool | None, "null: nothing was scanned"),
    "coverage_insufficient_reason": about(str | None, "several are joined by `;`"),
    "cap_exhausted": about(bool, "a cap left a file of the claim or of the fallback unread"),
    "scanned_file_count": COUNT,
    "scanned_total_bytes": COUNT,
    "matched_file_count": COUNT,
    "candidate_source_counts": dict.fromkeys(Tier, COUNT),
    "skipped_counts": dict.fromkeys(SkipReason, COUNT),
    "skipped_samples": about([_SKIPPED], maxItems=MOST_SAMPLES),
    "samples": about([str], "`path:line` of placeholders", maxItems=MOST_SAMPLES),
    "places_total": about(COUNT, "placeholders in the scanned files"),
    "guard_enabled": bool,
    "strict_coverage": about(bool, "the strict rule decided"),
    "strict_outcome": about(
        ClaimOutcome | None,
        "the outcome by the strict rule, even where another rule decided; null: nothing was scanned",
    ),
    "strict_insufficient_reason": str | None,
    "read_from": about(str | None, "the source that was scanned"),
    "reason": str,
    "next_step": str | None,
    "warnings": [str],
}


def json_schema() -> Schema:
    """Build the JSON Schema (draft 2020-12) of `claim --format json`: a verdict that was adjudicated."""
    contradicted = "the verifier's reason_code, where it was contradicted"
    verdict: Shape = {
        "passed": bool,
        "outcome": ClaimOutcome,
        "reason_code": str | None,
        "severity_class": str | None,
        "confidence": float | None,
        "contradicted_reason_code": about(str | None, contradicted),
        "metadata": about(_open(_METADATA), "what was scanned; the verifier's own keys are kept"),
    }
    return Schema(
        {
            "$schema": DRAFT,
            "$id": "urn:patchgate:claim:2",
            "title": "A verifier's verdict, amended by what was scanned",
            # The verifier's other keys are part of the answer.
            **_open(verdict),
        }
    )


def _open(shape: Shape) -> Schema:
    """Allow additional keys."""
    schema = schema_of(shape)
    del schema["additionalProperties"]
    return schema
