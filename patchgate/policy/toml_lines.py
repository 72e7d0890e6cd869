"""Find the line of each key in a TOML document, and whether it is too deep or too long to parse.

tomllib returns values without positions, so the text is read again to report a mistake. Values and syntax
errors are not handled here. Source: TOML 1.0 (toml.io/en/v1.0.0). Both functions take time linear in the
text: no token is read twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from patchgate.values import dataclass, field

Key: TypeAlias = "tuple[str | int, ...]"

_TOKEN = re.compile(
    r'''
      """(?:[^"\\]++|\\[\s\S]|"(?!""))*(?:"{3,5}|\\?\Z)   # a string of several lines, with escapes
    | \'{3}(?:[^']++|'(?!\''))*(?:'{3,5}|\Z)              # the same without escapes
    | "(?:[^"\\\n]++|\\[^\n])*["\\]?                      # a string, with escapes
    | '[^'\n]*+'?                                          # the same without escapes
    | \#[^\n]*+                                            # a comment
    | [\[\]{}=,.\n]                                        # punctuation
    | [^\s\[\]{}=,.\#"']++                                 # a bare key, or a piece of a number or date
    ''',
    re.VERBOSE,
)
_ENDS_SCALAR = frozenset(",\n]}")


@dataclass(frozen=True, slots=True)
class Excess:
    """The first limit that a document exceeds, and the line (from 1)."""

    line: int
    message: str


@dataclass(slots=True)
class _TomlReader:
    """Walks the tokens of valid TOML once and records the line of each key and list element."""

    tokens: list[tuple[str, int]]
    position: int = 0
    lines: dict[Key, int] = field(default_factory=dict)
    # How many tables each array of tables has so far: `[a.b]` means the last of them.
    counts: dict[Key, int] = field(default_factory=dict)

    def read(self) -> None:
        table: Key = ()
        while self.position < len(self.tokens):
            token, line = self.tokens[self.position]
            if token == "\n":
                self.position += 1
            elif token == "[":
                table = self._header(line)
            else:
                self._pair(table)

    def _header(self, line: int) -> Key:
        """Read `[a.b]` or `[[a.b]]`; return the table of the pairs that follow."""
        self.position += 1
        is_array = self.tokens[self.position][0] == "["
        self.position += is_array
        parts = self._parts("]")
        self.position += is_array
        table: Key = ()
        for depth, part in enumerate(parts, start=1):
            table = (*table, part)
            last = depth == len(parts)
            if last and is_array:
                self.counts[table] = self.counts.get(table, 0) + 1
            if last and not is_array:
                self.lines[table] = line
            self.lines.setdefault(table, line)
            if table in self.counts:
                table = (*table, self.counts[table] - 1)
                self.lines.setdefault(table, line)
        return table

    def _pair(self, table: Key) -> None:
        """Read `a.b = value` within a table."""
        line = self.tokens[self.position][1]
        for part in self._parts("="):
            table = (*table, part)
            self.lines.setdefault(table, line)
        self._value(table)

    def _parts(self, end: str) -> list[str]:
        """Read the parts of a dotted key, and the token that ends it."""
        parts: list[str] = []
        while True:
            token, _ = self.tokens[self.position]
            self.position += 1
            if token == end:
                return parts
            if token != ".":
                parts.append(_unquote(token))

    def _value(self, key: Key) -> None:
        token, _ = self.tokens[self.position]
        self.position += 1
        if token == "[":
            self._list(key)
        elif token == "{":
            while self._next_in("}"):
                self._pair(key)
        elif token[0] not in "\"'":
            while self.position < len(self.tokens) and self.tokens[self.position][0] not in _ENDS_SCALAR:
                self.position += 1

    def _list(self, key: Key) -> None:
        index = 0
        while self._next_in("]"):
            element = (*key, index)
            self.lines[element] = self.tokens[self.position][1]
            self._value(element)
            index += 1

    def _next_in(self, end: str) -> bool:
        """Skip newlines and commas; return whether another element follows, and pass the end if not."""
        while self.tokens[self.position][0] in {"\n", ","}:
            self.position += 1
        if self.tokens[self.position][0] != end:
            return True
        self.position += 1
        return False


def lines(text: str) -> dict[Key, int]:
    """Map every key, table and list element of a TOML document to its line, counted from 1.

    A table without a header (`a` in `[a.b]`) has the line where it is first named. The second
    `[[a]]` is `("a", 1)`, and so is the second element of `a = [x, y]`.

    Args:
        text: a document that tomllib accepts, nested less than 300 deep.
    """
    tokens: list[tuple[str, int]] = []
    line = 1
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0] != "#":
            tokens.append((token, line))
        line += token.count("\n")
    reader = _TomlReader(tokens)
    reader.read()
    return reader.lines


def excess(text: str, depth: int, parts: int, keys: int) -> Excess | None:
    """Find the first place where a text exceeds a limit; None if it exceeds none.

    Args:
        text: any text; invalid TOML is counted as far as it resembles TOML.
        depth: how deep lists and inline tables may be nested.
        parts: how many parts a dotted key may have.
        keys: how many keys and table headers there may be.
    """
    line, level, dots, count = 1, 0, 0, 0
    starts_line = True
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == ".":
            dots += 1
            if dots >= parts:
                return Excess(line, f"a dotted key has more than {parts} parts")
        elif token in {"[", "{"}:
            level += 1
            dots = 0
            count += starts_line
            if level > depth:
                return Excess(line, f"lists and tables are nested more than {depth} deep")
        elif token in {"]", "}"}:
            level = max(level - 1, 0)
        elif token in {"=", ",", "\n"}:
            dots = 0
            count += token == "="
        if count > keys:
            return Excess(line, f"there are more than {keys} keys")
        starts_line = token == "\n" and level == 0
        line += token.count("\n")
    return None


def _unquote(token: str) -> str:
    """Return the text of one part of a key."""
    if token[0] == "'":
        return token[1:-1]
    if token[0] != '"':
        return token
    if "\\" not in token:
        return token[1:-1]
    import tomllib

    return str(tomllib.loads(f"key = {token}")["key"])


def line_of(places: Mapping[Key, int], key: Key) -> int | None:
    """Find the line of a key, or of the nearest enclosing key."""
    enclosing = (key[:length] for length in range(len(key), 0, -1))
    return next((places[part] for part in enclosing if part in places), None)


def locate(raw: bytes, key: Key) -> int | None:
    """Find the line (from 1) of a key or list element, or of the nearest enclosing one.

    Args:
        raw: a file that was parsed.
        key: from the file's root, like `("policy", "deny", 2)`.
    """
    return line_of(lines(raw.decode()), key)
