"""How a contract's values are written into tests: as literals and comments, and what is made of them there.

Decides the text of a literal, which is ASCII and laid out as `ruff format` lays it out, and the kinds of
values that JSON cannot say. Whatever a contract holds becomes a literal or a comment, never code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchgate.git.quoting import printable

_MOST_COMMENT = 60
_COLLECTIONS = {"list": "list", "sequence": "list", "tuple": "tuple", "set": "set", "frozenset": "frozenset"}
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Kinds:
    """How values are made of JSON for the types of a contract: collections, bytes, and its own types.

    A kind is read from the outside in: `list[Point]` is list, Point. What JSON says by itself has none.
    """

    def __init__(self, types: Mapping[str, Mapping[str, str]]) -> None:
        self._types = types
        self.used = False

    def of(self, written: str) -> list[str]:
        """Read a type; empty where JSON's own value will do, or where it may be several things."""
        text = written.strip()
        parts = [each.strip() for each in _split(text, "|")]
        if len(parts) > 1:
            some = [each for each in parts if each != "None"]
            return self.of(some[0]) if len(some) == 1 else []
        if text in self._types or text == "bytes":
            return [text]
        outer, bracket, inner = text.partition("[")
        outer = outer.rpartition(".")[2]
        arguments = [each.strip() for each in _split(inner.removesuffix("]"), ",")] if bracket else []
        if outer == "Optional":
            return self.of(arguments[0]) if len(arguments) == 1 else []
        if outer in {"dict", "Dict", "Mapping"}:
            below = self.of(arguments[1]) if len(arguments) == 2 else []
            return ["dict", *below] if below else []
        kind = _COLLECTIONS.get(outer.lower())
        if kind is None:
            return []
        below = self.of(arguments[0]) if arguments and set(arguments[1:]) <= {"..."} else []
        return [] if kind == "list" and not below else [kind, *below]

    def table(self) -> dict[str, dict[str, list[str]]]:
        """List the fields of the contract's types that are made of something."""
        return {
            name: {field: kind for field, text in fields.items() if (kind := self.of(text))}
            for name, fields in self._types.items()
        }


def _split(text: str, separator: str) -> list[str]:
    """Split a type at a separator that stands in no brackets."""
    parts = [""]
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def literal(value: Any, depth: int = 0) -> str:
    """Write a JSON value as a Python literal of ASCII, laid out as `ruff format` lays it out.

    What holds something stands on lines of its own, with a comma at the end, so no formatter joins them.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _number(value)
    if value is None or isinstance(value, bool | int):
        return repr(value)
    opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    if not value:
        return opening + closing
    inside = "    " * (depth + 1)
    if isinstance(value, Mapping):
        items = [f"{_text(str(key))}: {literal(each, depth + 1)}" for key, each in value.items()]
    else:
        items = [literal(each, depth + 1) for each in value]
    lines = "".join(f"{inside}{item},\n" for item in items)
    return f"{opening}\n{lines}{'    ' * depth}{closing}"


def _number(value: float) -> str:
    # JSON's 1e999 is infinite, and so is Python's.
    return repr(value).replace("inf", "1e999").replace("e+", "e")


def _text(value: str) -> str:
    """Write a string in the quotes that a formatter would choose."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + "".join(_character(each, quote) for each in value) + quote


def _character(character: str, quote: str) -> str:
    code = ord(character)
    if character == quote:
        return "\\" + quote
    if character in _SHORT:
        return _SHORT[character]
    if 0x20 <= code < 0x7F:
        return character
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def comment(text: str) -> str:
    """Write foreign text so that it stays within one line of a comment."""
    plain = (
        printable(text, _MOST_COMMENT).replace("\t", " ").encode("ascii", "backslashreplace").decode("ascii")
    )
    return " ".join(plain.split()) or "nothing is said"
