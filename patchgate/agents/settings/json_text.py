"""Edit a JSON file as text: insert into it and cut from it, and keep every other byte.

Comments and trailing commas are read as in JSONC, which some agents allow. Whatever is not JSON beyond that
is refused. Pure.
"""

from __future__ import annotations

import json
import re

from patchgate.values import dataclass, field

_MOST_DEPTH = 64
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?s:.*?)\*/)*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_INDENT = re.compile(r"[\r\n]([ \t]+)\"")


class JsonTextError(Exception):
    """The text is not JSON; `line` is where, from 1."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__("not JSON")
        self.line = text.count("\n", 0, at) + 1


@dataclass(slots=True)
class JsonNode:
    """A value in the text: where it starts and ends, and what is inside.

    `members` are those of an object, `items` those of an array; both None for other values. `inner_end` is
    the end of the last value or comment inside. `key_start` is where the key of a member starts. `comma` is
    where the comma after the value is, -1 without one.
    """

    start: int
    end: int
    value: object
    members: dict[str, JsonNode] | None = None
    items: list[JsonNode] | None = None
    inner_end: int = 0
    key_start: int = 0
    comma: int = -1

    @property
    def parts(self) -> list[JsonNode]:
        """The values inside, in order."""
        return list(self.members.values()) if self.members is not None else self.items or []


def parse(text: str) -> JsonNode:
    """Parse a whole text.

    Raises:
        JsonTextError: it is not JSON, or has a key twice.
    """
    reader = _NodeReader(text)
    reader.at = 1 if text.startswith("\ufeff") else 0
    reader.skip()
    node = reader.read(0)
    reader.skip()
    if reader.at != len(text):
        raise JsonTextError(text, reader.at)
    return node


class _NodeReader:
    """Reads values from a position."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def skip(self) -> None:
        """Skip white space and comments."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def fail(self) -> JsonTextError:
        return JsonTextError(self.text, self.at)

    def read(self, depth: int) -> JsonNode:
        """Read the value at the position."""
        if depth > _MOST_DEPTH:
            raise self.fail()
        start = self.at
        if self._next() in {"{", "["}:
            return self._container(depth)
        found = (_STRING if self._next() == '"' else _SCALAR).match(self.text, start)
        if found is None:
            raise self.fail()
        self.at = found.end()
        return JsonNode(start, self.at, json.loads(found[0]))

    def _container(self, depth: int) -> JsonNode:
        is_object = self._next() == "{"
        node = JsonNode(self.at, 0, {} if is_object else [], {} if is_object else None)
        if not is_object:
            node.items = []
        close = "}" if is_object else "]"
        self.at += 1
        node.inner_end = self.at
        self._skip_inside(node)
        while self._next() != close:
            if node.parts and node.parts[-1].comma < 0:
                raise self.fail()
            part = self._part(node, depth)
            node.inner_end = part.end
            self._skip_inside(node)
            if self._next() == ",":
                part.comma = self.at
                self.at += 1
                node.inner_end = self.at
                self._skip_inside(node)
        self.at += 1
        node.end = self.at
        node.value = (
            {key: each.value for key, each in node.members.items()}
            if node.members is not None
            else [each.value for each in node.items or []]
        )
        return node

    def _skip_inside(self, node: JsonNode) -> None:
        """Skip white space and comments; a comment counts as something inside."""
        start = self.at
        self.skip()
        skipped = self.text[start : self.at].rstrip(" \t\r\n")
        if skipped.strip(" \t\r\n"):
            node.inner_end = start + len(skipped)

    def _part(self, node: JsonNode, depth: int) -> JsonNode:
        key_start = self.at
        if node.members is None:
            part = self.read(depth + 1)
            assert node.items is not None
            node.items.append(part)
        else:
            found = _STRING.match(self.text, self.at)
            if found is None:
                raise self.fail()
            key = json.loads(found[0])
            self.at = found.end()
            self.skip()
            if self._next() != ":" or key in node.members:
                raise self.fail()
            self.at += 1
            self.skip()
            part = node.members[key] = self.read(depth + 1)
        part.key_start = key_start
        return part


@dataclass(slots=True)
class JsonText:
    """A text that is edited, and which ranges of it were inserted (start and length, in order)."""

    text: str
    inserted: list[tuple[int, int]] = field(default_factory=list)

    def append(self, container: JsonNode, value: object, key: str | None = None) -> None:
        """Add a value as the last one of an array, or of an object under a key."""
        text, last = self.text, container.parts[-1] if container.parts else None
        newline = "\r\n" if "\r\n" in text else "\n"
        unit = self._unit()
        outer = _indent_at(text, container.start)
        inner = _indent_at(text, last.key_start) if last and _is_first(text, last.key_start) else outer + unit
        written = json.dumps(value, indent=unit, ensure_ascii=False)
        said = (f"{json.dumps(key)}: " if key is not None else "") + written
        block = newline + inner + said.replace("\n", newline + inner)
        if "\n" not in text[container.inner_end : container.end - 1]:
            block += newline + outer
        at = container.inner_end
        if last is not None and last.comma < 0:
            self._insert(last.end, ",")
            at += 1
        self._insert(at, block)

    def _unit(self) -> str:
        found = _INDENT.search(self.text)
        return found[1] if found else "  "

    def _insert(self, at: int, words: str) -> None:
        self.text = self.text[:at] + words + self.text[at:]
        size, is_inside = len(words), False
        moved = []
        for start, length in self.inserted:
            if start < at < start + length:
                moved.append((start, length + size))
                is_inside = True
            else:
                moved.append((start + size if at <= start else start, length))
        self.inserted = sorted(moved if is_inside else [*moved, (at, size)])

    def cut(self, container: JsonNode, part: JsonNode) -> None:
        """Cut a value out of its container, with its comma and the white space before it."""
        parts = container.parts
        number = next(at for at, each in enumerate(parts) if each is part)
        start = len(self.text[: part.key_start].rstrip(" \t\r\n"))
        end = part.end if part.comma < 0 else part.comma + 1
        if number > 0 and part.comma < 0:
            comma = parts[number - 1].comma
            self.text = self.text[:comma] + self.text[comma + 1 : start] + self.text[end:]
            return
        if len(parts) == 1 and not self.text[end : container.end - 1].strip():
            # Nothing is left inside, unless there are comments before.
            end = container.end - 1
        self.text = self.text[:start] + self.text[end:]


def _indent_at(text: str, at: int) -> str:
    """Return the white space with which the line of a position begins."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_first(text: str, at: int) -> bool:
    """Whether nothing but white space is before a position on its line."""
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()
