"""What was counted of adjudications, in words and as `patchgate.claim-stats/1`; its schema.

Decides words and keys alone. In JSON every key is always there, null where there is nothing to divide by, and
no list is cut.
"""

from __future__ import annotations

import json
from typing import Any

from patchgate.ledger.since import iso
from patchgate.placeholders.claims.claim import ClaimOutcome
from patchgate.placeholders.claims.claim_stats import ClaimStats
from patchgate.report.json import plain_json
from patchgate.report.verdict import Json
from patchgate.report.wording import count, safe

SCHEMA = "patchgate.claim-stats/1"
_MOST_SUBJECTS = 20
_MOST_NAME = 100


def as_text(stats: ClaimStats) -> list[str]:
    """Write it for people, in lines."""
    since = "" if stats.since is None else f" since {iso(stats.since)}"
    lines = [f"{count(stats.adjudications, 'adjudication')}{since}{_outcomes(stats)}"]
    if stats.scans:
        lines += [
            f"of {count(stats.scans, 'scan')}:",
            f"  upheld by a placeholder in the claim's files: {_share(stats.corroborated, stats.scans)}",
            f"  upheld by one in other files alone: {_share(stats.uncorroborated, stats.scans)}",
            f"  contradicted: {_share(stats.downgrades, stats.scans)}",
            *(f"    {line}" for line in _reversals(stats)),
            *_permissive(stats),
            f"  not contradicted, for too little was scanned: {_share(stats.no_downgrades, stats.scans)}",
            f"  a cap left files unread: {_share(stats.cap_exhaustions, stats.scans)}",
        ]
    if stats.since is not None and stats.undated:
        lines.append(f"left out, for no time is told of them: {stats.undated}")
    return lines


def _outcomes(stats: ClaimStats) -> str:
    # The words that this program knows, in their order; a newer one may have written others.
    known = [each.value for each in ClaimOutcome]
    order = [*known, *sorted(set(stats.outcomes) - set(known))]
    parts = [f"{stats.outcomes[each]} {safe(each, 40)}" for each in order if stats.outcomes.get(each)]
    return f": {', '.join(parts)}" if parts else ""


def _reversals(stats: ClaimStats) -> list[str]:
    """Tell how often a placeholder was found after all, and in which subjects."""
    lines = []
    if stats.attributed:
        share = _share(stats.reversed, stats.attributed, f" of {stats.attributed}")
        lines.append(f"a placeholder was found later: {share}")
        shown = stats.reversals[:_MOST_SUBJECTS]
        lines += [
            f"  {safe(each.subject, _MOST_NAME)}: {each.reversed} of {each.downgrades}" for each in shown
        ]
        if len(stats.reversals) > len(shown):
            lines.append(f"  … and {count(len(stats.reversals) - len(shown), 'other subject')}")
    if stats.unattributed:
        lines.append(f"without a subject, so nobody can tell what was found later: {stats.unattributed}")
    return lines


def _permissive(stats: ClaimStats) -> list[str]:
    times = stats.permissive_downgrades
    return [f"    not by the strict rule, which was off: {times}"] if times else []


def _share(part: int, whole: int, of: str = "") -> str:
    return f"{part}{of} ({100 * part / whole:.0f} %)"


def as_json(stats: ClaimStats) -> str:
    """Write it as one JSON document, ended by a line feed; no list is cut."""
    known = {each.value: stats.outcomes.get(each.value, 0) for each in ClaimOutcome}
    value: dict[str, Json] = {
        "schema": SCHEMA,
        "since": None if stats.since is None else iso(stats.since),
        "adjudications": stats.adjudications,
        "outcomes": {**known, **stats.outcomes},
        "scans": stats.scans,
        "contradiction_downgrade_count": stats.downgrades,
        "contradiction_detected_no_downgrade_count": stats.no_downgrades,
        "cap_exhaustion_count": stats.cap_exhaustions,
        "corroborated_count": stats.corroborated,
        "uncorroborated_count": stats.uncorroborated,
        "permissive_downgrade_count": stats.permissive_downgrades,
        "downgrade_rate": _rate(stats.downgrades, stats.scans),
        "cap_exhaustion_rate": _rate(stats.cap_exhaustions, stats.scans),
        "reversal_count": stats.reversed,
        "reversal_rate": _rate(stats.reversed, stats.attributed),
        "reversals": [
            {"subject": each.subject, "downgrades": each.downgrades, "reversed": each.reversed}
            for each in stats.reversals
        ],
        "unattributed_downgrade_count": stats.unattributed,
        "undated_count": stats.undated,
        "is_whole": stats.is_whole,
    }
    return json.dumps(plain_json(value)) + "\n"


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def json_schema() -> dict[str, Any]:
    """Build the JSON Schema (draft 2020-12) of `claim stats --format json`."""
    number: dict[str, Any] = {"type": "integer", "minimum": 0}
    rate: dict[str, Any] = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    reversal = _object({"subject": {"type": "string"}, "downgrades": number, "reversed": number})
    outcomes = {each.value: number for each in ClaimOutcome}
    properties = {
        "schema": {"const": SCHEMA},
        "since": {"type": ["string", "null"]},
        "adjudications": number,
        # A newer program may have written outcomes that this one does not know.
        "outcomes": {**_object(outcomes), "additionalProperties": number},
        "scans": {**number, "description": "the adjudications that scanned files"},
        "contradiction_downgrade_count": number,
        "contradiction_detected_no_downgrade_count": number,
        "cap_exhaustion_count": {**number, "description": "a cap left a file unread"},
        "corroborated_count": {**number, "description": "a placeholder was in the claim's own files"},
        "uncorroborated_count": {**number, "description": "one was in other tracked files alone"},
        "permissive_downgrade_count": {
            **number,
            "description": "contradicted where the strict rule would not have done so",
        },
        "downgrade_rate": {**rate, "description": "of the scans; null: there is none"},
        "cap_exhaustion_rate": {**rate, "description": "of the scans; null: there is none"},
        "reversal_count": {**number, "description": "a placeholder was found later in the same subject"},
        "reversal_rate": {**rate, "description": "of the downgrades with a subject; null: there is none"},
        "reversals": {"type": "array", "items": reversal},
        "unattributed_downgrade_count": {**number, "description": "downgrades without a subject"},
        "undated_count": {**number, "description": "events without a time; `since` leaves them out"},
        "is_whole": {
            "type": "boolean",
            "description": "false: the ledger is damaged or cut",
        },
    }
    first = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:patchgate:claim-stats:1"}
    return {**first, "title": "What became of claims", **_object(properties)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
