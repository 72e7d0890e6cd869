"""What an adjudication tells of itself: the facts that its record and every form of it share."""

from __future__ import annotations

from dataclasses import replace

from patchgate.placeholders.claims.claim import (
    MOST_SAMPLES,
    Coverage,
    ScanMode,
    ScanResult,
    Skipped,
    SkipReason,
    Tier,
)
from tests.placeholders.claims.adjudications import (
    CONTRADICTED,
    EVERY,
    PASSED,
    UNDECIDED,
    UPHELD,
    candidate,
    place,
)


def test_a_scan_tells_how_far_it_went() -> None:
    assert (UPHELD.scan_mode, CONTRADICTED.scan_mode) == (ScanMode.TARGETED, ScanMode.WITH_FALLBACK)
    assert PASSED.scan_mode is None


def test_where_nothing_was_scanned_nothing_is_known() -> None:
    assert PASSED.scan_result == ScanResult()
    assert (PASSED.marker_found, PASSED.coverage_sufficient, PASSED.coverage_insufficient_reason) == (
        *(False, None),
        None,
    )


def test_a_coverage_that_is_sufficient_has_no_reason_and_several_are_joined() -> None:
    assert (CONTRADICTED.coverage_sufficient, CONTRADICTED.coverage_insufficient_reason) == (True, None)
    lacking = replace(UNDECIDED, coverage=Coverage(False, ("one", "two")))
    assert (lacking.coverage_sufficient, lacking.coverage_insufficient_reason) == (False, "one;two")


def test_each_outcome_is_contradicted_undecided_or_neither() -> None:
    assert [each for each in EVERY.values() if each.is_contradicted] == [CONTRADICTED]
    assert [each for each in EVERY.values() if each.is_undecided] == [UNDECIDED]


def test_all_files_with_a_placeholder_are_counted_and_the_first_places_are_named() -> None:
    """C38."""
    scan = ScanResult(
        placeholders=tuple(place(f"{number:02}.md", line) for number in range(15) for line in (7, 9))
    )
    assert scan.matched_files == 15
    assert scan.samples[:3] == ("00.md:7", "00.md:9", "01.md:7")
    assert len(scan.samples) == MOST_SAMPLES


def test_what_was_not_read_begins_with_what_counts_worst_reason_first() -> None:
    def skipped(name: str, tier: Tier, reason: SkipReason) -> Skipped:
        return Skipped(candidate(name, tier), reason)

    late = skipped("a", Tier.CANONICAL, SkipReason.CAP)
    first = skipped("b", Tier.CURRENT, SkipReason.TOO_LARGE)
    missing = skipped("c", Tier.PRIOR, SkipReason.MISSING)
    evidence = (
        skipped("d", Tier.EVIDENCE, SkipReason.MISSING),
        skipped("e", Tier.EVIDENCE, SkipReason.BINARY),
    )
    assert ScanResult(skipped=(evidence[0], late, first, evidence[1], missing)).unread == (
        *(first, missing, late),
        *evidence,
    )
