"""The words for faults and coverage: one for each, and none is missing."""

from __future__ import annotations

import pytest

from patchgate.git.path import RepoPath
from patchgate.placeholders.claims.claim import Candidate, SkipReason, Tier
from patchgate.placeholders.claims.claim_wording import (
    MOST_NAME,
    SKIP_TEXTS,
    TIER_NAMES,
    candidate_name,
    count_of_tier,
    describe_coverage_gaps,
    short_path,
)

PRIORITY = "priority_candidate_unscanned:"
NOT_WHOLE = "not every file that counts was scanned whole"
CAP = "a cap was reached before every file that counts was read"


def test_every_reason_has_words_of_its_own() -> None:
    assert len({SKIP_TEXTS[reason] for reason in SkipReason}) == len(SkipReason)
    assert len({TIER_NAMES[tier] for tier in Tier}) == len(Tier)


def test_a_file_that_was_never_opened_is_not_said_to_have_been() -> None:
    for reason in (SkipReason.CAP, SkipReason.TIMEOUT):
        assert SKIP_TEXTS[reason].endswith(" before it was read whole")


def test_files_of_a_tier_are_counted_in_the_plural() -> None:
    assert [count_of_tier(number, Tier.PRIOR) for number in (1, 2, 1000)] == [
        "1 file of an earlier attempt",
        "2 files of earlier attempts",
        "1,000 files of earlier attempts",
    ]
    assert count_of_tier(0, Tier.CANONICAL) == "0 deliverables"


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ((), []),
        (
            ("no_files_scanned", "no_canonical_or_changed_candidate_scanned"),
            ["no file was scanned", "no deliverable and no changed file was scanned"],
        ),
        (
            ("minimum_file_coverage_not_met",),
            ["fewer files were scanned than `claims.contradiction_scan_min_files_for_sufficiency` requires"],
        ),
        (("cap_exhausted_before_priority_scan", f"{PRIORITY}cap"), [CAP]),
        (("cap_exhausted_before_priority_scan", f"{PRIORITY}missing", f"{PRIORITY}cap"), [NOT_WHOLE]),
        ((f"{PRIORITY}binary", f"{PRIORITY}unreadable", f"{PRIORITY}timeout"), [NOT_WHOLE]),
        (
            ("scan_timed_out", "marker_unusable"),
            ["the time ran out before the end of the scan", "a marker of `claims.markers` cannot be used"],
        ),
        (("of_another\x1bversion",), ["of_another\\x1bversion"]),
    ],
)
def test_what_a_coverage_lacks_is_said_once(reasons: tuple[str, ...], words: list[str]) -> None:
    assert describe_coverage_gaps(reasons) == words


@pytest.mark.parametrize("length", [MOST_NAME - 1, MOST_NAME, MOST_NAME + 1, 100_000])
def test_a_name_is_cut_where_it_is_very_long_and_keeps_both_ends(length: int) -> None:
    name = "b" + "x" * (length - 2) + "e"
    told = short_path(RepoPath.from_git(name.encode()))
    assert len(told) == min(length, MOST_NAME)
    assert (told == name) == (length <= MOST_NAME)
    assert (told[0], told[-1]) == ("b", "e")
    assert len(candidate_name(Candidate(Tier.CANONICAL, None, name))) <= MOST_NAME + 1


def test_a_name_is_safe_to_print() -> None:
    hostile = "\x1b[31m\n::error::##[error]"
    for told in (
        candidate_name(Candidate(Tier.CANONICAL, RepoPath.from_git(hostile.encode()))),
        candidate_name(Candidate(Tier.CANONICAL, None, hostile)),
    ):
        assert told.isprintable()
        assert "##[" not in told
