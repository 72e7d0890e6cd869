"""How an adjudication is put: why, in one sentence, and the smallest next step.

Decides words alone, those of faults and coverage are `placeholders.claims.claim_wording`'s; the outcome is
decided before (`placeholders.claims.claims`). Every name in them is safe to print.
"""

from __future__ import annotations

import shlex

from patchgate.git.quoting import printable
from patchgate.placeholders.claims.claim import (
    Candidate,
    Claim,
    ClaimOutcome,
    Content,
    Coverage,
    Scan,
    Skipped,
    Tier,
    Unscanned,
)
from patchgate.placeholders.claims.claim_wording import (
    MOST_NAME,
    name_of,
    name_of_path,
    why_insufficient,
    why_unscanned,
)
from patchgate.policy.settings import ClaimsSettings
from patchgate.report.wording import count

_FILES = "claims.contradiction_scan_max_files"
_TOTAL = "claims.contradiction_scan_max_total_bytes"
_FEWEST = "claims.contradiction_scan_min_files_for_sufficiency"
_SUFFIXES = "claims.contradiction_scan_allowed_suffixes"
_TIME = "claims.contradiction_scan_timeout_seconds"
_GUARD = "claims.contradiction_guard_enabled"
_EARLIER = "name the earlier files that still count: `--prior PATH`, or `prior_changed_files` in the verdict"
_EXCLUDE = "claims.exclude"
_TOO_FEW = "minimum_file_coverage_not_met"
_CUT = "cap_exhausted_in_fallback"


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
            return "the verdict does not claim that a placeholder is what is wrong, so nothing was scanned"
        return f"the guard is off (`{_GUARD} = false`), so the claim stands and nothing was scanned"
    if scan.places:
        return _found(claim, scan)
    seen = f"no placeholder was found in {count(len(scan.scanned), 'file')}"
    if outcome is ClaimOutcome.CONTRADICTED:
        if settings.contradiction_guard_strict_coverage:
            return f"{seen}, and every file that the claim is about was read whole"
        return f"{seen}; strict coverage is off, so files that were not read did not count"
    return f"{seen}, but that is not enough: {_missing(scan, coverage, settings)}"


def _invariant(claim: Claim) -> str:
    code = printable((claim.reason_code or "").strip(), 80)
    return f"a hard invariant (`{code}`)" if code else "a hard invariant"


def _found(claim: Claim, scan: Scan) -> str:
    first, more = scan.places[0], len(scan.places) - 1
    others = f", and {count(more, 'more place')}" if more else ""
    is_elsewhere = first.tier is Tier.FALLBACK and claim.files
    where = "; this is none of the claim's files, so the claim is not corroborated" if is_elsewhere else ""
    place = f"{name_of_path(first.path)}:{first.line}"
    return f"a placeholder stands in {place} ({first.rule}){others}{where}"


def _first_unread(scan: Scan) -> tuple[Skipped | None, int]:
    """Pick the first file of high priority that was not scanned whole, and count the others."""
    unread = [each for each in scan.unread if each.candidate.tier.is_high_priority]
    return (unread[0] if unread else None), len(unread) - 1


def _missing(scan: Scan, coverage: Coverage, settings: ClaimsSettings) -> str:
    """Say what a scan lacks: of all that is missing, what the next step mends."""
    if settings.has_unusable_markers:
        return _put("marker_unusable")
    if settings.contradiction_guard_strict_coverage:
        first, others = _first_unread(scan)
        if first is not None:
            more = f", nor {'was' if others == 1 else 'were'} {count(others, 'other file')}" if others else ""
            return f"{name_of(first.candidate)} was not scanned whole ({why_unscanned(first.reason)}){more}"
    if scan.timed_out:
        return _put("scan_timed_out")
    if coverage.reasons[:1] == (_TOO_FEW,):
        return f"{_put(_TOO_FEW)} ({settings.contradiction_scan_min_files_for_sufficiency:,})"
    return _put(*coverage.reasons[:1])


def _put(*reasons: str) -> str:
    return "; ".join(why_insufficient(reasons))


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
        return (
            "replace the placeholder, or ask the verifier for the file and the line that it means; "
            f"`{_EXCLUDE}` leaves files out that no claim is about"
        )
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
    if _CUT in coverage.reasons:
        reached = _caps_reached(scan, settings)
        return f"raise {reached}, or leave out by `{_EXCLUDE}` the files that no claim is about"
    return f"name the other files that belong to the work, or lower `{_FEWEST}`"


def _to_read(skipped: Skipped, scan: Scan, settings: ClaimsSettings, read_from: str) -> str:
    """Say how a file of high priority can be scanned the next time."""
    name = name_of(skipped.candidate)
    match skipped.reason:
        case Unscanned.TOO_LARGE:
            return f"raise `{_TOTAL}`, or split {name}"
        case Unscanned.BINARY:
            return (
                f"look into {name} yourself: only UTF-8, and UTF-16 with a byte-order mark, are text here; "
                "what Git LFS stores is read with --worktree"
            )
        case Unscanned.SUFFIX:
            return f"add {_suffix(skipped.candidate)} to `{_SUFFIXES}`"
        case Unscanned.MISSING:
            return _to_find(skipped.candidate, read_from)
        case Unscanned.UNSTAGED:
            return _to_add(skipped.candidate)
        case Unscanned.SYMLINK:
            return f"name the file itself instead of {name}; no symlink is followed"
        case Unscanned.OUTSIDE:
            return f"name a file of this repository instead of {name}"
        case Unscanned.UNREADABLE:
            return _to_open(skipped.candidate, read_from)
        case Unscanned.CAP:
            return f"raise {_caps_reached(scan, settings)}, or name fewer files"
        case _:
            return f"raise `{_TIME}`, or name fewer files"


def _to_open(candidate: Candidate, read_from: str) -> str:
    if candidate.path is None:
        return f"run git patchgate log --verify, or {_EARLIER}"
    name = name_of(candidate)
    if read_from == Content.WORKING_TREE:
        return f"make {name} readable, and let nothing change it during the scan"
    return f"run git fsck: what {name} holds cannot be read"


def _to_find(candidate: Candidate, read_from: str) -> str:
    if candidate.tier is Tier.PRIOR:
        # One that is gone for good cannot be added; and no claim of its subject could be judged any more.
        return _EARLIER
    name = name_of(candidate)
    if read_from == Content.WORKING_TREE:
        return f"write {name}, or correct its name; a folder is no file"
    if read_from in {Content.INDEX, ""}:
        return _to_add(candidate)
    return f"name a revision that has {name}, or correct its name"


def _to_add(candidate: Candidate) -> str:
    return f"git add {_argument(candidate)}, or scan the working tree: --worktree"


def _argument(candidate: Candidate) -> str:
    """Write a path for a shell; one that would have to be escaped for a terminal, or cut, is not written."""
    text = candidate.path.raw.decode("utf-8", "surrogateescape") if candidate.path is not None else ""
    if not text or len(text) > MOST_NAME or printable(text) != text:
        return "PATH"
    # git takes a dash for an option, a colon for the magic of a pathspec.
    return shlex.quote(f"./{text}" if text.startswith(("-", ":")) else text)


def _suffix(candidate: Candidate) -> str:
    name = candidate.path.name if candidate.path is not None else b""
    dot = name.rfind(b".")
    if dot <= 0:
        return '"" (names without a suffix)'
    return f'"{printable(name[dot:], 80)}"'


def _caps_reached(scan: Scan, settings: ClaimsSettings) -> str:
    """Name the caps that are used up; one file that would not fit into the rest uses it up."""
    read = len(scan.scanned) + sum(each.reason is Unscanned.BINARY for each in scan.skipped)
    read += scan.passed_by.get(Unscanned.BINARY, 0)
    reached = [f"`{_FILES}`"] if read >= settings.contradiction_scan_max_files else []
    if scan.total_bytes >= settings.contradiction_scan_max_total_bytes or not reached:
        reached.append(f"`{_TOTAL}`")
    return " and ".join(reached)
