"""The envelope `*** Begin Patch … *** End Patch` of Codex: files added, deleted, moved, and updated by hunks.

A hunk has no line numbers. Its old lines must be in the file exactly once; lines `@@ TEXT` above it may
choose one of several places, if only one is in the indented block of TEXT. Source: the grammar in
`apply_patch` of openai/codex, which also defines that a hunk of added lines alone goes to the file's end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchgate.git.path import RepoPath
from patchgate.patches.formats.anchors import FoundPlaces, find_lines, refuse_place
from patchgate.patches.formats.proposal import WorkingFiles, line_at, refuse, shown
from patchgate.patches.line_ends import FileLines
from patchgate.values import dataclass, field

BEGIN = re.compile(rb"^[ \t]*\*\*\* Begin Patch[ \t]*$", re.MULTILINE)
_END = b"*** End Patch"
_END_LINE = re.compile(rb"^[ \t]*\*\*\* End Patch[ \t]*$", re.MULTILINE)
_ENDED = re.compile(rb"\s*+(?:```++|~~~++)?\s*+\Z")
_HEADER = re.compile(rb"[ \t]*+\*\*\* (Add|Delete|Update) File:(.*)", re.DOTALL)
_MOST_ANCHORS = 10
_MOVE = b"*** Move to:"
_LAST = b"*** End of File"
_RANGES = re.compile(rb"-[0-9]+(?:,[0-9]+)? \+[0-9]+(?:,[0-9]+)? @@ ?(.*)")
_SEND = "send *** Begin Patch, the files, *** End Patch; each line of a hunk begins with a space, + or -"


@dataclass(slots=True)
class _EnvelopeHunk:
    """One hunk of an update: its `@@` lines, and its lines with their signs.

    `line` counts from 1 in the proposal. `blank` is how many empty lines without a sign end it: context, or
    space below the hunk.
    """

    line: int
    anchors: list[bytes] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    blank: int = 0
    is_last: bool = False

    def old(self, *, trimmed: bool = False) -> list[bytes]:
        """Return the lines that must be in the file; `trimmed` leaves out the empty lines at the end."""
        lines = self.lines[: len(self.lines) - self.blank] if trimmed else self.lines
        return [line[1:] for line in lines if not line.startswith(b"+")]


def find_span(text: bytes) -> tuple[int, int | None] | None:
    """Find the envelope in a text: where it begins, and the offset past its end (None: it has none)."""
    begin = BEGIN.search(text)
    if begin is None:
        return None
    end: int | None = None
    for match in _END_LINE.finditer(text, begin.end()):
        end = min(match.end() + 1, len(text))
        if text.startswith(_END, match.start()):
            break
        if not _ENDED.match(text, match.end()):
            # Indented, with more below it: a line of context.
            end = None
    return begin.start(), end


def read_envelope(text: bytes, files: WorkingFiles) -> None:
    """Read the envelope of a text into the files that it changes."""
    span = find_span(text)
    if span is None and text.lstrip().startswith((b"{", b"[", b'"')):
        raise refuse(
            "input-invalid", 1, "this is JSON, and not an envelope", "send the envelope without JSON"
        )
    if span is None:
        raise refuse("input-invalid", 1, "there is no line `*** Begin Patch`", _SEND)
    start, end = span
    first = line_at(text, start)
    if end is None:
        message = "the envelope has no line `*** End Patch`, so it is not whole"
        raise refuse("patch-truncated", first, message, "send the whole envelope again")
    again = BEGIN.search(text, end)
    if again is not None:
        message = "there is a second envelope"
        raise refuse(
            "input-invalid", line_at(text, again.start()), message, "put all files into one envelope"
        )
    lines = text[start:end].rstrip(b"\n").split(b"\n")
    _EnvelopeReader(lines[1:-1], first + 1, files).read()


class _EnvelopeReader:
    """Reads the lines between the two markers; `first` is the number of the first one."""

    def __init__(self, lines: Sequence[bytes], first: int, files: WorkingFiles) -> None:
        self._lines = lines
        self._first = first
        self._files = files
        self._at = 0

    def read(self) -> None:
        """Read every file of the envelope."""
        while self._at < len(self._lines):
            line = self._number
            header = _HEADER.fullmatch(self._lines[self._at])
            if header is None:
                raise self._foreign()
            self._at += 1
            path = self._files.path_of(header[2].strip(), line)
            if header[1] == b"Add":
                self._add(path, line)
            elif header[1] == b"Delete":
                self._files.delete(path, line)
            else:
                self._update(path, line)

    @property
    def _number(self) -> int:
        return self._first + self._at

    def _foreign(self) -> Exception:
        text = self._lines[self._at]
        message = (
            f"this line is not part of an envelope: {shown(text)}" if text else "an empty line has no sign"
        )
        return refuse("input-invalid", self._number, message, _SEND)

    def _peek(self) -> bytes | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _add(self, path: RepoPath, line: int) -> None:
        added: list[bytes] = []
        while (text := self._peek()) is not None and text.startswith(b"+"):
            added.append(text[1:] + b"\n")
            self._at += 1
        self._files.add(path, b"".join(added), line)

    def _update(self, path: RepoPath, line: int) -> None:
        content = self._files.content(path, line)
        target: RepoPath | None = None
        text = self._peek()
        if text is not None and text.startswith(_MOVE):
            target = self._files.path_of(text[len(_MOVE) :].strip(), self._number)
            self._at += 1
        hunks = self._hunks()
        if not hunks and target is None:
            raise refuse("missing-hunk", line, f"the update of {path.quoted} has no hunk", _SEND, path)
        self._files.charge(len(content) * len(hunks), line)
        self._files.change(path, _UpdatedFile(path, content).replace(hunks))
        if target is not None:
            self._files.move(path, target, line)

    def _hunks(self) -> list[_EnvelopeHunk]:
        """Read the hunks up to the next file."""
        hunks: list[_EnvelopeHunk] = []
        while (text := self._peek()) is not None and not _HEADER.fullmatch(text):
            if not text.strip():
                self._at += 1
                continue
            if hunks and not text.startswith(b"@@"):
                raise self._foreign()
            hunks.append(self._hunk())
        return hunks

    def _hunk(self) -> _EnvelopeHunk:
        hunk = _EnvelopeHunk(self._number)
        while (text := self._peek()) is not None and text.startswith(b"@@"):
            anchor = _anchor_of(text)
            hunk.anchors += [anchor] if anchor else []
            self._at += 1
        if len(hunk.anchors) > _MOST_ANCHORS:
            message = f"the hunk has more than {_MOST_ANCHORS} lines with @@"
            raise refuse("patch-too-large", hunk.line, message, "name the nearest lines only", None)
        hunk.line = self._number
        while (text := self._peek()) is not None:
            if text.startswith(_LAST) and text.rstrip() == _LAST:
                hunk.is_last = True
                self._at += 1
                break
            if text.startswith((b"@@", b"*** ")):
                break
            if text and text[:1] not in b" +-":
                raise self._foreign()
            hunk.blank = 0 if text else hunk.blank + 1
            hunk.lines.append(text or b" ")
            self._at += 1
        if not any(each.startswith((b"+", b"-")) for each in hunk.lines):
            raise refuse("missing-hunk", hunk.line, "the hunk changes nothing", _SEND)
        return hunk


def _anchor_of(text: bytes) -> bytes:
    """Read what an `@@` line names; the numbers of a unified diff name nothing here."""
    anchor = text[2:].removeprefix(b" ")
    ranges = _RANGES.fullmatch(anchor)
    return (ranges[1] if ranges else anchor).rstrip()


def _last(lines: Sequence[bytes]) -> bytes:
    if not lines:
        return b""
    return lines[-1].removesuffix(b"\n") if lines[-1].endswith(b"\n") else lines[-1] + b"\n"


class _UpdatedFile:
    """A file whose lines hunks replace; their places are found in the file as it was before the first."""

    def __init__(self, path: RepoPath, content: bytes) -> None:
        self._path = path
        self._content = content
        self._file = FileLines(content)
        self._stripped: dict[bytes, list[int]] = {}

    def replace(self, hunks: Sequence[_EnvelopeHunk]) -> bytes:
        """Return the text with all hunks."""
        file = self._file
        placed = sorted((self._place(hunk), number) for number, hunk in enumerate(hunks))
        # A last line without a newline is marked by an LF, which no line contains.
        lines = file.lines if file.is_complete else [*file.lines[:-1], file.lines[-1] + b"\n"]
        made: list[bytes] = []
        done = 0
        for (place, length), number in placed:
            hunk = hunks[number]
            if place < done:
                message = f"the hunk of {self._path.quoted} overlaps the one above it"
                hint = "join hunks that touch the same lines"
                raise refuse("hunk-mismatch", hunk.line, message, hint, self._path)
            made += lines[done:place]
            seen = place
            for text in hunk.lines:
                if text.startswith(b"+"):
                    made.append(text[1:])
                elif seen < place + length:
                    made += [lines[seen]] if text.startswith(b" ") else []
                    seen += 1
            done = place + length
        made += lines[done:]
        return b"".join(line.removesuffix(b"\n") + b"\n" for line in made[:-1]) + _last(made)

    def _place(self, hunk: _EnvelopeHunk) -> tuple[int, int]:
        """Find the line where a hunk's old lines begin, from 0, and how many of them there are."""
        file = self._file
        if not hunk.old(trimmed=True):
            if hunk.anchors or hunk.blank or (file.lines and not file.lines[-1] and file.is_complete):
                message = f"the hunk of {self._path.quoted} has no context, so its place is not certain"
                hint = "add lines of the file around the change, each with a space before it"
                raise refuse("hunk-mismatch", hunk.line, message, hint, self._path)
            return file.count, 0
        found, old = FoundPlaces(()), hunk.old()
        for trimmed in (False, True):
            old = hunk.old(trimmed=trimmed)
            found = find_lines(self._content, old)
            if found.places or not hunk.blank:
                break
        places = [each for each in found.places if not hunk.is_last or each + len(old) == file.count]
        if len(places) > 1 and found.is_complete:
            places = self._in_block(hunk.anchors, places, len(old)) or places
        if len(places) != 1:
            raise refuse_place(self._path, self._content, old, places, hunk.line, "the text of the hunk")
        self._check_anchors(hunk, places[0])
        return places[0], len(old)

    def _named(self, anchor: bytes) -> list[int]:
        """Find the lines that an anchor names, whatever their indentation."""
        if not self._stripped:
            for number, line in enumerate(self._file.lines):
                self._stripped.setdefault(line.strip(), []).append(number)
        return self._stripped.get(anchor.strip(), [])

    def _check_anchors(self, hunk: _EnvelopeHunk, place: int) -> None:
        """Require that the lines that a hunk names are above it, in their order."""
        at = 0
        for anchor in hunk.anchors:
            found = next((each for each in self._named(anchor) if at <= each <= place), None)
            if found is None:
                message = f"`@@ {shown(anchor)}` names no line of {self._path.quoted} above the hunk"
                hint = "name a whole line above the hunk, or write @@ alone"
                raise refuse("hunk-mismatch", hunk.line, message, hint, self._path)
            at = found + 1

    def _in_block(self, anchors: Sequence[bytes], places: Sequence[int], length: int) -> list[int]:
        """Choose the places in the block of the last line that the anchors name; each names one line."""
        start, stop = -1, self._file.count
        for anchor in anchors:
            named = [each for each in self._named(anchor) if start < each < stop]
            exact = [each for each in named if self._file.lines[each] == anchor]
            if len(exact) == 1:
                named = exact
            if len(named) != 1:
                return []
            start, stop = named[0], self._block_end(named[0])
        return [place for place in places if start <= place and place + length <= stop] if anchors else []

    def _block_end(self, number: int) -> int:
        """Find the end of the block that a line begins: the next line that is not indented deeper."""
        lines = self._file.lines
        depth = _depth(lines[number])
        for below in range(number + 1, self._file.count):
            if lines[below].strip() and _depth(lines[below]) <= depth:
                return below
        return self._file.count


def _depth(text: bytes) -> int:
    expanded = text.expandtabs()
    return len(expanded) - len(expanded.lstrip())
