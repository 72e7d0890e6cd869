"""A large JSON document, read one value at a time, so that its size costs no memory.

Decides what is JSON (RFC 8259 in UTF-8, with a byte-order mark or without; no NaN), how large one value of it
may be, and how a fault is reported; not what the values may be. `policy.json_places` reads small documents
of the repository, with the line of every place.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import BinaryIO, TypeVar

from patchgate.git.quoting import printable

MAX_VALUE = 8 << 20
"""How many characters one value may have that is taken whole."""
MAX_DEPTH = 64
_Name = TypeVar("_Name")
_CHUNK = 1 << 20
# A number at the end of a window may continue after it: `1.5` is 1 as long as only `1.` was read, `1e+5` too.
_MARGIN = 8
# How deep an unused value is read member by member, before it is read whole and dropped.
_WALKED = 3
_SPACE = re.compile(r"[ \t\r\n]*")
_KINDS = {"{": "object", "[": "list", '"': "string"}
_MAX_INDEX = 1 << 31
_HALVES = re.compile("[\ud800-\udfff]")


class NotReadError(Exception):
    """It cannot be read: half a sentence that says why and is safe for a terminal, and the next step."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        # It may quote the document, and a tab moves the cursor.
        self.message = message.replace("\t", " ")
        self.hint = hint


class _ConstantError(Exception):
    """NaN or an infinity: Python reads them, JSON has none."""


class JsonStream:
    """One pass over a document; the stream is read only as far as the pass has come.

    The caller walks through the objects and lists that it knows, and takes the values within them whole;
    all other values are read and dropped. A key that occurs twice is yielded twice while
    walking, and counts once (the last) within a value that is taken whole. `members` and `elements` may be
    left as they are after the last one only. `MAX_DEPTH` counts from the value that is taken."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._characters = codecs.getincrementaldecoder("utf-8-sig")()
        self._decode = json.JSONDecoder(parse_constant=_refuse).raw_decode
        self._text = ""
        self._at = 0
        self._lines_before = 1
        self._is_whole = False
        self._taken = 0

    def members(self) -> Iterator[str]:
        """Iterate over the keys of an object; take each value before the next key.

        Raises:
            NotReadError: it is not an object, or not JSON.
        """
        return self._walk("{", "}", self._key)

    def elements(self) -> Iterator[int]:
        """Iterate over the positions of a list; take each element before the next position.

        Raises:
            NotReadError: it is not a list, or not JSON.
        """
        return self._walk("[", "]", count().__next__)

    def _walk(self, begin: str, end: str, name: Callable[[], _Name]) -> Iterator[_Name]:
        if self._next() != begin:
            raise self._fault(f"`{begin}`")
        self._at += 1
        while self._next() != end:
            named, before = name(), self._taken
            yield named
            if self._taken == before:
                self.skip()
            self._comma(end)
        self._at += 1
        self._taken += 1

    def _key(self) -> str:
        if self._next() != '"':
            raise self._fault("a key")
        key = self._scanned()
        assert isinstance(key, str)
        if self._next() != ":":
            raise self._fault("a colon")
        self._at += 1
        return key

    @property
    def kind(self) -> str:
        """The kind of the next value: object, list, string, end, or other."""
        mark = self._next()
        return _KINDS.get(mark, "other") if mark else "end"

    def value(self) -> object:
        """Return the next value.

        Raises:
            NotReadError: it is too large or too deep, or not JSON.
        """
        found = self._scanned()
        self._taken += 1
        return found

    def skip(self, depth: int = _WALKED) -> None:
        """Skip the next value.

        Raises:
            NotReadError: it is too deep, a part of it is too large, or it is not JSON.
        """
        kind = self.kind if depth else "other"
        if kind == "object":
            for _ in self.members():
                self.skip(depth - 1)
        elif kind == "list":
            for _ in self.elements():
                self.skip(depth - 1)
        else:
            self.value()

    def end(self) -> None:
        """Check that the document ends here.

        Raises:
            NotReadError: something follows.
        """
        if self._next():
            raise self._fault("the end of the document")

    def _comma(self, close: str) -> None:
        mark = self._next()
        if mark == ",":
            self._at += 1
            if self._next() == close:
                raise self._fault("a value after the comma")
        elif mark != close:
            raise self._fault(f"a comma or `{close}`")

    def _next(self) -> str:
        """Return the next character that is not a space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._text) or not self._fill():
                return self._text[self._at : self._at + 1]

    def _scanned(self) -> object:
        """Read one value at the current position, with as much text as it needs."""
        self._next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if len(self._text) - self._at <= MAX_VALUE and self._fill():
                    continue
                raise self._broken(error) from None
            except RecursionError:
                raise self._too_deep() from None
            except _ConstantError as error:
                raise NotReadError(f"line {self._line} contains {error}, which is not JSON") from None
            except ValueError:
                raise NotReadError(f"line {self._line} has a number with too many digits") from None
            if end > len(self._text) - _MARGIN and self._fill():
                continue
            if end - self._at > MAX_VALUE:
                raise self._too_large()
            if self._text.count("{", self._at, end) + self._text.count("[", self._at, end) > MAX_DEPTH:
                self._require_flat(value)
            self._at = end
            return value

    def _fill(self) -> bool:
        """Read more text and drop what was taken; return whether there was more."""
        more = ""
        while not more and not self._is_whole:
            raw = self._stream.read(max(_CHUNK, len(self._text) - self._at))
            self._is_whole = not raw
            try:
                more = self._characters.decode(raw, self._is_whole)
            except UnicodeDecodeError:
                raise NotReadError("it is not UTF-8") from None
        if not more:
            return False
        self._lines_before += self._text.count("\n", 0, self._at)
        self._text, self._at = self._text[self._at :] + more, 0
        return True

    def _require_flat(self, value: object) -> None:
        level = [value]
        for _ in range(MAX_DEPTH):
            inner: list[object] = []
            for each in level:
                if isinstance(each, dict):
                    inner += [one for one in each.values() if isinstance(one, dict | list)]
                elif isinstance(each, list):
                    inner += [one for one in each if isinstance(one, dict | list)]
            if not inner:
                return
            level = inner
        raise self._too_deep()

    @property
    def _line(self) -> int:
        return self._lines_before + self._text.count("\n", 0, self._at)

    def _broken(self, error: json.JSONDecodeError) -> NotReadError:
        if len(self._text) - self._at > MAX_VALUE:
            return self._too_large()
        if error.pos == self._at:
            return self._fault("a value")
        line = self._lines_before + self._text.count("\n", 0, error.pos)
        return NotReadError(f"line {line} is not JSON: {printable(error.msg, 80)}")

    def _too_large(self) -> NotReadError:
        return NotReadError(f"the value on line {self._line} is longer than {MAX_VALUE:,} characters")

    def _too_deep(self) -> NotReadError:
        return NotReadError(f"a value on line {self._line} is nested more than {MAX_DEPTH} deep")

    def _fault(self, expected: str) -> NotReadError:
        mark = self._next()
        found = f"`{printable(mark)}`" if mark else "the end"
        return NotReadError(f"line {self._line} is not JSON: expected {expected}, found {found}")


def _refuse(word: str) -> object:
    raise _ConstantError(word)


class JsonObject:
    """An object of a document, with typed access. `null` counts as a missing key.

    Args:
        value: the value.
        at: its path in the document, for errors.

    Raises:
        NotReadError: it is not an object; the methods raise it if a value has another type.
    """

    __slots__ = ("_at", "_members")

    def __init__(self, value: object, at: str) -> None:
        if value is not None and not isinstance(value, dict):
            raise NotReadError(f"{at} is not an object")
        self._members: dict[str, object] = value or {}
        self._at = at

    def __contains__(self, key: str) -> bool:
        return self._members.get(key) is not None

    def get(self, key: str, default: object = None) -> object:
        """Return a value of any type."""
        return self._members.get(key, default)

    def items(self) -> Iterable[tuple[str, object]]:
        """Return all keys and values."""
        return self._members.items()

    def inner(self, key: str) -> JsonObject:
        """Return an object; an empty one if it is missing."""
        return JsonObject(self._members.get(key), f"{self._at}.{key}")

    def elements(self, key: str) -> Iterator[tuple[str, object]]:
        """Yield the path and value of each element of a list; none if it is missing."""
        for number, value in enumerate(as_list(self._members.get(key), f"{self._at}.{key}")):
            yield f"{self._at}.{key}[{number}]", value

    def written(self, key: str) -> str | None:
        """Return a string as written, even with unpaired surrogates."""
        value = self._members.get(key)
        if value is not None and not isinstance(value, str):
            raise NotReadError(f"{self._at}.{key} is not a string")
        return value

    def text(self, key: str) -> str | None:
        """Return a string without unpaired surrogates."""
        return _writable(self.written(key))

    def index(self, key: str) -> int:
        """Return a position or a line; -1 if it is not one."""
        value = self._members.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_INDEX:
            return value
        return -1


def as_list(value: object, at: str) -> list[object]:
    """Return a list; an empty one for `null`.

    Raises:
        NotReadError: it is not a list.
    """
    if value is not None and not isinstance(value, list):
        raise NotReadError(f"{at} is not a list")
    return value or []


def as_text(value: object, at: str) -> str | None:
    """Return a string without unpaired surrogates, which could not be encoded.

    Raises:
        NotReadError: it is neither a string nor `null`.
    """
    if value is not None and not isinstance(value, str):
        raise NotReadError(f"{at} is not a string")
    return _writable(value)


def _writable(text: str | None) -> str | None:
    return text if text is None or text.isascii() else _HALVES.sub("\ufffd", text)
