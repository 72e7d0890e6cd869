"""A strict JSON parser that keeps line numbers: it returns the values with their lines, or the first fault.

Decides what is JSON (RFC 8259, UTF-8, no NaN, no unpaired surrogates), the size limits, and how a fault is
reported. A parser of our own has the same messages and limits under every Python. It does not check what the
values mean.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from patchgate.git.quoting import printable
from patchgate.values import dataclass, field

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_VALUES = 50_000
MAX_DIGITS = 300
MAX_DOUBLED = 1000

JsonPath = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\r\n]*")
_MARK = re.compile(r"[{}\[\],:]")
_STRING = re.compile(
    r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\x00-\x1f]*)*"',
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![0-9A-Za-z_.+-])")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|-Infinity")
_WORDS = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARKERS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_SYNTAX = "see https://www.json.org for the syntax"


@dataclass(frozen=True, slots=True)
class JsonFault:
    """Why a document cannot be read: one sentence, its line (None: the whole file), the next step."""

    message: str
    line: int | None
    hint: str


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A parsed document: the value, the line of each path in it, and the duplicate keys.

    The line of a member is that of its key. For a duplicate key the first value counts; `doubled` has the
    path and line of each later one.
    """

    value: Any
    lines: Mapping[JsonPath, int]
    doubled: tuple[tuple[JsonPath, int], ...] = ()

    def line_of(self, place: JsonPath) -> int:
        """Return the line of a path, or of its nearest ancestor that exists."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines[place]


def dotted(place: JsonPath) -> str:
    """Format a path: `functions[0].description`; names that are not plain are quoted."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z0-9_-]{1,100}", part):
            text += f".{part}" if text else part
        else:
            text += f'["{printable(part, 100)}"]'
    return text


def too_large(size: int, most_bytes: int = MAX_BYTES) -> JsonFault | None:
    """Return a fault if a file has too many bytes, else None."""
    if size <= most_bytes:
        return None
    message = f"the file has {size:,} bytes; the limit is {most_bytes:,}"
    return JsonFault(message, None, "make it shorter")


def read_json(
    raw: bytes, most_bytes: int = MAX_BYTES, most_values: int = MAX_VALUES
) -> JsonDocument | JsonFault:
    """Read one JSON document.

    Args:
        raw: its bytes; UTF-8 without a byte-order mark.
        most_bytes: the size limit.
        most_values: the limit on objects, lists, texts, numbers and words together.
    """
    if (fault := too_large(len(raw), most_bytes)) is not None:
        return fault
    if raw.startswith(b"\xef\xbb\xbf"):
        return JsonFault("the file begins with a byte-order mark", 1, "save it without one")
    if (position := raw.find(b"\0")) >= 0:
        line = raw.count(b"\n", 0, position) + 1
        return JsonFault("the file contains a NUL byte", line, "save it as UTF-8 text")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return JsonFault("the file is not UTF-8", line, "save it as UTF-8 text")
    reader = _JsonReader(text, most_values)
    try:
        reader.read()
    except _NotJsonError as error:
        line = text.count("\n", 0, error.position) + 1
        return JsonFault(error.message, line, error.hint)
    return JsonDocument(reader.root, reader.lines, tuple(reader.doubled))


class _NotJsonError(Exception):
    """The text is not JSON."""

    def __init__(self, message: str, position: int, hint: str = _SYNTAX) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.hint = hint


@dataclass(slots=True)
class _Open:
    """An object or a list that is not closed yet; `place` is None for the second value of a key."""

    holder: dict[str, Any] | list[Any]
    place: JsonPath | None


@dataclass(slots=True)
class _JsonReader:
    """One pass over a text; open containers are kept in a list, so nesting needs no recursion."""

    text: str
    most_values: int
    root: Any = None
    lines: dict[JsonPath, int] = field(default_factory=dict)
    doubled: list[tuple[JsonPath, int]] = field(default_factory=list)
    _at: int = 0
    _line: int = 1
    _counted: int = 0
    _values: int = 0
    _open: list[_Open] = field(default_factory=list)

    def read(self) -> None:
        """Read the whole text."""
        self._skip()
        if self._at == len(self.text):
            raise _NotJsonError("the file is empty", 0, "write a JSON object; it begins with {")
        self.root = self._value(())
        while self._open:
            self._member(self._open[-1])
        self._skip()
        if self._at < len(self.text):
            raise self._fault("the end of the file")

    def _member(self, inner: _Open) -> None:
        """Read the next member of what is open, or its end."""
        holder = inner.holder
        close = "}" if isinstance(holder, dict) else "]"
        self._skip()
        if self._take(close):
            self._open.pop()
            return
        if holder:
            comma = self._at
            if not self._take(","):
                raise self._fault(f"a comma or `{close}`")
            self._skip()
            if self.text.startswith(close, self._at):
                message = f"not JSON: there is a comma before the closing `{close}`"
                raise _NotJsonError(message, comma, "remove the comma")
        if isinstance(holder, list):
            place = None if inner.place is None else (*inner.place, len(holder))
            # Reserve the slot first: a list within a list must not look empty.
            holder.append(None)
            holder[-1] = self._value(place)
            return
        self._skip()
        line = self._line_here()
        if not self.text.startswith('"', self._at):
            raise self._fault("a key in double quotes")
        key = self._string()
        self._skip()
        if not self._take(":"):
            raise self._fault("a colon after the key")
        place = None if inner.place is None else (*inner.place, key)
        if key in holder:
            if place is not None and len(self.doubled) < MAX_DOUBLED:
                self.doubled.append((place, line))
            self._value(None)
            return
        if place is not None:
            self.lines[place] = line
        holder[key] = None
        holder[key] = self._value(place)

    def _value(self, place: JsonPath | None) -> Any:
        """Read a value; an object or a list is returned empty and filled later."""
        self._skip()
        self._values += 1
        if self._values > self.most_values:
            what = f"the file contains more than {self.most_values:,} values"
            raise _NotJsonError(what, self._at, "make it shorter")
        if place is not None:
            self.lines.setdefault(place, self._line_here())
        mark = self.text[self._at : self._at + 1]
        if mark == '"':
            return self._string()
        if mark in {"{", "["} and mark:
            if len(self._open) >= MAX_DEPTH:
                message = f"lists and objects are nested more than {MAX_DEPTH} deep"
                raise _NotJsonError(message, self._at, "nest them less deeply")
            self._at += 1
            holder: dict[str, Any] | list[Any] = {} if mark == "{" else []
            self._open.append(_Open(holder, place))
            return holder
        number = _NUMBER.match(self.text, self._at)
        if number:
            return self._number(number)
        word = _WORD.match(self.text, self._at)
        if word and word[0] in _WORDS:
            self._at = word.end()
            return _WORDS[word[0]]
        raise self._fault("a value")

    def _number(self, found: re.Match[str]) -> int | float:
        if len(found[0]) > MAX_DIGITS:
            raise _NotJsonError(
                f"a number has more than {MAX_DIGITS} digits", self._at, "write a shorter one"
            )
        if not found[1]:
            self._at = found.end()
            return int(found[0])
        number = float(found[0])
        if not math.isfinite(number):
            raise _NotJsonError(
                f"the number {printable(found[0], 40)} is too large", self._at, "write a smaller one"
            )
        self._at = found.end()
        return number

    def _string(self) -> str:
        found = _STRING.match(self.text, self._at)
        if found is None:
            raise _NotJsonError(
                "not JSON: a string is not closed on its line, or has a control character or a wrong escape",
                self._at,
                'close it with ", and write a newline in it as \\n',
            )
        inner = found[0][1:-1]
        if "\\" in inner:
            inner = json.loads(found[0])
            if _SURROGATE.search(inner):
                raise _NotJsonError(
                    "a string contains half of a surrogate pair", self._at, "write the character itself"
                )
        self._at = found.end()
        return inner

    def _take(self, mark: str) -> bool:
        if not self.text.startswith(mark, self._at):
            return False
        self._at += 1
        return True

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self._at)
        if found:
            self._at = found.end()

    def _line_here(self) -> int:
        self._line += self.text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _fault(self, expected: str) -> _NotJsonError:
        """Describe what was found instead of what was expected."""
        at = self._at
        begin = self.text.rfind("\n", 0, at) + 1
        line = self.text[begin : begin + 8].rstrip("\r\n")
        if line[:7] in _MARKERS and line[7:8] in {"", " "}:
            return _NotJsonError("this line is a conflict marker", at, "resolve the conflict")
        if at == len(self.text):
            last = len(self.text.rstrip(" \t\r\n"))
            return _NotJsonError(
                "not JSON: the file ends too early", last, "close the open objects and lists with } or ]"
            )
        word = _WORD.match(self.text, at)
        shown = printable(word[0] if word else self.text[at], 40)
        hint = _SYNTAX
        if word and word[0] in {"NaN", "Infinity", "-Infinity"}:
            hint = "JSON has no such number: write null, or remove it"
        elif word and word[0] in {"None", "True", "False"}:
            hint = "JSON uses null, true and false"
        elif shown == "'":
            hint = 'JSON uses double quotes: "'
        elif shown in {"/", "#"}:
            hint = "JSON has no comments: remove it"
        return _NotJsonError(f"not JSON: expected {expected}, found `{shown}`", at, hint)
