"""An adjudication as people read it: the outcome, the places, what was not looked at and why, the next step.

Decides the layout alone. The outcome stands first, what the verdict is now stands last. A place is told
without what stands there. All foreign text is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from patchgate.verdict.claim import Adjudication, ClaimOutcome, Place, Scan, Skipped, Tier, Unscanned
from patchgate.verdict.wording import count, number, safe, show_path

DEFAULT_LIMIT = 20
_MOST_NAME = 100
_PRIORITY = "priority_candidate_unscanned:"
_GRAPHICS = {
    ClaimOutcome.PASSED: "1;32",
    ClaimOutcome.UPHELD: "1;31",
    ClaimOutcome.CONTRADICTED: "1;33",
    ClaimOutcome.UNDECIDED: "1;33",
    ClaimOutcome.UNCHANGED: "1;31",
}
_TIERS = {
    Tier.CANONICAL: "deliverable",
    Tier.CURRENT: "changed file",
    Tier.PRIOR: "earlier changed file",
    Tier.EVIDENCE: "evidence file",
    Tier.FALLBACK: "other tracked file",
}
_REASONS = {
    Unscanned.TOO_LARGE: "larger than a scan may read",
    Unscanned.BINARY: "not UTF-8 or UTF-16 text",
    Unscanned.SUFFIX: "its suffix is not an allowed one",
    Unscanned.MISSING: "no such file",
    Unscanned.SYMLINK: "a symbolic link, which is never followed",
    Unscanned.OUTSIDE: "outside this repository",
    Unscanned.UNREADABLE: "it cannot be read",
    Unscanned.CAP: "a cap was reached before its end",
    Unscanned.TIMEOUT: "the time was over before its end",
    Unscanned.EXCLUDED: "in a hidden or heavy folder",
}
_COVERAGE = {
    "no_files_scanned": "no file was scanned",
    "no_canonical_or_changed_candidate_scanned": "no deliverable and no changed file was scanned",
    "minimum_file_coverage_not_met": (
        "fewer files were scanned than contradiction_scan_min_files_for_sufficiency asks for"
    ),
    "cap_exhausted_before_priority_scan": "a cap was reached before every file that counts was read",
    "scan_timed_out": "the time was over",
    "marker_unusable": "a marker of the policy cannot be used",
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
    places = [_place(each) for each in scan.places]
    yield _cut(f"placeholders ({len(places)}):", places, limit)
    # Those that count come first: for their sake the next step is told.
    skipped = sorted(scan.skipped, key=lambda each: not each.candidate.tier.is_high_priority)
    yield [_extent(scan, adjudication.read_from), *_coverage(adjudication)]
    yield _cut(
        f"not scanned whole ({len(skipped)}):", [_unread(each, adjudication) for each in skipped], limit
    )
    yield _others(scan)


def _place(place: Place) -> str:
    kinds = dict.fromkeys(safe(each, _MOST_NAME) for each in (place.rule, place.marker) if each)
    where = "" if place.tier.is_high_priority else f"  ({_TIERS[place.tier]})"
    return f"{show_path(place.path)}:{place.line}  {'  '.join(kinds)}{where}"


def _extent(scan: Scan, read_from: str) -> str:
    """Say how much was read, and of what."""
    where = f" in {safe(read_from, _MOST_NAME)}" if read_from else ""
    if not scan.scanned and not scan.total_bytes:
        return f"scanned{where}: nothing"
    tiers = Counter(each.tier for each in scan.scanned)
    parts = ", ".join(count(tiers[tier], noun) for tier, noun in _TIERS.items() if tiers[tier])
    size = f"{scan.total_bytes:,} byte" + ("" if scan.total_bytes == 1 else "s")
    return f"scanned{where}: {count(len(scan.scanned), 'file')}, {size}" + (f" ({parts})" if parts else "")


def _coverage(adjudication: Adjudication) -> Iterator[str]:
    """Say whether that is enough; not where something was found, for that stands whatever was looked at."""
    coverage = adjudication.coverage
    if coverage is None or (adjudication.scan is not None and adjudication.scan.places):
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
        yield f"coverage: insufficient: {'; '.join(_because(coverage.reasons))}"


def _because(reasons: Sequence[str]) -> list[str]:
    """Word the reasons, each once; which files they speak of is listed."""
    said = [
        "not every file that counts was scanned whole"
        if each.startswith(_PRIORITY)
        else _COVERAGE.get(each, safe(each, _MOST_NAME))
        for each in reasons
    ]
    return list(dict.fromkeys(said))


def _unread(skipped: Skipped, adjudication: Adjudication) -> str:
    candidate, reason = skipped.candidate, _REASONS[skipped.reason]
    if skipped.reason is Unscanned.MISSING and adjudication.read_from:
        reason += f" in {safe(adjudication.read_from, _MOST_NAME)}"
    name = safe(candidate.given) if candidate.path is None else show_path(candidate.path)
    return f"{name}: {reason} ({_TIERS[candidate.tier]})"


def _others(scan: Scan) -> list[str]:
    """Count the tracked files beside the named ones that were passed by."""
    passed_by = {reason: scan.passed_by[reason] for reason in Unscanned if scan.passed_by.get(reason)}
    if not passed_by:
        return []
    lines = [f"  {times}: {_REASONS[reason]}" for reason, times in passed_by.items()]
    return [f"other tracked files that were passed by ({sum(passed_by.values())}):", *lines]


def _cut(title: str, lines: Sequence[str], limit: int) -> list[str]:
    if not lines:
        return []
    more = [f"  … and {len(lines) - limit} more"] if len(lines) > limit else []
    return [title, *(f"  {line}" for line in lines[:limit]), *more]


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
    reason = safe(adjudication.reason_code or "no reason code", _MOST_NAME)
    if adjudication.passed:
        return "passed: as the verifier said"
    if claim.passed:
        return f"not passed: {reason} blocks, though the verifier passed it"
    if adjudication.outcome is not ClaimOutcome.CONTRADICTED:
        return f"not passed: {reason}, as the verifier said"
    before = safe(adjudication.contradicted_reason_code or "no reason code", _MOST_NAME)
    said = f"inconclusive, not passed: {reason} instead of {before}"
    if claim.confidence != adjudication.confidence:
        said += f"; confidence {number(adjudication.confidence)}"
        said += "" if claim.confidence is None else f" instead of {number(claim.confidence)}"
    return said
