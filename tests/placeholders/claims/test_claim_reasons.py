"""How an adjudication is put: the step fits the file, and what it says is true of it."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from patchgate.git.path import RepoPath
from patchgate.placeholders.claims.claim import (
    Adjudication,
    Candidate,
    Claim,
    ClaimOutcome,
    PlaceholderLocation,
    ScanResult,
    Skipped,
    SkipReason,
    Tier,
)
from patchgate.placeholders.claims.claim_decision import coverage_of
from patchgate.placeholders.claims.claim_wording import explain
from patchgate.policy.settings import ClaimsSettings

SETTINGS = ClaimsSettings()
CLAIM = Claim(False, "incomplete_deliverable_placeholder")
EARLIER = "name the earlier files that still count: `--prior PATH`, or `prior_changed_files` in the verdict"
TREES = ("the index", "the working tree", "HEAD~2")


def candidate(name: str, tier: Tier = Tier.CANONICAL) -> Candidate:
    return Candidate(tier, RepoPath.from_git(name.encode()))


def adjudication(outcome: ClaimOutcome, scan: ScanResult, read_from: str = "the index") -> Adjudication:
    found = Adjudication(CLAIM, outcome, False, None, None, None, is_placeholder_claim=True, scan=scan)
    return replace(found, coverage=coverage_of(scan, SETTINGS), read_from=read_from)


def put(scan: ScanResult, read_from: str = "the index") -> tuple[str, str]:
    """Say why a claim stands after a scan that found nothing, and what is to be done."""
    said, step = explain(adjudication(ClaimOutcome.UNDECIDED, scan, read_from), SETTINGS)
    assert not coverage_of(scan, SETTINGS).is_sufficient
    assert step is not None
    return said, step


def unread(*skipped: tuple[Candidate, SkipReason]) -> ScanResult:
    """A scan that read its deliverables, and left these."""
    read = (candidate("a.md"), candidate("b.md"))
    return ScanResult(read, 10, tuple(Skipped(each, reason) for each, reason in skipped))


@pytest.mark.parametrize("read_from", TREES)
def test_a_file_of_an_earlier_attempt_that_is_gone_cannot_be_added_so_others_are_named(
    read_from: str,
) -> None:
    scan = unread((candidate("gone.md", Tier.PRIOR), SkipReason.MISSING))
    assert put(scan, read_from)[1] == EARLIER


def test_a_record_that_cannot_be_read_is_verified_or_said_in_words() -> None:
    record = Candidate(Tier.PRIOR, None, "the record of earlier attempts")
    said, step = put(unread((record, SkipReason.UNREADABLE)))
    assert said.endswith(": the record of earlier attempts was not scanned whole (it cannot be read)")
    assert step == f"run git patchgate log --verify, or {EARLIER}"


@pytest.mark.parametrize(
    ("read_from", "step"),
    [
        ("the working tree", "make x.md readable, and do not change it during the scan"),
        ("the index", "run git fsck: the object of x.md cannot be read"),
        ("HEAD~2", "run git fsck: the object of x.md cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_made_readable(read_from: str, step: str) -> None:
    assert put(unread((candidate("x.md"), SkipReason.UNREADABLE)), read_from)[1] == step


def test_the_worst_file_is_named_and_the_others_are_counted() -> None:
    late = (candidate("late.md"), SkipReason.CAP)
    scan = unread(late, (candidate("gone.md", Tier.CURRENT), SkipReason.MISSING))
    head = "no placeholder was found in 2 files, but that is not enough: "
    assert (
        put(scan)[0] == head + "gone.md was not scanned whole (no such file), and 1 other file was not either"
    )
    evidence = (candidate("log", Tier.EVIDENCE), SkipReason.BINARY)
    assert put(unread(late, late, late, evidence))[0] == (
        head + "late.md was not scanned whole (a cap was reached before it was read whole), "
        "and 2 other files were not either"
    )


def test_a_time_that_was_over_after_all_that_counts_was_read_is_told_of_the_scan() -> None:
    scan = ScanResult((candidate("a.md"),), 10, source_counts={Tier.CANONICAL: 1}, timed_out=True)
    assert put(scan) == (
        (
            "no placeholder was found in 1 file, but that is not enough: "
            "the time ran out before the end of the scan"
        ),
        "raise `claims.contradiction_scan_timeout_seconds`, or name fewer files",
    )


def test_too_few_files_are_told_with_how_many_there_should_be() -> None:
    assert put(ScanResult((candidate("a.md", Tier.CURRENT),), 10))[0].endswith(
        ": fewer files were scanned than `claims.contradiction_scan_min_files_for_sufficiency` requires (2)"
    )


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("my notes.md", "'my notes.md'"),
        ("-x.md", "./-x.md"),
        (":(top)x.md", "'./:(top)x.md'"),
        ("\x1b.md", "PATH"),
        ("x" * 300, "PATH"),
    ],
)
def test_a_command_names_a_file_as_a_shell_and_git_take_it(name: str, argument: str) -> None:
    step = put(unread((candidate(name), SkipReason.MISSING)))[1]
    assert step == f"git add {argument}, or scan the working tree: --worktree"
    assert len(shlex.split(argument)) == 1


def test_a_very_long_name_does_not_hide_the_sentence() -> None:
    long = candidate("a/" * 50_000 + "x.md")
    for reason in SkipReason:
        assert max(map(len, put(unread((long, reason)), "HEAD~2"))) < 500
    place = PlaceholderLocation(
        Tier.FALLBACK, RepoPath.from_git(b"a/" * 50_000 + b"x.md"), 3, "placeholder-word", "todo"
    )
    scan = ScanResult(placeholders=(place, place))
    said, _ = explain(adjudication(ClaimOutcome.UPHELD, scan), SETTINGS)
    assert said.startswith("a placeholder is in a/a/")
    assert said.endswith("x.md:3 (placeholder-word), and 1 more place")
    assert len(said) < 500


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, "a hard invariant always blocks"),
        (" ", "a hard invariant always blocks"),
        ("PATCH_X\x1b", "a hard invariant (`PATCH_X\\x1b`) always blocks"),
    ],
)
def test_a_hard_invariant_is_called_so_with_its_code_where_it_has_one(code: str | None, said: str) -> None:
    claim = Claim(True, code, "hard_invariant")
    told, _ = explain(Adjudication(claim, ClaimOutcome.UPHELD, False, code, None, None), SETTINGS)
    assert told == f"{said}; a scan cannot change that"
