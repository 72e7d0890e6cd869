"""An adjudication as text: the reason, the smallest next step, and the whole for a terminal.

Decides words and layout only. The outcome comes first, the verdict after it last. A location is printed
without its text. Every name in the output is safe to print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.placeholders.claims.claim import (
    Adjudication,
    Candidate,
    Claim,
    ClaimOutcome,
    Coverage,
    PlaceholderLocation,
    ScanResult,
    Skipped,
    SkipReason,
    SourceName,
    Tier,
)
from patchgate.policy.settings import ClaimsSettings
from patchgate.report.wording import count, number, safe, show_path

MOST_NAME = 200
_END = 80
_PRIORITY = "priority_candidate_unscanned:"
_NOT_WHOLE = "not every file that counts was scanned whole"
_CAP = "a cap was reached before every file that counts was read"

TIER_NAMES = {
    Tier.CANONICAL: ("deliverable", "deliverables"),
    Tier.CURRENT: ("changed file", "changed files"),
    Tier.PRIOR: ("file of an earlier attempt", "files of earlier attempts"),
    Tier.EVIDENCE: ("evidence file", "evidence files"),
    Tier.FALLBACK: ("other tracked file", "other tracked files"),
}
"""One file of a tier, and several."""
SKIP_TEXTS = {
    SkipReason.TOO_LARGE: "larger than a scan may read",
    SkipReason.BINARY: "not UTF-8 or UTF-16 text, or a Git LFS pointer",
    SkipReason.SUFFIX: "its suffix is not allowed",
    SkipReason.MISSING: "no such file",
    SkipReason.UNSTAGED: "it differs between the working tree and the index",
    SkipReason.SYMLINK: "a symbolic link or a path below one, which is not followed",
    SkipReason.OUTSIDE: "outside this repository",
    SkipReason.UNREADABLE: "it cannot be read",
    SkipReason.CAP: "a cap was reached before it was read whole",
    SkipReason.TIMEOUT: "the time ran out before it was read whole",
    SkipReason.EXCLUDED: "in a hidden or heavy folder, or excluded by the config",
}
"""Why a file was not scanned, or not whole."""
_COVERAGE = {
    "no_files_scanned": "no file was scanned",
    "no_canonical_or_changed_candidate_scanned": "no deliverable and no changed file was scanned",
    "minimum_file_coverage_not_met": (
        "fewer files were scanned than `claims.contradiction_scan_min_files_for_sufficiency` requires"
    ),
    "cap_exhausted_before_priority_scan": _CAP,
    f"{_PRIORITY}{SkipReason.CAP.value}": _CAP,
    "cap_exhausted_in_fallback": "a cap was reached before every other tracked file was read",
    "scan_timed_out": "the time ran out before the end of the scan",
    "marker_unusable": "a marker of `claims.markers` cannot be used",
}
_FILES = "claims.contradiction_scan_max_files"
_TOTAL = "claims.contradiction_scan_max_total_bytes"
_FEWEST = "claims.contradiction_scan_min_files_for_sufficiency"
_SUFFIXES = "claims.contradiction_scan_allowed_suffixes"
_TIME = "claims.contradiction_scan_timeout_seconds"
_GUARD = "claims.contradiction_guard_enabled"
_NAME_EARLIER = (
    "name the earlier files that still count: `--prior PATH`, or `prior_changed_files` in the verdict"
)
_EXCLUDE = "claims.exclude"
_FIX = "fix what the verdict says, and run the verifier again"
_NO_CLAIM = "the verdict does not claim that a placeholder remains, so nothing was scanned"
_TO_REPLACE = "replace the placeholder, and run the verifier again"
_TO_FIND = (
    "replace the placeholder, or ask the verifier for the file and the line that it means; "
    f"`{_EXCLUDE}` skips files that no claim is about"
)
_READ_MORE_TIME = f"raise `{_TIME}`, or name fewer files"
# How a file can be scanned next time, by the reason it was skipped; the others depend on the source.
_TO_READ = {
    SkipReason.TOO_LARGE: f"raise `{_TOTAL}`, or split {{name}}",
    SkipReason.BINARY: (
        "check {name} yourself: only UTF-8, and UTF-16 with a byte-order mark, count as text; "
        "--worktree reads what Git LFS stores"
    ),
    SkipReason.SUFFIX: f"add {{suffix}} to `{_SUFFIXES}`",
    SkipReason.UNSTAGED: "{add}",
    SkipReason.SYMLINK: "name the file itself instead of {name}; no symlink is followed",
    SkipReason.OUTSIDE: "name a file of this repository instead of {name}",
    SkipReason.CAP: "raise {caps}, or name fewer files",
}
DEFAULT_LIMIT = 20
_MOST_PART = 100
_GRAPHICS = {
    ClaimOutcome.PASSED: "1;32",
    ClaimOutcome.UPHELD: "1;31",
    ClaimOutcome.CONTRADICTED: "1;33",
    ClaimOutcome.UNDECIDED: "1;33",
    ClaimOutcome.UNCHANGED: "1;31",
}


def count_of_tier(number: int, tier: Tier) -> str:
    """Write a number of files of a tier."""
    one, more = TIER_NAMES[tier]
    return f"{number:,} {one if number == 1 else more}"


def describe_coverage_gaps(reasons: Sequence[str]) -> list[str]:
    """Describe what a coverage lacks, each thing once; the files are listed elsewhere."""
    said = dict.fromkeys(
        _COVERAGE.get(each) or (_NOT_WHOLE if each.startswith(_PRIORITY) else safe(each, MOST_NAME))
        for each in reasons
    )
    if _NOT_WHOLE in said:
        said.pop(_CAP, None)
    return [*said]


def candidate_name(candidate: Candidate) -> str:
    """Return the name of a candidate to print, also where it has no path."""
    return safe(candidate.given, MOST_NAME) if candidate.path is None else short_path(candidate.path)


def short_path(path: RepoPath) -> str:
    """Write a path as in every report; a very long one is cut in the middle."""
    text = show_path(path)
    return text if len(text) <= MOST_NAME else f"{text[: MOST_NAME - _END - 1]}…{text[-_END:]}"


def explain(found: Adjudication, settings: ClaimsSettings) -> tuple[str, str | None]:
    """Explain an outcome in one sentence; the second value is the smallest next step (None: none)."""
    scan, coverage, outcome = found.scan, found.coverage, found.outcome
    if outcome is ClaimOutcome.PASSED:
        return "the verdict passed, so nothing was scanned", None
    if scan is None or coverage is None:
        if outcome is ClaimOutcome.UPHELD:
            return f"{_invariant(found.claim)} always blocks; a scan cannot change that", _FIX
        if not found.is_placeholder_claim:
            return _NO_CLAIM, _FIX
        return (
            f"the guard is off (`{_GUARD} = false`), so nothing was scanned and the claim was kept",
            f"set `{_GUARD} = true` to check the claim against the files",
        )
    if scan.placeholders:
        is_elsewhere = scan.placeholders[0].tier is Tier.FALLBACK
        return _found(found.claim, scan), _TO_FIND if is_elsewhere else _TO_REPLACE
    seen = f"no placeholder was found in {count(len(scan.scanned), 'file')}"
    if outcome is ClaimOutcome.CONTRADICTED:
        if settings.contradiction_guard_strict_coverage:
            seen = f"{seen}, and every file that the claim is about was read whole"
        else:
            seen = f"{seen}; strict coverage is off, so files that were not read did not count"
        return seen, "ask the verifier for the file and the line; this is not a pass"
    lacking, step = _missing(scan, coverage, settings, found.read_from)
    return f"{seen}, but that is not enough: {lacking}", step


def _invariant(claim: Claim) -> str:
    code = printable((claim.reason_code or "").strip(), 80)
    return f"a hard invariant (`{code}`)" if code else "a hard invariant"


def _found(claim: Claim, scan: ScanResult) -> str:
    first, more = scan.placeholders[0], len(scan.placeholders) - 1
    others = f", and {count(more, 'more place')}" if more else ""
    is_elsewhere = first.tier is Tier.FALLBACK and claim.files
    where = "; it is not one of the claim's files, so the claim is not corroborated" if is_elsewhere else ""
    place = f"{short_path(first.path)}:{first.line}"
    return f"a placeholder is in {place} ({first.rule}){others}{where}"


def _missing(
    scan: ScanResult, coverage: Coverage, settings: ClaimsSettings, read_from: str
) -> tuple[str, str]:
    """Describe what a scan lacks, and the next step."""
    if settings.has_unusable_markers:
        return _gaps_text("marker_unusable"), "fix the marker that the warnings name"
    unread = [each for each in scan.unread if each.candidate.tier.is_high_priority]
    if unread and settings.contradiction_guard_strict_coverage:
        first, others = unread[0], len(unread) - 1
        more = (
            f", and {count(others, 'other file')} {'was' if others == 1 else 'were'} not either"
            if others
            else ""
        )
        said = f"{candidate_name(first.candidate)} was not scanned whole ({SKIP_TEXTS[first.reason]}){more}"
        return said, _to_read(first, scan, settings, read_from)
    if scan.timed_out:
        return _gaps_text("scan_timed_out"), _READ_MORE_TIME
    said = _gaps_text(*coverage.reasons[:1])
    if coverage.reasons[:1] == ("minimum_file_coverage_not_met",):
        said += f" ({settings.contradiction_scan_min_files_for_sufficiency:,})"
    if not scan.scanned or "no_canonical_or_changed_candidate_scanned" in coverage.reasons:
        return said, "name the deliverable: `--deliverable PATH`, or `deliverables` in the verdict"
    if "cap_exhausted_in_fallback" in coverage.reasons:
        reached = _caps_reached(scan, settings)
        return said, f"raise {reached}, or leave out by `{_EXCLUDE}` the files that no claim is about"
    return said, f"name the other files that belong to the work, or lower `{_FEWEST}`"


def _gaps_text(*reasons: str) -> str:
    return "; ".join(describe_coverage_gaps(reasons))


def _to_read(skipped: Skipped, scan: ScanResult, settings: ClaimsSettings, read_from: str) -> str:
    """Say how a file of high priority can be scanned next time."""
    candidate = skipped.candidate
    if skipped.reason is SkipReason.MISSING:
        return _to_find(candidate, read_from)
    if skipped.reason is SkipReason.UNREADABLE:
        return _to_open(candidate, read_from)
    return _TO_READ.get(skipped.reason, _READ_MORE_TIME).format(
        name=candidate_name(candidate),
        suffix=_suffix(candidate),
        add=_to_add(candidate),
        caps=_caps_reached(scan, settings),
    )


def _to_open(candidate: Candidate, read_from: str) -> str:
    if candidate.path is None:
        return f"run git patchgate log --verify, or {_NAME_EARLIER}"
    name = candidate_name(candidate)
    if read_from == SourceName.WORKING_TREE:
        return f"make {name} readable, and do not change it during the scan"
    return f"run git fsck: the object of {name} cannot be read"


def _to_find(candidate: Candidate, read_from: str) -> str:
    if candidate.tier is Tier.PRIOR:
        # A file that was deleted cannot be added, and would block every later claim of its subject.
        return _NAME_EARLIER
    name = candidate_name(candidate)
    if read_from == SourceName.WORKING_TREE:
        return f"create {name}, or correct its name; a folder is not a file"
    if read_from in {SourceName.INDEX, ""}:
        return _to_add(candidate)
    return f"name a revision that has {name}, or correct its name"


def _to_add(candidate: Candidate) -> str:
    return f"git add {_argument(candidate)}, or scan the working tree: --worktree"


def _argument(candidate: Candidate) -> str:
    """Quote a path for a shell; `PATH` where it must be escaped for a terminal, or is too long."""
    path = candidate.path
    return "PATH" if path is None or len(path.raw) > MOST_NAME else path.in_shell


def _suffix(candidate: Candidate) -> str:
    name = candidate.path.name if candidate.path is not None else b""
    dot = name.rfind(b".")
    if dot <= 0:
        return '"" (names without a suffix)'
    return f'"{printable(name[dot:], 80)}"'


def _caps_reached(scan: ScanResult, settings: ClaimsSettings) -> str:
    """Name the caps that were reached; a file that does not fit into the rest reaches one."""
    read = len(scan.scanned) + sum(each.reason is SkipReason.BINARY for each in scan.skipped)
    read += scan.fallback_skipped.get(SkipReason.BINARY, 0)
    reached = [f"`{_FILES}`"] if read >= settings.contradiction_scan_max_files else []
    if scan.total_bytes >= settings.contradiction_scan_max_total_bytes or not reached:
        reached.append(f"`{_TOTAL}`")
    return " and ".join(reached)


def render(adjudication: Adjudication, *, color: bool, limit: int = DEFAULT_LIMIT) -> str:
    """Write an adjudication for a terminal; the text ends with a line feed.

    Args:
        color: whether to add ANSI colours.
        limit: how many entries of each list are printed; the others are counted.
    """
    outcome = adjudication.outcome
    sentence = safe(adjudication.why or _verdict_now(adjudication)).rstrip(".")
    first = f"{_colored(outcome.value, outcome, color)}: {sentence}"
    blocks = [[first], *_scanned(adjudication, limit), _closing(adjudication, color)]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _colored(word: str, outcome: ClaimOutcome, color: bool) -> str:
    return f"\x1b[{_GRAPHICS[outcome]}m{word}\x1b[0m" if color else word


def _scanned(adjudication: Adjudication, limit: int) -> Iterator[list[str]]:
    """Yield the blocks about the scan: placeholders, coverage, what was not scanned."""
    scan = adjudication.scan
    if scan is None:
        return
    places, unread = scan.placeholders, scan.unread
    yield _listed("placeholders", [_place(each) for each in places[:limit]], len(places))
    yield [_extent(scan, adjudication.read_from), *_coverage(adjudication)]
    # Those that count come first: the next step is about them.
    first = [_unread(each, adjudication) for each in unread[:limit]]
    yield _listed("not scanned whole", first, len(unread))
    yield _others(scan)


def _place(place: PlaceholderLocation) -> str:
    kinds = dict.fromkeys(safe(each, _MOST_PART) for each in (place.rule, place.marker) if each)
    where = "" if place.tier.is_high_priority else f"  ({TIER_NAMES[place.tier][0]})"
    return f"{short_path(place.path)}:{place.line}  {'  '.join(kinds)}{where}"


def _extent(scan: ScanResult, read_from: str) -> str:
    """Say how much was read, and from which source."""
    where = f" in {safe(read_from, _MOST_PART)}" if read_from else ""
    if not scan.scanned and not scan.total_bytes:
        return f"scanned{where}: nothing"
    tiers = Counter(each.tier for each in scan.scanned)
    parts = ", ".join(count_of_tier(tiers[tier], tier) for tier in Tier if tiers[tier])
    read = f"{count(len(scan.scanned), 'file')}, {count(scan.total_bytes, 'byte')}"
    return f"scanned{where}: {read}" + (f" ({parts})" if parts else "")


def _coverage(adjudication: Adjudication) -> Iterator[str]:
    """Say whether enough was scanned; empty if a placeholder was found, which is proof enough."""
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
        yield f"coverage: insufficient: {'; '.join(describe_coverage_gaps(coverage.reasons))}"
    answer = adjudication.strict_outcome
    if adjudication.strict is not None and answer is not adjudication.outcome:
        lacking = "; ".join(describe_coverage_gaps(adjudication.strict.reasons))
        yield f"strict coverage: insufficient: {lacking}; the strict outcome is {answer}"


def _unread(skipped: Skipped, adjudication: Adjudication) -> str:
    reason = SKIP_TEXTS[skipped.reason]
    if skipped.reason is SkipReason.MISSING and adjudication.read_from:
        reason += f" in {safe(adjudication.read_from, _MOST_PART)}"
    return f"{candidate_name(skipped.candidate)}: {reason} ({TIER_NAMES[skipped.candidate.tier][0]})"


def _others(scan: ScanResult) -> list[str]:
    """Count the other tracked files that were skipped."""
    skipped = {reason: times for reason in SkipReason if (times := scan.fallback_skipped.get(reason))}
    if not skipped:
        return []
    # Where a cap or the time ends the scan, the files after that one are not listed or counted.
    ended = {SkipReason.CAP, SkipReason.TIMEOUT} & skipped.keys()
    lines = [
        f"  {times:,}{' and all that follow' if reason in ended else ''}: {SKIP_TEXTS[reason]}"
        for reason, times in skipped.items()
    ]
    total = f"{sum(skipped.values()):,}{' or more' if ended else ''}"
    return [f"other tracked files that were skipped ({total}):", *lines]


def _listed(title: str, lines: Sequence[str], total: int) -> list[str]:
    """Write the first entries of a list, and the number of the others."""
    if not total:
        return []
    more = [f"  … and {total - len(lines):,} more"] if total > len(lines) else []
    return [f"{title} ({total:,}):", *(f"  {line}" for line in lines), *more]


def _closing(adjudication: Adjudication, color: bool) -> list[str]:
    """Write the last lines: help, and the verdict now."""
    lines = []
    if adjudication.next_step:
        lines.append(f"help: {safe(adjudication.next_step)}")
    word, colon, rest = _verdict_now(adjudication).partition(": ")
    lines.append(_colored(word, adjudication.outcome, color) + colon + rest)
    return lines


def _verdict_now(adjudication: Adjudication) -> str:
    """Write the verdict now, and before where that differs."""
    claim = adjudication.claim
    if adjudication.passed:
        return "passed: as the verifier said"
    reason = safe(adjudication.reason_code or "no reason code", _MOST_PART)
    if claim.passed:
        named = f" ({reason})" if adjudication.reason_code else ""
        return f"not passed: a hard invariant{named} blocks, although the verifier passed it"
    if not adjudication.is_contradicted:
        return f"not passed: {reason}, as the verifier said"
    before = safe(adjudication.contradicted_reason_code or "no reason code", _MOST_PART)
    said = f"inconclusive, not passed: {reason} instead of {before}"
    if claim.confidence != adjudication.confidence:
        said += f"; confidence {number(adjudication.confidence)}"
        said += "" if claim.confidence is None else f" instead of {number(claim.confidence)}"
    return said
