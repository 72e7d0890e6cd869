"""An adjudication in words: what stands where, what is cut, and that nothing foreign is shown raw."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from patchgate.git.path import RepoPath
from patchgate.git.quoting import is_printable
from patchgate.placeholders.claims.claim import (
    Adjudication,
    Candidate,
    Claim,
    ClaimOutcome,
    Coverage,
    Skipped,
    SkipReason,
    Tier,
)
from patchgate.placeholders.claims.claim_wording import render
from tests.placeholders.claims.adjudications import (
    CLAIM,
    CONTRADICTED,
    EVERY,
    PASSED,
    UNDECIDED,
    UPHELD,
    candidate,
    place,
)
from tests.report.verdict_reports import HOSTILE


def lines(adjudication: Adjudication, **how: int) -> list[str]:
    return render(adjudication, color=False, **how).splitlines()


def test_a_claim_that_is_upheld_shows_the_place_and_not_what_stands_there() -> None:
    """C20, C38."""
    assert lines(UPHELD) == [
        "upheld: a placeholder remains in 1 file",
        "",
        "placeholders (1):",
        "  docs/out.md:3  placeholder-bracket  TBD",
        "",
        "scanned in the index: 1 file, 99 bytes (1 deliverable)",
        "",
        "help: fill it in",
        "not passed: incomplete_deliverable_placeholder, as the verifier said",
    ]


def test_a_claim_that_is_contradicted_says_what_was_scanned_and_what_it_is_now() -> None:
    """C21."""
    assert lines(CONTRADICTED) == [
        "contradicted: no placeholder was found in any file that counts",
        "",
        "scanned in the index: 3 files, 1,234 bytes (1 deliverable, 1 changed file, 1 other tracked file)",
        "coverage: sufficient",
        "",
        "help: ask the verifier again",
        (
            "inconclusive, not passed: parse_inconclusive instead of incomplete_deliverable_placeholder; "
            "confidence 0.5 instead of 0.9"
        ),
    ]


def test_a_claim_that_cannot_be_judged_names_each_file_that_was_not_looked_at_and_why() -> None:
    """C22; those that count come first, each reason is said once."""
    assert lines(UNDECIDED) == [
        "undecided: no placeholder was found, and not every file that counts was scanned",
        "",
        "scanned in the index: 1 file, 40 bytes (1 changed file)",
        "coverage: insufficient: not every file that counts was scanned whole",
        "",
        "not scanned whole (3):",
        "  docs/out.md: no such file in the index (deliverable)",
        "  ../x: outside this repository (changed file)",
        "  log.bin: not UTF-8 or UTF-16 text, or a Git LFS pointer (evidence file)",
        "",
        "other tracked files that were skipped (14):",
        "  12: its suffix is not allowed",
        "  2: in a hidden or heavy folder, or excluded by the config",
        "",
        "help: git add docs/out.md",
        "not passed: incomplete_deliverable_placeholder, as the verifier said",
    ]


def test_what_was_not_scanned_is_two_lines_and_the_next_step() -> None:
    assert lines(PASSED) == ["passed: it had passed", "", "passed: as the verifier said"]
    hard = replace(
        UPHELD, scan=None, coverage=None, why="a hard invariant always blocks", reason_code="secret"
    )
    assert lines(hard)[2:] == ["help: fill it in", "not passed: secret, as the verifier said"]


def test_a_verdict_that_had_passed_and_blocks_all_the_same_says_so() -> None:
    """C1."""
    claim = Claim(True, "secret", "hard_invariant", written={"passed": True})
    blocks = Adjudication(
        claim, ClaimOutcome.UPHELD, False, "secret", "hard_invariant", None, why="it blocks"
    )
    assert (
        lines(blocks)[-1] == "not passed: a hard invariant (secret) blocks, although the verifier passed it"
    )
    unnamed = replace(blocks, reason_code=None)
    assert lines(unnamed)[-1] == "not passed: a hard invariant blocks, although the verifier passed it"


def test_the_permissive_rule_is_named_where_it_decided() -> None:
    """C28."""
    told = lines(replace(CONTRADICTED, strict_coverage=False))
    rule = "contradiction_guard_strict_coverage = false"
    assert told[3] == f"coverage: sufficient by {rule}: any file that was scanned is enough"
    assert not any("strict" in line for line in lines(CONTRADICTED))


def test_what_the_coverage_lacks_is_said_in_words() -> None:
    reasons = ("no_files_scanned", "minimum_file_coverage_not_met", "of_another_version")
    told = lines(replace(UNDECIDED, coverage=Coverage(False, reasons)))
    fewest = "fewer files were scanned than `claims.contradiction_scan_min_files_for_sufficiency` requires"
    assert f"coverage: insufficient: no file was scanned; {fewest}; of_another_version" in told


def test_what_is_told_of_a_file_is_told_once() -> None:
    """The cap of the coverage and the cap of the file are one thing."""
    reasons = ("cap_exhausted_before_priority_scan", "priority_candidate_unscanned:cap")
    told = lines(replace(UNDECIDED, coverage=Coverage(False, reasons)))
    assert "coverage: insufficient: a cap was reached before every file that counts was read" in told


@pytest.mark.parametrize("reason", SkipReason)
@pytest.mark.parametrize("tier", Tier)
def test_every_reason_and_tier_of_a_file_has_words(reason: SkipReason, tier: Tier) -> None:
    assert UNDECIDED.scan is not None
    scan = replace(UNDECIDED.scan, skipped=(Skipped(candidate("x.md", tier), reason),))
    (told,) = (line for line in lines(replace(UNDECIDED, scan=scan)) if line.startswith("  x.md: "))
    assert re.fullmatch(r"  x\.md: [A-Za-z0-9 ,-]+ \([a-z ]+\)", told)


def test_long_lists_are_cut_and_the_rest_is_counted() -> None:
    assert UPHELD.scan is not None
    many = replace(
        UPHELD.scan,
        placeholders=tuple(place("a.md", number) for number in range(1, 31)),
        skipped=tuple(Skipped(candidate(f"{number}.png"), SkipReason.BINARY) for number in range(25)),
    )
    told = lines(replace(UPHELD, scan=many), limit=20)
    assert told[2] == "placeholders (30):"
    assert told[22:24] == ["  a.md:20  placeholder-bracket  TBD", "  … and 10 more"]
    assert "  … and 5 more" in told
    assert len(told) < 60


def test_a_very_long_name_is_cut_in_its_middle() -> None:
    long = "a/" * 50_000 + "end.md"
    assert UPHELD.scan is not None
    scan = replace(
        UPHELD.scan,
        placeholders=(place(long),),
        skipped=(
            Skipped(candidate(long), SkipReason.MISSING),
            Skipped(Candidate(Tier.CURRENT, None, "../" + long), SkipReason.OUTSIDE),
        ),
    )
    told = lines(replace(UPHELD, scan=scan))
    assert max(map(len, told)) < 300
    assert sum("a/a/…" in line or "a/a/a…" in line for line in told) == 3
    assert sum("/end.md:" in line for line in told) == 2


def test_where_nothing_at_all_was_read_that_is_said() -> None:
    assert UNDECIDED.scan is not None
    scan = replace(UNDECIDED.scan, scanned=(), total_bytes=0, fallback_skipped={})
    told = lines(replace(UNDECIDED, scan=scan, read_from="HEAD~3"))
    assert told[2] == "scanned in HEAD~3: nothing"
    assert not any("passed by" in line for line in told)
    one_byte = replace(UNDECIDED, scan=replace(scan, total_bytes=1))
    assert "scanned in the index: 0 files, 1 byte" in lines(one_byte)


def test_a_confidence_that_is_new_or_as_before_is_not_compared() -> None:
    silent = replace(CONTRADICTED, claim=replace(CLAIM, confidence=None))
    assert lines(silent)[-1].endswith("; confidence 0.5")
    same = replace(CONTRADICTED, claim=replace(CLAIM, confidence=0.5))
    assert lines(same)[-1].endswith("incomplete_deliverable_placeholder")
    unnamed = replace(CONTRADICTED, contradicted_reason_code=None)
    assert "instead of no reason code;" in lines(unnamed)[-1]


@pytest.mark.parametrize("outcome", ClaimOutcome)
def test_colours_change_nothing_but_the_colour(outcome: ClaimOutcome) -> None:
    colored = render(EVERY[outcome], color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render(EVERY[outcome], color=False)
    assert colored.startswith("\x1b[1;3")
    assert colored.count("\x1b[0m") == 2


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_nothing_foreign_reaches_a_terminal_raw(raw: bytes) -> None:
    text = raw.decode("utf-8", "surrogateescape")
    path = RepoPath.from_git(raw)
    assert UPHELD.scan is not None
    skipped = (
        Skipped(Candidate(Tier.CURRENT, path), SkipReason.CAP),
        Skipped(Candidate(Tier.CURRENT, None, text), SkipReason.OUTSIDE),
    )
    hostile = Adjudication(
        replace(CLAIM, reason_code=text),
        ClaimOutcome.UPHELD,
        *(False, text, text, 0.9),
        scan=replace(
            UPHELD.scan, placeholders=(replace(place("x"), path=path, marker=text),), skipped=skipped
        ),
        coverage=Coverage(False, (text,)),
        why=text,
        next_step=text,
        read_from=text,
    )
    told = render(hostile, color=False).removesuffix("\n").split("\n")
    assert [line for line in told if not all(map(is_printable, line))] == []
    assert not any("##[" in line or "##vso[" in line or line.startswith("::") for line in told)
