"""Where the placeholders of one text stand, each with what stays the same when its line is moved.

Decides what is text, and which lines hold a placeholder. When a word is a mark, `placeholder_words` decides,
when one in brackets, `placeholder_brackets`; whether a function has a body, `python_bodies` and
`other_bodies`. It reads no file and knows no change. Time is asked of whoever calls: no text is too long to
be left in the middle.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from patchgate.placeholders.other_bodies import has_forms, undone_in
from patchgate.placeholders.placeholder_brackets import bracket_in
from patchgate.placeholders.placeholder_words import mark_in
from patchgate.placeholders.python_bodies import empty_bodies
from patchgate.placeholders.text_kinds import Around, Language, language_of
from patchgate.policy.marker_forms import BODY, BRACKET, FILLER, HOLE, OWN, WORD, Marker
from patchgate.policy.markers import Bodies, Markers

_RULES = (WORD, BRACKET, HOLE, FILLER, BODY, OWN)
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: it is shorter than 1024 bytes.
_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER = 1023
# A step is a suspicious line, or so many bytes of one.
_STEP_BYTES = 64
_STEPS = 256
# So much of a text is looked through at once.
_BLOCK = 1 << 20
# Spaces that are no ASCII, and what nobody sees.
_BLANKS = re.compile(
    rb"\xc2\xa0|\xe2\x80[\x80-\x8d\xaf]|\xe2\x81[\x9f\xa0]|\xe3\x80\x80|\xef\xbb\xbf|\xe1\x9a\x80"
)
_SEPARATORS = bytes.maketrans(b"\v\f", b"  ")
# Line breaks and tabs as strings write them, also those of a string in a string.
_BREAKS = re.compile(rb"\\{1,4}(?:[nr]|u000[aAdD])(?:\\{1,4}n)?")
# What ends a line, also one that a string writes; blanks and what closes a comment at its end.
_LINE_END = re.compile(rb"[\r\n]")
_CLOSERS = re.compile(rb"(?:[ \t\r]|\*+/|--+>|\"\"\"|'''|\*+\)|-\}|[#!-]*\}\}?|--%>|%>)+\Z")
_CLOSING_BYTES = 64
_TABS = re.compile(rb"\\{1,4}(?:t|u0009)")


@dataclass(frozen=True, slots=True)
class Match:
    """A placeholder: its line from 1 (as git counts: by LF), the rule and the marker that tell of it.

    `key` is what stays the same when the line is moved, or what stands before the mark changes: the rest of
    the line without what closes a comment; of a function its name and the kind of its body; of one of the
    policy's own the line. `head` is the line of the header of the function, where that is known.
    """

    line: int
    rule: str
    marker: str
    key: bytes
    head: int | None = None


def text_of(content: bytes, is_whole: bool = True) -> bytes | None:
    """Give a file's text in UTF-8: UTF-8 itself, or UTF-16 with a byte-order mark; None for other bytes,
    and for a pointer of Git LFS.

    Args:
        content: the file, or its first part.
        is_whole: if not, a character may be cut off at the end.
    """
    if is_whole and content.startswith(_POINTER) and len(content) <= _LONGEST_POINTER:
        # What Git LFS stores in the place of a file: the text is elsewhere.
        return None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        name = "utf-16-le" if content.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        try:
            text = codecs.getincrementaldecoder(name)().decode(content[2:], is_whole)
            found = text.encode("utf-8")
        except UnicodeError:
            return None
        return None if b"\0" in found else found
    if b"\0" in content:
        return None
    if not content.isascii():
        try:
            codecs.getincrementaldecoder("utf-8")().decode(content, is_whole)
        except UnicodeError:
            return None
    return content


def _never() -> bool:
    return False


def matches_in(
    text: bytes, name: bytes, markers: Markers, is_over: Callable[[], bool] = _never
) -> list[Match]:
    """Find the placeholders of a text, in the order of the lines; at most one of each rule on a line.

    Args:
        text: UTF-8, as `text_of` gives it.
        name: the path, or its last component: the suffix chooses the language. The policy's own markers are
            not searched in the file that defines them.
        markers: what is searched.
        is_over: whether the time is up; asked every few hundred steps. Where it is, the search ends, and what
            was found until then is given: whoever asks has to remember it.
    """
    text = text.removeprefix(codecs.BOM_UTF8)
    language = language_of(name)
    bodies = Bodies.SAID if has_forms(language) else Bodies.NONE
    search = _Search(text, language, markers, _defines_markers(text, name))
    steps = 0
    for number, start, end, bits in _suspicious(text, markers, bodies):
        steps += 1 + (end - start) // _STEP_BYTES
        if steps >= _STEPS:
            if is_over():
                return search.found()
            steps = 0
        search.search(number, start, end, bits)
    if is_python(name):
        for body in empty_bodies(text, is_over):
            search.add(body.line, BODY, body.marker, body.key, body.head)
    return search.found()


def is_python(name: bytes) -> bool:
    """Tell whether the functions of a file are looked at as those of Python."""
    return name.lower().endswith((b".py", b".pyw"))


def _defines_markers(text: bytes, name: bytes) -> bool:
    """Tell whether a text is a policy, in which every marker finds its own example."""
    return name == b"patchgate.toml" or (name == b"pyproject.toml" and b"[tool.patchgate" in text)


def _rest(line: bytes) -> bytes:
    """Take from the rest of a line what ends a line for whoever wrote it, and what closes a comment."""
    line = _LINE_END.split(line, maxsplit=1)[0].rstrip()
    # Only its end is searched: the expression is tried at each place.
    return line[:-_CLOSING_BYTES] + _CLOSERS.sub(b"", line[-_CLOSING_BYTES:])


def _key(marker: str, what: bytes) -> bytes:
    return marker.encode("utf-8", "surrogateescape") + b"\0" + what


def _suspicious(text: bytes, markers: Markers, bodies: Bodies) -> Iterator[tuple[int, int, int, int]]:
    """Give number, beginning, end and bits of the lines that may hold a placeholder, block by block."""
    number = 1
    begin = 0
    while begin < len(text):
        stop = text.find(b"\n", begin + _BLOCK) + 1 or len(text)
        lines = markers.lines_of(text[begin:stop], bodies)
        before = begin
        for offset in sorted(lines):
            start = begin + offset
            number += text.count(b"\n", before, start)
            before = start
            end = text.find(b"\n", start)
            yield number, start, end if end >= 0 else len(text), lines[offset]
        number += text.count(b"\n", before, stop)
        begin = stop


def _read(line: bytes, language: Language) -> bytes:
    """Give a line as expressions read it: one kind of space, and an LF for a `\\n` that a string writes."""
    line = line.removesuffix(b"\r")
    if not line.isascii():
        line = _BLANKS.sub(b" ", line)
    if b"\v" in line or b"\f" in line:
        line = line.translate(_SEPARATORS)
    # In LaTeX they are commands.
    if b"\\" in line and language.suffix != b"tex":
        line = _TABS.sub(b" ", _BREAKS.sub(b"\n", line))
    return line


class _Search:
    """One search through one text, line by line."""

    def __init__(self, text: bytes, language: Language, markers: Markers, is_policy: bool) -> None:
        self._text = text
        self._language = language
        self._markers = markers
        self._all = [(1 << place, marker) for place, marker in enumerate(markers.all)]
        if is_policy:
            self._all = [each for each in self._all if each[1].rule != OWN]
        self._chosen: dict[int, tuple[Marker, ...]] = {}
        self._around = Around(text)
        self._found: dict[tuple[int, str], Match] = {}

    def add(self, number: int, rule: str, marker: str, what: bytes, head: int | None = None) -> None:
        """Keep a placeholder, unless the rule has told of the line."""
        self._found.setdefault((number, rule), Match(number, rule, marker, _key(marker, what), head))

    def found(self) -> list[Match]:
        """Give what was found, in order."""
        places = sorted(self._found, key=lambda each: (each[0], _RULES.index(each[1])))
        return [self._found[place] for place in places]

    def search(self, number: int, start: int, end: int, bits: int) -> None:
        """Search a line for the markers that it may hold."""
        line = self._text[start:end]
        read = _read(line, self._language)
        self._around.start, self._around.end = start, end
        chosen = self._chosen.get(bits)
        if chosen is None:
            chosen = tuple(marker for bit, marker in self._all if bits & bit)
            self._chosen[bits] = chosen
        for marker in chosen:
            if (what := self._found_on(line, read, marker)) is not None:
                self.add(number, marker.rule, marker.name, what if marker.rule == OWN else _rest(what))

    def _found_on(self, line: bytes, read: bytes, marker: Marker) -> bytes | None:
        rule = marker.rule
        if rule == WORD:
            return mark_in(read, self._around, self._language, marker)
        if rule == BRACKET:
            return bracket_in(read, self._language, marker) if b"[" in read else None
        if rule == BODY:
            return undone_in(line, self._language, self._around)
        if rule == OWN:
            # It is searched as it stands there.
            return line.strip() if self._markers.own_in(marker, line) else None
        if not marker.found_in(read):
            return None
        found = marker.expression.search(read)
        return read[found.start() :] if found else read.strip()
