"""Receipts of what was judged: one for each commit that was accepted, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.ledger.receipts import Receipts
from patchgate.report.verdict import ChangeVerdict, Verdict


def add_receipts(receipts: Receipts, changes: Sequence[ChangeVerdict]) -> str | None:
    """Write down what was accepted: commit, its tree, its first parent (None for a root commit).

    Returns:
        None, or one sentence to warn with.
    """
    accepted = [each for each in changes if each.verdict is Verdict.ACCEPTED]
    lines = [
        (each.source.commit, each.change.after, each.source.base_commit)
        for each in accepted
        if each.source.commit is not None
    ]
    merges = {each.source.commit for each in accepted if each.source.kind == "merge" and each.source.commit}
    return receipts.add(lines, merges)
