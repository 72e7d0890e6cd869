"""Edits from `old_string` to `new_string`, as for Claude Code, Cursor and Gemini CLI, in JSON or in tags.

`old_string` is in the file exactly once, unless `replace_all` asks for every place. With an empty one, or
with `content` instead, the file is new. Calls may be wrapped in what an API puts around them; unknown keys
are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.patches.formats.anchors import find_lines, find_offsets, lines_at, refuse_place
from patchgate.patches.formats.proposal import (
    MAX_CHANGES,
    MAX_INPUT_BYTES,
    WorkingFiles,
    read_fences,
    refuse,
)
from patchgate.patches.formats.search_replace import replace_lines
from patchgate.policy.strict_json import JsonDocument, JsonPath, read_json
from patchgate.values import dataclass

_FORM = 'send {"file_path": "…", "old_string": "…", "new_string": "…"}, or a list of them'
_RULE = "input-invalid"
_PATHS = ("file_path", "path")
_INNER = ("input", "tool_input", "arguments", "parameters", "args")
_AROUND = {"type", "id", "name", "tool", "tool_name", "tool_use_id", "call_id"}
_OPTIONS = {"replace_all", "expected_replacements", "instruction"}
_TAG = re.compile(
    rb'<((?:[a-z]{1,20}:)?parameter) name="(file_path|path|old_string|new_string|replace_all|content)">'
    rb"|<(file_path|path|old_string|new_string|replace_all|content)>"
)
_BEGINS = re.compile(rb"\s*+[{\[]")
_ENTITY = re.compile(rb"&(?:lt|gt|amp|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);")
_CDATA = re.compile(rb"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StringEdit:
    """Replace `old` by `new` in one file, `count` times (None: wherever it is).

    `line` is where the edit begins in the proposal, from 1. Without `old` the file is new. `has_own_lines`:
    both texts are whole lines, with a newline before and after.
    """

    name: bytes
    old: bytes
    new: bytes
    line: int
    count: int | None = 1
    has_own_lines: bool = False


def read_string_edits(text: bytes, files: WorkingFiles) -> None:
    """Read the edits of a text into the files that they change, one after the other."""
    count = 0
    for edit in _edits_of(text):
        count += 1
        if count > MAX_CHANGES:
            hint = "split the change into several proposals"
            raise refuse("patch-too-large", edit.line, f"there are more than {MAX_CHANGES} edits", hint)
        _apply(edit, files)
    if not count:
        raise refuse(_RULE, 1, "there is no edit", _FORM)


def _edits_of(text: bytes) -> Iterator[StringEdit]:
    if _BEGINS.match(text):
        yield from _read_json(text, 0)
        return
    fences = read_fences(text)
    documents = [
        each for each in fences if text[each.content : each.content + 64].lstrip()[:1] in {b"{", b"["}
    ]
    for fence in documents:
        if fence.closing is None:
            raise refuse(
                "patch-truncated", fence.line, "the fence is not closed", "send the whole edit again"
            )
        yield from _read_json(text[fence.content : fence.closing], fence.line)
    if not documents:
        yield from _read_tags(text)


def find_edit_spans(text: bytes) -> list[tuple[int, int]]:
    """Find where the edits of a text are: its JSON, or everything from the first tag to the last."""
    if _BEGINS.match(text):
        return [(0, len(text))]
    found = [
        (each.start, each.end)
        for each in read_fences(text)
        if each.end is not None and _BEGINS.match(text, each.content)
    ]
    first = None if found else _TAG.search(text)
    return found if first is None else [(first.start(), max(text.rfind(b"</"), first.end()))]


def _read_json(raw: bytes, above: int, *, is_inner: bool = False) -> Iterator[StringEdit]:
    """Read one JSON document; `above` is how many lines are above it. `is_inner`: it was in a string."""
    read = read_json(raw, MAX_INPUT_BYTES)
    if not isinstance(read, JsonDocument):
        line = None if read.line is None else above + read.line
        if not raw.rstrip().endswith((b"}", b"]")):
            raise refuse(
                "patch-truncated", line, f"the JSON is not whole: {read.message}", "send it again, whole"
            )
        rule = "encoding-unsupported" if "UTF-8" in read.message or "surrogate" in read.message else _RULE
        raise refuse(rule, line, read.message, read.hint)
    if read.doubled:
        place, line = read.doubled[0]
        message = f"the key `{printable(str(place[-1]), 60)}` occurs twice in one object"
        raise refuse(_RULE, above + line, message, _FORM)
    yield from _CallReader(read, above, is_inner).calls(read.value, ())


@dataclass(frozen=True, slots=True)
class _CallReader:
    """Reads tool calls in a JSON document, at any depth of what is around them."""

    document: JsonDocument
    above: int
    is_inner: bool

    def calls(self, value: Any, place: JsonPath, name: bytes | None = None) -> Iterator[StringEdit]:
        """Read a call, or a list of them; `name` is the file that is named above."""
        if isinstance(value, list):
            for number, each in enumerate(value):
                yield from self.calls(each, (*place, number), name)
            return
        if not isinstance(value, dict):
            raise self._wrong(place, "this is not an edit")
        inner = [key for key in _INNER if key in value]
        if inner and value.keys() <= {*_AROUND, *inner[:1]}:
            yield from self._inner(value[inner[0]], (*place, inner[0]))
            return
        own = [key for key in _PATHS if key in value]
        if len(own) > 1:
            raise self._wrong(place, "the edit names its file twice")
        if own:
            name = self._text(value, own[0], place)
        if "edits" in value:
            self._only(value, {*own, "edits"}, place)
            if not isinstance(value["edits"], list):
                raise self._wrong((*place, "edits"), "`edits` is not a list")
            yield from self.calls(value["edits"], (*place, "edits"), name)
            return
        yield self._edit(value, place, name, own)

    def _inner(self, value: Any, place: JsonPath) -> Iterator[StringEdit]:
        if isinstance(value, str) and not self.is_inner:
            # OpenAI's calls have their arguments as JSON in a string.
            yield from _read_json(value.encode("utf-8"), self._line(place) - 1, is_inner=True)
        else:
            yield from self.calls(value, place)

    def _edit(self, value: dict[str, Any], place: JsonPath, name: bytes | None, own: list[str]) -> StringEdit:
        if name is None:
            raise refuse("path-missing", self._line(place), "the edit names no file", _FORM)
        if "content" in value:
            self._only(value, {*own, "content"}, place)
            return StringEdit(name, b"", self._text(value, "content", place), self._line(place))
        self._only(value, {*own, "old_string", "new_string", *_OPTIONS}, place)
        old, new = (self._text(value, key, place) for key in ("old_string", "new_string"))
        return StringEdit(name, old, new, self._line(place), self._count(value, place))

    def _count(self, value: Mapping[str, Any], place: JsonPath) -> int | None:
        every, expected = value.get("replace_all", False), value.get("expected_replacements", 1)
        if type(every) is not bool:
            raise self._wrong((*place, "replace_all"), "`replace_all` is not true or false")
        if type(expected) is not int or expected < 1:
            raise self._wrong(
                (*place, "expected_replacements"), "`expected_replacements` is not a number from 1"
            )
        if every and "expected_replacements" in value:
            return expected
        return None if every else expected

    def _text(self, value: Mapping[str, Any], key: str, place: JsonPath) -> bytes:
        if key not in value:
            raise self._wrong(place, f"`{key}` is missing")
        text = value[key]
        if not isinstance(text, str):
            raise self._wrong((*place, key), f"`{key}` is not a string")
        return text.encode("utf-8")

    def _only(self, value: Mapping[str, Any], known: set[str], place: JsonPath) -> None:
        unknown = sorted(value.keys() - known)
        if unknown:
            raise self._wrong((*place, unknown[0]), f"an edit has no key `{printable(unknown[0], 60)}`")

    def _line(self, place: JsonPath) -> int:
        return self.above + self.document.line_of(place)

    def _wrong(self, place: JsonPath, message: str) -> Exception:
        return refuse(_RULE, self._line(place), message, _FORM)


def _read_tags(text: bytes) -> Iterator[StringEdit]:
    """Read edits in tags: the name of a file, then for each edit its two texts."""
    name: bytes | None = None
    values: dict[str, bytes] = {}
    at = line = seen = 0
    begun = 1
    while (tag := _TAG.search(text, at)) is not None:
        key = (tag[2] or tag[3]).decode("ascii")
        line, seen = line + text.count(b"\n", seen, tag.start()), tag.start()
        end = text.find(b"</%b>" % (tag[1] or tag[3]), tag.end())
        if end < 0:
            message = f"the tag of `{key}` is not closed, so the edit is not whole"
            raise refuse("patch-truncated", line + 1, message, "send the whole edit again")
        if key in _PATHS or key in values:
            if values:
                yield _tagged(name, values, begun)
            values = {}
        if not values:
            begun = line + 1
        value = _value(text[tag.end() : end], key, line + 1)
        if key in _PATHS:
            name = value.strip()
        else:
            values[key] = value
        at = end
    if values:
        yield _tagged(name, values, begun)


def _value(raw: bytes, key: str, line: int) -> bytes:
    """Read the text of a tag; what could be an escape or the text itself is refused."""
    data = _CDATA.fullmatch(raw)
    if data is not None and b"]]>" not in data[1]:
        return data[1]
    if _TAG.search(raw):
        raise refuse(_RULE, line, f"there is a tag inside `{key}`", _FORM)
    if _ENTITY.search(raw):
        message = f"`{key}` has what may be an escape like &lt; or the text itself"
        raise refuse(_RULE, line, message, "put the text into <![CDATA[…]]>, or send JSON")
    return raw


def _tagged(name: bytes | None, values: Mapping[str, bytes], line: int) -> StringEdit:
    if name is None:
        raise refuse("path-missing", line, "the edit names no file", _FORM)
    if values.keys() == {"content"}:
        return StringEdit(name, b"", values["content"].removeprefix(b"\n"), line)
    old, new = values.get("old_string"), values.get("new_string")
    if old is None or new is None or "content" in values:
        missing = "old_string" if old is None else "new_string"
        raise refuse("patch-truncated", line, f"the edit has no `{missing}`", "send the whole edit again")
    every = values.get("replace_all", b"false").strip().lower()
    if every not in {b"true", b"false"}:
        raise refuse(_RULE, line, "`replace_all` is not true or false", _FORM)
    count = None if every == b"true" else 1
    if not (old.startswith(b"\n") and old.endswith(b"\n") and len(old) > 1):
        return StringEdit(name, old, new, line, count)
    if not (new.startswith(b"\n") and new.endswith(b"\n")) or count is None:
        message = "`old_string` has a newline after its tag, and the edit may mean it or not"
        raise refuse(_RULE, line, message, "write both texts directly between their tags, or send JSON")
    return StringEdit(name, old, new, line, count, has_own_lines=True)


def _apply(edit: StringEdit, files: WorkingFiles) -> None:
    path = files.path_of(edit.name, edit.line)
    is_there = files.exists(path, edit.line)
    content = files.content(path, edit.line) if is_there else b""
    if not edit.old and not content:
        if is_there:
            files.change(path, edit.new)
        else:
            files.add(path, edit.new, edit.line)
        return
    content = files.content(path, edit.line)
    if not edit.old:
        hint = "change the existing file instead, or give the new one another name"
        raise refuse("already-exists", edit.line, f"{path.quoted} already exists", hint, path)
    if edit.old == edit.new:
        raise refuse("missing-hunk", edit.line, "the edit changes nothing", "leave it out", path)
    old, new = files.with_line_ends(path, edit.old, edit.new)
    if edit.has_own_lines:
        _replace_own_lines(path, edit, content, files)
        return
    found = find_offsets(content, old)
    times = content.count(old)
    is_wanted = times == edit.count if edit.count is not None else times > 0
    overlaps = any(below - above < len(old) for above, below in pairwise(found.places))
    if not is_wanted or overlaps:
        lines = tuple(lines_at(content, found.places))
        raise refuse_place(path, content, old.split(b"\n"), lines, edit.line, "`old_string`")
    files.change(path, content.replace(old, new))


def _replace_own_lines(path: RepoPath, edit: StringEdit, content: bytes, files: WorkingFiles) -> None:
    old, new = (text[1:-1].split(b"\n") if len(text) > 1 else [] for text in (edit.old, edit.new))
    found = find_lines(content, old)
    if len(found.places) != 1:
        raise refuse_place(path, content, old, found.places, edit.line, "`old_string`")
    files.change(path, replace_lines(content, found.places[0], old, new))
