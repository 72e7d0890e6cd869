"""The hunks of one section: ranges, exact counts, kinds of lines, markers for a missing newline.

Sound hunks are read fast; `patch_hunk_faults` explains the others line by line. Possessive expressions read
a run of lines of one kind in C: 83 MB with 100,000 hunks take 0.4 s, splitting into lines takes 0.7 s. Also
here: what is wrong with a single line that fits in no section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchgate.git.quoting import printable
from patchgate.patches.patch_model import (
    MARKER,
    NEW_INCOMPLETE,
    NEW_ONE_WRITTEN,
    OLD_INCOMPLETE,
    OLD_ONE_WRITTEN,
    Fault,
    PatchFix,
    Row,
    make_fix,
)
from patchgate.values import dataclass

NO_BINARY = "leave binary files out: a patch contains text only"
ONLY_THE_DIFF = "send only the diff: no text, fences or mail headers before, between or after its sections"
_ELIDED = re.compile(rb"[ \t]*(?:\.{3,}|\[\.{3,}\]|\xe2\x80\xa6)[ \t\r]*")
# A list item, the dashes of a signature, the line above a diffstat; `- * x` is a removed comment line.
_BULLET = re.compile(rb"--? ?\r?$|---\r?$|- [0-9A-Za-z`\"'(\[]")
_DIFFSTAT = re.compile(rb" (?:\S.* \| +(?:[0-9]|Bin)| *[0-9]+ files? changed|(?:create|delete) mode|rename )")
_MODE = re.compile(rb"\b(?:100[0-7]{3}|120000|160000)\b")
_LONG_NUMBER = re.compile(rb"@@ -[0-9,+ -]*[0-9]{10}")
HEADERS = (
    *(b"old mode ", b"new mode ", b"new file mode ", b"deleted file mode ", b"similarity index "),
    *(b"copy from ", b"copy to ", b"rename from ", b"rename to ", b"dissimilarity index "),
    *(b"index ", b"--- ", b"+++ "),
)
"""What the lines under `diff --git` begin with, in git's order."""


@dataclass(frozen=True, slots=True)
class PatchLine:
    """One line of the patch: its number from 1 and its bytes without LF."""

    number: int
    text: bytes


def lines_of(raw: bytes, start: int, end: int, line: int) -> Iterator[PatchLine]:
    """Yield the lines between two offsets; the first is line `line`. Only LF ends a line."""
    while start < end:
        stop = raw.find(b"\n", start, end)
        stop = end if stop < 0 else stop
        yield PatchLine(line, raw[start:stop])
        start, line = stop + 1, line + 1


def strip_carriage_returns(raw: bytes) -> bytes:
    """Remove the CR from a patch whose lines, headers included, all end in CR LF; return any other unchanged.

    git writes no CR after a header, so all of them were added later (by an editor or mail). Lines of files
    that have CR LF get it back.
    """
    first = raw.find(b"\n")
    if raw[first - 1 : first] != b"\r" or raw.count(b"\n") != raw.count(b"\r\n"):
        return raw
    return raw.replace(b"\r\n", b"\n").removesuffix(b"\r")


def restore_carriage_returns(fix: PatchFix | None) -> PatchFix | None:
    """Write a fix for a patch whose every line ends in CR LF."""
    if fix is None or fix.text is None:
        return fix
    text = fix.text.replace("\n", "\r\n")
    return PatchFix(fix.first, text if text.endswith("\n") else text + "\r", fix.last)


def explain_hunk_header(place: PatchLine) -> Fault:
    """Report what is wrong with a line that begins with `@@` but is not a hunk header."""
    text = printable(place.text, 80)
    if place.text.startswith(b"@@@"):
        return report_combined_diff(place)
    if place.text.endswith(b"\r"):
        return report_carriage_return(place)
    if _LONG_NUMBER.match(place.text):
        message = f"a number in the hunk header has more than nine digits: {text}"
        return Fault("range-invalid", place.number, message, hint="write the real line numbers")
    message = f"the ranges of the hunk header cannot be read: {text}"
    hint = "write `@@ -START,COUNT +START,COUNT @@`: plain numbers, no signs, no leading zeroes"
    return Fault("range-invalid", place.number, message, hint=hint)


def report_carriage_return(place: PatchLine) -> Fault:
    """Refuse a header line that ends in CR."""
    message = f"the header line ends in CR LF: {printable(place.text, 80)}"
    hint = "end header lines with LF; a CR may occur only in the lines of a file"
    fix = make_fix(place.number, place.text.rstrip(b"\r"))
    return Fault("carriage-return-in-header", place.number, message, hint=hint, fix=fix)


def report_combined_diff(place: PatchLine) -> Fault:
    """Refuse a combined diff, which only describes a merge."""
    message = "this is a combined diff of a merge; it cannot be applied"
    return Fault(
        "combined-diff", place.number, message, hint="send the difference to one parent: `git diff A B`"
    )


def report_missing_git_line(line: int, what: str = "a file") -> Fault:
    """Report a section without its `diff --git` line."""
    message = f"{what} has no `diff --git` line"
    return Fault(
        "missing-file-header", line, message, hint="begin each file's section with `diff --git a/… b/…`"
    )


def report_foreign_line(place: PatchLine) -> Fault:
    """Report a line that belongs to no hunk and no header."""
    text = place.text
    if text.startswith((b"diff --cc ", b"diff --combined ", b"@@@")):
        return report_combined_diff(place)
    if text.startswith((b"GIT binary patch", b"Binary files ")):
        return Fault("binary-payload", place.number, "the patch changes a binary file", hint=NO_BINARY)
    if text.startswith(b"@@"):
        return explain_hunk_header(place)
    if text.startswith(HEADERS):
        return report_missing_git_line(place.number)
    return report_prose(place)


def is_ellipsis(text: bytes) -> bool:
    """Return whether a line is an ellipsis, which means that lines of the patch were left out."""
    return _ELIDED.fullmatch(text) is not None


def is_prose(text: bytes) -> bool:
    """Return whether a line is prose or mail text, and certainly not a damaged line of a patch."""
    if text.startswith(b"-"):
        return _BULLET.match(text) is not None
    if text.startswith(b" "):
        return _DIFFSTAT.match(text) is not None
    is_header = text.startswith((b"diff ", *HEADERS)) or _MODE.search(text)
    is_cut = text and any(header.startswith(text) for header in (b"diff --git ", *HEADERS))
    return not (is_header or is_cut or text.startswith((b"+", b"@", b"\\")) or is_ellipsis(text))


def report_ellipsis(place: PatchLine) -> Fault:
    """Report an ellipsis in place of lines of the patch."""
    message = f"lines of the patch are missing from here on: {printable(place.text.strip(), 20)}"
    return Fault(
        "patch-truncated", place.number, message, hint="send the whole patch again, with every line of it"
    )


def report_prose(place: PatchLine) -> Fault:
    """Report a line outside all sections; an ellipsis means that lines were left out."""
    if is_ellipsis(place.text):
        return report_ellipsis(place)
    what = "an empty line is outside the hunks"
    if place.text:
        what = f"this line is not part of a diff: {printable(place.text, 80)}"
    return Fault("prose-around-patch", place.number, what, hint=ONLY_THE_DIFF)


_NUMBER = rb"(0|[1-9][0-9]{0,8})"
_RANGES = rb"@@ -" + _NUMBER + rb"(?:," + _NUMBER + rb")? \+" + _NUMBER + rb"(?:," + _NUMBER + rb")? @@"
# Possessive groups are safe here before CPython 3.11.5 too (gh-106052): nothing in them can backtrack.
_GROUP = rb"(?: [^\n]*+\n)*+((?:-[^\n]*+\n)*+)((?:\+[^\n]*+\n)*+)(?: [^\n]*+\n)*+"
HEADER = re.compile(_RANGES + rb"( [^\n]*+)?\n")
HUNK = re.compile(_RANGES + rb"( [^\n]*+(?<!\r))?\n" + _GROUP)
GROUP = re.compile(_GROUP)

_MORE = b"+-\\"


@dataclass(frozen=True, slots=True)
class HunkScan:
    """What was read: the sound hunks, the offset where reading stopped, and its line (from 1).

    `is_sound` is False if reading stopped at the header of a hunk with a fault.
    """

    rows: tuple[Row, ...]
    position: int
    line: int
    is_sound: bool


def scan_hunks(raw: bytes, position: int, line: int) -> HunkScan:
    """Read consecutive hunks from `position` (the start of line `line`) on."""
    rows: list[Row] = []
    match, count, size = HUNK.match, raw.count, len(raw)
    old_end = new_end = -1
    last_form = 0
    while found := match(raw, position):
        old_text, old_written, new_text, new_written, section_text, minus, plus = found.groups()
        end = found.end()
        removed, added = minus.count(b"\n"), plus.count(b"\n")
        form = 0
        markers = 0
        if end < size and raw[end] in _MORE:
            rest = _read_rest(raw, found.start(6))
            if rest is None:
                return HunkScan(tuple(rows), position, line, is_sound=False)
            end, added, removed, form, markers = rest
        lines = count(b"\n", position, end) - 1 - markers
        old_start, new_start = int(old_text), int(new_text)
        old_count = 1 if old_written is None else int(old_written)
        new_count = 1 if new_written is None else int(new_written)
        old_begin = old_start - 1 if old_count else old_start
        new_begin = new_start - 1 if new_count else new_start
        if (
            lines - added != old_count
            or lines - removed != new_count
            or not (added or removed)
            or old_begin < old_end
            or new_begin < new_end
            or (old_begin == old_end and not old_count)
            or (new_begin < 0 or old_begin < 0)
            or last_form & 3
        ):
            return HunkScan(tuple(rows), position, line, is_sound=False)
        if old_count == 1 and old_written is not None:
            form |= OLD_ONE_WRITTEN
        if new_count == 1 and new_written is not None:
            form |= NEW_ONE_WRITTEN
        old_end, new_end, last_form = old_begin + old_count, new_begin + new_count, form
        text = section_text or b""
        rows.append((old_start, old_count, new_start, new_count, text, line, position, end, form, lines))
        line += lines + 1 + markers
        position = end
    return HunkScan(tuple(rows), position, line, is_sound=not raw.startswith(b"@@", position))


def _read_rest(raw: bytes, begin: int) -> tuple[int, int, int, int, int] | None:
    """Read the rest of a hunk with several groups of changes, or with a marker for a missing newline.

    `begin` is the offset of its first group. Returns the offset past the hunk, its added and removed lines,
    the form bits and the number of markers; None if a marker is not on a side's last line.
    """
    added = removed = form = markers = 0
    while True:
        group = GROUP.match(raw, begin)
        assert group is not None
        end = group.end()
        minus, plus = group[1].count(b"\n"), group[2].count(b"\n")
        context = raw.count(b"\n", begin, end) - minus - plus
        if form & OLD_INCOMPLETE and (minus or context):
            return None
        if form & NEW_INCOMPLETE and (plus or context):
            return None
        removed, added = removed + minus, added + plus
        if raw.startswith(b"\\", end):
            side = _marked_side(raw, end)
            if side is None or side & form:
                return None
            form |= side
            markers += 1
            end += len(MARKER) + 1
        elif not raw.startswith((b"+", b"-"), end):
            break
        begin = end
    return end, added, removed, form, markers


def _marked_side(raw: bytes, marker: int) -> int | None:
    """Return which sides end at the line above the marker at offset `marker`; None if none can."""
    if not raw.startswith(MARKER + b"\n", marker):
        return None
    start = raw.rfind(b"\n", 0, marker - 1) + 1
    if marker - start <= 2:
        return None
    return {0x20: OLD_INCOMPLETE | NEW_INCOMPLETE, 0x2D: OLD_INCOMPLETE, 0x2B: NEW_INCOMPLETE}.get(raw[start])
