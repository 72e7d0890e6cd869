"""Explain what is wrong with a hunk that `patch_hunks` refused.

It reads line by line, and only hunks with a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, takewhile

from patchgate.git.quoting import printable
from patchgate.patches.patch_hunks import (
    HEADER,
    PatchLine,
    explain_hunk_header,
    is_ellipsis,
    lines_of,
    report_ellipsis,
    report_foreign_line,
    report_missing_git_line,
    report_prose,
)
from patchgate.patches.patch_model import MARKER, MAX_FAULTS, Detail, Fault, Row, hunk_header, make_fix
from patchgate.values import dataclass, field, replace

_BODY = (b" ", b"+", b"-", b"\\")
_FENCES = (b"```", b"~~~")


def explain_hunk(raw: bytes, start: int, end: int, line: int, previous: Row | None) -> list[Fault]:
    """Report what is wrong with the hunk whose header is at `start`.

    Args:
        start: the offset of a line that begins with `@@`.
        end: the offset past the section.
        line: the number of that line, from 1.
        previous: the hunk before it in this section.
    """
    match = HEADER.match(raw, start)
    if match is None or match[0].endswith(b"\r\n"):
        stop = raw.find(b"\n", start, end)
        return [explain_hunk_header(PatchLine(line, raw[start : end if stop < 0 else stop]))]
    old_start, old_count, new_start, new_count = (
        1 if number is None else int(number) for number in match.groups()[:4]
    )
    walk = _HunkWalk(
        line=line,
        starts=(old_start, new_start),
        counts=[old_count, new_count],
        section_text=match[5] or b"",
        is_last=end == len(raw),
    )
    faults = walk.follow(lines_of(raw, match.end(), end, line + 1))
    if faults:
        return faults
    return [_explain_ranges(walk, previous)]


@dataclass(slots=True)
class _HunkWalk:
    """Reads one hunk line by line: what its header promises, and what was seen.

    `elided` is the first context line that is an ellipsis. `unsigned` are the faults up to the first line
    without a sign, `is_whole` is whether the hunk's end was reached. `ended` are the lines of the markers
    that ended the old and the new side; 0 for a side that has not ended.
    """

    line: int
    starts: tuple[int, int]
    counts: list[int]
    section_text: bytes
    is_last: bool
    elided: PatchLine | None = None
    unsigned: list[Fault] | None = None
    is_whole: bool = False
    seen: list[int] = field(default_factory=lambda: [0, 0])
    changes: int = 0
    ended: list[int] = field(default_factory=lambda: [0, 0])

    def follow(self, places: Iterator[PatchLine]) -> list[Fault]:
        """Read the lines under the header; no fault means that the body is sound.

        Lines without a sign count as context without its space if that makes the counts right.
        """
        faults = self._walk(places)
        if self.unsigned is None or (self.is_whole and self.seen == self.counts):
            return faults
        return self.unsigned

    def _walk(self, places: Iterator[PatchLine]) -> list[Fault]:
        faults: list[Fault] = []
        waiting = list[PatchLine]()
        above = PatchLine(self.line, b"@@")
        for place in places:
            kind = place.text[:1]
            is_unsigned = bool(kind) and kind not in b" +-\\"
            if is_unsigned and (self.seen == self.counts or not self._has_lost_space(place, above, faults)):
                break
            if is_unsigned:
                self._count(PatchLine(place.number, b" "))
            elif kind == b"\\":
                fault = self._mark(place, above)
                if fault:
                    return [*faults, fault]
            elif kind:
                if self.seen == self.counts:
                    return [*faults, *self._explain_surplus(place, places, waiting)]
                fault = self._count(place)
                if fault:
                    return [*faults, fault]
            elif len(waiting) == MAX_FAULTS:
                break
            else:
                waiting.append(place)
                if self.seen != self.counts and len(faults) < MAX_FAULTS:
                    faults.append(self._blank(waiting.pop()))
                    self._count(PatchLine(place.number, b" "))
            above = place
        else:
            place = PatchLine(0, b"")
        self.is_whole = True
        return self._conclude(faults, waiting, place, places)

    def _has_lost_space(self, place: PatchLine, above: PatchLine, faults: list[Fault]) -> bool:
        """Return whether a line may be context without its space; the first of a run is a fault."""
        fault = _report_foreign_inside(place)
        if fault.rule != "invalid-unified-diff" or len(faults) >= MAX_FAULTS:
            return False
        if self.unsigned is None:
            self.unsigned = [*faults, fault]
        if not above.text or above.text[:1] in b" +-\\@":
            faults.append(fault)
        return True

    def _conclude(
        self, faults: list[Fault], waiting: list[PatchLine], stop: PatchLine, below: Iterator[PatchLine]
    ) -> list[Fault]:
        """Judge where the body ended: `stop` is the first line after it, number 0 at the end of the patch."""
        is_hunk = stop.text.startswith(b"@@")
        if self.seen != self.counts and (not stop.number or is_hunk):
            return [*faults, self._wrong_counts(is_at_end=self.is_last and not is_hunk)]
        if self.seen != self.counts:
            is_over = stop.text.startswith(_FENCES) and not any(each.text[:1] in _BODY for each in below)
            short = [self._wrong_counts(is_at_end=self.is_last)] if is_over else []
            return [*faults, *short, _report_foreign_inside(stop)]
        if waiting:
            return [*faults, report_prose(waiting[0])]
        if stop.number and not is_hunk:
            return [*faults, report_foreign_line(stop)]
        return faults

    def _count(self, place: PatchLine) -> Fault | None:
        kind = place.text[:1]
        if kind != b"+":
            self.seen[0] += 1
        if kind != b"-":
            self.seen[1] += 1
        self.changes += kind != b" "
        if kind == b" " and self.elided is None and is_ellipsis(place.text):
            self.elided = place
        if self.ended == [0, 0]:
            return None
        touched = [side for side, kinds in enumerate((b" -", b" +")) if kind in kinds]
        ended = next((side for side in touched if self.ended[side]), None)
        if ended is not None:
            name, line = ("old", "new")[ended], self.ended[ended]
            message = f"the marker for a missing newline is before the last line of the {name} side"
            hint = f"put `{MARKER.decode()}` only under a side's last line"
            return Fault("invalid-unified-diff", line, message, hint=hint)
        return None

    def _mark(self, place: PatchLine, above: PatchLine) -> Fault | None:
        sides = {b" ": (0, 1), b"-": (0,), b"+": (1,)}.get(above.text[:1], ())
        goes_on = sides and len(above.text) > 1 and not any(self.ended[side] for side in sides)
        if place.text == MARKER and goes_on:
            for side in sides:
                self.ended[side] = place.number
            return None
        message = f"the marker for a missing newline is out of place: {printable(place.text, 80)}"
        hint = f"write `{MARKER.decode()}` once, directly under the line that has no newline"
        return Fault("invalid-unified-diff", place.number, message, hint=hint)

    def _explain_surplus(
        self, place: PatchLine, places: Iterator[PatchLine], blanks: list[PatchLine]
    ) -> list[Fault]:
        """Explain a line that begins like a line of a hunk but exceeds the counts.

        `blanks` are the empty lines between the counted ones and this one: context, if the hunk continues.
        """
        following = next(places, PatchLine(0, b""))
        ending = self._explain_end(place, following)
        if ending:
            return [report_prose(blank) for blank in blanks[:1]] or [ending]
        for blank in blanks:
            self._count(PatchLine(blank.number, b" "))
        for each in takewhile(lambda each: each.text[:1] in _BODY, chain((place, following), places)):
            self._count(each)
        return [*(self._blank(blank) for blank in blanks), self._wrong_counts(is_at_end=False)]

    def _explain_end(self, place: PatchLine, following: PatchLine) -> Fault | None:
        """Report a line that is not part of the hunk because the counted lines end before it."""
        if place.text.startswith(b"--- ") and following.text.startswith(b"+++ "):
            return report_missing_git_line(place.number, "a second file")
        if place.text.rstrip() == b"--" and (following.number or place.text.endswith(b" ")):
            return report_prose(place)
        return None

    def _wrong_counts(self, *, is_at_end: bool) -> Fault:
        """Report wrong counts; lines that are promised but missing may have been lost.

        Only a header that promises too few lines has a fix: no line is missing.
        """
        old, new = self.seen
        promised, wanted = self.counts
        message = (
            f"the hunk header promises {promised} old and {wanted} new lines, but {old} and {new} follow"
        )
        details: dict[str, Detail] = {"expected": [promised, wanted], "actual": [old, new]}
        is_short = old < promised or new < wanted
        if self.elided is not None:
            return replace(report_ellipsis(self.elided), details=details)
        is_new_file = not promised and not self.starts[0]
        if is_short and (is_at_end or (is_new_file and new)):
            what = "the patch ends inside a hunk" if is_at_end else "lines of a new file are missing"
            message = f"{what}: {message}"
            hint = "send the whole patch again; if no line is missing, count the lines of the hunk again"
            return Fault("patch-truncated", self.line, message, hint=hint, details=details)
        if not old and not new:
            hint = "write the lines of the hunk, or leave its header out"
            return Fault("missing-hunk", self.line, "the hunk header has no lines under it", hint=hint)
        if is_short:
            hint = "write the lines that are missing; if none is, count the lines of the hunk again"
            return Fault("hunk-count-mismatch", self.line, message, hint=hint, details=details)
        old_start, new_start = self.starts
        sides = ((old_start or bool(old), old), (new_start or bool(new), new))
        right = hunk_header(*sides, self.section_text)
        hint = f"write `{printable(right, 120)}`"
        return Fault(
            "hunk-count-mismatch",
            self.line,
            message,
            hint=hint,
            fix=make_fix(self.line, right),
            details=details,
        )

    def _blank(self, place: PatchLine) -> Fault:
        message = "an empty line inside a hunk has lost its leading space"
        hint, fix = "an empty context line is written as one space", make_fix(place.number, b" ")
        return Fault("blank-context-line", place.number, message, hint=hint, fix=fix)


def _explain_ranges(walk: _HunkWalk, previous: Row | None) -> Fault:
    """Report what is wrong with the ranges of a hunk whose body is sound."""
    if not walk.changes and walk.elided is not None:
        return report_ellipsis(walk.elided)
    if not walk.changes:
        return Fault("invalid-unified-diff", walk.line, "the hunk changes nothing", hint="leave the hunk out")
    if any(start == 0 and count for start, count in zip(walk.starts, walk.counts, strict=True)):
        message = "line numbers begin at 1; 0 is for an empty side"
        return Fault("range-invalid", walk.line, message, hint="write the real line numbers")
    if previous is not None and previous[8] & 3:
        message = "the hunk before this one ends at the end of the file"
        hint = "put the marker for a missing newline only into a file's last hunk"
        return Fault("invalid-unified-diff", walk.line, message, hint=hint)
    above = f" (the one above is on line {previous[5]})" if previous else ""
    message = f"the hunk overlaps the one before it or is out of order{above}"
    hint = "sort the hunks by line; join those that touch the same lines"
    return Fault("range-invalid", walk.line, message, hint=hint)


def _report_foreign_inside(place: PatchLine) -> Fault:
    if place.text.startswith(_FENCES):
        return report_prose(place)
    fault = report_foreign_line(place)
    if fault.rule != "prose-around-patch":
        return fault
    message = f"a line inside a hunk does not begin with a space, `+` or `-`: {printable(place.text, 80)}"
    hint = "begin each line of a hunk with a space (context), `+` or `-`; the counts say where it ends"
    return Fault("invalid-unified-diff", place.number, message, hint=hint)
