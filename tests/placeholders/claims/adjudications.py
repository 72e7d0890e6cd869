"""Adjudications that were made by hand: one of each outcome, and the values that they are made of."""

from __future__ import annotations

from typing import Any

from patchgate.git.path import RepoPath
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
    Tier,
)

CODE = "incomplete_deliverable_placeholder"
WRITTEN: dict[str, Any] = {
    "verifier": "v2",
    "passed": False,
    "reason_code": CODE,
    "severity_class": "major",
    "confidence": 0.9,
    "feedback": "a placeholder remains",
    "deliverables": ["docs/out.md"],
}
CLAIM = Claim(
    False,
    CODE,
    "major",
    "a placeholder remains",
    confidence=0.9,
    deliverables=("docs/out.md",),
    written=WRITTEN,
)
STANDS = (False, CODE, "major", 0.9)


def path(text: str) -> RepoPath:
    return RepoPath.from_git(text.encode())


def candidate(text: str, tier: Tier = Tier.CANONICAL) -> Candidate:
    return Candidate(tier, path(text))


def place(text: str, line: int = 3, tier: Tier = Tier.CANONICAL) -> PlaceholderLocation:
    return PlaceholderLocation(tier, path(text), line, "placeholder-bracket", "TBD")


CLEAN = ScanResult(
    (candidate("docs/out.md"), candidate("a.md", Tier.CURRENT), candidate("b.md", Tier.FALLBACK)),
    1234,
    source_counts={Tier.CANONICAL: 1, Tier.CURRENT: 1, Tier.FALLBACK: 1},
    used_fallback=True,
)
PASSED = Adjudication(
    Claim(True, written={"passed": True}), ClaimOutcome.PASSED, True, None, None, None, why="it had passed"
)
UNCHANGED = Adjudication(
    CLAIM, ClaimOutcome.UNCHANGED, *STANDS, why="it says nothing of a placeholder, so nothing was scanned"
)
UPHELD = Adjudication(
    CLAIM,
    ClaimOutcome.UPHELD,
    *STANDS,
    is_placeholder_claim=True,
    scan=ScanResult(
        (candidate("docs/out.md"),),
        99,
        source_counts={Tier.CANONICAL: 1},
        placeholders=(place("docs/out.md"),),
    ),
    coverage=Coverage(True),
    why="a placeholder remains in 1 file",
    next_step="fill it in",
    read_from="the index",
)
CONTRADICTED = Adjudication(
    CLAIM,
    ClaimOutcome.CONTRADICTED,
    False,
    "parse_inconclusive",
    "inconclusive",
    0.5,
    contradicted_reason_code=CODE,
    is_placeholder_claim=True,
    scan=CLEAN,
    coverage=Coverage(True),
    why="no placeholder was found in any file that counts",
    next_step="ask the verifier again",
    read_from="the index",
)
UNDECIDED = Adjudication(
    CLAIM,
    ClaimOutcome.UNDECIDED,
    *STANDS,
    is_placeholder_claim=True,
    scan=ScanResult(
        (candidate("a.md", Tier.CURRENT),),
        40,
        (
            Skipped(candidate("log.bin", Tier.EVIDENCE), SkipReason.BINARY),
            Skipped(candidate("docs/out.md"), SkipReason.MISSING),
            Skipped(Candidate(Tier.CURRENT, None, "../x"), SkipReason.OUTSIDE),
        ),
        {SkipReason.EXCLUDED: 2, SkipReason.SUFFIX: 12},
        {Tier.CANONICAL: 1, Tier.CURRENT: 2, Tier.EVIDENCE: 1},
        used_fallback=True,
    ),
    coverage=Coverage(
        False, ("priority_candidate_unscanned:missing", "priority_candidate_unscanned:outside")
    ),
    why="no placeholder was found, and not every file that counts was scanned",
    next_step="git add docs/out.md",
    read_from="the index",
)
EVERY = {each.outcome: each for each in (PASSED, UNCHANGED, UPHELD, CONTRADICTED, UNDECIDED)}
