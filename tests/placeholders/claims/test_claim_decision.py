"""What becomes of a claim: every row of the table, every reason, and how it is put."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from patchgate.placeholders.claims.claim_decision import coverage_of, decide, is_invariant, needs_scan
from patchgate.placeholders.claims.claim_scan import ScanCaps
from patchgate.policy.settings import ClaimsSettings
from patchgate.report.rules import RULES, Stage
from tests.placeholders.claims.claim_trees import (
    CLEAN,
    ROOMY,
    TODO,
    Tree,
    canonical,
    current,
    evidence,
    prior,
    scanned,
)

SETTINGS = ClaimsSettings()
CODE = "incomplete_deliverable_placeholder"
CLAIM = Claim(False, CODE, "major", "A placeholder remains.", confidence=0.9)


def judged(
    tree: Tree,
    candidates: list[Candidate],
    settings: ClaimsSettings = SETTINGS,
    caps: ScanCaps = ROOMY,
    read_from: str = "the index",
) -> Adjudication:
    return decide(CLAIM, scanned(tree, candidates, caps), settings, read_from)


def reasons(judged: Adjudication) -> tuple[str, ...]:
    assert judged.coverage is not None
    assert judged.coverage.is_sufficient == (not judged.coverage.reasons)
    return judged.coverage.reasons


def test_a_claim_with_a_match_is_upheld() -> None:
    """C20: the first row."""
    found = judged(Tree({"a.md": CLEAN + TODO + TODO}), canonical("a.md"))
    assert found.outcome is ClaimOutcome.UPHELD
    assert found.outcome.exit_code == 1
    assert not found.passed
    assert (found.reason_code, found.severity_class, found.confidence) == (CODE, "major", 0.9)
    assert found.contradicted_reason_code is None
    assert found.why is not None
    assert " a.md:2 (placeholder-word), and 1 more " in found.why
    assert found.next_step


def test_a_match_upholds_a_claim_also_where_coverage_is_insufficient() -> None:
    """C20: the first row, any coverage."""
    found = judged(Tree({"a.md": TODO}), canonical("a.md", "gone.md"))
    assert found.outcome is ClaimOutcome.UPHELD
    assert reasons(found) != ()


def test_a_match_in_evidence_or_in_the_fallback_upholds_a_claim_too() -> None:
    tree = Tree({"a.md": CLEAN, "b.md": TODO})
    for candidates in (canonical("a.md"), [*canonical("a.md"), *evidence("b.md")]):
        assert judged(tree, candidates).outcome is ClaimOutcome.UPHELD


def test_a_claim_without_a_match_is_contradicted_where_enough_was_scanned() -> None:
    """C2, C5, C21, C33: the second row."""
    found = judged(Tree({"a.md": CLEAN}), canonical("a.md"))
    assert found.outcome is ClaimOutcome.CONTRADICTED
    assert found.outcome.exit_code == 3
    assert not found.passed
    assert (found.reason_code, found.severity_class) == ("parse_inconclusive", "inconclusive")
    assert found.contradicted_reason_code == CODE
    assert found.confidence == 0.5
    assert found.why is not None
    assert " in 1 file, " in found.why
    assert "not a pass" in str(found.next_step)


def test_a_claim_without_a_match_stands_where_too_little_was_scanned() -> None:
    """C19, C22, C34: the third row."""
    found = judged(Tree({"a.md": CLEAN}), canonical("a.md", "gone.md"))
    assert found.outcome is ClaimOutcome.UNDECIDED
    assert found.outcome.exit_code == 1
    assert not found.passed
    assert (found.reason_code, found.severity_class, found.confidence) == (CODE, "major", 0.9)
    assert found.contradicted_reason_code is None
    assert ": gone.md " in found.why


def test_another_claim_is_unchanged() -> None:
    """C23: the fourth row."""
    claim = Claim(False, "tests_failed", "major", "No TODO found, but two tests fail.", confidence=0.7)
    assert not needs_scan(claim, SETTINGS)
    found = decide(claim, None, SETTINGS)
    assert found.outcome is ClaimOutcome.UNCHANGED
    assert found.outcome.exit_code == 1
    assert (found.reason_code, found.severity_class, found.confidence) == ("tests_failed", "major", 0.7)
    assert (found.scan, found.coverage, found.is_placeholder_claim) == (None, None, False)
    assert "does not claim" in found.why


def test_what_had_passed_passes_as_it_was() -> None:
    claim = Claim(True, None, None, "A TODO remains.", confidence=0.7)
    assert not needs_scan(claim, SETTINGS)
    found = decide(claim, None, SETTINGS)
    assert found.outcome is ClaimOutcome.PASSED
    assert found.outcome.exit_code == 0
    assert found.passed
    assert found.next_step is None
    assert found.confidence == 0.7


@pytest.mark.parametrize("code", ["incomplete_deliverable_placeholder", " Incomplete_Deliverable_Content\n"])
def test_both_reason_codes_are_claims(code: str) -> None:
    assert needs_scan(Claim(False, code), SETTINGS)


def test_words_in_the_feedback_or_in_an_issue_are_claims() -> None:
    assert needs_scan(Claim(False, "incomplete", feedback="[TBD] in a.md"), SETTINGS)
    assert needs_scan(Claim(False, issues=("fine", "a TODO remains")), SETTINGS)
    assert not needs_scan(Claim(False, issues=("no TODO found",)), SETTINGS)
    assert not needs_scan(Claim(False, issues=("TODO", "placeholder")), SETTINGS)


def test_words_that_name_another_failure_are_no_claim_under_another_reason_code() -> None:
    """Else a scan would make a real failure inconclusive."""
    mixed = "12 tests fail with a segfault. A TODO remains in a.md."
    claim = Claim(False, "tests_failed", "critical", mixed, confidence=0.99)
    assert not needs_scan(claim, SETTINGS)
    found = decide(claim, ScanResult(), SETTINGS)
    assert (found.outcome, found.reason_code, found.confidence) == (
        ClaimOutcome.UNCHANGED,
        "tests_failed",
        0.99,
    )
    apart = Claim(False, "tests_failed", feedback="A TODO remains.", issues=("The sum is wrong.",))
    assert not needs_scan(apart, SETTINGS)
    for code in (CODE, None, " "):
        assert needs_scan(replace(claim, reason_code=code), SETTINGS)
    assert needs_scan(replace(apart, issues=("All else is fine.",)), SETTINGS)


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize(
    ("code", "severity"),
    [
        (CODE, "hard_invariant"),
        (None, " HARD_INVARIANT "),
        (None, "hard-invariant"),
        (None, "Hard Invariant"),
        (None, "hard\u00a0invariant\u202f"),
        (None, "hard_invariant_failed"),
        (None, "HardInvariantFailed"),
        (None, "hardInvariant"),
        ("hard_invariant_failed", None),
        ("hard-invariant", "minor"),
        *((stage.code, None) for stage in Stage),
        ("PATCH_SOMETHING_NEW", None),
        (" patch_policy_deny ", "minor"),
        ("deny-prefix", None),
        (" placeholder-word", "minor"),
    ],
)
def test_a_hard_invariant_always_blocks(code: str | None, severity: str | None, passed: bool) -> None:
    """C1: whatever a scan says, and though the verifier had passed it."""
    claim = Claim(passed, code, severity, "A TODO remains.", confidence=1.0)
    assert not needs_scan(claim, SETTINGS)
    clean = scanned(Tree({"a.md": CLEAN}), canonical("a.md"))
    for scan in (None, clean):
        found = decide(claim, scan, SETTINGS)
        assert found.outcome is ClaimOutcome.UPHELD
        assert not found.passed
        assert (found.reason_code, found.severity_class, found.confidence) == (code, severity, 1.0)
        assert found.scan is None
        assert "always blocks" in found.why


def test_every_rule_of_the_registry_is_an_invariant_and_other_codes_are_not() -> None:
    """C1."""
    assert all(is_invariant(Claim(False, rule)) for rule in RULES)
    assert not any(is_invariant(Claim(False, code)) for code in (CODE, "", None, "patch", "invariant"))


def test_with_the_guard_off_the_claim_stands() -> None:
    """C27."""
    assert SETTINGS.contradiction_guard_enabled
    off = replace(SETTINGS, contradiction_guard_enabled=False)
    assert not needs_scan(CLAIM, off)
    found = decide(CLAIM, scanned(Tree({"a.md": CLEAN}), canonical("a.md")), off)
    assert found.outcome is ClaimOutcome.UNCHANGED
    assert (found.reason_code, found.confidence, found.guard_enabled) == (CODE, 0.9, False)
    assert found.is_placeholder_claim
    assert "`claims.contradiction_guard_enabled = true`" in str(found.next_step)


def test_a_scan_that_was_not_made_contradicts_nothing() -> None:
    found = decide(CLAIM, None, SETTINGS)
    assert found.outcome is ClaimOutcome.UNDECIDED
    assert "no_files_scanned" in reasons(found)


@pytest.mark.parametrize(
    ("given_confidence", "lowered"),
    [(None, 0.5), (0.9, 0.5), (0.5, 0.5), (0.2, 0.2), (0, 0), (float("nan"), 0.5)],
)
def test_the_confidence_of_a_contradicted_claim_is_at_most_a_half(
    given_confidence: float | None, lowered: float
) -> None:
    scan = scanned(Tree({"a.md": CLEAN}), canonical("a.md"))
    assert decide(replace(CLAIM, confidence=given_confidence), scan, SETTINGS).confidence == lowered


def test_one_deliverable_alone_is_enough_and_a_changed_file_alone_is_not() -> None:
    """C16, C17."""
    tree = Tree({"a.md": CLEAN})
    assert reasons(judged(tree, canonical("a.md"))) == ()
    assert reasons(judged(tree, current("a.md"))) == ("minimum_file_coverage_not_met",)
    both = Tree({"a.md": CLEAN, "b.md": CLEAN})
    assert reasons(judged(both, current("a.md"))) == ()


def test_two_deliverables_need_the_minimum_of_files() -> None:
    """C17: the fallback's files count."""
    three = replace(SETTINGS, contradiction_scan_min_files_for_sufficiency=3)
    candidates = canonical("a.md", "b.md")
    assert reasons(judged(Tree({"a.md": CLEAN, "b.md": CLEAN}), candidates, three)) == (
        "minimum_file_coverage_not_met",
    )
    assert reasons(judged(Tree(dict.fromkeys(("a.md", "b.md", "c.md"), CLEAN)), candidates, three)) == ()


def test_files_of_prior_attempts_evidence_and_the_fallback_alone_are_not_enough() -> None:
    """C16."""
    tree = Tree({"a.md": CLEAN, "b.md": CLEAN, "c.md": CLEAN})
    for candidates in ([], prior("a.md"), evidence("a.md", "b.md")):
        found = judged(tree, candidates)
        assert reasons(found) == ("no_canonical_or_changed_candidate_scanned",)
        assert "`--deliverable PATH`" in str(found.next_step)


def test_where_nothing_was_scanned_all_that_is_missing_is_told() -> None:
    found = judged(Tree(), [])
    assert reasons(found) == (
        "no_files_scanned",
        "no_canonical_or_changed_candidate_scanned",
        "minimum_file_coverage_not_met",
    )
    assert "no file " in found.why


UNREAD = {
    SkipReason.TOO_LARGE: "raise `claims.contradiction_scan_max_total_bytes`, or split x.md",
    SkipReason.BINARY: (
        "check x.md yourself: only UTF-8, and UTF-16 with a byte-order mark, count as text; "
        "--worktree reads what Git LFS stores"
    ),
    SkipReason.SUFFIX: 'add ".md" to `claims.contradiction_scan_allowed_suffixes`',
    SkipReason.MISSING: "git add x.md, or scan the working tree: --worktree",
    SkipReason.UNSTAGED: "git add x.md, or scan the working tree: --worktree",
    SkipReason.SYMLINK: "name the file itself instead of x.md; no symlink is followed",
    SkipReason.OUTSIDE: "name a file of this repository instead of x.md",
    SkipReason.UNREADABLE: "run git fsck: the object of x.md cannot be read",
    SkipReason.CAP: "raise `claims.contradiction_scan_max_total_bytes`, or name fewer files",
    SkipReason.TIMEOUT: "raise `claims.contradiction_scan_timeout_seconds`, or name fewer files",
}


def with_skipped(tier: Tier, *skipped: SkipReason) -> ScanResult:
    """A scan that read two deliverables and skipped a file for each reason."""
    (one,) = canonical("a.md")
    (other,) = current("b.md")
    unread = tuple(Skipped(Candidate(tier, RepoPath(b"x.md")), reason) for reason in skipped)
    return ScanResult((one, other), 10, unread, source_counts={Tier.CANONICAL: 2})


@pytest.mark.parametrize("tier", [Tier.CANONICAL, Tier.CURRENT, Tier.PRIOR])
@pytest.mark.parametrize("reason", UNREAD)
def test_a_file_of_high_priority_that_was_not_read_keeps_the_claim_standing(
    reason: SkipReason, tier: Tier
) -> None:
    """C18, C19: with the reason by name, and the step that mends it."""
    scan = with_skipped(tier, reason)
    found = decide(CLAIM, scan, SETTINGS, "the index")
    assert found.outcome is ClaimOutcome.UNDECIDED
    told = (f"priority_candidate_unscanned:{reason.value}",)
    capped = ("cap_exhausted_before_priority_scan",) if reason is SkipReason.CAP else ()
    assert reasons(found) == (*capped, *told)
    assert scan.is_cap_exhausted == bool(capped)
    if (reason, tier) != (SkipReason.MISSING, Tier.PRIOR):
        assert found.next_step == UNREAD[reason]
    assert "x.md" in found.why


@pytest.mark.parametrize("reason", UNREAD)
def test_evidence_that_was_not_read_does_not_matter(reason: SkipReason) -> None:
    scan = with_skipped(Tier.EVIDENCE, reason)
    assert coverage_of(scan, SETTINGS).is_sufficient
    assert not scan.is_cap_exhausted


def test_several_reasons_stand_in_a_fixed_order_each_once() -> None:
    scan = replace(with_skipped(Tier.CURRENT, *reversed(UNREAD), *UNREAD), scanned=(), timed_out=True)
    assert coverage_of(scan, replace(SETTINGS, has_unusable_markers=True)).reasons == (
        "no_files_scanned",
        "no_canonical_or_changed_candidate_scanned",
        "minimum_file_coverage_not_met",
        "cap_exhausted_before_priority_scan",
        *(f"priority_candidate_unscanned:{reason.value}" for reason in UNREAD),
        "marker_unusable",
    )


def test_a_scan_whose_time_was_over_in_the_fallback_contradicts_nothing() -> None:
    for is_strict in (True, False):
        config = replace(SETTINGS, contradiction_guard_strict_coverage=is_strict)
        found = decide(CLAIM, replace(with_skipped(Tier.CURRENT), timed_out=True), config)
        assert found.outcome is ClaimOutcome.UNDECIDED
        assert reasons(found) == ("scan_timed_out",)
        assert "contradiction_scan_timeout_seconds" in (found.next_step or "")


def test_a_marker_that_cannot_be_searched_for_keeps_the_claim_standing() -> None:
    """C4, C26: nothing gets weaker by a typo."""
    for is_strict in (True, False):
        config = replace(SETTINGS, contradiction_guard_strict_coverage=is_strict, has_unusable_markers=True)
        found = judged(Tree({"a.md": CLEAN}), canonical("a.md"), config)
        assert found.outcome is ClaimOutcome.UNDECIDED
        assert reasons(found) == ("marker_unusable",)
        assert judged(Tree({"a.md": TODO}), canonical("a.md"), config).outcome is ClaimOutcome.UPHELD


def test_without_strict_coverage_any_file_is_enough_and_the_answer_says_so() -> None:
    """C28."""
    assert SETTINGS.contradiction_guard_strict_coverage
    permissive = replace(SETTINGS, contradiction_guard_strict_coverage=False)
    found = judged(Tree({"other.md": CLEAN}), canonical("gone.md"), permissive)
    assert found.outcome is ClaimOutcome.CONTRADICTED
    assert not found.strict_coverage
    assert "strict coverage" in found.why
    assert reasons(judged(Tree(), canonical("gone.md"), permissive)) == ("no_files_scanned",)
    assert judged(Tree({"other.md": TODO}), [], permissive).outcome is ClaimOutcome.UPHELD


@pytest.mark.parametrize(
    ("tree", "candidates", "outcome", "reason"),
    [
        (Tree({"a.md": CLEAN * 25_000 + TODO}), canonical("a.md"), ClaimOutcome.UPHELD, None),
        (Tree({"a.md": TODO.decode().encode("utf-16")}), canonical("a.md"), ClaimOutcome.UPHELD, None),
        (Tree({"a.go": TODO}), canonical("a.go"), ClaimOutcome.UNDECIDED, "suffix"),
        (Tree({"Makefile": TODO}), canonical("Makefile"), ClaimOutcome.UNDECIDED, "suffix"),
        (Tree({"b.md": CLEAN}), canonical("a.md"), ClaimOutcome.UNDECIDED, "missing"),
        (Tree({"build/a.md": TODO}), canonical("build/a.md"), ClaimOutcome.UPHELD, None),
        (Tree({}, {"a.md": SkipReason.SYMLINK}), canonical("a.md"), ClaimOutcome.UNDECIDED, "symlink"),
        (Tree(), [Candidate(Tier.CANONICAL, None, "../a.md")], ClaimOutcome.UNDECIDED, "outside"),
        (Tree({"a.md": b"TODO: x\0"}), canonical("a.md"), ClaimOutcome.UNDECIDED, "binary"),
        (Tree({"a.md": CLEAN * 160_000}), canonical("a.md"), ClaimOutcome.UNDECIDED, "too_large"),
    ],
)
def test_what_a_naive_scan_gets_wrong_is_never_contradicted(
    tree: Tree, candidates: list[Candidate], outcome: ClaimOutcome, reason: str | None
) -> None:
    """C36, C37."""
    found = judged(tree, candidates)
    assert found.outcome is outcome
    assert reason is None or f"priority_candidate_unscanned:{reason}" in reasons(found)


def test_three_changed_files_and_a_cap_of_two_are_undecided() -> None:
    """C18, C35: though the third is as clean as the others."""
    tree = Tree(dict.fromkeys(("a.md", "b.md", "c.md"), CLEAN))
    config = replace(SETTINGS, contradiction_scan_max_files=2)
    found = judged(tree, current("a.md", "b.md", "c.md"), config, replace(ROOMY, max_files=2))
    assert found.outcome is ClaimOutcome.UNDECIDED
    assert reasons(found) == ("cap_exhausted_before_priority_scan", "priority_candidate_unscanned:cap")
    assert "`claims.contradiction_scan_max_files`" in str(found.next_step)


def test_a_cap_that_cuts_the_fallback_keeps_the_claim_and_one_that_leaves_nothing_unread_does_not() -> None:
    """C18, C25, C35: also where the files of the claim use up all of it."""
    tree = Tree({**dict.fromkeys(("a.md", "b.md", "c.md", "d.md"), CLEAN), "e.bin": CLEAN})
    for files in (2, 3):
        settings = replace(SETTINGS, contradiction_scan_max_files=files)
        found = judged(tree, current("a.md", "b.md"), settings, replace(ROOMY, max_files=files))
        assert found.outcome is ClaimOutcome.UNDECIDED
        assert reasons(found) == ("cap_exhausted_in_fallback",)
        assert found.scan_result.is_cap_exhausted
        assert found.next_step is not None
        assert "`claims.contradiction_scan_max_files`" in found.next_step
        assert "`claims.exclude`" in found.next_step
    large = judged(tree, current("a.md", "b.md"), caps=replace(ROOMY, max_total_bytes=3 * len(CLEAN)))
    assert reasons(large) == ("cap_exhausted_in_fallback",)
    for caps in (replace(ROOMY, max_files=4), replace(ROOMY, max_total_bytes=4 * len(CLEAN))):
        found = judged(tree, current("a.md", "b.md"), caps=caps)
        assert (found.outcome, found.scan_result.is_cap_exhausted) == (ClaimOutcome.CONTRADICTED, False)


@pytest.mark.parametrize(
    ("read_from", "step"),
    [
        ("the index", r"git add 'my notes\.md', .* --worktree"),
        ("the working tree", r"create my notes\.md, .*"),
        ("HEAD~2", r".* revision .* my notes\.md, .*"),
    ],
)
def test_the_step_for_a_missing_file_fits_what_was_scanned(read_from: str, step: str) -> None:
    told = judged(Tree(), canonical("my notes.md"), read_from=read_from).next_step
    assert re.fullmatch(step, str(told))


def test_a_name_that_a_terminal_would_obey_is_quoted() -> None:
    found = decide(CLAIM, scanned(Tree(), [Candidate(Tier.CANONICAL, RepoPath(b"\x1b[31m.md"))]), SETTINGS)
    assert "\x1b" not in found.why + str(found.next_step)
    assert str(found.next_step).startswith("git add PATH, ")
    assert str(found.next_step).endswith(" --worktree")
    claim = Claim(False, "PATCH_\x1b[31m", feedback="x")
    assert "\x1b" not in decide(claim, None, SETTINGS).why


@pytest.mark.parametrize(("name", "told"), [("a.tar.gz", '".gz"'), ("Makefile", '""'), (".env", '""')])
def test_the_step_for_a_suffix_names_it(name: str, told: str) -> None:
    step = judged(Tree({name: CLEAN}), canonical(name)).next_step
    assert step is not None
    assert step.startswith(f"add {told}")


CLAIMS = st.builds(
    Claim,
    st.booleans(),
    st.sampled_from([None, CODE, "tests_failed", "deny-prefix", "PATCH_X"]),
    st.sampled_from([None, "major", "hard_invariant"]),
    st.sampled_from(["", "A TODO remains.", "No TODO found."]),
)
SCANS = st.builds(
    lambda read, reasons, has_place, timed_out: ScanResult(
        tuple(canonical("a.md")[:read]),
        skipped=tuple(Skipped(Candidate(Tier.PRIOR, RepoPath(b"x")), reason) for reason in reasons),
        placeholders=(PlaceholderLocation(Tier.PRIOR, RepoPath(b"x"), 1, "placeholder-word", "todo"),)
        if has_place
        else (),
        source_counts={Tier.CANONICAL: 1},
        timed_out=timed_out,
    ),
    st.integers(0, 1),
    st.lists(st.sampled_from(list(UNREAD)), max_size=2),
    st.booleans(),
    st.booleans(),
)
CONFIGS = st.builds(ClaimsSettings, st.booleans(), st.booleans(), has_unusable_markers=st.booleans())


@given(CLAIMS, st.none() | SCANS, CONFIGS)
def test_only_what_had_passed_passes_and_only_the_three_conditions_contradict(
    claim: Claim, scan: ScanResult | None, config: ClaimsSettings
) -> None:
    """C1, C2, C5, C19."""
    found = decide(claim, scan, config, "the index")
    assert (
        found.passed == (found.outcome is ClaimOutcome.PASSED) == (claim.passed and not is_invariant(claim))
    )
    assert found.why
    assert (found.next_step is None) == found.passed
    if found.outcome is ClaimOutcome.CONTRADICTED:
        assert needs_scan(claim, config)
        assert scan is not None
        assert scan.scanned
        assert not scan.placeholders
        assert not config.contradiction_guard_strict_coverage or not scan.skipped
    else:
        assert (found.reason_code, found.severity_class, found.confidence) == (
            claim.reason_code,
            claim.severity_class,
            claim.confidence,
        )
