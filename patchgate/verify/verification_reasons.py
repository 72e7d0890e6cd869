"""Explain a verification: the reason with the next step, and its findings for a report.

The caller applies the levels of the policy; with `relaxed` strictness findings are warnings already. All
foreign text is escaped, and long names are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from patchgate.check.case import find
from patchgate.commands.analysis_results import AnalysisResult, AnalysisRun, ThresholdState, WorsenedMetric
from patchgate.git.quoting import first_of
from patchgate.intents.intent import ScopeCheck
from patchgate.intents.scope import FORBIDS_CONTROLS, file_findings
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Finding, Fixer, Verdict
from patchgate.report.wording import count, number, safe, show_path, some
from patchgate.values import dataclass, replace
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
_SEE_ALL = "run git patchgate verify to see all of them"
Thing = TypeVar("Thing")


def location_of(result: AnalysisResult) -> str:
    """Return the location of a finding: `src/a.py:3`."""
    if result.path is None:
        return "(no file)"
    return show_path(result.path) + ("" if result.line is None else f":{result.line}")


def name_result(result: AnalysisResult) -> str:
    """Return the name of a finding: `src/a.py:3 F401`; without a file, the tool is named."""
    rule = safe(" ".join(result.rule.split()), MOST_NAME)
    of = f" of {safe(result.tool, MOST_NAME)}" if result.path is None else ""
    return f"{location_of(result)} {rule}{of}"


def name_symbol(each: WorsenedMetric) -> str:
    """Return the symbol of a metric: `src/a.py f`, or only the file."""
    symbol = f" {safe(each.symbol, MOST_NAME)}" if each.symbol else ""
    return f"{show_path(each.path)}{symbol}"


def name_signal(signal: AnalysisResult | WorsenedMetric) -> str:
    """Return the name of a signal over a threshold; a symbol with its value: `src/a.py f 11`."""
    if isinstance(signal, AnalysisResult):
        return name_result(signal)
    return f"{name_symbol(signal)} {number(signal.after)}"


def worsened_from(signal: WorsenedMetric) -> str:
    """Describe the value of a symbol before."""
    return "new" if signal.before is None else f"{number(signal.before)} before"


@dataclass(frozen=True, slots=True)
class VerificationReason:
    """The reason of a verification in one sentence, and the next step (empty: none)."""

    reason: str
    next_step: str


QUEUED = VerificationReason(
    "the intent waits until another one is cleared",
    "run git patchgate intent show: it activates the intent once its files are free",
)
OTHER_ANALYSES = VerificationReason(
    "before and after were not checked by the same analyses",
    "clear the intent and declare it again, " + _AGAIN,
)
SAME_RUN = VerificationReason(
    "before and after have the same report, although the trees differ",
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
    """A report is missing; `when` is before or after."""
    return VerificationReason(f"there is no report on the tree {when}", "git patchgate analyze, " + _AGAIN)


def not_evaluated(when: str, run: AnalysisRun) -> VerificationReason:
    """An analysis could not be evaluated."""
    reason = run.reason or f"the analysis `{run.analysis}` could not be evaluated"
    hint = safe(run.hint) if run.hint else "run git patchgate analyze for details"
    return VerificationReason(f"{safe(reason).rstrip('.')} (on the tree {when})", hint)


def no_longer_measured(state: ThresholdState) -> VerificationReason:
    """The metric of a threshold was measured before, but not after."""
    metric = safe(state.metric)
    return VerificationReason(
        f"the threshold {safe(state.name)} limits {metric}, which is no longer measured",
        f"measure {metric} again, or first remove the threshold from the policy, " + _AGAIN,
    )


def never_measured(state: ThresholdState) -> str:
    """Describe a threshold whose metric no analysis measures."""
    return f"the threshold {safe(state.name)} limits {safe(state.metric)}, which no analysis measures"


def out_of_scope(check: ScopeCheck) -> VerificationReason:
    """The change touches files outside the scope; forbidden ones come first."""
    controls = frozenset(check.controls)
    by_entry = [path for path in check.forbidden if path not in controls]
    said = []
    for paths, how in (
        (check.controls, f"forbidden ({FORBIDS_CONTROLS})"),
        (by_entry, "forbidden"),
        (check.unexpected, "outside the scope of the intent"),
    ):
        if paths:
            said.append(f"{some(paths, _MOST_NAMED)} {'is' if len(paths) == 1 else 'are'} {how}")
    return VerificationReason(
        ", and ".join(said),
        "remove them from the change, or clear the intent and declare one that allows them, " + _AGAIN
        if not check.forbidden
        else "remove them from the change, and change forbidden files without an intent, " + _AGAIN,
    )


def abused(facts: VerificationResult) -> VerificationReason:
    """Suppressions grew or changed, and why that counts."""
    why = " and ".join(WHY_ABUSE[trigger] for trigger in facts.abuse)
    named = [show_path(path) for path in facts.suppression_files]
    has_grown = facts.suppression_files == facts.grown
    if facts.suppressed:
        named.append(count(len(facts.suppressed), "suppression"))
    step = "remove the new entries, fix what they hide, " if has_grown else "fix the new findings first, "
    return VerificationReason(
        f"{_first_few(named)} {'grew' if has_grown else 'changed'} {why}", step + _AGAIN
    )


def regressed(facts: VerificationResult) -> VerificationReason:
    """There are new findings; the first one is named."""
    found = facts.intent_regressions
    where = " in the files of the intent" if facts.intent is not None else ""
    new = f"{count(len(found), 'finding')} {'is' if len(found) == 1 else 'are'} new{where}"
    also = "" if len(found) == 1 else "the first is "
    return VerificationReason(
        f"{new}: {also}{name_result(found[0])}", "fix what the analyses report, " + _AGAIN
    )


def crossed(facts: VerificationResult) -> VerificationReason:
    """Thresholds fail, with their state before."""
    said = [describe_state(state) for state in facts.caused]
    return VerificationReason(_first_few(said, " and "), "reduce the value to the limit, " + _AGAIN)


NOTHING_TO_COMPARE = VerificationReason(
    "there is nothing to compare, both trees are the same: git add your changes, or verify HEAD --base REV",
    "",
)


def accepted(facts: VerificationResult) -> VerificationReason:
    """The change is accepted, with what is only reported."""
    notes = []
    if facts.intent_regressions:
        notes.append(f"{count(len(facts.intent_regressions), 'new finding')} reported only (relaxed)")
    notes += [f"{describe_state(state)}, reported only (relaxed)" for state in facts.caused[:_MOST_NAMED]]
    if facts.external_regressions:
        new = facts.external_regressions
        notes.append(
            f"{count(len(new), 'finding')} outside the intent {'is' if len(new) == 1 else 'are'} new"
        )
    states = facts.comparison.thresholds if facts.comparison is not None else ()
    elsewhere = [state for state in states if state.fails_after and state not in facts.caused]
    notes += [
        describe_state(state) + (", caused outside the intent" if state in facts.external_thresholds else "")
        for state in elsewhere[:_MOST_NAMED]
    ]
    whose = "because of this intent" if facts.intent is not None and notes else ""
    higher = facts.intent_worsened
    if higher:
        where = " in the files of the intent" if facts.intent is not None else ""
        notes.insert(0, f"{count(len(higher), 'value')} {'is' if len(higher) == 1 else 'are'} higher{where}")
    refuses_nothing = bool(facts.reported_only or higher)
    base = "nothing is refused" if refuses_nothing else f"nothing got worse {whose}".rstrip()
    return VerificationReason("; ".join([base, *notes]), "")


def describe_state(state: ThresholdState) -> str:
    """Describe a failing threshold: by how much, and whether it failed before."""
    before = "passed before"
    if state.failed_before:
        worse = "in more places" if state.after == state.before else f"{number(state.before)} before"
        before = worse if state.is_worse else "pre-existing"
    over = f"{safe(state.metric)} is {number(state.after)}, over {number(state.max)}"
    return f"the threshold {safe(state.name)} fails: {over} ({before})"


def _first_few(said: Sequence[str], between: str = ", ") -> str:
    return first_of(said, _MOST_NAMED, between=between)


def findings_of(verification: VerificationResult) -> Iterator[Finding]:
    """Yield the findings of a verification: at most 20 per rule, then one that counts the rest.

    If nothing could be verified, that is the only error: scope and abuse become warnings.
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
        yield from file_findings(verification.scope, name, lambda path: "remove it from the push")


def _abuse(verification: VerificationResult) -> Iterator[Finding]:
    if not verification.abuse:
        return
    rule = "suppression-abuse"
    why = " and ".join(WHY_ABUSE[trigger] for trigger in verification.abuse)
    about = {"triggers": list(verification.abuse)}
    hint = _fix(rule)
    for path in verification.suppression_files[:MOST]:
        how = "grew" if path in verification.grown else "changed"
        yield find(rule, f"{show_path(path)} {how} {why}", path, hint, details=about)
    yield from _count_rest(rule, verification.suppression_files, "suppression file")
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
    """Return the fix of a rule as a hint."""
    return RULES[rule].hint.replace("`", "")


def _count_rest(rule: str, things: Sequence[Thing], noun: str) -> Iterator[Finding]:
    more = len(things) - MOST
    if more > 0:
        yield find(rule, f"and {count(more, noun)} more", None, _SEE_ALL)
