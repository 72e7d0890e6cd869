"""The report with a line for each finding, `path:line: level rule message`, as editors and `grep` take it."""

from __future__ import annotations

from patchgate.report import wording
from patchgate.report.verdict import Report

NO_PLACE = "-"


def render(report: Report) -> str:
    """Write every finding on one line, then the closing lines; the text ends with a line feed.

    A finding about the change as a whole stands at `-`. In a range each line ends with its commit.
    """
    ranged = len(report.changes) > 1
    lines: list[str] = []
    for change in report.changes:
        where = f" ({wording.name_change(change)})" if ranged else ""
        for finding in change.findings:
            place = wording.show_place(finding) or NO_PLACE
            message = wording.safe(finding.message)
            lines.append(f"{place}: {finding.level.value} {finding.rule} {message}{where}")
        if ranged:
            lines += [
                f"{NO_PLACE}: undecided {wording.describe_gate(gate)}{where}"
                for gate in wording.unanswered(change)
            ]
    lines += [f"warning: {wording.safe(warning)}" for warning in report.warnings]
    if report.attempt is not None:
        lines.append(wording.safe(wording.attempt_line(report.attempt)))
    tally = wording.tally_line(report)
    if tally is not None:
        lines.append(tally)
    lines.append(wording.verdict_line(report))
    if report.retry is not None:
        lines.append(wording.safe(wording.retry_line(report.retry)))
    return "\n".join(lines) + "\n"
