"""An adjudication as people read it: the outcome, the places, what was not looked at and why, the next step.

Decides the layout alone. The outcome stands first, what the verdict is now stands last. A place is told
without what stands there. All foreign text is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from patchgate.placeholders.claims.claim import (
    Adjudication,
    ClaimOutcome,
    Place,
    Scan,
    Skipped,
    Tier,
    Unscanned,
)
from patchgate.placeholders.claims.claim_wording import (
    count_of_tier,
    name_of,
    name_of_path,
    tier_name,
    why_insufficient,
    why_unscanned,
)
from patchgate.report.wording import count, number, safe

DEFAULT_LIMIT = 20
_MOST_NAME = 100
_GRAPHICS = {
    ClaimOutcome.PASSED: "1;32",
    ClaimOutcome.UPHELD: "1;31",
    ClaimOutcome.CONTRADICTED: "1;33",
    ClaimOutcome.UNDECIDED: "1;33",
    ClaimOutcome.UNCHANGED: "1;31",
}


def render(adjudication: Adjudication, *, color: bool, limit: int = DEFAULT_LIMIT) -> str:
    """Write an adjudication for a terminal; the text ends with a line feed.

    Args:
        adjudication: what became of a claim.
        color: whether to add ANSI colours.
        limit: how many entries of each list are written out; the others are counted.
    """
    outcome = adjudication.outcome
    first = f"{_ink(outcome.value, outcome, color)}: {_sentence(adjudication.why or _stands(adjudication))}"
    blocks = [[first], *_scanned(adjudication, limit), _closing(adjudication, color)]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _ink(word: str, outcome: ClaimOutcome, color: bool) -> str:
    return f"\x1b[{_GRAPHICS[outcome]}m{word}\x1b[0m" if color else word


def _sentence(text: str) -> str:
    return safe(text).rstrip(".")


def _scanned(adjudication: Adjudication, limit: int) -> Iterator[list[str]]:
    """Tell where placeholders stand, what was looked at, what was not, and whether that is enough."""
    scan = adjudication.scan
    if scan is None:
        return
    places, unread = scan.places, scan.unread
    yield _listed("placeholders", [_place(each) for each in places[:limit]], len(places))
    yield [_extent(scan, adjudication.read_from), *_coverage(adjudication)]
    # Those that count come first: for their sake the next step is told.
    first = [_unread(each, adjudication) for each in unread[:limit]]
    yield _listed("not scanned whole", first, len(unread))
    yield _others(scan)


def _place(place: Place) -> str:
    kinds = dict.fromkeys(safe(each, _MOST_NAME) for each in (place.rule, place.marker) if each)
    where = "" if place.tier.is_high_priority else f"  ({tier_name(place.tier)})"
    return f"{name_of_path(place.path)}:{place.line}  {'  '.join(kinds)}{where}"


def _extent(scan: Scan, read_from: str) -> str:
    """Say how much was read, and of what."""
    where = f" in {safe(read_from, _MOST_NAME)}" if read_from else ""
    if not scan.scanned and not scan.total_bytes:
        return f"scanned{where}: nothing"
    tiers = Counter(each.tier for each in scan.scanned)
    parts = ", ".join(count_of_tier(tiers[tier], tier) for tier in Tier if tiers[tier])
    read = f"{count(len(scan.scanned), 'file')}, {count(scan.total_bytes, 'byte')}"
    return f"scanned{where}: {read}" + (f" ({parts})" if parts else "")


def _coverage(adjudication: Adjudication) -> Iterator[str]:
    """Say whether that is enough; not where something was found, for that stands whatever was looked at."""
    coverage = adjudication.coverage
    if coverage is None or adjudication.marker_found:
        return
    strict = adjudication.strict_coverage
    rule = (
        ""
        if strict
        else " by contradiction_guard_strict_coverage = false: any file that was scanned is enough"
    )
    if coverage.is_sufficient:
        yield f"coverage: sufficient{rule}"
    else:
        yield f"coverage: insufficient: {'; '.join(why_insufficient(coverage.reasons))}"
    answer = adjudication.strict_outcome
    if adjudication.strict is not None and answer is not adjudication.outcome:
        lacking = "; ".join(why_insufficient(adjudication.strict.reasons))
        yield f"strict coverage: insufficient: {lacking}; the strict answer is {answer}"


def _unread(skipped: Skipped, adjudication: Adjudication) -> str:
    reason = why_unscanned(skipped.reason)
    if skipped.reason is Unscanned.MISSING and adjudication.read_from:
        reason += f" in {safe(adjudication.read_from, _MOST_NAME)}"
    return f"{name_of(skipped.candidate)}: {reason} ({tier_name(skipped.candidate.tier)})"


def _others(scan: Scan) -> list[str]:
    """Count the tracked files beside the named ones that were passed by."""
    passed_by = {reason: scan.passed_by[reason] for reason in Unscanned if scan.passed_by.get(reason)}
    if not passed_by:
        return []
    # Where a cap or the time ends the scan, nobody lists or counts what comes after that file.
    ended = {Unscanned.CAP, Unscanned.TIMEOUT} & passed_by.keys()
    lines = [
        f"  {times:,}{' and all that follow' if reason in ended else ''}: {why_unscanned(reason)}"
        for reason, times in passed_by.items()
    ]
    total = f"{sum(passed_by.values()):,}{' or more' if ended else ''}"
    return [f"other tracked files that were passed by ({total}):", *lines]


def _listed(title: str, lines: Sequence[str], total: int) -> list[str]:
    """Write the first entries of a list, and how many there are besides."""
    if not total:
        return []
    more = [f"  … and {total - len(lines):,} more"] if total > len(lines) else []
    return [f"{title} ({total:,}):", *(f"  {line}" for line in lines), *more]


def _closing(adjudication: Adjudication, color: bool) -> list[str]:
    """Write the end in its fixed order: help, what the verdict is now."""
    lines = []
    if adjudication.next_step:
        lines.append(f"help: {safe(adjudication.next_step)}")
    word, colon, rest = _stands(adjudication).partition(": ")
    lines.append(_ink(word, adjudication.outcome, color) + colon + rest)
    return lines


def _stands(adjudication: Adjudication) -> str:
    """Say what the verdict is now, and what it was where that is something else."""
    claim = adjudication.claim
    if adjudication.passed:
        return "passed: as the verifier said"
    reason = safe(adjudication.reason_code or "no reason code", _MOST_NAME)
    if claim.passed:
        named = f" ({reason})" if adjudication.reason_code else ""
        return f"not passed: a hard invariant{named} blocks, though the verifier passed it"
    if not adjudication.is_contradicted:
        return f"not passed: {reason}, as the verifier said"
    before = safe(adjudication.contradicted_reason_code or "no reason code", _MOST_NAME)
    said = f"inconclusive, not passed: {reason} instead of {before}"
    if claim.confidence != adjudication.confidence:
        said += f"; confidence {number(adjudication.confidence)}"
        said += "" if claim.confidence is None else f" instead of {number(claim.confidence)}"
    return said
