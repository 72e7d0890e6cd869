"""What the ledger tells of adjudications: how many claims were contradicted, and how often that was wrong.

A *downgrade* is a claim that was contradicted; it is *reversed* where a placeholder was found later in the
same subject. Decides what is counted, and against what a rate is formed. Only reads.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchgate.git.repository import Repository
from patchgate.ledger.adjudications import KIND, Adjudicated, adjudications
from patchgate.ledger.history import history
from patchgate.ledger.since import iso
from patchgate.storage.chain import Problem
from patchgate.storage.head import CONTRADICTED, Comparison

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reversal:
    """A subject in which a placeholder was found after `reversed` of its `downgrades`."""

    subject: str
    downgrades: int
    reversed: int


@dataclass(frozen=True, slots=True)
class ClaimStats:
    """What was counted, since a moment (seconds since the epoch) or from the beginning.

    `scans` are the adjudications that scanned files: rates of downgrades and of caps are formed against
    them, the reversal rate against the downgrades whose claims named a subject. Of the upheld claims, a
    placeholder was in their own files (`corroborated`) or in none of them. `permissive_downgrades` are those
    that the strict rule would not have made. `undated` events have no time that can be read, and are left out
    where there is a moment.
    """

    since: float | None
    outcomes: Mapping[str, int]
    scans: int
    downgrades: int
    no_downgrades: int
    cap_exhaustions: int
    corroborated: int
    uncorroborated: int
    permissive_downgrades: int
    unattributed: int
    reversals: tuple[Reversal, ...]
    undated: int
    problems: Sequence[Problem]
    exists: bool
    comparison: Comparison

    @property
    def is_whole(self) -> bool:
        """Tell whether every event that was recorded could be counted."""
        return all(each.torn for each in self.problems) and self.comparison.state != CONTRADICTED

    @property
    def adjudications(self) -> int:
        """How many verdicts were adjudicated."""
        return sum(self.outcomes.values())

    @property
    def attributed(self) -> int:
        """How many downgrades named their subject."""
        return self.downgrades - self.unattributed

    @property
    def reversed(self) -> int:
        """How many downgrades were reversed."""
        return sum(each.reversed for each in self.reversals)


def claim_stats(repository: Repository, since: float | None = None) -> ClaimStats:
    """Count what the ledger tells of adjudications; damaged lines are left out and named.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    told = history(repository, (KIND,))
    found = adjudications(reversed(told.events))
    later: set[str] = set()
    reversed_of: Counter[str] = Counter()
    downgrades_of: Counter[str | None] = Counter()
    counted: list[Adjudicated] = []
    undated = 0
    first = None if since is None else iso(since)
    for each in reversed(found):
        is_dated = _ISO.fullmatch(each.at) is not None
        if first is None or (is_dated and each.at >= first):
            counted.append(each)
            if each.contradiction_detected:
                downgrades_of[each.subject] += 1
                if each.subject is not None and each.subject in later:
                    reversed_of[each.subject] += 1
        undated += not is_dated
        if each.contradiction_marker_found and each.subject is not None:
            later.add(each.subject)
    return ClaimStats(
        since,
        Counter(each.outcome or "unknown" for each in counted),
        sum(each.scan_mode is not None for each in counted),
        downgrades_of.total(),
        sum(each.contradiction_detected_no_downgrade for each in counted),
        sum(each.cap_exhausted for each in counted),
        sum(each.corroborated is True for each in counted),
        sum(each.corroborated is False for each in counted),
        sum(
            each.contradiction_detected and each.strict_outcome not in {None, each.outcome}
            for each in counted
        ),
        downgrades_of[None],
        tuple(
            Reversal(subject, downgrades_of[subject], times) for subject, times in sorted(reversed_of.items())
        ),
        undated,
        told.problems,
        told.exists,
        told.comparison,
    )
