"""A verification in words: what stands where, what is cut, and that nothing foreign is shown raw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patchgate.commands.analysis_results import (
    AnalysisComparison,
    AnalysisOutcome,
    AnalysisResult,
    AnalysisRun,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.git.path import RepoPath
from patchgate.git.quoting import is_printable
from patchgate.intents.intent import ScopeCheck
from patchgate.verify.verification_result import ExternalCommit, VerificationResult, VerificationStatus
from patchgate.verify.verification_text import render
from tests.report.verdict_reports import HOSTILE

ACCEPTED = VerificationResult(VerificationStatus.ACCEPTED, "nothing got worse")


def path(text: str) -> RepoPath:
    return RepoPath.from_git(text.encode())


def result(
    place: str | None = "src/a.py", rule: str = "F401", line: int | None = 3, *also: str
) -> AnalysisResult:
    paths = tuple(path(each) for each in ([] if place is None else [place, *also]))
    return AnalysisResult("ruff", "ruff", rule, "error", "`os` imported but unused", paths, line, "0" * 32)


def lines(verification: VerificationResult, **how: int) -> list[str]:
    return render(verification, color=False, **how).splitlines()


def test_the_verdict_stands_first_with_its_reason_and_last_with_what_counts() -> None:
    verification = VerificationResult(
        VerificationStatus.VIOLATED,
        "1 finding is new",
        intent_regressions=(result(),),
        violations=("structural_regressions",),
        next_step="fix what the analyses report",
    )
    told = lines(verification)
    assert told[0] == "rejected: 1 finding is new"
    assert told[-2:] == ["help: fix what the analyses report", "rejected: regression"]


@pytest.mark.parametrize("status", VerificationStatus)
def test_the_first_and_the_last_line_say_the_verdict_and_the_rules_and_never_the_status(
    status: VerificationStatus,
) -> None:
    violations = ("gate_failures", "scope_violation", "baseline_abuse:x", "baseline_abuse:y")
    scope = ScopeCheck((path("c.py"),), (path("patchgate.toml"),))
    told = replace(ACCEPTED, status=status, scope=scope, violations=violations)
    first, last = lines(told)[0], lines(told)[-1]
    assert first == f"{status.verdict}: nothing got worse"
    rules = "threshold-crossed, scope-forbidden, scope-unexpected, suppression-abuse"
    undecided = "unverified, " if status.verdict == "undecided" else ""
    assert last == f"{status.verdict}: {undecided}{rules}"


def test_what_is_accepted_says_at_the_end_on_what_it_rests() -> None:
    compared = AnalysisComparison(new=(result("b.py"),), fixed=(result("c.py"),), unchanged=4)
    nothing = replace(ACCEPTED, comparison=AnalysisComparison(unchanged=4))
    assert lines(nothing)[-1] == "accepted: no new findings, 4 as before"
    told = replace(
        ACCEPTED,
        status=VerificationStatus.ACCEPTED_WITH_EXTERNAL_CHANGES,
        comparison=compared,
        external_regressions=compared.new,
    )
    assert lines(told)[-1] == "accepted: no new findings, 1 elsewhere, 4 as before, 1 fixed"


def test_a_regression_is_told_with_path_line_rule_and_message() -> None:
    told = lines(replace(ACCEPTED, intent_regressions=(result(),)))
    assert "  src/a.py:3  F401  `os` imported but unused" in told


def test_a_regression_names_the_other_files_for_which_it_may_be_the_intents() -> None:
    told = lines(replace(ACCEPTED, intent="i-1", intent_regressions=(result("b.py", "S1", 1, "src/a.py"),)))
    assert "  b.py:1  S1  `os` imported but unused (also src/a.py)" in told


def test_a_regression_without_a_file_says_so() -> None:
    told = lines(replace(ACCEPTED, intent_regressions=(result(None, "X1", None),)))
    assert "  (no file)  X1  `os` imported but unused" in told


def test_each_list_is_cut_by_itself_so_others_never_hide_the_intents_own() -> None:
    # A6: an in-scope crossing behind 25 larger external ones is shown all the same.
    external = tuple(WorsenedMetric(path(f"lib/{n}.py"), "f", "complexity", 1, 90) for n in range(25))
    own = (WorsenedMetric(path("src/a.py"), "f", "complexity", None, 11),)
    others = tuple(result(f"lib/{n}.py") for n in range(25))
    told = lines(
        replace(
            ACCEPTED,
            intent="i-1",
            intent_worsened=own,
            external_worsened=external,
            intent_regressions=(result(),),
            external_regressions=others,
        ),
        limit=20,
    )
    assert "  src/a.py f  complexity new → 11" in told
    assert "  src/a.py:3  F401  `os` imported but unused" in told
    assert "new findings elsewhere, not from the intent (25):" in told
    assert len([line for line in told if line.startswith("  lib/") and "F401" in line]) == 20
    assert "  … and 5 more: 5 F401" in told
    assert "  … and 5 more" in told


def test_a_threshold_says_how_it_went_and_by_what_it_is_over() -> None:
    over = (WorsenedMetric(path("src/a.py"), "f", "complexity", None, 11),)
    crossed = ThresholdState("limit", "complexity", 10, 9.5, 11, False, True, over)
    old = ThresholdState("debt", "findings", 0, 3, 3, True, True)
    mended = ThresholdState("mended", "findings", 0, 3, 0, True, False)
    held = ThresholdState("held", "findings:new", 0, 0, 0, False, False)
    comparison = AnalysisComparison(thresholds=(crossed, old, mended, held))
    told = lines(replace(ACCEPTED, comparison=comparison, intent="i-1", caused=(crossed,)))
    limit = "  limit: complexity 9.5 → 11, at most 10: fails now, passed before (over it: src/a.py f 11)"
    assert limit in told
    assert "  debt: findings 3 → 3, at most 0: fails as it did before" in told
    assert "  mended: findings 3 → 0, at most 0: passes now, failed before" in told
    assert "  1 threshold passed before and passes" in told
    unknown = replace(held, metric="lines", before=None, after=None)
    assert not any(
        "passed before" in line
        for line in lines(replace(ACCEPTED, comparison=AnalysisComparison(thresholds=(unknown,))))
    )
    theirs = {"intent": "i-1", "external_thresholds": (crossed,)}
    external = lines(replace(ACCEPTED, comparison=comparison, **theirs))  # type: ignore[arg-type]
    assert any(line.endswith("caused outside the intent") for line in external)


def test_scope_abuse_commits_and_dirty_files_are_named() -> None:
    scope = ScopeCheck((path("c.py"),), (path("patchgate.toml"),), (path("tests/t.py"),), (path("src/b.py"),))
    told = "\n".join(
        lines(
            replace(
                ACCEPTED,
                intent="i-1",
                scope=scope,
                abuse=("baseline_updated_without_intent",),
                suppression_files=(path("ruff.json"),),
                grown=(path("ruff.json"),),
                comparison=AnalysisComparison(suppressed=(result(), result("b.py"))),
                external_commits=(ExternalCommit("c0ffee" + "0" * 34, "Somebody else's"),),
                dirty=(path("d.py"),),
                warnings=("the base is gone",),
                reported_only=("structural_regressions",),
            )
        )
    )
    for block in (
        "touched but not declared (1):\n  c.py",
        "touched but forbidden (1):\n  patchgate.toml",
        "touched related files (1):\n  tests/t.py",
        "allowed but not touched (1):\n  src/b.py",
        "suppressions that grew:\n  ruff.json\n  2 suppressions",
        "commits that do not belong to the intent (1):\n  c0ffee000000 Somebody else's",
        "changed before the intent began, not attributed to it (1):\n  d.py",
        "warning: the base is gone",
        "reported only, because strictness is relaxed: regression",
    ):
        assert block in told


def test_what_could_not_be_evaluated_says_why_and_what_to_do() -> None:
    run = AnalysisRun(
        "bandit", "", "", AnalysisOutcome.NOT_EVALUATED, reason="it is missing.", hint="install it"
    )
    told = lines(replace(ACCEPTED, after=TreeRuns("a" * 40, "", {"bandit": run})))
    assert "  after: tree aaaaaaaaaaaa; bandit could not be evaluated" in told
    assert told[told.index("    bandit: it is missing") + 1] == "    help: install it"


def foreign(raw: bytes) -> VerificationResult:
    """Make a verification in which every text and path is foreign."""
    text, name = raw.decode("utf-8", "surrogateescape"), RepoPath.from_git(raw)
    found = AnalysisResult("ruff", text, text, "error", text, (name,), 1, "0" * 32)
    worse = WorsenedMetric(name, text, text, 1, 2)
    state = ThresholdState(text, text, 1, 1, 2, False, True, (worse, found))
    run = AnalysisRun("told", "", "", AnalysisOutcome.NOT_EVALUATED, text, text, text)
    return VerificationResult(
        VerificationStatus.VIOLATED,
        text,
        intent=text,
        after=TreeRuns("a" * 40, "", {"told": run}),
        comparison=AnalysisComparison(thresholds=(state,)),
        intent_regressions=(found,),
        external_regressions=(found,) * 22,
        intent_worsened=(worse,),
        caused=(state,),
        scope=ScopeCheck((name,), (name,), (name,), (name,)),
        suppression_files=(name,),
        violations=(text,),
        reported_only=(text,),
        next_step=text,
        external_commits=(ExternalCommit("0" * 40, text),),
        dirty=(name,),
        warnings=(text,),
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_foreign_writes_anything_but_itself(name: str) -> None:
    told = render(foreign(HOSTILE[name]), color=False)
    assert told.encode("utf-8")
    assert all(character == "\n" or is_printable(character) for character in told)
    assert told.count("\n") == render(foreign(b"plain"), color=False).count("\n")
    assert "##[" not in told
    assert not any(line.startswith("::") for line in told.splitlines())


def test_colour_adds_nothing_but_colour() -> None:
    verification = replace(ACCEPTED, status=VerificationStatus.EXPIRED)
    colored = render(verification, color=True)
    assert colored.startswith("\x1b[1;33mundecided\x1b[0m: ")
    assert colored.replace("\x1b[1;33m", "").replace("\x1b[0m", "") == render(verification, color=False)
