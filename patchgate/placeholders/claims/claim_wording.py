"""The words for what an adjudication tells of files: their tiers, why one was not scanned, what is missing.

Decides words alone, one for each thing, so that the sentence that says why, the lists and the coverage never
say the same in two ways. Every name that is given back is safe to print, and cut where it is very long.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.git.path import RepoPath
from patchgate.placeholders.claims.claim import Candidate, Tier, Unscanned
from patchgate.report.wording import safe, show_path

MOST_NAME = 200
_END = 80
_PRIORITY = "priority_candidate_unscanned:"
_NOT_WHOLE = "not every file that counts was scanned whole"
_CAP = "a cap was reached before every file that counts was read"

_TIERS = {
    Tier.CANONICAL: ("deliverable", "deliverables"),
    Tier.CURRENT: ("changed file", "changed files"),
    Tier.PRIOR: ("file of an earlier attempt", "files of earlier attempts"),
    Tier.EVIDENCE: ("evidence file", "evidence files"),
    Tier.FALLBACK: ("other tracked file", "other tracked files"),
}
_UNSCANNED = {
    Unscanned.TOO_LARGE: "larger than a scan may read",
    Unscanned.BINARY: "not UTF-8 or UTF-16 text, or a Git LFS pointer",
    Unscanned.SUFFIX: "its suffix is not an allowed one",
    Unscanned.MISSING: "no such file",
    Unscanned.UNSTAGED: "the working tree has another copy than the index",
    Unscanned.SYMLINK: "a symbolic link, or behind one, and none is followed",
    Unscanned.OUTSIDE: "outside this repository",
    Unscanned.UNREADABLE: "it cannot be read",
    Unscanned.CAP: "a cap was reached before it was read to its end",
    Unscanned.TIMEOUT: "the time was over before it was read to its end",
    Unscanned.EXCLUDED: "in a hidden or heavy folder, or excluded by the config",
}
_COVERAGE = {
    "no_files_scanned": "no file was scanned",
    "no_canonical_or_changed_candidate_scanned": "no deliverable and no changed file was scanned",
    "minimum_file_coverage_not_met": (
        "fewer files were scanned than `claims.contradiction_scan_min_files_for_sufficiency` asks for"
    ),
    "cap_exhausted_before_priority_scan": _CAP,
    f"{_PRIORITY}{Unscanned.CAP.value}": _CAP,
    "cap_exhausted_in_fallback": "a cap was reached before every other tracked file was read",
    "scan_timed_out": "the time was over before the end of the scan",
    "marker_unusable": "a marker of `claims.markers` cannot be used",
}


def tier_name(tier: Tier) -> str:
    """Name one file of a tier."""
    return _TIERS[tier][0]


def count_of_tier(number: int, tier: Tier) -> str:
    """Write a number of files of a tier."""
    one, more = _TIERS[tier]
    return f"{number:,} {one if number == 1 else more}"


def why_unscanned(reason: Unscanned) -> str:
    """Say why a file was not scanned, or not whole."""
    return _UNSCANNED[reason]


def why_insufficient(reasons: Sequence[str]) -> list[str]:
    """Say what a coverage lacks, each thing once; which files it speaks of is told elsewhere."""
    said = dict.fromkeys(_insufficient(each) for each in reasons)
    if _NOT_WHOLE in said:
        said.pop(_CAP, None)
    return [*said]


def _insufficient(reason: str) -> str:
    known = _COVERAGE.get(reason)
    return known or (_NOT_WHOLE if reason.startswith(_PRIORITY) else safe(reason, MOST_NAME))


def name_of(candidate: Candidate) -> str:
    """Name a candidate, also one that has no path."""
    return safe(candidate.given, MOST_NAME) if candidate.path is None else name_of_path(candidate.path)


def name_of_path(path: RepoPath) -> str:
    """Write a path as every report does; of a very long one the beginning and the end."""
    text = show_path(path)
    return text if len(text) <= MOST_NAME else f"{text[: MOST_NAME - _END - 1]}…{text[-_END:]}"
