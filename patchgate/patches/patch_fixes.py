"""Mechanical fixes for a patch that cannot be read.

The grammar has read each fix that is proposed, and a patch that is sent again is judged again. A fix removes
lines only if they are not part of a diff, change nothing, or are repeated. What is lost or forbidden has no
fix, so that a fixed patch never changes less than the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from patchgate.patches.patch_hunks import (
    HEADER,
    PatchLine,
    is_prose,
    lines_of,
    report_carriage_return,
    report_missing_git_line,
)
from patchgate.patches.patch_model import MARKER, MAX_FAULTS, Fault, PatchFix, hunk_header, make_fix
from patchgate.patches.section_fixes import propose_headers, write_section_headers
from patchgate.values import dataclass, replace

CountFaults = Callable[[bytes], int]
IsSound = Callable[[bytes], bool]

_START = b"diff --git "
_MARK = b"\xef\xbb\xbf"
_ENDS_PROSE = re.compile(rb"^(?:diff --git |@@ -[0-9]|--- [^\n]*\n\+\+\+ )", re.MULTILINE)
_NAMES = re.compile(rb"^--- ([^\n]*)\n\+\+\+ ([^\n]*)\n(?=@@ )", re.MULTILINE)
_RETURNS = "carriage-return-in-header"
_FIXABLE = {
    *("prose-around-patch", "encoding-unsupported", "missing-file-header", "duplicate-section", _RETURNS),
    *("invalid-unified-diff", "path-missing", "range-invalid", "missing-hunk"),
}
# Headers that may follow a missing `diff --git` line.
_BEGINS = (b"--- ", b"index ", b"new file mode ", b"deleted file mode ", b"old mode ", b"new mode ")
# Headers that alone change nothing.
_SILENT = (_START, b"index ", b"--- ", b"+++ ")
_BODY = (b" ", b"+", b"-", b"\\")
_ENDS_RUN = re.compile(rb"^(?:[ +\\-]|@@|diff --git )", re.MULTILINE)
# A section is read again for each candidate; above this size, the only fix is to leave lines out.
_MOST_BYTES = 256 * 1024
_MOST_LINES = 5_000
_MOST_TEXT = 64 * 1024
_BLOCK = 1 << 20


def add_fixes(raw: bytes, faults: Iterable[Fault], count_faults: CountFaults) -> tuple[Fault, ...]:
    """Add the mechanical fix to each fault that has one; a fix of several lines may need further faults.

    `raw` ends in a newline. `count_faults` returns how many faults the grammar finds; a fix leaves fewer.
    """
    given = list(faults)
    known = {(fault.rule, fault.line) for fault in given}
    found: list[Fault] = []
    for fault in given:
        has_fix = fault.fix is not None and fault.rule != _RETURNS
        if has_fix or fault.line is None or fault.rule not in _FIXABLE:
            found.append(fault)
            continue
        fixed, *more = _fixed(raw, fault, fault.line, count_faults)
        found.append(fixed)
        found.extend(each for each in more if (each.rule, each.line) not in known)
    return tuple(sorted(found[:MAX_FAULTS], key=lambda each: each.line or 0))


@dataclass(frozen=True, slots=True)
class _FaultySection:
    """The section of a fault: its lines without LF, the number of the first, and that of the fault."""

    lines: Sequence[bytes]
    first: int
    line: int

    @property
    def index(self) -> int:
        """The position of the line at fault."""
        return self.line - self.first

    @property
    def n_headers(self) -> int:
        """How many lines precede the first hunk."""
        hunks = (number for number, text in enumerate(self.lines) if text.startswith(b"@@"))
        return next(hunks, len(self.lines))

    def hunk_end(self, start: int) -> int:
        """Find the end of the hunk whose header is at `start`."""
        below = range(start + 1, len(self.lines))
        return next((number for number in below if self.lines[number].startswith(b"@@")), len(self.lines))

    def changed(self, start: int, stop: int, texts: Sequence[bytes]) -> bytes:
        """Write the section with other lines from `start` up to `stop`."""
        return b"\n".join((*self.lines[:start], *texts, *self.lines[stop:], b""))

    def fix(self, start: int, stop: int, texts: Sequence[bytes] | None, is_sound: IsSound) -> PatchFix | None:
        """Propose other lines, if the section is sound with them."""
        if not is_sound(self.changed(start, stop, texts or ())):
            return None
        first, last = self.first + start, self.first + stop - 1
        if texts is None:
            return PatchFix(first, None, last)
        return make_fix(first, b"\n".join(texts), last) if sum(map(len, texts)) <= _MOST_TEXT else None

    def without(self) -> PatchFix:
        """Leave the whole section out."""
        return PatchFix(self.first, None, self.first + len(self.lines) - 1)


def _fixed(raw: bytes, fault: Fault, line: int, count_faults: CountFaults) -> list[Fault]:
    """Fix one fault; further ones of the same kind may follow it."""
    offset = _offset(raw, line)
    section = _section_at(raw, offset, line)
    before = count_faults(section.changed(0, 0, ())) if section is not None else 0

    def is_sound(text: bytes) -> bool:
        return count_faults(text) < max(before, 1)

    if fault.rule == "prose-around-patch":
        return list(_remove_prose(raw, fault, offset, line, is_sound))
    if fault.rule == "encoding-unsupported" and raw.startswith(_MARK):
        first = raw[len(_MARK) : raw.find(b"\n")]
        return [replace(fault, fix=make_fix(1, first) if len(first) <= _MOST_TEXT else None)]
    if fault.rule == "missing-file-header" and raw.startswith(_BEGINS, offset):
        return list(_add_git_lines(raw, fault, offset, line)) or [fault]
    if section is None:
        return [fault]
    if fault.rule == "duplicate-section":
        return [_remove_repeated(raw, fault, section)]
    if fault.rule == _RETURNS:
        return list(_without_returns(fault, section, is_sound))
    fix = next(filter(None, _proposals(fault, section, is_sound)), None)
    return [replace(fault, fix=fix)]


def _begin_of(raw: bytes, offset: int) -> int | None:
    """Find where the section at an offset begins; None before the first section."""
    start = offset if raw.startswith(_START, offset) else raw.rfind(b"\n" + _START, 0, offset) + 1
    return start if raw.startswith(_START, start) else None


def _section_at(raw: bytes, offset: int, line: int) -> _FaultySection | None:
    """Read the section of a line; None if there is none, or it is too large to be read again."""
    start, end = _begin_of(raw, offset), raw.find(b"\n" + _START, offset) + 1 or len(raw)
    if start is None or end - start > _MOST_BYTES or raw.count(b"\n", start, end) > _MOST_LINES:
        return None
    return _FaultySection(raw[start:end].split(b"\n")[:-1], line - raw.count(b"\n", start, offset), line)


def _remove_prose(raw: bytes, fault: Fault, offset: int, line: int, is_sound: IsSound) -> Iterator[Fault]:
    """Leave prose out: the fewest lines that make its section sound.

    If everything before it is complete, all lines up to the next line of a diff are prose. Inside an
    incomplete hunk, lines that begin like lines of a hunk are never left out. A line that may be a remnant of
    a diff is never left out.
    """
    ended = _ENDS_PROSE.search(raw, offset)
    end = ended.start() if ended else len(raw)
    last = max(line, line + raw.count(b"\n", offset, end) - 1)
    run = _ENDS_RUN.search(raw, raw.find(b"\n", offset) + 1)
    stop = raw.count(b"\n", offset, run.start() if run else len(raw))
    section = _section_at(raw, offset, line)
    found = None
    if section is not None:
        found = _remove_least_prose(section, stop, is_sound)
    elif _begin_of(raw, offset) is not None:
        found = PatchFix(line, None, line + stop - 1)
    fix = found or PatchFix(line, None, last)
    n_lines = 1 if fix.text is not None else fix.last - fix.first + 1
    places = islice(lines_of(raw, offset, len(raw), line), min(n_lines, _MOST_LINES))
    if n_lines > _MOST_LINES or not all(is_prose(place.text) for place in places):
        yield fault
        return
    yield replace(fault, fix=fix)
    if found is None and ended and not raw.startswith((_START, b"@@"), end):
        yield from _add_git_lines(raw, report_missing_git_line(last + 1), end, last + 1)


def _remove_least_prose(section: _FaultySection, run: int, is_sound: IsSound) -> PatchFix | None:
    """Leave `run` lines of prose out of a section; None if everything after them must be left out."""
    index, n_headers = section.index, section.n_headers
    found = section.fix(index, index + run, None, is_sound)
    if found is None and index < n_headers:
        known = (*section.lines[:index], *section.lines[index + 1 : n_headers])
        for block in propose_headers(known, has_hunks=n_headers < len(section.lines)):
            found = found or section.fix(0, n_headers, block.split(b"\n"), is_sound)
    if found is None and not is_sound(section.changed(index, len(section.lines), ())):
        found = PatchFix(section.line, None, section.line + run - 1)
    return found


def _proposals(fault: Fault, section: _FaultySection, is_sound: IsSound) -> Iterator[PatchFix | None]:
    """Propose fixes for a fault in a section; None for one that does not work."""
    text = section.lines[section.index]
    n_headers, index = section.n_headers, section.index
    has_hunks = n_headers < len(section.lines)
    if fault.rule in {"invalid-unified-diff", "missing-file-header", "path-missing"}:
        if index < n_headers or fault.rule == "missing-file-header":
            for block in propose_headers(section.lines[:n_headers], has_hunks=has_hunks):
                yield section.fix(0, n_headers, block.split(b"\n"), is_sound)
        elif text.startswith(b"\\"):
            yield section.fix(index, index + 1, [MARKER], is_sound)
            if section.lines[index - 1].startswith(b"\\"):
                yield section.fix(index, index + 1, None, is_sound)
        elif text.startswith(b"@@"):
            yield from _without_idle_hunk(section, is_sound)
        else:
            yield _as_context(section, is_sound)
    elif fault.rule == "range-invalid":
        yield from _ranges(section, is_sound)
    elif fault.rule == "missing-hunk" and text.startswith(_BODY):
        yield _with_header(section, is_sound)


def _without_idle_hunk(section: _FaultySection, is_sound: IsSound) -> Iterator[PatchFix | None]:
    """Leave out a hunk that changes nothing, and its section if that does nothing else."""
    index, end = section.index, section.hunk_end(section.index)
    if not all(text.startswith(b" ") for text in section.lines[index + 1 : end]):
        return
    yield section.fix(index, end, None, is_sound)
    is_alone = section.n_headers == index and end == len(section.lines)
    if is_alone and all(text.startswith(_SILENT) for text in section.lines[:index]):
        yield section.without()


def _as_context(section: _FaultySection, is_sound: IsSound) -> PatchFix | None:
    """Restore the leading space of lines inside a hunk; the counts must then be right."""
    start = stop = section.index
    while stop < len(section.lines) and _has_no_sign(section.lines[stop]):
        stop += 1
    return section.fix(start, stop, [b" " + text for text in section.lines[start:stop]], is_sound)


def _has_no_sign(text: bytes) -> bool:
    return bool(text) and not text.startswith((*_BODY, b"@@ -"))


def _without_returns(fault: Fault, section: _FaultySection, is_sound: IsSound) -> Iterator[Fault]:
    """Remove the CR from the headers, the hunk headers and the markers, one fault each."""
    n_headers = section.n_headers
    below = list(enumerate(section.lines))[n_headers:]
    hunks = [number for number, text in below if text.startswith((b"@@ -", b"\\")) and text.endswith(b"\r")]
    rest = [text.rstrip(b"\r") if number in hunks else text for number, text in below]
    fixed = fault
    if section.index < n_headers:
        for block in propose_headers(section.lines[:n_headers], has_hunks=bool(rest)):
            if is_sound(b"\n".join((block, *rest, b""))):
                fixed = replace(fault, fix=make_fix(section.first, block, section.first + n_headers - 1))
                break
    yield fixed
    for number in hunks[:MAX_FAULTS]:
        yield report_carriage_return(PatchLine(section.first + number, section.lines[number]))


def _remove_repeated(raw: bytes, fault: Fault, section: _FaultySection) -> Fault:
    """Leave out a section that repeats an earlier one exactly."""
    first = fault.details.get("first_line")
    start = _offset(raw, first) if isinstance(first, int) else 0
    text = section.changed(0, 0, ())
    is_same = raw.startswith(text, start) and raw.startswith((_START, b""), start + len(text))
    return replace(fault, fix=section.without() if is_same else None)


def _add_git_lines(raw: bytes, fault: Fault, offset: int, line: int) -> Iterator[Fault]:
    """Add the `diff --git` line to each section that has only `---` and `+++`, up to the next whole one."""
    end = raw.find(b"\n" + _START, offset) + 1 or len(raw)
    is_first = True
    for match in _NAMES.finditer(raw, offset, end):
        at = line + raw.count(b"\n", offset, match.start())
        # The lines before the first one are headers of the same section.
        first = line if is_first else at
        above = raw[offset : match.start()].split(b"\n")[:-1] if is_first else []
        begun = write_section_headers(match[1], match[2], above)
        if is_first or begun is not None:
            fix = None if begun is None else make_fix(first, begun, at + 1)
            yield replace(fault, line=first, fix=fix)
        is_first = False


def _ranges(section: _FaultySection, is_sound: IsSound) -> Iterator[PatchFix | None]:
    """Write the only possible header of a hunk, or sort the hunks."""
    index, end = section.index, section.hunk_end(section.index)
    counts = _counts(section.lines[index + 1 : end])
    match = HEADER.match(section.lines[index] + b"\n")
    if counts is not None:
        starts = [(1, 1)] if not all(counts) else []
        if match:
            starts.append((max(int(match[1]), 1), max(int(match[3]), 1)))
        for each in starts:
            old, new = ((at if count else 0, count) for at, count in zip(each, counts, strict=True))
            header = hunk_header(old, new, (match[5] or b"") if match else b"")
            yield section.fix(index, index + 1, [header], is_sound)
    first = section.n_headers
    hunks: list[Sequence[bytes]] = []
    while first < len(section.lines):
        hunks.append(section.lines[first : section.hunk_end(first)])
        first += len(hunks[-1])
    if hunks and all(HEADER.match(hunk[0] + b"\n") for hunk in hunks):
        texts = [text for hunk in sorted(hunks, key=_old_start) for text in hunk]
        yield section.fix(section.n_headers, len(section.lines), texts, is_sound)


def _old_start(hunk: Sequence[bytes]) -> int:
    match = HEADER.match(hunk[0] + b"\n")
    return int(match[1]) if match else 0


def _with_header(section: _FaultySection, is_sound: IsSound) -> PatchFix | None:
    """Write the header of a whole file's hunk: its line numbers are known."""
    index = section.index
    counts = _counts(section.lines[index:])
    if counts is None or (counts[0] and counts[1]):
        return None
    old, new = counts
    header = hunk_header((bool(old), old), (bool(new), new))
    return section.fix(index, index + 1, [header, section.lines[index]], is_sound)


def _counts(body: Sequence[bytes]) -> tuple[int, int] | None:
    """Count the old and new lines of a hunk's body; None if a line is neither."""
    if not all(text.startswith(_BODY) for text in body):
        return None
    old = sum(text.startswith((b" ", b"-")) for text in body)
    new = sum(text.startswith((b" ", b"+")) for text in body)
    return old, new


def _offset(raw: bytes, line: int) -> int:
    """Find where a line (from 1) begins; whole blocks are counted in C."""
    offset, seen = 0, 1
    while offset < len(raw):
        more = raw.count(b"\n", offset, offset + _BLOCK)
        if seen + more >= line:
            break
        offset, seen = offset + _BLOCK, seen + more
    while seen < line:
        offset = raw.find(b"\n", offset) + 1
        seen += 1
    return offset
