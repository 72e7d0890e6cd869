"""`claim stats`: how many claims were contradicted, and how often that was wrong, counted from the ledger.

A *downgrade* is a claim that was contradicted; it is *reversed* if a placeholder was found later in the same
subject. The JSON always has every key, null where there is nothing to divide by, and whole lists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from patchgate.git.repository import Repository
from patchgate.ledger.adjudications import KIND, AdjudicationRecord, read_adjudications
from patchgate.ledger.history import History, history
from patchgate.ledger.ledger import iso
from patchgate.placeholders.claims.claim import ClaimOutcome
from patchgate.report.json import json_line
from patchgate.report.schema import COUNT, Schema, Shape, about, document_schema, or_null
from patchgate.report.verdict import Json
from patchgate.report.wording import count, safe
from patchgate.storage.record import CONTRADICTED
from patchgate.values import dataclass

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
SCHEMA = "patchgate.claim-stats/2"
_MOST_SUBJECTS = 20
_MOST_NAME = 100


class Reversal(NamedTuple):
    """A subject in which a placeholder was found after `reversed` of its `downgrades`."""

    subject: str
    downgrades: int
    reversed: int


@dataclass(frozen=True, slots=True)
class ClaimStats:
    """The counts since a time (ISO 8601) or from the beginning.

    `counts` has the keys of the JSON document. `scans` are the adjudications that scanned files: the rates
    of downgrades and of caps are shares of them, the reversal rate is a share of the downgrades with a
    subject. An upheld claim is corroborated if a placeholder was in its own files. Permissive downgrades
    are those that the strict rule would not have made. Undated events have no valid time, and `since` skips
    them.
    """

    since: str | None
    outcomes: Mapping[str, int]
    counts: Mapping[str, int]
    reversals: tuple[Reversal, ...]
    history: History

    @property
    def is_whole(self) -> bool:
        """Whether every recorded event could be counted."""
        return (
            all(each.torn for each in self.history.problems) and self.history.comparison.state != CONTRADICTED
        )

    @property
    def attributed(self) -> int:
        """How many downgrades have a subject."""
        return self.counts["contradiction_downgrade_count"] - self.counts["unattributed_downgrade_count"]


def claim_stats(repository: Repository, since: float | None = None) -> ClaimStats:
    """Count the adjudications in the ledger; damaged lines are skipped and listed.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    events = history(repository, (KIND,))
    found = read_adjudications(reversed(list(events.events)))
    later: set[str] = set()
    reversed_of: Counter[str] = Counter()
    downgrades_of: Counter[str | None] = Counter()
    counted: list[AdjudicationRecord] = []
    undated = 0
    first = None if since is None else iso(since)
    for each in reversed(found):
        is_dated = _ISO.fullmatch(each.at) is not None
        if first is None or (is_dated and each.at >= first):
            counted.append(each)
            if each.contradiction_detected:
                downgrades_of[each.subject] += 1
                if each.subject is not None and each.subject in later:
                    reversed_of[each.subject] += 1
        undated += not is_dated
        if each.contradiction_marker_found and each.subject is not None:
            later.add(each.subject)
    unlike_strict = [each for each in counted if each.strict_outcome not in {None, each.outcome}]
    counts = {
        "adjudications": len(counted),
        "scans": sum(each.scan_mode is not None for each in counted),
        "contradiction_downgrade_count": downgrades_of.total(),
        "contradiction_detected_no_downgrade_count": sum(
            each.contradiction_detected_no_downgrade for each in counted
        ),
        "cap_exhaustion_count": sum(each.cap_exhausted for each in counted),
        "corroborated_count": sum(each.corroborated is True for each in counted),
        "uncorroborated_count": sum(each.corroborated is False for each in counted),
        "permissive_downgrade_count": sum(each.contradiction_detected for each in unlike_strict),
        "reversal_count": reversed_of.total(),
        "unattributed_downgrade_count": downgrades_of[None],
        "undated_count": undated,
    }
    outcomes = Counter(each.outcome or "unknown" for each in counted)
    reversals = (Reversal(each, downgrades_of[each], times) for each, times in sorted(reversed_of.items()))
    return ClaimStats(
        since=first, outcomes=outcomes, counts=counts, reversals=tuple(reversals), history=events
    )


def as_text(stats: ClaimStats) -> list[str]:
    """Write the statistics as lines of text."""
    counts, scans = stats.counts, stats.counts["scans"]
    since = "" if stats.since is None else f" since {stats.since}"
    lines = [f"{count(counts['adjudications'], 'adjudication')}{since}{_outcomes(stats)}"]
    permissive, undated = counts["permissive_downgrade_count"], counts["undated_count"]
    if scans:
        share = {name: _with_percent(number, scans) for name, number in counts.items()}
        lines += [
            f"of {count(scans, 'scan')}:",
            f"  upheld by a placeholder in the claim's files: {share['corroborated_count']}",
            f"  upheld by a placeholder in other files only: {share['uncorroborated_count']}",
            f"  contradicted: {share['contradiction_downgrade_count']}",
            *(f"    {line}" for line in _reversals(stats)),
            *([f"    strict coverage, which was off, would not have: {permissive}"] if permissive else []),
            "  not contradicted because too little was scanned: "
            + share["contradiction_detected_no_downgrade_count"],
            f"  a cap left files unread: {share['cap_exhaustion_count']}",
        ]
    if stats.since is not None and undated:
        lines.append(f"skipped, without a time: {undated}")
    return lines


def _outcomes(stats: ClaimStats) -> str:
    # The known outcomes in their order; a newer version may have written others.
    known = [each.value for each in ClaimOutcome]
    order = [*known, *sorted(set(stats.outcomes) - set(known))]
    parts = [f"{stats.outcomes[each]} {safe(each, 40)}" for each in order if stats.outcomes.get(each)]
    return f": {', '.join(parts)}" if parts else ""


def _reversals(stats: ClaimStats) -> list[str]:
    """Write how often a placeholder was found later, and in which subjects."""
    lines = []
    if stats.attributed:
        found = stats.counts["reversal_count"]
        share = _with_percent(found, stats.attributed, f" of {stats.attributed}")
        lines.append(f"a placeholder was found later: {share}")
        shown = stats.reversals[:_MOST_SUBJECTS]
        lines += [
            f"  {safe(each.subject, _MOST_NAME)}: {each.reversed} of {each.downgrades}" for each in shown
        ]
        if len(stats.reversals) > len(shown):
            lines.append(f"  … and {count(len(stats.reversals) - len(shown), 'other subject')}")
    if unattributed := stats.counts["unattributed_downgrade_count"]:
        lines.append(f"without a subject, so later findings are unknown: {unattributed}")
    return lines


def _with_percent(part: int, whole: int, of: str = "") -> str:
    return f"{part}{of} ({100 * part / whole:.0f} %)"


def as_json(stats: ClaimStats) -> str:
    """Write the statistics as one JSON document with a final line feed."""
    counts, scans = stats.counts, stats.counts["scans"]
    value: dict[str, Json] = {
        "schema": SCHEMA,
        "since": stats.since,
        "adjudications": counts["adjudications"],
        "outcomes": {**dict.fromkeys(map(str, ClaimOutcome), 0), **stats.outcomes},
        **counts,
        "downgrade_rate": _rate(counts["contradiction_downgrade_count"], scans),
        "cap_exhaustion_rate": _rate(counts["cap_exhaustion_count"], scans),
        "reversal_rate": _rate(counts["reversal_count"], stats.attributed),
        "reversals": [each._asdict() for each in stats.reversals],
        "is_complete": stats.is_whole,
    }
    return json_line({name: value[name] for name in json_schema()["properties"]})


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def json_schema() -> Schema:
    """Build the JSON Schema (draft 2020-12) of `claim stats --format json`."""
    rate = or_null(Schema(type="number", minimum=0, maximum=1))
    stats: dict[str, Shape] = {
        "since": str | None,
        "adjudications": COUNT,
        # A newer version may have written other outcomes.
        "outcomes": about(dict.fromkeys(ClaimOutcome, COUNT), additionalProperties=COUNT),
        "scans": about(COUNT, "the adjudications that scanned files"),
        "contradiction_downgrade_count": COUNT,
        "contradiction_detected_no_downgrade_count": COUNT,
        "cap_exhaustion_count": about(COUNT, "a cap left a file unread"),
        "corroborated_count": about(COUNT, "a placeholder was in the claim's own files"),
        "uncorroborated_count": about(COUNT, "a placeholder was in other tracked files only"),
        "permissive_downgrade_count": about(
            COUNT, "contradicted, although the strict rule would not have done so"
        ),
        "downgrade_rate": about(rate, "of the scans; null: there are none"),
        "cap_exhaustion_rate": about(rate, "of the scans; null: there are none"),
        "reversal_count": about(COUNT, "a placeholder was found later in the same subject"),
        "reversal_rate": about(rate, "of the downgrades with a subject; null: there are none"),
        "reversals": [{"subject": str, "downgrades": COUNT, "reversed": COUNT}],
        "unattributed_downgrade_count": about(COUNT, "downgrades without a subject"),
        "undated_count": about(COUNT, "events without a time; `since` skips them"),
        "is_complete": about(bool, "false: the ledger is damaged or its end is missing"),
    }
    return document_schema(SCHEMA, "The outcomes of claims", stats)
