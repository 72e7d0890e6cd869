"""The report as JUnit XML: a test suite for each change, a test case for each gate.

Decides what passes for a failed test (a gate with errors), an error (one that gave no answer) and a skipped
one. Written by hand: the standard library's XML writers do not refuse what XML 1.0 forbids.
Source: XML 1.0 (fifth edition), section 2.2, for the characters.
"""

from __future__ import annotations

from dataclasses import dataclass

from patchgate.report import wording
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome, Report

_FORBIDDEN = dict.fromkeys(
    [
        *(code for code in range(0x20) if code not in {0x09, 0x0A, 0x0D}),
        *range(0xD800, 0xE000),
        0xFFFE,
        0xFFFF,
    ]
)
_ESCAPES = {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord('"'): "&quot;",
    ord("'"): "&apos;",
}
_TRANSLATION: dict[int, str | None] = {**_FORBIDDEN, **_ESCAPES}


@dataclass(frozen=True, slots=True)
class _Case:
    """The test case of one gate: its outcome and what it found."""

    gate: GateOutcome
    errors: tuple[Finding, ...]
    others: tuple[Finding, ...]
    owes: bool

    @property
    def is_skipped(self) -> bool:
        """Tell whether the gate had nothing to look at, or was not needed any more."""
        idle = self.gate.outcome in {Outcome.NOT_APPLICABLE, Outcome.NOT_RUN}
        return idle and not self.errors and not self.owes


def render(report: Report) -> str:
    """Write a report as JUnit XML, in ASCII with character references; the text ends with a line feed."""
    suites = [(change, _cases(change)) for change in report.changes]
    every = [case for _, cases in suites for case in cases]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<testsuites name="patchgate" {_numbers(every)}>']
    for change, cases in suites:
        lines += _suite(change, cases)
    lines.append("</testsuites>")
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"


def _cases(change: ChangeVerdict) -> list[_Case]:
    """Sort the findings to their gates; a finding whose gate is not listed gets a case all the same."""
    owing = wording.unanswered(change)
    gates = [*change.gates, *change.circumstances]
    gates += [gate for gate in owing if gate not in gates]
    listed = {gate.gate for gate in gates}
    absent = dict.fromkeys(finding.definition.gate for finding in change.findings)
    gates += [GateOutcome(gate, Outcome.FAIL) for gate in absent if gate not in listed]
    cases: list[_Case] = []
    for gate in gates:
        found = [finding for finding in change.findings if finding.definition.gate == gate.gate]
        errors = tuple(finding for finding in found if finding.level is Level.ERROR)
        others = tuple(finding for finding in found if finding.level is not Level.ERROR)
        cases.append(_Case(gate, errors, others, gate in owing))
    return cases


def _numbers(cases: list[_Case]) -> str:
    failures = sum(bool(case.errors) for case in cases)
    errors = sum(case.owes and not case.errors for case in cases)
    skipped = sum(case.is_skipped for case in cases)
    return f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'


def _suite(change: ChangeVerdict, cases: list[_Case]) -> list[str]:
    name = _escape(wording.name_change(change))
    properties = {
        "verdict": change.verdict.value,
        "verdict id": change.id,
        "policy": wording.safe(change.policy.origin),
    }
    lines = [f'  <testsuite name="{name}" {_numbers(cases)}>', "    <properties>"]
    lines += [f'      <property name="{key}" value="{_escape(value)}"/>' for key, value in properties.items()]
    lines.append("    </properties>")
    for case in cases:
        lines += _case(case)
    lines.append("  </testsuite>")
    return lines


def _case(case: _Case) -> list[str]:
    opening = f'    <testcase classname="patchgate" name="{_escape(case.gate.gate)}"'
    inner: list[str] = []
    if case.errors:
        first = case.errors[0]
        message = _escape(f"{wording.count(len(case.errors), 'error')}: {wording.safe(first.message)}")
        text = _escape("\n".join(_describe(finding) for finding in case.errors))
        inner.append(f'      <failure type="{_escape(first.rule)}" message="{message}">{text}</failure>')
    elif case.owes:
        message = _escape(wording.describe_gate(case.gate))
        inner.append(f'      <error type="undecided" message="{message}"/>')
    elif case.is_skipped:
        inner.append(f'      <skipped message="{_escape(case.gate.outcome.value)}"/>')
    if case.others:
        text = _escape("\n".join(_describe(finding) for finding in case.others))
        inner.append(f"      <system-out>{text}</system-out>")
    return [f"{opening}>", *inner, "    </testcase>"] if inner else [f"{opening}/>"]


def _describe(finding: Finding) -> str:
    """Write a finding on a line, its hint on the next."""
    place = wording.show_place(finding)
    line = f"{place}: " if place else ""
    line += f"{finding.level.value} {finding.rule} {wording.safe(finding.message)}"
    hint = wording.hint_of(finding)
    return f"{line}\n  help: {wording.safe(hint)}" if hint else line


def _escape(text: str) -> str:
    """Escape text for XML, and drop the characters that XML 1.0 cannot hold in any form."""
    return text.translate(_TRANSLATION)
