"""The report for build services: GitHub's workflow commands, GitLab's code quality, JUnit XML.

Decides how findings are spelled there. Sources: GitHub, "Workflow commands"; actions/toolkit, `command.ts`
(what is escaped); GitLab, "Code Quality report format"; XML 1.0 (fifth edition), section 2.2, for the
characters. The XML is written by hand: the standard library's writers do not refuse what it forbids.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import chain

from patchgate.git.quoting import safe_json, without_log_commands
from patchgate.report import wording
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Json, Outcome, Report, fingerprints
from patchgate.values import dataclass

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}
# GitLab refuses an entry without a path; the root means the whole change.
_WHOLE_CHANGE = "."
_XML: dict[int, str | None] = {
    **dict.fromkeys([*(set(range(0x20)) - {0x09, 0x0A, 0x0D}), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]),
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord('"'): "&quot;",
    ord("'"): "&apos;",
}
"""Characters that XML escapes; None: characters that it cannot contain."""


def github(report: Report) -> str:
    """Write a report as GitHub's workflow commands, then the verdict; the text ends with a line feed.

    GitHub shows ten annotations of a kind for each step, so the closing line counts them all.
    """
    ranged = report.is_ranged
    lines: list[str] = []
    for change in report.changes:
        where = f" ({wording.name_change(change)})" if ranged else ""
        lines += [_github_command(finding, where) for finding in change.findings]
        lines += [
            f"::error title=undecided::{_escape(wording.describe_gate(gate) + where)}"
            for gate in wording.gates_without_outcome(change)
        ]
    lines += [f"::warning title=patchgate::{_escape(wording.safe(text))}" for text in report.warnings]
    closing = [line for line in (wording.tally_line(report), wording.verdict_line(report)) if line]
    return "\n".join([*lines, *closing]) + "\n"


def github_undecided(sentence: str) -> str:
    """Write as a workflow command why there is no verdict; the text ends with a line feed."""
    return f"::error title=undecided::{_escape(wording.safe(sentence))}\n"


def gitlab(report: Report) -> str:
    """Write a report as GitLab's code quality report: a JSON array in ASCII, ended by a line feed."""
    # json costs 9 ms to import, and the workflow commands do without.
    import json

    issues = list(chain.from_iterable(_gitlab_issues(change) for change in report.changes))
    times: dict[str, int] = {}
    for issue in issues:
        # GitLab drops all but one of equal fingerprints, and commits of a range repeat them.
        mark = str(issue["fingerprint"])
        times[mark] = times.get(mark, 0) + 1
        if times[mark] > 1:
            issue["fingerprint"] = sha256(f"{mark} {times[mark]}".encode("ascii")).hexdigest()
    return safe_json(json.dumps(issues)) + "\n"


def _github_command(finding: Finding, where: str) -> str:
    properties = [f"title={_escape_property(finding.rule)}"]
    if finding.path is not None:
        # The file of such a name gets no annotation: no escape of the engine hides it from its log.
        properties.append(f"file={_escape_property(without_log_commands(finding.path.quoted))}")
        if finding.line is not None and finding.side == "new":
            properties.append(f"line={finding.line}")
    # A line of a commit message is not in a file, so the text names it.
    place = wording.show_place(finding) if finding.path is None else ""
    text = _escape((f"{place}: " if place else "") + wording.safe(finding.message) + where)
    hint = wording.hint_of(finding)
    if hint:
        text += "%0A" + _escape(f"help: {wording.safe(hint)}")
    return f"::{_COMMANDS[finding.level]} {','.join(properties)}::{text}"


def _escape(text: str) -> str:
    """Escape the text of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    """Escape a property of a workflow command, where a colon and a comma have a meaning too."""
    return _escape(text).replace(":", "%3A").replace(",", "%2C")


def _gitlab_issues(change: ChangeVerdict) -> Iterator[dict[str, Json]]:
    from patchgate.report.json import as_text

    for finding, mark in zip(change.findings, fingerprints(change.findings), strict=True):
        refuses_always = finding.level is Level.ERROR and finding.definition.invariant
        line = (finding.path and finding.line) or 1
        yield {
            "description": wording.safe(finding.message),
            "check_name": finding.rule,
            "fingerprint": mark,
            "severity": "critical" if refuses_always else _SEVERITIES[finding.level],
            "location": {
                "path": as_text(finding.path) if finding.path else _WHOLE_CHANGE,
                "lines": {"begin": line},
            },
        }
    for gate in wording.gates_without_outcome(change):
        mark = sha256(f"undecided {change.id} {gate.gate}".encode("utf-8", "backslashreplace")).hexdigest()
        yield {
            "description": wording.describe_gate(gate),
            "check_name": "undecided",
            "fingerprint": mark,
            "severity": "blocker",
            "location": {"path": _WHOLE_CHANGE, "lines": {"begin": 1}},
        }


@dataclass(frozen=True, slots=True)
class _TestCase:
    """The test case of one gate: its outcome and what it found."""

    gate: GateOutcome
    errors: tuple[Finding, ...]
    others: tuple[Finding, ...]
    owes: bool

    @property
    def is_skipped(self) -> bool:
        """Return whether the gate had nothing to examine, or was no longer needed."""
        idle = self.gate.outcome in {Outcome.NOT_APPLICABLE, Outcome.NOT_RUN}
        return idle and not self.errors and not self.owes


def junit(report: Report) -> str:
    """Write a report as JUnit XML, in ASCII with character references; the text ends with a line feed."""
    suites = [(change, _cases(change)) for change in report.changes]
    every = [case for _, cases in suites for case in cases]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f'<testsuites name="patchgate" {_numbers(every)}>']
    for change, cases in suites:
        lines += _suite(change, cases)
    lines.append("</testsuites>")
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"


def _cases(change: ChangeVerdict) -> list[_TestCase]:
    """Sort the findings to their gates; a finding whose gate is not listed gets a case all the same."""
    owing = wording.gates_without_outcome(change)
    gates = [*change.gates, *change.context_gates]
    gates += [gate for gate in owing if gate not in gates]
    listed = {gate.gate for gate in gates}
    absent = dict.fromkeys(finding.definition.gate for finding in change.findings)
    gates += [GateOutcome(gate, Outcome.FAIL) for gate in absent if gate not in listed]
    cases: list[_TestCase] = []
    for gate in gates:
        found = [finding for finding in change.findings if finding.definition.gate == gate.gate]
        errors = tuple(finding for finding in found if finding.level is Level.ERROR)
        others = tuple(finding for finding in found if finding.level is not Level.ERROR)
        cases.append(_TestCase(gate=gate, errors=errors, others=others, owes=gate in owing))
    return cases


def _numbers(cases: list[_TestCase]) -> str:
    failures = sum(bool(case.errors) for case in cases)
    errors = sum(case.owes and not case.errors for case in cases)
    skipped = sum(case.is_skipped for case in cases)
    return f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'


def _suite(change: ChangeVerdict, cases: list[_TestCase]) -> list[str]:
    name = _xml(wording.name_change(change))
    properties = {
        "verdict": change.verdict.value,
        "verdict id": change.id,
        "policy": wording.safe(change.policy.origin),
    }
    lines = [f'  <testsuite name="{name}" {_numbers(cases)}>', "    <properties>"]
    lines += [f'      <property name="{key}" value="{_xml(value)}"/>' for key, value in properties.items()]
    lines.append("    </properties>")
    for case in cases:
        lines += _case(case)
    lines.append("  </testsuite>")
    return lines


def _case(case: _TestCase) -> list[str]:
    opening = f'    <testcase classname="patchgate" name="{_xml(case.gate.gate)}"'
    inner: list[str] = []
    if case.errors:
        first = case.errors[0]
        message = _xml(f"{wording.count(len(case.errors), 'error')}: {wording.safe(first.message)}")
        text = _xml("\n".join(_describe(finding) for finding in case.errors))
        inner.append(f'      <failure type="{_xml(first.rule)}" message="{message}">{text}</failure>')
    elif case.owes:
        message = _xml(wording.describe_gate(case.gate))
        inner.append(f'      <error type="undecided" message="{message}"/>')
    elif case.is_skipped:
        inner.append(f'      <skipped message="{_xml(case.gate.outcome.value)}"/>')
    if case.others:
        text = _xml("\n".join(_describe(finding) for finding in case.others))
        inner.append(f"      <system-out>{text}</system-out>")
    return [f"{opening}>", *inner, "    </testcase>"] if inner else [f"{opening}/>"]


def _describe(finding: Finding) -> str:
    """Write a finding on a line, its hint on the next."""
    place = wording.show_place(finding)
    line = f"{place}: " if place else ""
    line += f"{finding.level.value} {finding.rule} {wording.safe(finding.message)}"
    hint = wording.hint_of(finding)
    return f"{line}\n  help: {wording.safe(hint)}" if hint else line


def _xml(text: str) -> str:
    """Escape text for XML, and drop the characters that XML 1.0 cannot contain."""
    return text.translate(_XML)
