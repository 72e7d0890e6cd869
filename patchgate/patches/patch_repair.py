"""Repair the mechanical faults of a unified diff, all of them or none; content is never touched.

Repaired are: a closed fence or text around one diff, headers, the space of context lines, line ends, counts,
places of hunks without numbers, and two sections of one file. A diff that was cut, or that has another fault,
stays as it was sent. The repaired diff is judged like any other, so its lines must be in its files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from patchgate.git.path import RepoPath
from patchgate.patches.formats.proposal import MAX_INPUT_BYTES, Fence, read_fences
from patchgate.patches.formats.whole_files import name_above
from patchgate.patches.hunk_places import Lookup, ends_in_context, place_hunks, read_text, split_sides
from patchgate.patches.patch_hunks import HEADER, is_ellipsis, is_prose, strip_carriage_returns
from patchgate.patches.patch_model import (
    MARKER,
    Fault,
    Patch,
    PatchFix,
    PatchSection,
    SectionKind,
    hunk_header,
    make_fix,
)
from patchgate.patches.patch_parser import parse
from patchgate.patches.planning import fit
from patchgate.patches.section_fixes import write_section_headers
from patchgate.values import dataclass, replace

_START = re.compile(rb"^(?:diff --git |--- [^\n]*\n\+\+\+ )", re.MULTILINE)
_FOREIGN = re.compile(
    rb"^(?:diff --git |@@ |[ \t]*\*\*\* Begin Patch|<{5,9} SEARCH)"
    rb'|"old_string\\?"|<old_string>|="old_string">',
    re.MULTILINE,
)
_NAME = re.compile(rb"^\+\+\+ (?:b/)?([^\n\t]+)", re.MULTILINE)
_OLD_NAME = re.compile(rb"^--- (?:a/)?([^\n\t]+)")
_HUNK = re.compile(rb"@@(?:[ \t].*)?")
_MARK = b"\xef\xbb\xbf"
_SIGNS = (b" ", b"+", b"-", b"\\")
_COUNTED = {"hunk-count-mismatch", "patch-truncated", "range-invalid", "duplicate-section"}
# Each round repairs all faults that are visible; one fault hides others.
_ROUNDS = 12
_NESTED = 3
# A diff is split into lines again for each round.
_MOST_BYTES = 8 << 20
# For each, its file is read to see whether its hunks are in it.
_MOST_SECTIONS = 100


@dataclass(frozen=True, slots=True)
class RepairedPatch:
    """A diff after its repair, with a note on each thing that was repaired."""

    patch: bytes
    notes: tuple[Fault, ...]


def repair_patch(raw: bytes, lookup: Lookup) -> RepairedPatch | Fault | None:
    """Repair a diff; None leaves it as it was sent. A fault refuses what was certainly cut.

    Args:
        raw: what was sent.
        lookup: reads a file of the base; None if there is none.
    """
    if len(raw) > MAX_INPUT_BYTES or b"\0" in raw:
        return None
    if isinstance(parsed := parse(raw), Patch):
        placed = _place_again(parsed, lookup)
        return None if placed is None else RepairedPatch(placed, (_note(1, _DONE["range-invalid"]),))
    notes: list[Fault] = []
    plain = raw
    if raw.startswith(_MARK):
        plain = raw[len(_MARK) :]
        notes.append(_note(1, "removed the byte-order mark"))
    text = strip_carriage_returns(plain)
    if text is not plain:
        notes.append(_note(1, "read the lines of the patch without their CR"))
    inner = _unwrap(text)
    if not isinstance(inner, _InnerDiff):
        return inner
    if len(inner.text) > _MOST_BYTES:
        return None
    reading = _Repair(inner, lookup)
    if not reading.repair():
        return reading.blocking
    return RepairedPatch(reading.text, (*notes, *reading.notes))


def _place_again(patch: Patch, lookup: Lookup) -> bytes | None:
    """Number the hunks of files that they do not fit, if all have one place there; None if there are none."""
    made: list[bytes] = []
    if len(patch.sections) > _MOST_SECTIONS:
        return None
    for section in patch.sections:
        made.append(patch.raw[section.start : section.end])
        text = None if section.kind is not SectionKind.MODIFY else read_text(section.path, lookup)
        if text is None or b"\r" in made[-1] or not isinstance(fit(section, text), tuple):
            continue
        hunks = [[hunk.header, *section.body(hunk).split(b"\n")[:-1]] for hunk in section.hunks]
        placed = place_hunks(text, hunks)
        if placed is not None:
            headers = patch.raw[section.start : section.hunks[0].start]
            made[-1] = headers + b"\n".join((*placed, b""))
    text = b"".join(made)
    return None if text == patch.raw[patch.blank_lines :] else text


def _note(line: int, message: str) -> Fault:
    return Fault("patch-repaired", line, message, hint="nothing to do")


@dataclass(frozen=True, slots=True)
class _InnerDiff:
    """The diff in a reply: its bytes, how many lines are above it, whether a closed fence ends it."""

    text: bytes
    above: int
    is_fenced: bool
    notes: tuple[Fault, ...] = ()


def _unwrap(text: bytes) -> _InnerDiff | Fault | None:
    """Take the one diff out of a reply; None if there is none, or there may be more than one."""
    found = _InnerDiff(text, 0, is_fenced=False)
    for _ in range(_NESTED):
        start = _START.search(found.text)
        if start is None:
            return None
        fences = read_fences(found.text)
        around = next((each for each in fences if _is_around(each, start.start())), None)
        for fence in fences:
            if fence.closing is None:
                message = "a fence is not closed, so the patch is not whole"
                line = found.above + fence.line
                return Fault("patch-truncated", line, message, hint="send the whole patch again")
            if fence is not around and name_above(found.text, fence):
                return None
        begin, end = _span(found.text, start.start(), around)
        if not (_is_text(found.text[:begin]) and _is_text(found.text[end:])):
            return None
        what = "the fence around the diff" if around else "the text above the diff"
        note = _note(found.above + 1, f"removed {what}")
        is_whole = (begin, end) == (0, len(found.text))
        found = _InnerDiff(
            found.text[begin:end],
            found.above + found.text.count(b"\n", 0, begin),
            found.is_fenced or around is not None,
            found.notes if is_whole else (*found.notes, note),
        )
        if around is None:
            return found
    return None


def _is_text(around: bytes) -> bool:
    """Return whether what is around a diff is certainly no part of a change."""
    if _FOREIGN.search(around):
        return False
    lines = around.split(b"\n")
    return all(is_prose(line) or (line.startswith(b" ") and not is_ellipsis(line)) for line in lines)


def _is_around(fence: Fence, offset: int) -> bool:
    return fence.content <= offset and (fence.closing is None or offset < fence.closing)


def _span(text: bytes, start: int, around: Fence | None) -> tuple[int, int]:
    if around is None or around.closing is None:
        return start, len(text)
    return around.content, around.closing


class _Repair:
    """Repairs one diff round by round, until it can be read; `text` and `notes` are what comes of it.

    `blocking` is the fault without a certain repair, if others had to be repaired to see it.
    """

    def __init__(self, inner: _InnerDiff, lookup: Lookup) -> None:
        self.text = inner.text
        self.notes = list(inner.notes)
        self._above = inner.above
        self._is_fenced = inner.is_fenced
        self._lookup = lookup
        self.blocking: Fault | None = None
        # For each line of the text, the line of the reply that it comes from.
        self._origins = list(range(inner.above + 1, inner.above + inner.text.count(b"\n") + 3))

    def repair(self) -> bool:
        """Repair every fault; false if one of them has no certain repair."""
        for number in range(_ROUNDS):
            found = parse(self.text)
            if isinstance(found, Patch):
                placed = _place_again(found, self._lookup)
                if placed is not None:
                    self.text = placed
                    self.notes.append(_note(self._above + 1, _DONE["range-invalid"]))
                return True
            lines = self.text.split(b"\n")
            fixes: list[PatchFix] = []
            # Where a hunk ends is certain only when its lines have their signs.
            first = [fault for fault in found if fault.rule not in _COUNTED]
            for fault in first or found:
                fix = self._fix(fault, lines)
                if fix is None and number and fault.line is not None:
                    # Its fix is for the text as it is now, not as it was sent.
                    self.blocking = replace(fault, line=self._sent_line(fault.line), fix=None)
                if fix is None:
                    return False
                if fix not in fixes:
                    fixes.append(fix)
                    self.notes.append(_note(self._sent_line(fix.first), _describe(fault)))
            self._apply(fixes, lines)
        return False

    def _apply(self, fixes: Sequence[PatchFix], lines: list[bytes]) -> None:
        """Replace the lines of all fixes, from the last; of two that overlap, one waits for a round."""
        below = len(lines) + 1
        for fix in sorted(fixes, key=lambda each: (each.first, each.last), reverse=True):
            if fix.last >= below:
                continue
            texts = [] if fix.text is None else fix.text.encode("utf-8", "surrogateescape").split(b"\n")
            if fix.last == len(lines) and texts and not texts[-1]:
                # The fix adds the newline at the end.
                texts.pop()
                lines = [*lines, b""]
            lines[fix.first - 1 : fix.last] = texts
            self._origins[fix.first - 1 : fix.last] = [self._sent_line(fix.first)] * len(texts)
            below = fix.first
        self.text = b"\n".join(lines)

    def _sent_line(self, line: int) -> int:
        """Return where a line of the text is in what was sent."""
        return self._origins[min(line, len(self._origins)) - 1]

    def _fix(self, fault: Fault, lines: Sequence[bytes]) -> PatchFix | None:
        """Choose the repair of one fault; None if it is not mechanical, or is a guess."""
        fix, line = fault.fix, fault.line
        if line is None:
            return None
        if fault.rule in {"hunk-count-mismatch", "patch-truncated"}:
            return self._count(line, lines, is_cut=fault.rule == "patch-truncated")
        if fault.rule == "range-invalid":
            return self._numbers(line, lines) if fix is None or not _only_sorts(fix, lines) else fix
        if fault.rule == "duplicate-section":
            return self._join(lines)
        if fix is None:
            return _headers(line, lines) if fault.rule == "missing-file-header" else None
        if fault.rule == "prose-around-patch":
            gone = lines[fix.first - 1 : fix.last]
            if fix.text is not None:
                return fix
            is_text = not any(lines[fix.last :]) and _is_text(b"\n".join(gone))
            return fix if is_text or not any(map(bytes.strip, gone)) else None
        if fault.rule in {"blank-context-line", "missing-file-header", "newline-missing"}:
            return fix
        if fault.rule in {"invalid-unified-diff", "path-missing"} and fix.text is not None:
            is_header = fix.text.startswith("diff --git ")
            is_context = all(each.startswith(" ") for each in fix.text.split("\n"))
            return fix if is_header or is_context or fix.text == MARKER.decode() else None
        return None

    def _count(self, line: int, lines: Sequence[bytes], *, is_cut: bool) -> PatchFix | None:
        """Write the counts of a hunk whose end is certain."""
        header = HEADER.match(lines[line - 1] + b"\n")
        body = self._whole_body(line, lines)
        if header is None or body is None:
            return None
        if is_cut and not self._is_fenced:
            return None
        old, new = split_sides(body)
        promised = (int(header[2] or b"1"), int(header[4] or b"1"))
        is_short = len(old) < promised[0] or len(new) < promised[1]
        if is_short and not self._is_in_file(_OLD_NAME.match(lines[_top(line, lines) - 1]), body):
            return None
        starts = (max(int(header[1]), bool(old)), max(int(header[3]), bool(new)))
        right = hunk_header((starts[0], len(old)), (starts[1], len(new)), header[5] or b"")
        return make_fix(line, right)

    def _is_in_file(self, name: re.Match[bytes] | None, body: Sequence[bytes]) -> bool:
        """Return whether a hunk ends in so much context of its file that no line is missing below it."""
        text = read_text(RepoPath.from_patch(name[1]), self._lookup) if name else None
        return text is not None and ends_in_context(text, body)

    def _whole_body(self, line: int, lines: Sequence[bytes]) -> list[bytes] | None:
        """Read the lines of a hunk that a header follows, or that ends in context; None if it may be cut.

        Args:
            line: the line of its header, from 1.
        """
        body: list[bytes] = []
        at = line
        while at < len(lines) and lines[at].startswith(_SIGNS) and not _begins_section(lines, at):
            body.append(lines[at])
            at += 1
        while at < len(lines) and not lines[at]:
            at += 1
        rest = lines[at] if at < len(lines) else b""
        texts = [each for each in body if not each.startswith(b"\\")]
        if not texts or any(is_ellipsis(each) for each in texts if each.startswith(b" ")):
            return None
        if rest.startswith((b"@@", b"diff --git ", b"--- ")):
            return body
        return body if texts[-1].startswith(b" ") and not rest else None

    def _numbers(self, line: int, lines: Sequence[bytes]) -> PatchFix | None:
        """Number the hunks of a section by the only place of their lines in the file."""
        first = _top(line, lines)
        name = _NAME.match(lines[first])
        if name is None or _HUNK.fullmatch(lines[first + 1]) is None:
            return None
        hunks: list[list[bytes]] = []
        at = first + 1
        while at < len(lines) and _HUNK.fullmatch(lines[at]):
            body = self._whole_body(at + 1, lines)
            if body is None:
                return None
            hunks.append([lines[at], *body])
            at += 1 + len(body)
        if not self._is_fenced and not any(lines[at:]) and not self._is_in_file(name, hunks[-1][1:]):
            return None
        placed = self._placed(RepoPath.from_patch(name[1]), hunks)
        if placed is None or at <= line - 1:
            return None
        return make_fix(first + 2, b"\n".join(placed), at)

    def _join(self, lines: Sequence[bytes]) -> PatchFix | None:
        """Join the sections of each file that has several, if all of their hunks have one place in it."""
        sections: list[PatchSection] = []
        for piece in _pieces(self.text):
            found = parse(piece)
            if not isinstance(found, Patch):
                return None
            sections += found.sections
        by_path: dict[RepoPath, list[PatchSection]] = {}
        for section in sections:
            by_path.setdefault(section.path, []).append(section)
        made: list[bytes] = []
        for path, group in by_path.items():
            if len(group) == 1:
                made.append(group[0].raw[group[0].start : group[0].end].removesuffix(b"\n"))
                continue
            if any(each.kind is not SectionKind.MODIFY or not each.rows for each in group):
                return None
            hunks = [
                [hunk.header, *each.body(hunk).split(b"\n")[:-1]] for each in group for hunk in each.hunks
            ]
            placed = self._placed(path, hunks)
            if placed is None:
                return None
            first = group[0]
            headers = first.raw[first.start : first.hunks[0].start].split(b"\n")[:-1]
            made.append(b"\n".join((*(each for each in headers if not each.startswith(b"index ")), *placed)))
        return make_fix(1, b"\n".join(made), len(lines) - 1)

    def _placed(self, path: RepoPath, hunks: Sequence[Sequence[bytes]]) -> list[bytes] | None:
        text = read_text(path, self._lookup)
        return None if text is None else place_hunks(text, hunks)


def _headers(line: int, lines: Sequence[bytes]) -> PatchFix | None:
    """Write the headers of a section that has only `---` and `+++`, whatever its hunks are."""
    minus, plus = (*lines[line - 1 : line + 1], b"", b"")[:2]
    if not minus.startswith(b"--- ") or not plus.startswith(b"+++ "):
        return None
    block = write_section_headers(minus[4:], plus[4:])
    return None if block is None else make_fix(line, block, line + 1)


def _begins_section(lines: Sequence[bytes], at: int) -> bool:
    """Return whether a line that begins with `-` is the header of another file."""
    return lines[at].startswith(b"--- ") and at + 1 < len(lines) and lines[at + 1].startswith(b"+++ ")


def _top(line: int, lines: Sequence[bytes]) -> int:
    """Find the last header, from 0, above a hunk: `+++` if there is one."""
    first = line - 1
    while first and not lines[first].startswith((b"diff --git ", b"+++ ")):
        first -= 1
    return first


def _pieces(text: bytes) -> list[bytes]:
    return re.split(rb"(?m)^(?=diff --git )", text)[1:]


def _only_sorts(fix: PatchFix, lines: Sequence[bytes]) -> bool:
    """Return whether a fix puts the same lines into another order."""
    before = [each.decode("utf-8", "surrogateescape") for each in lines[fix.first - 1 : fix.last]]
    return fix.text is not None and Counter(fix.text.split("\n")) == Counter(before)


def _describe(fault: Fault) -> str:
    """Say what the repair of a fault did."""
    return _DONE.get(fault.rule, "wrote the headers as git does")


_DONE = {
    "prose-around-patch": "removed lines that are not part of the diff",
    "blank-context-line": "gave an empty context line its space",
    "missing-file-header": "wrote the headers of a file as git does",
    "newline-missing": "added the newline at the end",
    "hunk-count-mismatch": "counted the lines of a hunk",
    "patch-truncated": "counted the lines of a hunk",
    "range-invalid": "numbered hunks by the only place of their lines in the file",
    "duplicate-section": "joined the sections of one file",
    "invalid-unified-diff": "wrote headers or context lines as git does",
}
