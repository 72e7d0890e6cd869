"""The decision on a verification: the table, the order of reasons, and what is told whatever else is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from patchgate.commands.analysis_results import (
    AnalysisComparison,
    AnalysisOutcome,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.intents.intent import ScopeCheck, State
from patchgate.policy.settings import ThresholdSettings
from patchgate.report.rules import Level
from patchgate.report.rules.scope import SCOPE_RULES, VERIFY_RULES
from patchgate.report.verdict import Verdict
from patchgate.verify.regressions import compare
from patchgate.verify.verification_reasons import MOST, VerificationReason, findings_of
from patchgate.verify.verification_result import ExternalCommit, VerificationResult, VerificationStatus
from patchgate.verify.verification_verdict import VerificationInputs, decide
from tests.verify.analysis_cases import found, intent_of, measured, path, report, scope_of

SCOPE = scope_of("in.py", related=["tests/test_in.py"])
INTENT = intent_of(SCOPE)
CLEAN, VIOLATED = ScopeCheck(), ScopeCheck(unexpected=(path("other.py"),))
BASELINE = path("ruff-baseline.json")
ANY = (False, True)
GONE = VerificationReason("its time is over", "git patchgate intent recover i-1")


def worse(where: str, before: float = 9, after: float = 12) -> WorsenedMetric:
    """Make a symbol of which a metric is worse."""
    return WorsenedMetric(path(where), "f", "complexity", before, after)


def crossed(where: str, before: float = 9, after: float = 12) -> ThresholdState:
    """Make the state of a threshold of 10 that one symbol is over."""
    over = worse(where, before, after)
    return ThresholdState("complexity", "complexity", 10, before, after, before > 10, after > 10, (over,))


def question(comparison: AnalysisComparison | None = None, **more: Any) -> VerificationInputs:
    """Ask about two trees, with an intent whose scope is kept."""
    known = {"intent": INTENT, "scope": CLEAN if more.get("intent", INTENT) else None, **more}
    return VerificationInputs(report("before"), report("after"), comparison or AnalysisComparison(), **known)


def asked(
    *, intent: bool, own: bool, external: bool, worsened: bool, caused: bool, scope: bool, **more: Any
) -> VerificationInputs:
    """Ask about one row of the table."""
    names = ["in.py"] * own + ["out.py"] * external
    state = crossed("in.py" if caused else "out.py") if worsened else crossed("in.py", 1, 2)
    higher = (worse("in.py" if caused else "out.py"),) if worsened else ()
    comparison = AnalysisComparison(new=tuple(map(found, names)), worsened=higher, thresholds=(state,))
    if not intent:
        return question(comparison, intent=None, **more)
    return question(comparison, scope=VIOLATED if scope else CLEAN, **more)


# intent, own regressions, external ones, gate worsened, intent caused it, scope violated: status
TABLE: list[tuple[Any, Any, Any, Any, Any, Any, VerificationStatus]] = [
    (False, True, ANY, ANY, ANY, False, VerificationStatus.VIOLATED),
    (False, ANY, True, ANY, ANY, False, VerificationStatus.VIOLATED),
    (False, ANY, ANY, True, ANY, False, VerificationStatus.VIOLATED),
    (False, False, False, False, ANY, False, VerificationStatus.ACCEPTED),
    (True, True, ANY, ANY, ANY, ANY, VerificationStatus.VIOLATED),
    (True, False, ANY, True, True, False, VerificationStatus.VIOLATED),
    (True, False, ANY, True, False, False, VerificationStatus.ACCEPTED_WITH_EXTERNAL_CHANGES),
    (True, False, True, False, False, False, VerificationStatus.ACCEPTED_WITH_EXTERNAL_CHANGES),
    (True, False, False, False, False, False, VerificationStatus.ACCEPTED),
    (True, False, ANY, ANY, ANY, True, VerificationStatus.VIOLATED),
]
NAMES = ("intent", "own", "external", "worsened", "caused", "scope")


def _rows() -> Iterator[tuple[dict[str, bool], VerificationStatus]]:
    for *cells, status in TABLE:
        for values in product(*(cell if isinstance(cell, tuple) else (cell,) for cell in cells)):
            yield dict(zip(NAMES, values, strict=True)), status


@pytest.mark.parametrize(("row", "status"), list(_rows()))
def test_the_decision_table(row: dict[str, bool], status: VerificationStatus) -> None:
    """A12, A13, A14 and A18: every row, with both values where a cell says any."""
    answer = decide(asked(**row))
    assert answer.status is status
    assert bool(answer.violations) is (status is VerificationStatus.VIOLATED)
    assert bool(answer.next_step) is (status is VerificationStatus.VIOLATED)
    assert answer.reason


def test_the_table_leaves_no_case_out() -> None:
    """A18: every combination is in one row at least, and no two rows contradict each other."""
    known: dict[tuple[bool, ...], VerificationStatus] = {}
    for row, status in _rows():
        key = tuple(row.values())
        assert known.setdefault(key, status) is status
    possible = {
        row
        for row in product(ANY, repeat=6)
        # Without an intent there is no scope, and what nobody crossed nobody caused.
        if (row[0] or not row[5]) and (row[3] or not row[4] or not row[0] or row[1] or row[5])
    }
    assert possible <= set(known)


def test_only_the_intents_regressions_are_structural() -> None:
    """A3 and A4: external ones inform, and fail nothing."""
    own = decide(question(AnalysisComparison(new=(found("in.py"), found("out.py")))))
    assert own.violations == ("structural_regressions",)
    external = decide(question(AnalysisComparison(new=(found("out.py"),))))
    assert (external.violations, external.reported_only, external.next_step) == ((), (), None)
    assert external.external_regressions == (found("out.py"),)
    assert external.status.verdict is Verdict.ACCEPTED


def test_without_an_intent_everything_is_the_changes_own() -> None:
    """A1 and A6: nothing is attributed, nothing external."""
    answer = decide(question(AnalysisComparison(new=(found("out.py"),)), intent=None))
    assert (answer.intent, answer.scope) == (None, None)
    assert answer.intent_regressions == (found("out.py"),)
    assert answer.external_regressions == ()


def test_a_threshold_that_fails_as_it_did_before_is_reported_and_refuses_nothing() -> None:
    """A9: with an intent and without one; `preexisting = "refuse"` counts it without one."""
    same = AnalysisComparison(thresholds=(crossed("in.py", 11, 11),))
    for asked_ in (question(same), question(same, intent=None), question(same, preexisting="refuse")):
        answer = decide(asked_)
        assert (answer.status, answer.violations) == (VerificationStatus.ACCEPTED, ())
        assert (answer.before_gate, answer.after_gate, answer.gate_worsened) == (True, True, False)
        assert answer.preexisting == same.thresholds
        assert "(pre-existing)" in answer.reason
        assert [(each.rule, each.level) for each in findings_of(answer)] == [
            ("threshold-preexisting", Level.NOTE)
        ]
    absolute = question(same, intent=None, preexisting="refuse")
    assert decide(absolute).violations == ("gate_failures",)
    assert decide(absolute).preexisting == ()
    # A tree has nothing that differs from itself.
    assert decide(replace(absolute, same_tree=True)).status is VerificationStatus.ACCEPTED
    higher = AnalysisComparison(worsened=(worse("in.py", 11, 30),), thresholds=(crossed("in.py", 11, 30),))
    for asked_ in (question(higher), question(higher, intent=None)):
        assert decide(asked_).violations == ("gate_failures",)
        assert "(11 before)" in decide(asked_).reason


def test_an_accepted_change_that_raises_a_value_is_not_said_to_make_nothing_worse() -> None:
    """A12: a value within its limit refuses nothing, and the answer names it."""
    raised = AnalysisComparison(worsened=(worse("in.py", 0, 1),))
    for intent in (INTENT, None):
        same, higher = (decide(question(each, intent=intent)) for each in (AnalysisComparison(), raised))
        assert (same.status, higher.status) == (VerificationStatus.ACCEPTED, VerificationStatus.ACCEPTED)
        assert "worse" in same.reason
        assert "worse" not in higher.reason
        assert "1 value " in higher.reason


def test_a_crossing_counts_where_a_symbol_of_the_intent_rose_in_that_metric() -> None:
    """A10 and A11: in another metric, or only in other files, it is not the intent's."""
    for own, is_caused in (
        (WorsenedMetric(path("in.py"), "g", "complexity", 1, 2), True),
        (WorsenedMetric(path("in.py"), "g", "lines", 1, 2), False),
        (WorsenedMetric(path("other.py"), "g", "complexity", 1, 2), False),
    ):
        answer = decide(
            question(AnalysisComparison(worsened=(own, worse("out.py")), thresholds=(crossed("out.py"),)))
        )
        status = (
            VerificationStatus.VIOLATED if is_caused else VerificationStatus.ACCEPTED_WITH_EXTERNAL_CHANGES
        )
        assert (answer.status, answer.intent_caused_gate, answer.gate_worsened) == (status, is_caused, True)
        assert worse("out.py") in answer.external_worsened


def test_an_answer_has_both_sides_of_everything() -> None:
    """A17."""
    comparison = AnalysisComparison(
        new=(found("in.py"), found("out.py")),
        worsened=(worse("in.py"), worse("out.py")),
        thresholds=(crossed("in.py"),),
    )
    answer = decide(question(comparison))
    assert answer.intent_regressions == (found("in.py"),)
    assert answer.external_regressions == (found("out.py"),)
    assert answer.intent_worsened == (worse("in.py"),)
    assert answer.external_worsened == (worse("out.py"),)
    assert (answer.gate_worsened, answer.before_gate, answer.after_gate) == (True, False, True)
    assert answer.intent_caused_gate
    assert answer.caused == comparison.thresholds
    assert answer.violations == ("structural_regressions", "gate_failures")


def test_an_in_scope_regression_behind_many_external_ones_is_not_hidden() -> None:
    many = [found(f"out{number}.py") for number in range(2500)]
    runs = report("before"), report("after", [*many, found("in.py")])
    answer = decide(VerificationInputs(*runs, compare(*runs, (), {}), intent=INTENT, scope=CLEAN))
    assert answer.intent_regressions == (found("in.py"),)
    assert answer.status is VerificationStatus.VIOLATED


BEFORE, AFTER = report("before"), report("after")
NO_ANSWER = {"outcome": AnalysisOutcome.NOT_EVALUATED}


@pytest.mark.parametrize(
    ("before", "after", "more", "said"),
    [
        (None, AFTER, {}, "no report on the tree before"),
        (BEFORE, None, {}, "no report on the tree after"),
        (report("before", **NO_ANSWER), AFTER, {}, "`ruff` wrote no SARIF (on the tree before)"),  # type: ignore[arg-type]
        (BEFORE, report("after", **NO_ANSWER), {}, "`ruff` wrote no SARIF (on the tree after)"),  # type: ignore[arg-type]
        (BEFORE, report("after", analyses="sha256:b"), {}, "same analyses"),
        (BEFORE, replace(AFTER, runs={}), {}, "same analyses"),
        (BEFORE, BEFORE, {}, "same report"),
        (BEFORE, replace(AFTER, tree=BEFORE.tree), {}, "same report"),
        (BEFORE, replace(AFTER, runs=BEFORE.runs), {}, "same report"),
        (BEFORE, AFTER, {"comparison": None}, "were not compared"),
        (
            BEFORE,
            AFTER,
            {"unverified": (VerificationReason("HEAD has others", "declare anew"),)},
            "HEAD has others",
        ),
        (BEFORE, AFTER, {"intent": intent_of(SCOPE, State.QUEUED)}, "waits"),
    ],
)
@pytest.mark.parametrize("strictness", ["strict", "relaxed"])
def test_what_was_not_compared_like_with_like_is_unverified(
    before: TreeRuns | None, after: TreeRuns | None, more: dict[str, Any], said: str, strictness: str
) -> None:
    """A15: a run that is missing, failed, or was made otherwise; no regression is told from it."""
    comparison = AnalysisComparison(new=(found("in.py"),), thresholds=(crossed("in.py"),))
    asked_ = replace(question(comparison, strictness=strictness), before=before, after=after, **more)
    answer = decide(asked_)
    assert answer.status is VerificationStatus.UNVERIFIED
    assert said in answer.reason
    assert answer.next_step
    assert answer.status.verdict is Verdict.UNDECIDED
    assert answer.comparison is None
    assert (answer.intent_regressions, answer.violations, answer.reported_only) == ((), (), ())
    assert (answer.before_gate, answer.after_gate) == (None, None)


def test_equal_findings_of_two_trees_are_two_runs() -> None:
    """A15: only the report of one tree that is presented for another is the same run."""
    runs = report("before", [found("a.py")]), report("after", [found("a.py")])
    answer = decide(VerificationInputs(*runs, compare(*runs, (), {}), intent=INTENT, scope=CLEAN))
    assert answer.status is VerificationStatus.ACCEPTED


def test_one_tree_before_and_after_may_have_one_run() -> None:
    asked_ = replace(question(same_tree=True), after=BEFORE)
    assert decide(asked_).status is VerificationStatus.ACCEPTED


def test_an_intent_that_is_not_what_was_declared_is_expired() -> None:
    """A16: whatever else is; nothing is parted, for no intent is in force."""
    comparison = AnalysisComparison(new=(found("in.py"), found("out.py")), thresholds=(crossed("in.py"),))
    other = VerificationReason("the report has another digest", "clear it")
    answer = decide(question(comparison, faults=(GONE, other), scope=VIOLATED))
    assert (answer.status, answer.reason, answer.next_step) == (
        VerificationStatus.EXPIRED,
        GONE.reason,
        GONE.next_step,
    )
    assert answer.status.verdict is Verdict.UNDECIDED
    assert (answer.intent_regressions, answer.external_regressions, answer.caused) == ((), (), ())
    assert answer.comparison is comparison
    assert answer.violations == ("scope_violation",)
    assert {finding.rule for finding in findings_of(answer)} == {"unverified", "scope-unexpected"}


SUSPICIOUS = {"grown": (BASELINE,), "has_code": True}


def test_the_first_reason_in_the_order_decides() -> None:
    """Expired, queued, scope, unverified, abuse, regressions, thresholds."""
    comparison = AnalysisComparison(
        (found("in.py"),), worsened=(worse("in.py"),), thresholds=(crossed("in.py"),)
    )
    lost = VerificationReason("HEAD has others", "declare anew")
    worst = question(comparison, faults=(GONE,), scope=VIOLATED, unverified=(lost,), **SUSPICIOUS)
    queued = replace(worst, faults=(), intent=intent_of(SCOPE, State.QUEUED))
    in_scope = replace(worst, faults=())
    verified = replace(in_scope, scope=CLEAN)
    honest = replace(verified, unverified=())
    regressed = replace(honest, grown=())
    only_gate = replace(regressed, comparison=replace(comparison, new=()))
    clean = replace(only_gate, comparison=AnalysisComparison())
    order = [worst, queued, in_scope, verified, honest, regressed, only_gate, clean]
    answers = [decide(each) for each in order]
    assert [answer.status for answer in answers] == [
        VerificationStatus.EXPIRED,
        VerificationStatus.UNVERIFIED,
        VerificationStatus.VIOLATED,
        VerificationStatus.UNVERIFIED,
        VerificationStatus.VIOLATED,
        VerificationStatus.VIOLATED,
        VerificationStatus.VIOLATED,
        VerificationStatus.ACCEPTED,
    ]
    said = [
        "its time is over", "waits", "other.py is outside", "HEAD has others",
        "ruff-baseline.json grew", "1 finding is new", "the threshold complexity fails", "nothing got worse",
    ]  # fmt: skip
    for answer, words in zip(answers, said, strict=True):
        assert words in answer.reason
    # Scope and abuse are told whatever else is.
    assert all("scope_violation" in answer.violations for answer in answers[:3])
    assert all(answer.abuse and answer.suppression_files == (BASELINE,) for answer in answers[:5])


def test_abuse_is_a_violation_though_the_regression_is_external() -> None:
    """A19 and A20: baselines are the whole repository's, whatever the scope."""
    answer = decide(question(AnalysisComparison(new=(found("out.py"),)), grown=(BASELINE,)))
    assert answer.status is VerificationStatus.VIOLATED
    assert answer.violations == ("baseline_abuse:baseline_updated_while_regressions_present",)


def test_any_change_of_a_baseline_counts_while_there_are_regressions() -> None:
    """A20: also entries that were moved or taken out; without a regression only growth does."""
    for new, status in (((found("out.py"),), VerificationStatus.VIOLATED), ((), VerificationStatus.ACCEPTED)):
        answer = decide(question(AnalysisComparison(new=new), changed=(BASELINE,), has_code=True))
        assert answer.status is status
        assert (answer.suppression_files, answer.grown) == (((BASELINE,), ()) if new else ((), ()))
    answer = decide(question(AnalysisComparison(new=(found("out.py"),)), changed=(BASELINE,)))
    assert "ruff-baseline.json" in answer.reason
    assert [each.message for each in findings_of(answer) if each.rule == "suppression-abuse"] == [
        answer.reason
    ]


def test_suppressions_that_grew_are_abuse_like_a_baseline() -> None:
    """A19 and A20."""
    answer = decide(question(AnalysisComparison(suppressed=(found("out.py"), found("x.py"))), has_code=True))
    assert answer.violations == ("baseline_abuse:baseline_changed_with_functional_code",)
    assert (answer.suppression_files, answer.suppressed) == ((), (found("out.py"), found("x.py")))
    assert "2 suppressions" in answer.reason
    alone = decide(question(AnalysisComparison(suppressed=(found("out.py"),))))
    assert (alone.status, alone.abuse, alone.suppressed) == (
        VerificationStatus.ACCEPTED,
        (),
        (found("out.py"),),
    )


def test_a_baseline_that_grew_without_an_intent_is_a_violation() -> None:
    answer = decide(question(intent=None, grown=(BASELINE,)))
    assert answer.violations == ("baseline_abuse:baseline_updated_without_intent",)


def test_relaxed_tells_regressions_and_thresholds_and_refuses_nothing_for_them() -> None:
    comparison = AnalysisComparison(
        (found("in.py"),), worsened=(worse("in.py"),), thresholds=(crossed("in.py"),)
    )
    for intent in (INTENT, None):
        answer = decide(question(comparison, intent=intent, strictness="relaxed"))
        assert answer.status is VerificationStatus.ACCEPTED
        assert (answer.violations, answer.reported_only) == ((), ("structural_regressions", "gate_failures"))
        assert "reported only" in answer.reason
        levels = {finding.level for finding in findings_of(answer)}
        assert levels == {Level.WARNING}


@pytest.mark.parametrize(
    ("more", "violation"),
    [
        ({"scope": VIOLATED}, "scope_violation"),
        ({"scope": ScopeCheck(forbidden=(path("patchgate.toml"),))}, "scope_violation"),
        (SUSPICIOUS, "baseline_abuse:baseline_changed_with_functional_code"),
    ],
)
def test_relaxed_lets_no_scope_violation_forbidden_path_or_abuse_through(
    more: dict[str, Any], violation: str
) -> None:
    answer = decide(question(strictness="relaxed", **more))
    assert answer.status is VerificationStatus.VIOLATED
    assert answer.violations == (violation,)
    assert Level.ERROR in {finding.level for finding in findings_of(answer)}


def test_a_threshold_that_nobody_measures_is_a_warning() -> None:
    runs = report("before"), report("after")
    comparison = compare(*runs, [ThresholdSettings("size", "lines", 10)], {})
    answer = decide(VerificationInputs(*runs, comparison, warnings=("first",)))
    assert answer.status is VerificationStatus.ACCEPTED
    first, warning = answer.warnings
    assert first == "first"
    assert warning.index(" size ") < warning.index(" lines")


LIMITS = [ThresholdSettings("few", "branches", 5), ThresholdSettings("size", "lines", 10)]


@pytest.mark.parametrize("before", [1, 9])
@pytest.mark.parametrize("intent", [INTENT, None])
@pytest.mark.parametrize("strictness", ["strict", "relaxed"])
def test_a_metric_that_was_told_and_is_told_no_more_leaves_it_unverified(
    before: float, intent: Any, strictness: str
) -> None:
    runs = report("before", (), [measured("a.py", before, "f", "branches")]), report("after")
    given = {"intent": intent, "scope": CLEAN if intent else None, "strictness": strictness}
    answer = decide(VerificationInputs(*runs, compare(*runs, LIMITS, {}), **given))
    assert answer.status is VerificationStatus.UNVERIFIED
    assert answer.reason.index(" few ") < answer.reason.index(" branches")
    assert " lines" not in answer.reason
    assert answer.next_step is not None
    assert " branches " in answer.next_step
    assert answer.next_step.endswith(" git patchgate verify")


def test_a_metric_that_one_symbol_still_has_is_told() -> None:
    before = [measured(name, 2, name, "branches") for name in ("a.py", "b.py")]
    runs = report("before", (), before), report("after", (), before[1:])
    assert decide(VerificationInputs(*runs, compare(*runs, LIMITS, {}))).status is VerificationStatus.ACCEPTED
    runs = report("before"), runs[1]
    assert decide(VerificationInputs(*runs, compare(*runs, LIMITS, {}))).status is VerificationStatus.ACCEPTED


def test_what_is_found_in_files_that_are_dirty_as_before_is_not_the_intents() -> None:
    dirty, intent = (path("in.py"),), intent_of(SCOPE, dirty={path("in.py"): ("5" * 40,)})
    comparison = AnalysisComparison(
        new=(found("in.py"),), worsened=(worse("in.py"),), thresholds=(crossed("in.py"),)
    )
    answer = decide(question(comparison, intent=intent, dirty=dirty, since=AnalysisComparison()))
    assert answer.status is VerificationStatus.ACCEPTED_WITH_EXTERNAL_CHANGES
    assert (answer.intent_regressions, answer.external_regressions) == ((), (found("in.py"),))
    assert (answer.intent_worsened, answer.external_worsened) == ((), (worse("in.py"),))
    assert (answer.intent_caused_gate, answer.gate_worsened) == (False, True)
    # What is new since, or where nobody knows what is, counts.
    assert (
        decide(question(comparison, intent=intent, dirty=dirty, since=comparison)).status
        is VerificationStatus.VIOLATED
    )
    assert decide(question(comparison, intent=intent, dirty=dirty)).status is VerificationStatus.VIOLATED
    # Changed since, it is none of these any more.
    assert decide(question(comparison, intent=intent)).status is VerificationStatus.VIOLATED


def test_what_is_external_is_passed_on() -> None:
    commits, dirty = (ExternalCommit("4" * 40, "theirs"),), (path("d.py"),)
    answer = decide(question(external_commits=commits, dirty=dirty))
    assert (answer.external_commits, answer.dirty) == (commits, dirty)


def test_a_verification_end_to_end_from_reports() -> None:
    before = report("before", [found("in.py")], [measured("in.py", 9), measured("out.py", 9)])
    after = report("after", [found("new.py")], [measured("new.py", 12), measured("out.py", 9)])
    limit = [ThresholdSettings("complexity", "complexity", 10)]
    moved = compare(before, after, limit, {path("new.py"): path("in.py")})
    scope = intent_of(scope_of("in.py", "new.py"))
    answer = decide(VerificationInputs(before, after, moved, intent=scope, scope=CLEAN))
    assert answer.violations == ("gate_failures",)
    assert "complexity is 12, over 10" in answer.reason


HOSTILE = "F\x1b[2J\u202e1\n::error::"


def test_nothing_of_a_repository_or_a_tool_reaches_a_terminal_raw() -> None:
    name = path(b"a\x1b[2J\n\xff.py")
    result = replace(found("x.py", HOSTILE), paths=(name,), message=HOSTILE, tool=HOSTILE, level=HOSTILE)
    over = WorsenedMetric(name, HOSTILE, "complexity", 1, 12)
    comparison = AnalysisComparison(
        new=(result, replace(result, paths=())),
        thresholds=(replace(crossed("x.py"), over=(over,)),),
        suppressed=(result,),
    )
    bad = ScopeCheck(unexpected=(name,), forbidden=(name,))
    scope = intent_of(replace(scope_of(), allowed=(name,)))
    run = replace(report("after", **NO_ANSWER).runs["ruff"], reason=HOSTILE, hint=HOSTILE)  # type: ignore[arg-type]
    broken = replace(AFTER, runs={"ruff": run})
    questions = [
        question(comparison, intent=scope, grown=(name,), has_code=True),
        question(comparison, intent=scope),
        question(replace(comparison, suppressed=()), intent=scope),
        question(replace(comparison, new=()), intent=scope),
        question(comparison, intent=scope, scope=bad),
        replace(question(comparison), after=broken),
    ]
    for each in questions:
        answer = decide(each)
        texts = [answer.reason, answer.next_step or "", *answer.warnings]
        for finding in findings_of(answer):
            texts += [finding.message, finding.hint or "", *finding.notes, repr(dict(finding.details))]
        assert all(text.isprintable() for text in texts)


def _told(answer: VerificationResult) -> list[tuple[str, Level, str | None, int | None]]:
    return [
        (each.rule, each.level, str(each.path) if each.path else None, each.line)
        for each in findings_of(answer)
    ]


def test_an_accepted_verification_without_anything_new_has_no_findings() -> None:
    assert _told(decide(question())) == []


def test_findings_tell_what_is_whose_and_where() -> None:
    comparison = AnalysisComparison(
        new=(found("in.py", line=7), found("out.py", line=8), found("")),
        worsened=(worse("in.py"), replace(worse("out.py"), name="lines")),
        thresholds=(crossed("in.py"), replace(crossed("out.py"), name="second", metric="lines")),
        suppressed=(found("s.py", line=9),),
    )
    answer = decide(question(comparison, scope=VIOLATED, grown=(BASELINE,)))
    assert _told(answer) == [
        ("scope-unexpected", Level.ERROR, "other.py", None),
        ("suppression-abuse", Level.ERROR, "ruff-baseline.json", None),
        ("suppression-abuse", Level.ERROR, "s.py", 9),
        ("regression", Level.ERROR, "in.py", 7),
        ("regression", Level.ERROR, None, None),
        ("regression-external", Level.NOTE, "out.py", 8),
        ("threshold-crossed", Level.ERROR, "in.py", None),
        ("threshold-external", Level.NOTE, "out.py", None),
    ]
    assert all(each.hint for each in findings_of(answer))


@pytest.mark.parametrize(
    ("asked_", "fault"), [(question(faults=(GONE,)), GONE), (question(unverified=(GONE,)), GONE)]
)
def test_what_could_not_be_verified_is_one_undecided_error(
    asked_: VerificationInputs, fault: VerificationReason
) -> None:
    answer = decide(replace(asked_, scope=VIOLATED, grown=(BASELINE,), has_code=True))
    if not asked_.faults:
        # The scope decides before it: then there is a verdict.
        assert answer.status is VerificationStatus.VIOLATED
        answer = decide(replace(asked_, grown=(BASELINE,), has_code=True))
    errors = [each for each in findings_of(answer) if each.level is Level.ERROR]
    assert [(each.rule, each.message, each.hint) for each in errors] == [
        ("unverified", fault.reason, fault.next_step)
    ]
    assert "suppression-abuse" in {each.rule for each in findings_of(answer)}


def test_at_most_twenty_of_each_rule_are_told_and_the_rest_is_counted() -> None:
    new = tuple(found(name, mark=str(n)) for name in ("in.py", "out.py") for n in range(MOST + 3))
    files = tuple(path(f"f{n}") for n in range(MOST + 1))
    more = {"scope": ScopeCheck(unexpected=files), "grown": files}
    told = list(
        findings_of(decide(question(AnalysisComparison(new=new, suppressed=new[: MOST + 2]), **more)))
    )
    for rule, rest in (
        ("regression", ["and 3 findings more"]),
        ("regression-external", ["and 3 findings more"]),
        ("scope-unexpected", ["1 more file is not allowed by i-1"]),
        ("suppression-abuse", ["and 1 suppression file more", "and 2 suppressions more"]),
    ):
        of_rule = [each.message for each in told if each.rule == rule]
        assert len(of_rule) == (MOST + 1) * len(rest)
        assert [message for message in of_rule if " more" in message] == rest


def test_every_finding_is_of_a_rule_of_these_stages() -> None:
    rules = {rule.id for rule in (*SCOPE_RULES, *VERIFY_RULES)}
    for row, _ in _rows():
        assert {each.rule for each in findings_of(decide(asked(**row)))} <= rules


@pytest.mark.parametrize(("row", "status"), list(_rows()))
def test_findings_lead_to_the_same_verdict_as_the_status(
    row: dict[str, bool], status: VerificationStatus
) -> None:
    """A14: what is violated is an error, and nothing else is."""
    errors = [each for each in findings_of(decide(asked(**row))) if each.level is Level.ERROR]
    assert bool(errors) is (status.verdict is not Verdict.ACCEPTED)


def test_scope_and_attribution_take_the_same_entries() -> None:
    """A7 and A8: `src/*.py` attributes src/deep/a.py, and allows to touch it."""
    from patchgate.intents.scope import check_scope

    scope = scope_of("src/*.py")
    check = check_scope(scope, [path("src/deep/a.py")])
    answer = decide(
        question(AnalysisComparison(new=(found("src/deep/a.py"),)), intent=intent_of(scope), scope=check)
    )
    assert answer.intent_regressions
    assert answer.violations == ("structural_regressions",)


def test_a_commit_and_a_verification_say_of_a_file_out_of_scope_the_same() -> None:
    """Who reads it at the push is told why too; only the step by which it is taken out is another."""
    from patchgate.intents.scope import FORBIDS_CONTROLS, check_scope, scope_findings

    scope = scope_of("in.py", forbidden=["no/*"])
    intent, control = intent_of(scope), path("patchgate.toml")
    check = check_scope(scope, [control, path("no/a"), path("out.py")], {control})
    answer = decide(question(intent=intent, scope=check))
    at_commit, at_push = (list(each) for each in (scope_findings(intent, check), findings_of(answer)))
    assert [(each.rule, each.message, each.path) for each in at_commit] == [
        (each.rule, each.message, each.path) for each in at_push
    ]
    places = [answer.reason.index(each) for each in ("patchgate.toml ", FORBIDS_CONTROLS, "no/a ", "out.py ")]
    assert places == sorted(places)
    assert (answer.reason.count("forbidden "), answer.reason.count("outside")) == (2, 1)
    assert all("git restore --staged" in (each.hint or "") for each in at_commit)
    assert all(" push" in (each.hint or "") for each in at_push)


def test_one_number_and_one_finding_are_written_alike_wherever_they_are_told() -> None:
    from patchgate.verify.verification_text import render

    over = replace(crossed("in.py", 9, 10.1234567), over=(found("in.py", line=7),))
    higher = (worse("in.py", 9, 10.1234567),)
    answer = decide(
        question(AnalysisComparison((found("in.py", line=7),), worsened=higher, thresholds=(over,)))
    )
    only = decide(question(AnalysisComparison(worsened=higher, thresholds=(over,))))
    assert "complexity is 10.1234567, over 10" in only.reason
    assert "in.py:7 F401" in answer.reason
    told = render(answer, color=False)
    assert "complexity 9 → 10.1234567, at most 10" in told
    assert "(over it: in.py:7 F401)" in told
    assert ["in.py:7 F401"] in [list(each.notes) for each in findings_of(answer)]


def test_of_a_threshold_under_an_intent_that_is_over_nobody_is_blamed() -> None:
    from patchgate.verify.verification_text import render

    answer = decide(question(AnalysisComparison(thresholds=(crossed("in.py"),)), faults=(GONE,)))
    assert answer.external_thresholds == ()
    assert "outside" not in render(answer, color=False)
    assert {each.rule for each in findings_of(answer)} == {"unverified"}


def test_where_both_trees_are_the_same_it_says_that_nothing_was_compared() -> None:
    for same in (replace(question(intent=None), same_tree=True), replace(question(), same_tree=True)):
        told = decide(same)
        assert told.status is VerificationStatus.ACCEPTED
        assert "compare" in told.reason
        assert "compare" not in decide(replace(same, same_tree=False)).reason
