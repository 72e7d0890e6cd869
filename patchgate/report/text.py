"""The report as text: in full for a terminal, or concise with a line for each finding.

In full, every finding is a block; more than `limit` of them are counted by rule. All foreign text is escaped,
and a line with a secret is never shown, whichever rule reports it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from patchgate.git.quoting import printable
from patchgate.report import wording
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import ChangeVerdict, Finding, Report, Verdict
from patchgate.values import dataclass

DEFAULT_LIMIT = 20
EXCERPT_LENGTH = 160
SECRET = "secret"
_NO_PLACE = "-"

_BOLD = "1"
_GRAPHICS = {
    "error": "1;31",
    "rejected": "1;31",
    "warning": "1;33",
    "undecided": "1;33",
    "note": "1;36",
    "help": "1;36",
    "accepted": "1;32",
    "gutter": "1;34",
}


@dataclass(frozen=True, slots=True)
class _Ink:
    """Colours a word by ANSI's graphic rendition, or leaves it; the text is the same without."""

    color: bool

    def __call__(self, text: str, kind: str) -> str:
        return f"\x1b[{_GRAPHICS.get(kind, _BOLD)}m{text}\x1b[0m" if self.color else text


_PLAIN = _Ink(color=False)


def full(report: Report, *, color: bool, limit: int = DEFAULT_LIMIT, verbose: bool = False) -> str:
    """Write a report for a terminal; the text ends with a line feed.

    Args:
        report: what was found.
        color: whether to add ANSI colours.
        limit: how many findings are written out, errors first; the rest is counted by rule.
        verbose: whether to add, for each change, its ids, policy, gates and budgets.
    """
    ink = _Ink(color)
    shown, rest = _select(report, limit)
    blocks: list[str] = []
    for change, findings in zip(report.changes, shown, strict=True):
        blocks.extend(_change_blocks(change, findings, ink, ranged=report.is_ranged, verbose=verbose))
    if rest:
        blocks.append(_rest_of(rest))
    blocks.append(_closing(report, ink))
    return "\n\n".join(blocks) + "\n"


def _rest_of(rest: Counter[str]) -> str:
    rules = ", ".join(f"{number} {rule}" for rule, number in rest.most_common())
    return f"… and {rest.total()} more: {rules}"


def _select(report: Report, limit: int | None) -> tuple[list[list[Finding]], Counter[str]]:
    """Choose the findings to write out, for each change, errors first, and count the others by rule."""
    if limit is None:
        return [list(change.findings) for change in report.changes], Counter()
    ranked = [
        (number, finding) for number, change in enumerate(report.changes) for finding in change.findings
    ]
    ranked.sort(key=lambda each: wording.LEVELS.index(each[1].level))
    shown: list[list[Finding]] = [[] for _ in report.changes]
    for number, finding in ranked[:limit]:
        shown[number].append(finding)
    return shown, Counter(finding.rule for _, finding in ranked[limit:])


def _change_blocks(
    change: ChangeVerdict, findings: Sequence[Finding], ink: _Ink, *, ranged: bool, verbose: bool
) -> list[str]:
    """Write the report of one change; in a range with its name, and with the gates that have no outcome."""
    secrets = {(each.path, each.line, each.side) for each in change.findings if each.rule == SECRET}
    blocks = [
        describe_finding(finding, ink, is_secret=(finding.path, finding.line, finding.side) in secrets)
        for finding in findings
    ]
    if ranged:
        blocks += [
            f"{ink('undecided', 'undecided')}: {wording.describe_gate(gate)}"
            for gate in wording.gates_without_outcome(change)
        ]
        if blocks:
            name = wording.name_change(change)
            blocks.insert(0, f"{ink(name, 'bold')}: {change.verdict.value}")
    if verbose:
        blocks.append(_evidence(change))
    return blocks


def describe_finding(finding: Finding, ink: _Ink = _PLAIN, *, is_secret: bool = False) -> str:
    """Write one finding as ruff and rustc do; `is_secret` hides the source line."""
    label = ink(f"{finding.level.value}[{finding.rule}]", finding.level.value)
    lines = [f"{label}: {wording.safe(finding.message)}"]
    number = "" if finding.line is None else str(finding.line)
    margin = " " * max(len(number), 1)
    place = wording.show_place(finding)
    if place:
        before = " (before the change)" if finding.line is not None and finding.side == "old" else ""
        lines.append(f"{margin}{ink('-->', 'gutter')} {place}{before}")
    source = _source_line(finding, is_secret)
    if source is not None:
        bar = ink("|", "gutter")
        lines += [
            f"{margin} {bar}",
            f"{ink(number.rjust(len(margin)), 'gutter')} {bar} {source}",
            f"{margin} {bar}",
        ]
    lines += [f"  {wording.safe(note)}" for note in finding.notes]
    hint = wording.hint_of(finding)
    if hint:
        lines.append(f"{ink('help', 'help')}: {wording.safe(hint)}")
    return "\n".join(lines)


def _source_line(finding: Finding, is_secret: bool) -> str | None:
    """Return the source line, safe for a terminal; for a secret only the name of its pattern."""
    if finding.excerpt is None:
        return None
    if is_secret:
        pattern = finding.details.get("pattern")
        named = finding.rule == SECRET and isinstance(pattern, str)
        return f"(hidden: {wording.safe(str(pattern))})" if named else "(hidden: a secret)"
    return wording.safe(printable(finding.excerpt, EXCERPT_LENGTH))


def _evidence(change: ChangeVerdict) -> str:
    """Write what a verdict rests on: ids, policy, the outcome of each gate, the budgets."""
    lines = [
        f"{wording.name_change(change)}: {change.verdict.value} under the {change.profile} profile",
        f"  verdict id: {change.id}",
        f"  policy: {wording.safe(change.policy.origin)} {change.policy.digest}",
    ]
    for gate in (*change.gates, *change.context_gates):
        reason = f" ({wording.safe(gate.reason)})" if gate.reason else ""
        lines.append(f"  {gate.gate}: {gate.outcome.value}{reason}")
    for name, budget in change.limits.items():
        of = "no limit" if budget.limit is None else f"limit {budget.limit}"
        lines.append(f"  {name}: {budget.used} used, {of}")
    return "\n".join(lines)


def _closing(report: Report, ink: _Ink) -> str:
    """Write the end in its fixed order: help, verdict, retry: few people read further up."""
    label = ink("help", "help")
    lines = [f"{ink('warning', 'warning')}: {wording.safe(warning)}" for warning in report.warnings]
    lines += _help_lines(report, label)
    for way in report.recovery:
        # The command is alone on its line, so that it can be copied.
        lines += [f"{label}: {wording.safe(way.message)}", wording.safe(way.command)]
    if report.approve is not None and report.verdict is not Verdict.ACCEPTED:
        lines.append(f"approve: {wording.safe(report.approve)}")
    if report.attempt is not None:
        lines.append(wording.safe(wording.attempt_line(report.attempt)))
    tally = wording.tally_line(report)
    if tally is not None:
        lines.append(tally)
    word, _, rest = wording.verdict_line(report).partition(":")
    lines.append(f"{ink(word, word)}:{rest}")
    if report.retry is not None:
        lines.append(wording.safe(wording.retry_line(report.retry)))
    return "\n".join(lines)


def _help_lines(report: Report, label: str) -> list[str]:
    """Say how to get a change accepted that is intended although the policy refuses it."""
    errors = [
        (finding, change.profile)
        for change in report.changes
        for finding in change.findings
        if finding.level is Level.ERROR
    ]
    lines: list[str] = []
    inline = sorted({each.rule for each, profile in errors if each.definition.inline and profile == "commit"})
    if inline:
        lines.append(
            f'{label}: if intended, add a comment to the line: "patchgate: allow {inline[0]} REASON"'
        )
    by_policy = {profile for each, profile in errors if _is_by_policy(each)}
    if by_policy:
        # The policy of another tree judges: it must change there first.
        first = ", and push that first" if any(each.policy.tree for each in report.changes) else ""
        who = "have a maintainer" if by_policy == {"agent"} else "if intended,"
        lines.append(f"{label}: {who} change the policy in a separate commit before this one{first}")
    return lines


def _is_by_policy(finding: Finding) -> bool:
    """Return whether another policy could allow it."""
    rule = finding.definition
    is_about_files = rule.gate != "refs"
    return rule.stage is Stage.POLICY and is_about_files and not (rule.invariant or rule.inline)


def concise(report: Report, limit: int | None = None) -> str:
    """Write every finding on one line, then the closing lines; the text ends with a line feed.

    A finding about the whole change has the place `-`. In a range each line ends with its commit.

    Args:
        limit: how many findings are written out, errors first, and how many undecided gates and warnings;
            the rest is counted. None: all.
    """
    ranged = report.is_ranged
    lines: list[str] = []
    gates = 0
    shown, rest = _select(report, limit)
    for change, findings in zip(report.changes, shown, strict=True):
        where = f" ({wording.name_change(change)})" if ranged else ""
        for finding in findings:
            place = wording.show_place(finding) or _NO_PLACE
            message = wording.safe(finding.message)
            lines.append(f"{place}: {finding.level.value} {finding.rule} {message}{where}")
        if ranged:
            undecided = [
                f"{_NO_PLACE}: undecided {wording.describe_gate(gate)}{where}"
                for gate in wording.gates_without_outcome(change)
            ]
            lines += undecided if limit is None else undecided[: max(0, limit - gates)]
            gates += len(undecided)
    if rest:
        lines.append(_rest_of(rest))
    if limit is not None and gates > limit:
        lines.append(f"… and {gates - limit} more gates are undecided")
    lines += [f"warning: {wording.safe(warning)}" for warning in report.warnings[:limit]]
    if limit is not None and len(report.warnings) > limit:
        lines.append(f"… and {len(report.warnings) - limit} more warnings")
    if report.attempt is not None:
        lines.append(wording.safe(wording.attempt_line(report.attempt)))
    tally = wording.tally_line(report)
    if tally is not None:
        lines.append(tally)
    lines.append(wording.verdict_line(report))
    if report.retry is not None:
        lines.append(wording.safe(wording.retry_line(report.retry)))
    return "\n".join(lines) + "\n"
