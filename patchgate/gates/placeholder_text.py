"""Where the placeholders of one text stand, each with what stays the same when its line is moved.

Decides what is text, which language it is in by the name, and which lines hold a placeholder. How a word is a
mark is decided by `placeholder_words`, whether a function has a body by `python_bodies` and `other_bodies`.
It reads no file and knows no change.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

from patchgate.declared.markers import BODY, BRACKET, FILLER, HOLE, OWN, WORD, Bodies, Marker, Markers
from patchgate.gates.other_bodies import has_forms, is_undone
from patchgate.gates.placeholder_words import has_mark, is_name
from patchgate.gates.python_bodies import empty_bodies
from patchgate.gates.text_kinds import Around

_RULES = (WORD, BRACKET, HOLE, FILLER, BODY, OWN)


@dataclass(frozen=True, slots=True)
class Match:
    """A placeholder: its line from 1 (as git counts: by LF), the rule and the marker that tell of it.

    `key` is what stays the same when the line is moved or indented anew.
    """

    line: int
    rule: str
    marker: str
    key: bytes


def text_of(content: bytes, is_whole: bool = True) -> bytes | None:
    """Give a file's text in UTF-8: UTF-8 itself, or UTF-16 with a byte-order mark; None if it is binary.

    Args:
        content: the file, or its first part.
        is_whole: if not, a character may be cut off at the end.
    """
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


def matches_in(text: bytes, name: bytes, markers: Markers) -> list[Match]:
    """Find the placeholders of a text, in the order of the lines; at most one of each rule on a line.

    Args:
        text: UTF-8, as `text_of` gives it.
        name: the path, or its last component: the suffix chooses the language.
        markers: what is searched.
    """
    text = text.removeprefix(codecs.BOM_UTF8)
    bodies = Bodies.SAID if has_forms(name) else Bodies.NONE
    found: dict[tuple[int, str], Match] = {}
    for number, start, end in _lines(text, markers.line_starts(text, bodies)):
        line = text[start:end]
        for rule, marker in _on_line(line, Around(text, start, end), name, markers):
            found.setdefault((number, rule), Match(number, rule, marker, _key(marker, line)))
    if name.lower().endswith(b".py") or name.lower().endswith(b".pyw"):
        for number, marker, header, body in empty_bodies(text):
            key = _key(marker, header) + b"\0" + body.strip()
            found.setdefault((number, BODY), Match(number, BODY, marker, key))
    return [found[place] for place in sorted(found, key=lambda each: (each[0], _RULES.index(each[1])))]


def _key(marker: str, line: bytes) -> bytes:
    return marker.encode("utf-8", "surrogateescape") + b"\0" + line.strip()


def _lines(text: bytes, starts: list[int]) -> Iterator[tuple[int, int, int]]:
    """Give number, beginning and end of lines, by their beginnings in ascending order."""
    number, before = 1, 0
    for start in starts:
        number += text.count(b"\n", before, start)
        before = start
        end = text.find(b"\n", start)
        yield number, start, end if end >= 0 else len(text)


def _on_line(line: bytes, around: Around, name: bytes, markers: Markers) -> Iterator[tuple[str, str]]:
    """Tell the rules that a line breaks, each with its marker."""
    small = line.lower()
    for marker in markers.all:
        if marker.literals and not _holds(small if marker.ignore_case else line, marker):
            continue
        if marker.rule == WORD:
            if has_mark(line, around, name, marker):
                yield WORD, marker.name
        elif marker.rule == BODY:
            if is_undone(line, name):
                yield BODY, marker.name
        elif marker.rule == BRACKET:
            if any(
                b" " in found[0]
                or b":" in found[0]
                or not is_name(line[: found.start()], line[found.end() :], name)
                for found in marker.expression.finditer(line)
            ):
                yield BRACKET, marker.name
        elif marker.found_in(line):
            yield marker.rule, marker.name


def _holds(text: bytes, marker: Marker) -> bool:
    return any(literal in text for literal in marker.literals)
