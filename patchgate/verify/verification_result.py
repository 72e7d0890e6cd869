"""The result of a verification: whether something got worse, and who caused it. Values only."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from patchgate.commands.analysis_results import (
    AnalysisComparison,
    AnalysisResult,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.git.path import RepoPath
from patchgate.intents.intent import ScopeCheck
from patchgate.report.verdict import Verdict
from patchgate.values import dataclass

REGRESSIONS = "structural_regressions"
GATE_FAILURES = "gate_failures"
SCOPE_VIOLATION = "scope_violation"
BASELINE_ABUSE = "baseline_abuse"


class VerificationStatus(StrEnum):
    """The status of a verification."""

    ACCEPTED = "accepted"
    ACCEPTED_WITH_EXTERNAL_CHANGES = "accepted_with_external_changes"
    VIOLATED = "violated"
    UNVERIFIED = "unverified"
    EXPIRED = "expired"

    @property
    def verdict(self) -> Verdict:
        """The verdict for this status."""
        if self is VerificationStatus.VIOLATED:
            return Verdict.REJECTED
        return Verdict.ACCEPTED if self.value.startswith("accepted") else Verdict.UNDECIDED


@dataclass(frozen=True, slots=True)
class ExternalCommit:
    """A commit in the range that does not belong to the intent."""

    oid: str
    subject: str


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """The result of `verify`; see `patchgate.verification/2`.

    `intent` is the id, None without one; `base` is the commit for the comparison, if `--base` was given.
    `violations` are the violations that count, `reported_only` those that `relaxed` only reports. `reason`
    and `next_step` are one sentence each; `next_step` may be None. `dirty` are files that were changed before
    the intent began and are unchanged since. `before_gate` and `after_gate`: whether any threshold fails
    (None: unknown). `caused` are the failing thresholds that count, `external_thresholds` those that others
    made worse, `preexisting` those that fail as before and do not count. `grown` are the suppression files
    that grew; `suppression_files` are those to report: the grown ones, or with regressions all that changed.
    """

    status: VerificationStatus
    reason: str
    intent: str | None = None
    before: TreeRuns | None = None
    after: TreeRuns | None = None
    comparison: AnalysisComparison | None = None
    intent_regressions: tuple[AnalysisResult, ...] = ()
    external_regressions: tuple[AnalysisResult, ...] = ()
    intent_worsened: tuple[WorsenedMetric, ...] = ()
    external_worsened: tuple[WorsenedMetric, ...] = ()
    gate_worsened: bool = False
    before_gate: bool | None = None
    after_gate: bool | None = None
    intent_caused_gate: bool = False
    caused: tuple[ThresholdState, ...] = ()
    external_thresholds: tuple[ThresholdState, ...] = ()
    preexisting: tuple[ThresholdState, ...] = ()
    scope: ScopeCheck | None = None
    abuse: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    reported_only: tuple[str, ...] = ()
    next_step: str | None = None
    external_commits: tuple[ExternalCommit, ...] = ()
    dirty: tuple[RepoPath, ...] = ()
    warnings: tuple[str, ...] = ()
    suppression_files: tuple[RepoPath, ...] = ()
    base: str | None = None
    grown: tuple[RepoPath, ...] = ()

    def rules_of(self, violations: Iterable[str]) -> tuple[str, ...]:
        """Return the rules of violations, each once."""
        scope = self.scope or ScopeCheck()
        names = {
            REGRESSIONS: ("regression",),
            GATE_FAILURES: ("threshold-crossed",),
            SCOPE_VIOLATION: (
                *(("scope-forbidden",) if scope.forbidden else ()),
                *(("scope-unexpected",) if scope.unexpected else ()),
            ),
            BASELINE_ABUSE: ("suppression-abuse",),
        }
        found = [rule for each in violations for rule in names.get(each.partition(":")[0], ())]
        return tuple(dict.fromkeys(found))

    @property
    def suppressed(self) -> tuple[AnalysisResult, ...]:
        """The newly suppressed results, if the trees were compared."""
        return self.comparison.suppressed if self.comparison is not None else ()
