"""Baselines of branches that edit different files of one component merge under plain `git merge`."""

from __future__ import annotations

import os
from pathlib import Path

from tests.baseline_merges import ALL, DELETIONS, EDITS, Count, measure

PAIRS = 1000 if os.environ.get("PATCHGATE_LONG") else 40


def test_disjoint_edits_merge_to_what_a_fresh_capture_writes(tmp_path: Path) -> None:
    """`PATCHGATE_LONG=1` takes 1,000 pairs, as `python -m tests.baseline_merges` does."""
    count = measure(tmp_path, EDITS, PAIRS, 1)
    assert count == Count(pairs=PAIRS)


def test_additions_and_deletions_conflict_or_merge_to_what_a_capture_says(
    tmp_path: Path,
) -> None:
    for kind in (DELETIONS, ALL):
        count = measure(tmp_path / kind, kind, PAIRS // 2, 2)
        assert count.pairs == PAIRS // 2
        assert count.unequal == 0
