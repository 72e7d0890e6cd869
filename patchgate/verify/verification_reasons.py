"""Why a verification ended as it did, in a sentence with the next step; and its findings in a report.

The level that the policy chose is set by whoever reports; `relaxed` has made a warning of a finding already.
All foreign text is escaped, and long names are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from patchgate.check.case import find
from patchgate.commands.analysis_results import AnalysisResult, AnalysisRun, ThresholdState, WorsenedMetric
from patchgate.git.quoting import first_of
from patchgate.intents.intent import ScopeCheck
from patchgate.intents.scope import FORBIDS_CONTROLS, file_findings
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Finding, Fixer, Verdict
from patchgate.report.wording import count, number, safe, show_path, some
from patchgate.verify.suppression_abuse import GREENED, WHILE_REGRESSIONS, WITH_CODE, WITHOUT_INTENT
from patchgate.verify.verification_result import (
    GATE_FAILURES,
    REGRESSIONS,
    VerificationResult,
    VerificationStatus,
)

MOST_NAME = 100
_MOST_NAMED = 3
_AGAIN = "then git patchgate verify"
MOST = 20
_MOST_LETTERS = 300
_MOST_NOTES = 5
_SEE_ALL = "git patchgate verify shows all of them"
Thing = TypeVar("Thing")


def location_of(result: AnalysisResult) -> str:
    """Name where a finding is: `src/a.py:3`."""
    if result.path is None:
        return "(no file)"
    return show_path(result.path) + ("" if result.line is None else f":{result.line}")


def name_result(result: AnalysisResult) -> str:
    """Name one finding: `src/a.py:3 F401`; one in no file names its tool."""
    rule = safe(" ".join(result.rule.split()), MOST_NAME)
    of = f" of {safe(result.tool, MOST_NAME)}" if result.path is None else ""
    return f"{location_of(result)} {rule}{of}"


def name_symbol(each: WorsenedMetric) -> str:
    """Name what has a metric: `src/a.py f`, or the file alone."""
    symbol = f" {safe(each.symbol, MOST_NAME)}" if each.symbol else ""
    return f"{show_path(each.path)}{symbol}"


def name_signal(signal: AnalysisResult | WorsenedMetric) -> str:
    """Name what is over a threshold; a symbol with its value: `src/a.py f 11`."""
    if isinstance(signal, AnalysisResult):
        return name_result(signal)
    return f"{name_symbol(signal)} {number(signal.after)}"


def worsened_from(signal: WorsenedMetric) -> str:
    """Say what a symbol had before."""
    return "new" if signal.before is None else f"{number(signal.before)} before"


@dataclass(frozen=True, slots=True)
class VerificationReason:
    """Why a verification ends here: one sentence, and the next step (empty: nothing is to be done)."""

    reason: str
    next_step: str


QUEUED = VerificationReason(
    "the intent waits until another one is cleared",
    "git patchgate intent show makes it active as soon as its files are free",
)
OTHER_ANALYSES = VerificationReason(
    "before and after were not made by the same analyses",
    "clear the intent and declare it again, " + _AGAIN,
)
SAME_RUN = VerificationReason(
    "before and after are one report, though the trees differ",
    "run git patchgate analyze, " + _AGAIN,
)
NOT_COMPARED = VerificationReason("before and after were not compared", "git patchgate verify")
WHY_ABUSE = {
    WHILE_REGRESSIONS: "while there are new findings",
    WITH_CODE: "together with changed code",
    WITHOUT_INTENT: "without an intent",
    GREENED: "so that a failing threshold passes",
}


def missing(when: str) -> VerificationReason:
    """Say that there is no report; `when` is before or after."""
    return VerificationReason(f"there is no report of the tree {when}", "git patchgate analyze, " + _AGAIN)


def not_evaluated(when: str, run: AnalysisRun) -> VerificationReason:
    """Say that an analysis could not be evaluated, and why."""
    reason = run.reason or f"the analysis `{run.analysis}` could not be evaluated"
    hint = safe(run.hint) if run.hint else "git patchgate analyze says more"
    return VerificationReason(f"{safe(reason).rstrip('.')} (on the tree {when})", hint)


def no_longer_measured(state: ThresholdState) -> VerificationReason:
    """Say that what a threshold limits was measured before, and is not any more."""
    metric = safe(state.metric)
    return VerificationReason(
        f"the threshold {safe(state.name)} limits {metric}, which is not measured any more",
        f"let an analysis measure {metric} again, or first take the threshold out of the policy, " + _AGAIN,
    )


def never_measured(state: ThresholdState) -> str:
    """Say that no analysis measures what a threshold limits."""
    return f"the threshold {safe(state.name)} limits {safe(state.metric)}, which no analysis measures"


def out_of_scope(check: ScopeCheck) -> VerificationReason:
    """Say which files the work should not have touched, forbidden ones first."""
    controls = frozenset(check.controls)
    by_entry = [path for path in check.forbidden if path not in controls]
    said = []
    for paths, how in (
        (check.controls, f"forbidden ({FORBIDS_CONTROLS})"),
        (by_entry, "forbidden"),
        (check.unexpected, "outside of what the intent allows"),
    ):
        if paths:
            said.append(f"{some(paths, _MOST_NAMED)} {'is' if len(paths) == 1 else 'are'} {how}")
    return VerificationReason(
        ", and ".join(said),
        "take them out of the change, or clear the intent and declare one that allows them, " + _AGAIN
        if not check.forbidden
        else "take them out of the change, and change what is forbidden without an intent, " + _AGAIN,
    )


def abused(facts: VerificationResult) -> VerificationReason:
    """Say what grew or changed, and why that counts."""
    why = " and ".join(WHY_ABUSE[trigger] for trigger in facts.abuse)
    named = [show_path(path) for path in facts.suppression_files]
    has_grown = facts.suppression_files == facts.grown
    if facts.suppressed:
        named.append(count(len(facts.suppressed), "suppression"))
    step = "take the new entries out, fix what they hide, " if has_grown else "fix the new findings first, "
    return VerificationReason(
        f"{_first_few(named)} {'grew' if has_grown else 'changed'} {why}", step + _AGAIN
    )


def regressed(facts: VerificationResult) -> VerificationReason:
    """Say how many findings are new, and name the first."""
    found = facts.intent_regressions
    where = " in the files of the intent" if facts.intent is not None else ""
    new = f"{count(len(found), 'finding')} {'is' if len(found) == 1 else 'are'} new{where}"
    also = "" if len(found) == 1 else "the first is "
    return VerificationReason(
        f"{new}: {also}{name_result(found[0])}", "fix what the analyses report, " + _AGAIN
    )


def crossed(facts: VerificationResult) -> VerificationReason:
    """Say which thresholds fail, and whether they failed before."""
    said = [describe_state(state) for state in facts.caused]
    return VerificationReason(_first_few(said, " and "), "bring the value down to the limit, " + _AGAIN)


NOTHING_TO_COMPARE = VerificationReason(
    "there is nothing to compare, both trees are the same: git add what you mean, or verify HEAD --base REV",
    "",
)


def accepted(facts: VerificationResult) -> VerificationReason:
    """Say that it may land, and what is told besides."""
    told = []
    if facts.intent_regressions:
        told.append(f"{count(len(facts.intent_regressions), 'new finding')} reported only (relaxed)")
    told += [f"{describe_state(state)}, reported only (relaxed)" for state in facts.caused[:_MOST_NAMED]]
    if facts.external_regressions:
        new = facts.external_regressions
        told.append(f"{count(len(new), 'finding')} outside of it {'is' if len(new) == 1 else 'are'} new")
    states = facts.comparison.thresholds if facts.comparison is not None else ()
    elsewhere = [state for state in states if state.fails_after and state not in facts.caused]
    told += [
        describe_state(state) + (", by what lies outside of it" if state in facts.external_thresholds else "")
        for state in elsewhere[:_MOST_NAMED]
    ]
    whose = "by this intent" if facts.intent is not None and told else ""
    higher = facts.intent_worsened
    if higher:
        where = " in the files of the intent" if facts.intent is not None else ""
        told.insert(0, f"{count(len(higher), 'value')} {'is' if len(higher) == 1 else 'are'} higher{where}")
    refuses_nothing = bool(facts.reported_only or higher)
    base = "nothing refuses it" if refuses_nothing else f"nothing got worse {whose}".rstrip()
    return VerificationReason("; ".join([base, *told]), "")


def describe_state(state: ThresholdState) -> str:
    """Say of a failing threshold by how much, and whether it failed before."""
    before = "passed before"
    if state.failed_before:
        worse = "in more places" if state.after == state.before else f"{number(state.before)} before"
        before = worse if state.is_worse else "pre-existing"
    over = f"{safe(state.metric)} is {number(state.after)}, over {number(state.max)}"
    return f"the threshold {safe(state.name)} fails: {over} ({before})"


def _first_few(said: Sequence[str], between: str = ", ") -> str:
    return first_of(said, _MOST_NAMED, between=between)


def findings_of(verification: VerificationResult) -> Iterator[Finding]:
    """Yield what a verification says; at most 20 findings of each rule, then one that counts the rest.

    Where nothing could be verified, that is the one error: scope and abuse are told with it.
    """
    is_undecided = verification.status.verdict is Verdict.UNDECIDED
    for finding in (*_scope(verification), *_abuse(verification)):
        yield replace(finding, level=Level.WARNING) if is_undecided else finding
    if is_undecided:
        who = Fixer.ENVIRONMENT if verification.status is VerificationStatus.UNVERIFIED else Fixer.AGENT
        hint = verification.next_step or "git patchgate verify"
        yield find("unverified", verification.reason, None, hint, who=who)
    relaxed = REGRESSIONS in verification.reported_only
    for finding in _results("regression", verification.intent_regressions):
        yield replace(finding, level=Level.WARNING) if relaxed else finding
    yield from _results("regression-external", verification.external_regressions)
    relaxed = GATE_FAILURES in verification.reported_only
    for finding in _thresholds("threshold-crossed", verification.caused):
        yield replace(finding, level=Level.WARNING) if relaxed else finding
    yield from _thresholds("threshold-external", verification.external_thresholds)
    yield from _thresholds("threshold-preexisting", verification.preexisting)


def _scope(verification: VerificationResult) -> Iterator[Finding]:
    if verification.scope is not None:
        name = verification.intent or "the intent"
        yield from file_findings(verification.scope, name, lambda path: "take it out of what is pushed")


def _abuse(verification: VerificationResult) -> Iterator[Finding]:
    if not verification.abuse:
        return
    rule = "baseline-abuse"
    why = " and ".join(WHY_ABUSE[trigger] for trigger in verification.abuse)
    about = {"triggers": list(verification.abuse)}
    hint = _fix(rule)
    for path in verification.suppression_files[:MOST]:
        how = "grew" if path in verification.grown else "changed"
        yield find(rule, f"{show_path(path)} {how} {why}", path, hint, details=about)
    yield from _count_rest(rule, verification.suppression_files, "baseline")
    suppressed = verification.suppressed
    for each in suppressed[:MOST]:
        message = f"{safe(each.rule, 100)} of {safe(each.tool, 100)} is suppressed now, {why}"
        yield find(rule, message, each.path, hint, line=each.line, details=about)
    yield from _count_rest(rule, suppressed, "suppression")


def _results(rule: str, results: Sequence[AnalysisResult]) -> Iterator[Finding]:
    for each in results[:MOST]:
        said = safe(" ".join(each.message.split()), _MOST_LETTERS)
        name = safe(" ".join(each.rule.split()), 100)
        yield find(
            rule,
            f"{name}: {said}" if said else name,
            each.path,
            _fix(rule),
            line=each.line,
            details={
                "pattern": name,
                "analysis": safe(each.analysis),
                "tool": safe(each.tool, 100),
                "tool_level": safe(each.level, 20),
            },
        )
    yield from _count_rest(rule, results, "finding")


def _thresholds(rule: str, states: Sequence[ThresholdState]) -> Iterator[Finding]:
    for state in states[:MOST]:
        first = state.over[0] if state.over else None
        more = len(state.over) - _MOST_NOTES
        notes = [_describe(signal) for signal in state.over[:_MOST_NOTES]]
        if more > 0:
            notes.append(f"and {more} more")
        finding = find(
            rule,
            describe_state(state),
            None if first is None else first.path,
            _fix(rule),
            line=first.line if isinstance(first, AnalysisResult) else None,
            details={
                "threshold": safe(state.name),
                "metric": safe(state.metric),
                "limit": state.max,
                "actual": state.after,
                "before": state.before,
            },
        )
        yield replace(finding, notes=tuple(notes))
    yield from _count_rest(rule, states, "threshold")


def _describe(signal: AnalysisResult | WorsenedMetric) -> str:
    said = name_signal(signal)
    return said if isinstance(signal, AnalysisResult) else f"{said} ({worsened_from(signal)})"


def _fix(rule: str) -> str:
    """Give the step that goes with a rule, as a hint is written."""
    return RULES[rule].hint.replace("`", "")


def _count_rest(rule: str, things: Sequence[Thing], noun: str) -> Iterator[Finding]:
    more = len(things) - MOST
    if more > 0:
        yield find(rule, f"and {count(more, noun)} more", None, _SEE_ALL)
