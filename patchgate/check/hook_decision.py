"""Decide whether a hook stops git: apply approvals, record refusals in the ledger, write receipts.

Under `[hooks] mode = "observe"`, or on a draft ref, a refusal is only reported. A ledger that cannot be
written is a warning, and never changes a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.check.features import feature_functions
from patchgate.git.notes import APPROVALS_REF
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.ledger.receipts import Receipts
from patchgate.policy.glob_matching import matches_ref
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Json, Report, Verdict
from patchgate.values import dataclass, replace


def add_receipts(receipts: Receipts, changes: Sequence[ChangeVerdict]) -> tuple[str, ...]:
    """Record the accepted commits: commit, its tree, its first parent (None for a root commit).

    Returns:
        Warnings, where they could not be written.
    """
    accepted = [each for each in changes if each.verdict is Verdict.ACCEPTED]
    lines = [
        (each.source.commit, each.change.after, each.source.base_commit)
        for each in accepted
        if each.source.commit is not None
    ]
    merges = {each.source.commit for each in accepted if each.source.kind == "merge" and each.source.commit}
    warning = receipts.add(lines, merges)
    return (warning,) if warning else ()


@dataclass(frozen=True, slots=True)
class HookDecision:
    """The report of a local hook, and whether it stops git."""

    report: Report
    stops: bool


def blocks(change: ChangeVerdict, branch: str | None) -> bool:
    """Return whether a local hook stops git for this change on `branch`."""
    if change.verdict is Verdict.ACCEPTED or change.policy.observes:
        return False
    return branch is None or not matches_ref(change.policy.draft_refs, branch)


@dataclass(frozen=True, slots=True)
class ApprovalSources:
    """Where approvals are, and which count.

    `local` is whether those without a signature count: on this machine, until the push. `notes` are commits
    or full refs of notes where signed ones are, a quarantined commit too. `signers` are the signers that the
    server or the command line of CI names, in the form of an allowed_signers file. `is_final` is whether
    nothing judges after this: on a server and in CI. `now` is in seconds since the epoch; None: this moment.
    """

    local: bool
    notes: Sequence[str] = (APPROVALS_REF,)
    signers: bytes = b""
    is_final: bool = False
    now: float | None = None


def with_approvals(repository: Repository, report: Report, sources: ApprovalSources) -> Report:
    """Apply the approvals for what a report refuses, and ask for those of the owners of its paths."""
    is_owned = report.lands_on or any(change.owned for change in report.changes)
    if report.verdict is Verdict.ACCEPTED and not is_owned:
        return report
    for _, apply_approvals in feature_functions("apply_approvals"):
        report = apply_approvals(repository, report, sources)
    return report


def decide(
    repository: Repository,
    hook: str,
    report: Report,
    branch: str | None,
    *,
    local: bool = True,
    most: int | None = None,
) -> HookDecision:
    """Apply approvals, record what is still refused, and decide whether git must stop.

    Args:
        hook: its name, for the ledger.
        branch: the full name of the branch that gets the change; None if it is not a branch.
        local: whether approvals without a signature count.
        most: how many refusals are recorded; None: all. Each is flushed to the disk.
    """
    # pre-commit has named the owners.
    if report.verdict is not Verdict.ACCEPTED or hook != "reference-transaction":
        report = with_approvals(repository, report, ApprovalSources(local))
    bad = [change for change in report.changes if change.verdict is not Verdict.ACCEPTED]
    if not bad:
        return HookDecision(report, stops=False)
    ledger = Ledger(repository.common_dir)
    failures = {
        ledger.record("refused" if blocks(each, branch) else "observed", _about(each, hook))
        for each in bad[:most]
    }
    warnings = (*report.warnings, *(each for each in failures if each))
    return HookDecision(replace(report, warnings=warnings), any(blocks(each, branch) for each in bad))


def _about(change: ChangeVerdict, hook: str) -> Mapping[str, Json]:
    rules = sorted({finding.rule for finding in change.findings if finding.level is Level.ERROR})
    return {
        "hook": hook,
        "ref": change.source.ref,
        "commit": change.source.commit,
        "source": change.source.kind,
        "change_id": change.change_id,
        "verdict_id": change.id,
        "policy": change.policy.digest,
        "rules": rules,
        "verdict": change.verdict.value,
    }


def record_slow(repository: Repository, hook: str, milliseconds: int, budget: int) -> str | None:
    """Record in the ledger that a hook took longer than its budget; return a warning if that fails."""
    about: dict[str, Json] = {"hook": hook, "ms": milliseconds, "budget_ms": budget}
    return Ledger(repository.common_dir).record("slow", about)
