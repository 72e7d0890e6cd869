"""What a verification says in a report of changes: its findings, by the rules of the stages scope and verify.

Decides which fact becomes which finding, where it points and how many of each are told. The level that the
policy chose is set by whoever reports; `relaxed` has made a warning of a finding already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from patchgate.check.case import find
from patchgate.commands.results import Result, ThresholdState, Worsened
from patchgate.intents.scope import findings_of as scope_findings
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Finding, Fixer, Verdict
from patchgate.report.wording import count, safe, show_path
from patchgate.verify.result import GATE_FAILURES, REGRESSIONS, Status, Verification
from patchgate.verify.signal_words import name_signal, worsened_from
from patchgate.verify.verification_reasons import WHY_ABUSE, describe_state

MOST = 20
_MOST_LETTERS = 300
_MOST_NOTES = 5
_SEE_ALL = "git patchgate verify shows all of them"
Thing = TypeVar("Thing")


def findings_of(verification: Verification) -> Iterator[Finding]:
    """Yield what a verification says; at most 20 findings of each rule, then one that counts the rest.

    Where nothing could be verified, that is the one error: scope and abuse are told with it.
    """
    is_undecided = verification.status.verdict is Verdict.UNDECIDED
    for finding in (*_scope(verification), *_abuse(verification)):
        yield replace(finding, level=Level.WARNING) if is_undecided else finding
    if is_undecided:
        who = Fixer.ENVIRONMENT if verification.status is Status.UNVERIFIED else Fixer.AGENT
        hint = verification.next_step or "git patchgate verify"
        yield find("unverified", verification.reason, None, hint, who=who)
    relaxed = REGRESSIONS in verification.told
    for finding in _results("regression", verification.intent_regressions):
        yield replace(finding, level=Level.WARNING) if relaxed else finding
    yield from _results("regression-external", verification.external_regressions)
    relaxed = GATE_FAILURES in verification.told
    for finding in _thresholds("threshold-crossed", verification.caused):
        yield replace(finding, level=Level.WARNING) if relaxed else finding
    yield from _thresholds("threshold-external", verification.external_thresholds)
    yield from _thresholds("threshold-preexisting", verification.preexisting)


def _scope(verification: Verification) -> Iterator[Finding]:
    if verification.scope is not None:
        name = verification.intent or "the intent"
        yield from scope_findings(verification.scope, name, lambda path: "take it out of what is pushed")


def _abuse(verification: Verification) -> Iterator[Finding]:
    if not verification.abuse:
        return
    rule = "baseline-abuse"
    why = " and ".join(WHY_ABUSE[trigger] for trigger in verification.abuse)
    about = {"triggers": list(verification.abuse)}
    hint = _fix(rule)
    for path in verification.baselines[:MOST]:
        how = "grew" if path in verification.grown else "changed"
        yield find(rule, f"{show_path(path)} {how} {why}", path, hint, details=about)
    yield from _rest(rule, verification.baselines, "baseline")
    suppressed = verification.suppressed
    for each in suppressed[:MOST]:
        message = f"{safe(each.rule, 100)} of {safe(each.tool, 100)} is suppressed now, {why}"
        yield find(rule, message, each.path, hint, line=each.line, details=about)
    yield from _rest(rule, suppressed, "suppression")


def _results(rule: str, results: Sequence[Result]) -> Iterator[Finding]:
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
    yield from _rest(rule, results, "finding")


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
            line=first.line if isinstance(first, Result) else None,
            details={
                "threshold": safe(state.name),
                "metric": safe(state.metric),
                "limit": state.max,
                "actual": state.after,
                "before": state.before,
            },
        )
        yield replace(finding, notes=tuple(notes))
    yield from _rest(rule, states, "threshold")


def _describe(signal: Result | Worsened) -> str:
    said = name_signal(signal)
    return said if isinstance(signal, Result) else f"{said} ({worsened_from(signal)})"


def _fix(rule: str) -> str:
    """Give the step that goes with a rule, as a hint is written."""
    fix = RULES[rule].fix.replace("`", "")
    return fix[0].lower() + fix[1:].removesuffix(".")


def _rest(rule: str, things: Sequence[Thing], noun: str) -> Iterator[Finding]:
    more = len(things) - MOST
    if more > 0:
        yield find(rule, f"and {count(more, noun)} more", None, _SEE_ALL)
