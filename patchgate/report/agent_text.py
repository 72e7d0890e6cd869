"""The report for a coding agent: what is wrong, where, and what to do, in few words.

At most `MOST_LINES` lines and `MOST_BYTES` bytes, however much was found; without colours, the line that
approves, and paths of the evidence. A finding has at most `MOST_OF_FINDING` bytes; the room that is left has
the end of the output of commands that failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from patchgate.report import wording
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import Finding, Fix, Report

MOST_LINES = 40
MOST_BYTES = 4000
MOST_OF_FINDING = 400

_LONGEST_LINE = 300
_LONGEST_MESSAGE = 200
_LONGEST_NOTE = 100
_MOST_FIX_LINES = 6


def render(report: Report, *, has_next: bool = True, around: Sequence[str] = ()) -> str:
    """Write a report for an agent, errors first; what does not fit is counted by rule.

    Args:
        report: the report.
        has_next: whether the last line says what may be sent next.
        around: the lines that the caller writes around it, which count too.

    Returns:
        The verdict, the findings, then the end of failed commands' output, and as last line what may be sent
        next; it ends with a line feed.
    """
    page = _Page([_cut(wording.safe(wording.verdict_line(report)), _LONGEST_LINE)])
    last = (
        []
        if report.retry is None or not has_next
        else [_cut(wording.safe(wording.retry_line(report.retry)), _LONGEST_LINE)]
    )
    # The line that counts the rest has room too.
    page.reserve([*last, *around, "x" * _LONGEST_LINE])
    left: Counter[str] = Counter()
    tails: list[Sequence[str]] = []
    for name, block, tail in _blocks(report):
        if left or not page.add(block):
            left[name] += 1
        elif tail:
            tails.append(tail)
    rest = ", ".join(f"{number:,} {rule}" for rule, number in left.most_common())
    end = [_cut(f"… and {left.total():,} more: {rest}", _LONGEST_LINE)] if left else []
    page.reserve([*end, *last, *around])
    for tail in tails:
        page.add_end(["output:", *(f"  {_cut(wording.safe(line), _LONGEST_MESSAGE)}" for line in tail)])
    return "\n".join([*page.lines, *end, *last]) + "\n"


class _Page:
    """Lines that together stay within `MOST_LINES` and `MOST_BYTES`, with room for those that come last."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self.size = sum(map(_size, lines))
        self.reserved_lines = 0
        self.reserved_bytes = 0

    def reserve(self, lines: Sequence[str]) -> None:
        self.reserved_lines = len(lines)
        self.reserved_bytes = sum(map(_size, lines))

    @property
    def room(self) -> tuple[int, int]:
        """The lines and the bytes that are left."""
        lines = MOST_LINES - len(self.lines) - self.reserved_lines
        return lines, MOST_BYTES - self.size - self.reserved_bytes

    def add(self, block: Sequence[str]) -> bool:
        """Add all lines of a block, or none."""
        lines, size = self.room
        needed = sum(map(_size, block))
        if len(block) > lines or needed > size:
            return False
        self.lines += block
        self.size += needed
        return True

    def add_end(self, block: Sequence[str]) -> None:
        """Add the first line of a block and as many of its last ones as there is room for."""
        head, *body = block
        while body and not self.add([head, *body]):
            body.pop(0)


def _blocks(report: Report) -> Iterator[tuple[str, list[str], Sequence[str]]]:
    """List what is to be said, most urgent first: a name to count it by, its lines, its command's output."""
    ranged = report.is_ranged
    for level in (Level.ERROR, None, Level.WARNING, Level.NOTE):
        for change in report.changes:
            where = f" ({wording.name_change(change)})" if ranged else ""
            if level is None:
                for gate in wording.gates_without_outcome(change):
                    text = f"undecided{where}: {wording.describe_gate(gate)}"
                    yield "undecided gate", [_cut(text, MOST_OF_FINDING - 1)], ()
                continue
            for finding in change.findings:
                if finding.level is level:
                    yield finding.rule, describe(finding, where), _output(finding)
    for warning in report.warnings:
        yield "warning", [_cut(f"warning: {wording.safe(warning)}", _LONGEST_LINE)], ()


def describe(finding: Finding, where: str = "") -> list[str]:
    """Write one finding: rule, place, message; what is there and what was sent; the fix; what to do.

    Args:
        finding: what was found.
        where: text behind the place, such as the commit.

    Returns:
        Lines that have, with their line feeds, at most `MOST_OF_FINDING` bytes.
    """
    place = wording.show_place(finding)
    at = f" {_cut(place, _LONGEST_NOTE)}" if place else ""
    head = f"{finding.level.value}[{finding.rule}]{at}{_cut(where, _LONGEST_NOTE)}: "
    room = MOST_OF_FINDING - _size(head)
    lines = [head + _cut(wording.safe(finding.message), min(_LONGEST_MESSAGE, room))]
    room = MOST_OF_FINDING - sum(map(_size, lines))
    fix = _mechanical(finding.fix)
    if sum(map(_size, fix)) > room:
        fix = []
    room -= sum(map(_size, fix))
    hint = wording.hint_of(finding)
    help_lines = (
        [f"help: {_cut(wording.safe(hint), min(_LONGEST_MESSAGE, room - 7))}"] if hint and room > 40 else []
    )
    room -= sum(map(_size, help_lines))
    notes = [] if finding.definition.stage is Stage.APPLY else finding.notes
    for note in notes:
        line = f"  {_cut(wording.safe(note), _LONGEST_NOTE)}"
        room -= _size(line)
        if room < 0:
            break
        lines.append(line)
    return [*lines, *fix, *help_lines]


def _output(finding: Finding) -> Sequence[str]:
    """Return the end of a command's output; it has its summary there."""
    return finding.notes if finding.definition.stage is Stage.APPLY else ()


def _mechanical(fix: Fix | None) -> list[str]:
    """Write the fix of a finding; nothing if it cannot be shown exactly, byte for byte."""
    if fix is None:
        return []
    last = fix.last_patch_line or fix.patch_line
    where = f"patch line {last}" if last == fix.patch_line else f"patch lines {fix.patch_line} to {last}"
    if fix.replace_with is None:
        return [f"fix: leave out {where}"]
    texts = fix.replace_with.split("\n")
    if len(texts) > _MOST_FIX_LINES or any(wording.safe(text) != text for text in texts):
        return []
    if len(texts) == 1:
        return [f"fix: replace {where} with `{texts[0]}`"]
    return [f"fix: replace {where} with these {len(texts)} lines:", *(f"  `{text}`" for text in texts)]


def _size(line: str) -> int:
    """Count the bytes of a line with its line feed."""
    return len(line.encode("utf-8")) + 1


def _cut(text: str, most: int) -> str:
    """Shorten a text to `most` bytes of UTF-8, with an ellipsis where something is left out."""
    raw = text.encode("utf-8")
    return text if len(raw) <= most else raw[: max(0, most - 3)].decode("utf-8", "ignore") + "…"
