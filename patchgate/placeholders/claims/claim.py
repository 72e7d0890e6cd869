"""The values of a claim: what a verifier said, what was scanned, what follows.

`claim_scan` decides what is scanned, `claim_decision` what follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from patchgate.git.path import RepoPath
from patchgate.report.verdict import Json
from patchgate.values import dataclass, field

MOST_SAMPLES = 20
"""How many placeholders, and how many files that were not scanned, an answer or a record lists."""


class ClaimOutcome(StrEnum):
    """What became of a verdict."""

    PASSED = "passed"
    UPHELD = "upheld"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    UNCHANGED = "unchanged"

    @property
    def exit_code(self) -> int:
        """The exit code: 0 only for a verdict that had passed."""
        return {ClaimOutcome.PASSED: 0, ClaimOutcome.CONTRADICTED: 3}.get(self, 1)


class Tier(StrEnum):
    """Why a file is scanned; the tiers are scanned in this order."""

    CANONICAL = "canonical"
    CURRENT = "current_attempt"
    PRIOR = "prior_attempt"
    EVIDENCE = "evidence_artifact"
    FALLBACK = "fallback"

    @property
    def is_high_priority(self) -> bool:
        """Whether every file of the tier must be scanned whole before a claim can be contradicted."""
        return self in {Tier.CANONICAL, Tier.CURRENT, Tier.PRIOR}


class ScanMode(StrEnum):
    """How far a scan went."""

    TARGETED = "targeted_only"
    WITH_FALLBACK = "targeted_plus_fallback"


class SkipReason(StrEnum):
    """Why a file was not scanned whole.

    `EXCLUDED` (a hidden or heavy folder, or a path of `claims.exclude`) exists only in the fallback.
    `UNSTAGED`: the working tree and the index have different contents, and it is not known which one is the
    work.
    """

    TOO_LARGE = "too_large"
    BINARY = "binary"
    SUFFIX = "suffix"
    MISSING = "missing"
    UNSTAGED = "unstaged"
    SYMLINK = "symlink"
    OUTSIDE = "outside"
    UNREADABLE = "unreadable"
    CAP = "cap"
    TIMEOUT = "timeout"
    EXCLUDED = "excluded"


class SourceName(StrEnum):
    """What a claim is checked against where no revision is given, as messages name it."""

    INDEX = "the index"
    WORKING_TREE = "the working tree"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a verifier said about finished work.

    `issues` are the texts of its issues. The lists of files are as they were given, in any form.
    `has_hard_invariant`: a key or an issue of the document marks the failure as one. `written` is the whole
    document in its order, with unknown keys: it is part of the answer.
    """

    passed: bool
    reason_code: str | None = None
    severity_class: str | None = None
    feedback: str = ""
    issues: tuple[str, ...] = ()
    confidence: float | None = None
    subject: str | None = None
    deliverables: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()
    prior_changed_files: tuple[str, ...] = ()
    evidence_files: tuple[str, ...] = ()
    has_hard_invariant: bool = False
    written: Mapping[str, Json] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names, as they were given, in the order of the tiers."""
        return (*self.deliverables, *self.changed_files, *self.prior_changed_files, *self.evidence_files)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to scan; `path` is None where what was `given` (safe to print) is outside the repository."""

    tier: Tier
    path: RepoPath | None
    given: str = ""


@dataclass(frozen=True, slots=True)
class PlaceholderLocation:
    """Where a placeholder is: `line` counts from 1, `rule` is that of the placeholder gate."""

    tier: Tier
    path: RepoPath
    line: int
    rule: str
    marker: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A candidate that was not scanned whole, and why; placeholders in the part that was read still count."""

    candidate: Candidate
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What one bounded scan saw.

    `scanned` are the files that were scanned whole, `total_bytes` is the size of all that was read. `skipped`
    are the candidates of the tiers that were not scanned whole; `fallback_skipped` counts those of the
    fallback, by reason. `source_counts` counts the distinct files of each tier (of the fallback: those that
    were read). `placeholders` are in the order of the scan. `timed_out`: the time ran out before the end.
    """

    scanned: tuple[Candidate, ...] = ()
    total_bytes: int = 0
    skipped: tuple[Skipped, ...] = ()
    fallback_skipped: Mapping[SkipReason, int] = field(default_factory=dict)
    source_counts: Mapping[Tier, int] = field(default_factory=dict)
    placeholders: tuple[PlaceholderLocation, ...] = ()
    used_fallback: bool = False
    timed_out: bool = False

    @property
    def mode(self) -> ScanMode:
        """How far the scan went."""
        return ScanMode.WITH_FALLBACK if self.used_fallback else ScanMode.TARGETED

    @property
    def is_fallback_cut(self) -> bool:
        """Whether a cap left files of the fallback unread."""
        return bool(self.fallback_skipped.get(SkipReason.CAP))

    @property
    def is_cap_exhausted(self) -> bool:
        """Whether a cap left a file of high priority, or of the fallback, unread or partly unread."""
        capped = (each for each in self.skipped if each.reason is SkipReason.CAP)
        return self.is_fallback_cut or any(each.candidate.tier.is_high_priority for each in capped)

    @property
    def matched_files(self) -> int:
        """How many files have a placeholder."""
        return len({each.path for each in self.placeholders})

    @property
    def samples(self) -> tuple[str, ...]:
        """The first placeholders as `path:line`, without the text."""
        return tuple(f"{each.path.quoted}:{each.line}" for each in self.placeholders[:MOST_SAMPLES])

    @property
    def unread(self) -> tuple[Skipped, ...]:
        """What was skipped: high priority first, and within that by the order of the reasons."""
        worst = {reason: place for place, reason in enumerate(SkipReason)}
        high = [each for each in self.skipped if each.candidate.tier.is_high_priority]
        rest = [each for each in self.skipped if not each.candidate.tier.is_high_priority]
        return (*sorted(high, key=lambda each: worst[each.reason]), *rest)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Whether enough was scanned to contradict a claim; `reasons` say why not, in a fixed order."""

    is_sufficient: bool
    reasons: tuple[str, ...] = ()

    @property
    def joined(self) -> str | None:
        """The reasons in one text; None if there are none."""
        return ";".join(self.reasons) or None


def outcome_of(scan: ScanResult, coverage: Coverage) -> ClaimOutcome:
    """Decide the outcome of a claim after a scan, by what was found and whether enough was scanned."""
    if scan.placeholders:
        return ClaimOutcome.UPHELD
    return ClaimOutcome.CONTRADICTED if coverage.is_sufficient else ClaimOutcome.UNDECIDED


@dataclass(frozen=True, slots=True)
class Adjudication:
    """What became of a claim: the amended verdict, and the reason.

    `scan` and `coverage` are None if nothing was scanned. `strict` is the coverage by the strict rule,
    even where another rule decided. `why` is one sentence, `next_step` the smallest one (None: there is
    none). `read_from` names the source: "the index", "the working tree", a revision.
    """

    claim: Claim
    outcome: ClaimOutcome
    passed: bool
    reason_code: str | None
    severity_class: str | None
    confidence: float | None
    contradicted_reason_code: str | None = None
    is_placeholder_claim: bool = False
    scan: ScanResult | None = None
    coverage: Coverage | None = None
    strict: Coverage | None = None
    guard_enabled: bool = True
    strict_coverage: bool = True
    why: str = ""
    next_step: str | None = None
    read_from: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def scan_result(self) -> ScanResult:
        """The result of the scan; an empty one where nothing was scanned."""
        return self.scan or ScanResult()

    @property
    def scan_mode(self) -> ScanMode | None:
        """How far the scan went; None if nothing was scanned."""
        return None if self.scan is None else self.scan.mode

    @property
    def marker_found(self) -> bool:
        """Whether a placeholder was found."""
        return bool(self.scan_result.placeholders)

    @property
    def corroborated(self) -> bool | None:
        """Whether a placeholder is in the claim's own files; None if none was found.

        Where the verdict names no file, every file counts as its own.
        """
        if not self.scan_result.placeholders:
            return None
        return self.scan_result.placeholders[0].tier is not Tier.FALLBACK or not self.claim.files

    @property
    def strict_outcome(self) -> ClaimOutcome | None:
        """The outcome by the strict rule; None if nothing was scanned."""
        return None if self.scan is None or self.strict is None else outcome_of(self.scan, self.strict)

    @property
    def is_contradicted(self) -> bool:
        """Whether the claim was contradicted."""
        return self.outcome is ClaimOutcome.CONTRADICTED

    @property
    def is_undecided(self) -> bool:
        """Whether the claim was kept because too little was scanned, although nothing was found."""
        return self.outcome is ClaimOutcome.UNDECIDED

    @property
    def coverage_sufficient(self) -> bool | None:
        """Whether enough was scanned; None if nothing was scanned."""
        return None if self.coverage is None else self.coverage.is_sufficient

    @property
    def coverage_insufficient_reason(self) -> str | None:
        """Why too little was scanned, in one text; None if nothing was scanned, or enough."""
        return None if self.coverage is None else self.coverage.joined
