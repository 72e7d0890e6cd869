"""What is remembered of an adjudication: counts and places, no content.

Decides what goes into the ledger; its form is `ledger.adjudications`', what is counted of it `tell`'s.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchgate.change.path import RepoPath
from patchgate.gates.claims import is_cap_exhausted
from patchgate.git.repository import Repository
from patchgate.ledger.adjudications import KIND, Adjudicated
from patchgate.ledger.ledger import Ledger
from patchgate.verdict.claim import Adjudication, ClaimOutcome, Scan

MOST_SAMPLES = 20


def record(repository: Repository, adjudication: Adjudication, changed: Iterable[RepoPath]) -> str | None:
    """Add an adjudication to the ledger; None, or one sentence to warn with.

    Args:
        changed: the files of a passed verdict, which become earlier work of its subject.
    """
    return Ledger(repository.common_dir).record(KIND, _recorded(adjudication, changed).about())


def _recorded(adjudication: Adjudication, changed: Iterable[RepoPath]) -> Adjudicated:
    claim, scan, coverage = adjudication.claim, adjudication.scan, adjudication.coverage
    looked = scan or Scan()
    mode = "targeted_plus_fallback" if looked.used_fallback else "targeted_only"
    return Adjudicated(
        outcome=adjudication.outcome.value,
        subject=claim.subject,
        reason_code=claim.reason_code,
        is_placeholder_claim=adjudication.is_placeholder_claim,
        marker_found=bool(looked.places),
        contradiction_detected=adjudication.outcome is ClaimOutcome.CONTRADICTED,
        no_downgrade=adjudication.outcome is ClaimOutcome.UNDECIDED,
        cap_exhausted=is_cap_exhausted(looked),
        coverage_sufficient=None if coverage is None else coverage.is_sufficient,
        coverage_insufficient_reason=";".join(coverage.reasons) or None if coverage else None,
        scan_mode=None if scan is None else mode,
        scanned_file_count=len(looked.scanned),
        scanned_total_bytes=looked.total_bytes,
        matched_file_count=len({each.path for each in looked.places}),
        samples=tuple(f"{each.path.quoted}:{each.line}" for each in looked.places[:MOST_SAMPLES]),
        changed_files=tuple(changed),
    )
