"""How an adjudication is put: why, in one sentence, and the smallest next step.

Decides words alone; the outcome is decided before (`gates.claims`). Every name in them is safe to print.
"""

from __future__ import annotations

import shlex

from patchgate.change.quoting import printable
from patchgate.declared.settings import ClaimsSettings
from patchgate.verdict.claim import Candidate, Claim, ClaimOutcome, Coverage, Scan, Skipped, Tier, Unscanned

_INDEX = "the index"
_WORKING_TREE = "the working tree"
_FILES = "claims.contradiction_scan_max_files"
_TOTAL = "claims.contradiction_scan_max_total_bytes"
_FEWEST = "claims.contradiction_scan_min_files_for_sufficiency"
_SUFFIXES = "claims.contradiction_scan_allowed_suffixes"
_TIME = "claims.contradiction_scan_timeout_seconds"
_GUARD = "claims.contradiction_guard_enabled"

_UNREAD = {
    Unscanned.TOO_LARGE: "is larger than all that may be read",
    Unscanned.BINARY: "is no text",
    Unscanned.SUFFIX: "has a suffix that is not allowed",
    Unscanned.MISSING: "is not there",
    Unscanned.SYMLINK: "is, or lies behind, a symlink",
    Unscanned.OUTSIDE: "lies outside the repository",
    Unscanned.UNREADABLE: "cannot be read",
    Unscanned.CAP: "was not read whole because a cap was reached",
    Unscanned.TIMEOUT: "was not read because the time was over",
    Unscanned.EXCLUDED: "lies in a folder that is passed by",
}


def why(
    claim: Claim,
    outcome: ClaimOutcome,
    is_claim: bool,
    scan: Scan | None,
    coverage: Coverage | None,
    settings: ClaimsSettings,
) -> str:
    """Say in one sentence why a verdict became what it became."""
    if outcome is ClaimOutcome.PASSED:
        return "the verdict had passed, and nothing was scanned"
    if scan is None or coverage is None:
        if outcome is ClaimOutcome.UPHELD:
            return f"{_invariant(claim)} always blocks, whatever a scan says"
        if not is_claim:
            return "the verdict does not claim that a placeholder remains, so nothing was scanned"
        return f"the guard is off (`{_GUARD} = false`), so the claim stands and nothing was scanned"
    if scan.places:
        first = scan.places[0]
        more = len(scan.places) - 1
        others = f", and {_counted(more, 'more place')}" if more else ""
        where = ", in none of the files of the claim" if first.tier is Tier.FALLBACK else ""
        return f"a placeholder stands in {first.path.quoted}:{first.line} ({first.rule}){others}{where}"
    seen = f"no placeholder was found in {_counted(len(scan.scanned), 'file')}"
    if outcome is ClaimOutcome.CONTRADICTED:
        if settings.contradiction_guard_strict_coverage:
            return f"{seen}, and every file that the claim is about was read whole"
        return f"{seen}; strict coverage is off, so files that were not read did not count"
    return f"{seen}, but that is not enough: {_missing(scan, coverage, settings)}"


def _invariant(claim: Claim) -> str:
    code = printable((claim.reason_code or "").strip(), 80)
    return f"`{code}` is a failure that" if code else "a hard invariant"


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _first_unread(scan: Scan) -> tuple[Skipped | None, int]:
    """Pick the first file of high priority that was not scanned, worst reason first, and count the others."""
    unread = [each for each in scan.skipped if each.candidate.tier.is_high_priority]
    first = min(unread, key=lambda each: list(Unscanned).index(each.reason), default=None)
    return first, len(unread) - 1


def _name(candidate: Candidate) -> str:
    return candidate.path.quoted if candidate.path is not None else printable(candidate.given, 200)


def _missing(scan: Scan, coverage: Coverage, settings: ClaimsSettings) -> str:
    if settings.has_unusable_markers:
        return "a marker of `claims.markers` cannot be searched for"
    if settings.contradiction_guard_strict_coverage:
        first, others = _first_unread(scan)
        if first is not None:
            more = f" ({_counted(others, 'more file')} not scanned)" if others else ""
            return f"{_name(first.candidate)} {_UNREAD[first.reason]}{more}"
    if scan.timed_out:
        return "the time was over before its end"
    if not scan.scanned:
        return "no file was scanned"
    if "no_canonical_or_changed_candidate_scanned" in coverage.reasons:
        return "none of them is a deliverable or a changed file"
    return f"`{_FEWEST}` asks for {settings.contradiction_scan_min_files_for_sufficiency:,}"


def next_step(
    outcome: ClaimOutcome,
    is_claim: bool,
    scan: Scan | None,
    coverage: Coverage | None,
    settings: ClaimsSettings,
    read_from: str,
) -> str | None:
    """Say the smallest next step; None where there is none to say."""
    if outcome is ClaimOutcome.PASSED:
        return None
    if scan is None or coverage is None:
        if outcome is ClaimOutcome.UNCHANGED and is_claim:
            return f"set `{_GUARD} = true` to have the claim held against the files"
        return "mend what the verdict says, and ask the verifier again"
    if scan.places and scan.places[0].tier is Tier.FALLBACK:
        return "replace the placeholder, or ask the verifier for the file and the line that it means"
    if scan.places:
        return "replace the placeholder, and ask the verifier again"
    if outcome is ClaimOutcome.CONTRADICTED:
        return "ask the verifier again, for the file and the line; this is no pass"
    if settings.has_unusable_markers:
        return "mend the marker that the warnings name"
    if settings.contradiction_guard_strict_coverage:
        first, _ = _first_unread(scan)
        if first is not None:
            return _to_read(first, scan, settings, read_from)
    if scan.timed_out:
        return f"raise `{_TIME}`, or name fewer files"
    if not scan.scanned or "no_canonical_or_changed_candidate_scanned" in coverage.reasons:
        return "name the deliverable: `--deliverable PATH`, or `deliverables` in the verdict"
    return f"name the other files that belong to the work, or lower `{_FEWEST}`"


def _to_read(skipped: Skipped, scan: Scan, settings: ClaimsSettings, read_from: str) -> str:
    """Say how a file of high priority can be scanned the next time."""
    name = _name(skipped.candidate)
    match skipped.reason:
        case Unscanned.TOO_LARGE:
            return f"raise `{_TOTAL}`, or split {name}"
        case Unscanned.BINARY:
            return f"look into {name} yourself: only UTF-8, and UTF-16 with a byte-order mark, are text here"
        case Unscanned.SUFFIX:
            return f"add {_suffix(skipped.candidate)} to `{_SUFFIXES}`"
        case Unscanned.MISSING:
            return _to_find(skipped.candidate, read_from)
        case Unscanned.SYMLINK:
            return f"name the file itself instead of {name}; no symlink is followed"
        case Unscanned.OUTSIDE:
            return f"name a file of this repository instead of {name}"
        case Unscanned.CAP:
            return f"raise {_caps_reached(scan, settings)}, or name fewer files"
        case _:
            return f"raise `{_TIME}`, or name fewer files"


def _to_find(candidate: Candidate, read_from: str) -> str:
    name = _name(candidate)
    if read_from == _WORKING_TREE:
        return f"write {name}, or correct its name; a folder is no file"
    if read_from in {_INDEX, ""}:
        return f"git add {_word(candidate)}, or scan the working tree: --worktree"
    return f"name a revision that has {name}, or correct its name"


def _word(candidate: Candidate) -> str:
    """Write a path for a shell; one that would have to be escaped for a terminal is not written."""
    text = candidate.path.raw.decode("utf-8", "surrogateescape") if candidate.path is not None else ""
    return shlex.quote(text) if text and printable(text) == text else "PATH"


def _suffix(candidate: Candidate) -> str:
    name = candidate.path.name if candidate.path is not None else b""
    dot = name.rfind(b".")
    if dot <= 0:
        return '"" (names without a suffix)'
    return f'"{printable(name[dot:], 80)}"'


def _caps_reached(scan: Scan, settings: ClaimsSettings) -> str:
    """Name the caps that are used up; one file that would not fit into the rest uses it up."""
    read = len(scan.scanned) + sum(each.reason is Unscanned.BINARY for each in scan.skipped)
    reached = [f"`{_FILES}`"] if read >= settings.contradiction_scan_max_files else []
    if scan.total_bytes >= settings.contradiction_scan_max_total_bytes or not reached:
        reached.append(f"`{_TOTAL}`")
    return " and ".join(reached)
