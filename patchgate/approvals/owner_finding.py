"""The finding of a change that lacks the approvals of owners, and the name of its gate."""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.git.path import RepoPath
from patchgate.report.verdict import OWNER_RULE, Finding, Fixer, OwnedPaths, ProtectedRef

GATE = "owners"


def owner_finding(
    message: str,
    path: RepoPath | None,
    hint: str,
    ref: ProtectedRef,
    owned: OwnedPaths | None = None,
    *,
    approved: Sequence[str] = (),
    not_counted: Sequence[str] = (),
) -> Finding:
    """Make the finding of what a ref would get without the approvals that it needs.

    Args:
        owned: the paths and their owners; None: any signer may approve.
        approved: who has approved.
        not_counted: why other approvals do not count, in sentences.
    """
    table = None if owned is None or owned.table is None else f"owners[{owned.table}]"
    return Finding.of(
        OWNER_RULE,
        message,
        path,
        hint=hint,
        who_can_fix=Fixer.PERSON,
        details={
            "owners": [] if owned is None else list(owned.signers),
            "table": table,
            "required": 1 if owned is None else owned.approvals,
            "approved": list(approved),
            "ref": ref.ref,
            "not_counted": list(not_counted),
        },
    )
