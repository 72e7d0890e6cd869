"""The report as build services show it beside the code: GitHub's workflow commands, GitLab's code quality.

Decides how findings are spelled there. Sources: GitHub, "Workflow commands"; actions/toolkit, `command.ts`
(what is escaped); GitLab, "Code Quality report format".
"""

from __future__ import annotations

from hashlib import sha256
from itertools import chain

from patchgate.report import wording
from patchgate.report.json_paths import as_text
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, Json, Report, fingerprints

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}
# GitLab refuses an entry without a path; the root stands for the change as a whole.
_WHOLE_CHANGE = "."


def github(report: Report) -> str:
    """Write a report as GitHub's workflow commands, then the verdict; the text ends with a line feed.

    GitHub shows ten annotations of a kind for each step, so the closing line counts them all.
    """
    ranged = len(report.changes) > 1
    lines: list[str] = []
    for change in report.changes:
        where = f" ({wording.name_change(change)})" if ranged else ""
        lines += [_github_command(finding, where) for finding in change.findings]
        lines += [
            f"::error title=undecided::{_escape(wording.describe_gate(gate) + where)}"
            for gate in wording.unanswered(change)
        ]
    lines += [f"::warning title=patchgate::{_escape(wording.safe(text))}" for text in report.warnings]
    closing = [line for line in (wording.tally_line(report), wording.verdict_line(report)) if line]
    return "\n".join([*lines, *closing]) + "\n"


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
    return json.dumps(issues) + "\n"


def _github_command(finding: Finding, where: str) -> str:
    properties = [f"title={_escape_property(finding.rule)}"]
    if finding.path is not None:
        properties.append(f"file={_escape_property(finding.path.quoted)}")
        if finding.line is not None and finding.side == "new":
            properties.append(f"line={finding.line}")
    # A line of a message is in no file, so it is told in words.
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


def _gitlab_issues(change: ChangeVerdict) -> list[dict[str, Json]]:
    issues: list[dict[str, Json]] = []
    for finding, mark in zip(change.findings, fingerprints(change.findings), strict=True):
        refuses_always = finding.level is Level.ERROR and finding.definition.invariant
        issues.append(
            _gitlab_issue(
                wording.safe(finding.message),
                finding.rule,
                mark,
                "critical" if refuses_always else _SEVERITIES[finding.level],
                as_text(finding.path) if finding.path else _WHOLE_CHANGE,
                (finding.path and finding.line) or 1,
            )
        )
    for gate in wording.unanswered(change):
        mark = sha256(f"undecided {change.id} {gate.gate}".encode("utf-8", "backslashreplace")).hexdigest()
        text = wording.describe_gate(gate)
        issues.append(_gitlab_issue(text, "undecided", mark, "blocker", _WHOLE_CHANGE, 1))
    return issues


def _gitlab_issue(
    description: str, check_name: str, fingerprint: str, severity: str, path: str, line: int
) -> dict[str, Json]:
    return {
        "description": description,
        "check_name": check_name,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": path, "lines": {"begin": line}},
    }
