"""What is remembered of an adjudication: counts and places, no content.

Decides what goes into the ledger; its form is `ledger.adjudications`', what is counted of it `tell`'s.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.ledger.adjudications import KIND, Adjudicated
from patchgate.ledger.ledger import Ledger
from patchgate.placeholders.claims.claim import Adjudication
from patchgate.placeholders.claims.document import telemetry


def record(repository: Repository, adjudication: Adjudication, changed: Iterable[RepoPath]) -> str | None:
    """Add an adjudication to the ledger; None, or one sentence to warn with.

    Args:
        changed: the files of a passed verdict, which become earlier work of its subject.
    """
    return Ledger(repository.common_dir).record(KIND, _recorded(adjudication, changed).about())


def _recorded(adjudication: Adjudication, changed: Iterable[RepoPath]) -> Adjudicated:
    claim, looked = adjudication.claim, adjudication.looked
    return Adjudicated(
        outcome=adjudication.outcome.value,
        subject=claim.subject,
        reason_code=claim.reason_code,
        is_placeholder_claim=adjudication.is_placeholder_claim,
        samples=looked.samples,
        changed_files=tuple(changed),
        **telemetry(adjudication),
    )
