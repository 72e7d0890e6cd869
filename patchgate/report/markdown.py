"""The report as Markdown: a summary for a job or a pull request, of at most 60 lines.

All text of the repository is inside code spans, where CommonMark knows no markup and no host makes a mention
or a link of it. Sources: CommonMark 0.31, section 6.1; GitHub Flavored Markdown, section 6.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchgate.report import wording
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, Report, Verdict

MOST_LINES = 60
_MOST_FINDINGS = 40
_MOST_WARNINGS = 8
_LONGEST = 300
_TICKS = re.compile("`+")


def render(report: Report) -> str:
    """Write a summary, refusals first; what does not fit is counted. The text ends with a line feed."""
    word, _, rest = wording.verdict_line(report).partition(":")
    lines = [f"### patchgate: {word}", "", code(rest.strip())]
    tally = wording.tally_line(report)
    if tally is not None:
        lines += ["", code(tally)]
    entries = list(_entries(report))
    if entries:
        lines += ["", *(text for _, text in entries[:_MOST_FINDINGS])]
    if len(entries) > _MOST_FINDINGS:
        rest_of = [kind for kind, _ in entries[_MOST_FINDINGS:]]
        counted = ", ".join(wording.count(rest_of.count(kind), kind) for kind in dict.fromkeys(rest_of))
        lines += ["", f"… and {len(rest_of):,} more: {counted}"]
    if report.warnings:
        lines += ["", *(f"- note: {code(text)}" for text in report.warnings[:_MOST_WARNINGS])]
        left = len(report.warnings) - _MOST_WARNINGS
        lines += [f"- … and {wording.count(left, 'more note')}"] if left > 0 else []
    if report.approve is not None and report.verdict is not Verdict.ACCEPTED:
        lines += ["", f"To approve it: {code(report.approve)}"]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Write a text as a code span: its content is shown as it is, on one line."""
    shown = wording.safe(text, _LONGEST)
    if not shown.strip():
        return "` `"
    longest = max((len(each) for each in _TICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    # One space on each side is removed where both are there; ticks may not touch the fence.
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _entries(report: Report) -> Iterator[tuple[str, str]]:
    """List what was found, each with its kind: errors, what could not be decided, warnings, notes."""
    ranged = report.is_ranged
    for level in (Level.ERROR, None, Level.WARNING, Level.NOTE):
        for change in report.changes:
            where = f" ({code(wording.name_change(change))})" if ranged else ""
            if level is None:
                for gate in wording.gates_without_outcome(change):
                    yield "undecided gate", f"- **undecided**{where}: {code(wording.describe_gate(gate))}"
                continue
            for finding in change.findings:
                if finding.level is level:
                    yield level.value, _entry(finding, where)


def _entry(finding: Finding, where: str) -> str:
    place = wording.show_place(finding)
    at = f" {code(place)}" if place else ""
    hint = wording.hint_of(finding)
    help_text = f" Help: {code(hint)}" if hint else ""
    return f"- **{finding.level.value}** {code(finding.rule)}{at}{where}: {code(finding.message)}{help_text}"
