"""The JSON reader: it agrees with Python's own, remembers lines, and tells every fault with its line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.policy.strict_json import (
    MAX_DEPTH,
    MAX_VALUES,
    JsonDocument,
    JsonFault,
    JsonPath,
    dotted,
    read_json,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def document(text: str) -> JsonDocument:
    read = read_json(text.encode())
    assert isinstance(read, JsonDocument), read
    return read


def fault(raw: bytes | str) -> JsonFault:
    read = read_json(raw if isinstance(raw, bytes) else raw.encode())
    assert isinstance(read, JsonFault), read
    return read


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_what_json_writes_is_read_alike(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    # A NUL may stand in JSON only as an escape, and so it is written.
    read = document(text).value
    assert repr(read) == repr(value)


@given(st.text('{}[],:"\\ \n0123456789.eE+-truefalsn/u\x0bé', max_size=30))
def test_what_json_refuses_is_refused(text: str) -> None:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        expected = json.loads(text, parse_constant=refuse)
    except ValueError:
        told = fault(text)
        assert told.message
        assert told.hint
        assert told.line is None or 1 <= told.line <= text.count("\n") + 1
    else:
        read = read_json(text.encode())
        if isinstance(read, JsonDocument):
            assert read.doubled or repr(read.value) == repr(expected)
        else:
            assert "too large" in read.message or "surrogate" in read.message


@given(st.lists(st.integers(), max_size=6), st.dictionaries(TEXTS, st.integers(), max_size=6))
def test_each_place_has_its_line(numbers: list[int], members: dict[str, int]) -> None:
    text = json.dumps({"a": numbers, "b": members}, indent=1)
    read = document(text)
    lines = text.split("\n")
    for index, number in enumerate(numbers):
        assert lines[read.line_of(("a", index)) - 1].strip(" ,") == str(number)
    for key in members:
        assert lines[read.line_of(("b", key)) - 1].strip().startswith(json.dumps(key))


@pytest.mark.parametrize(
    ("raw", "line", "words"),
    [
        ("", 1, "empty"),
        ("\n \n", 1, "empty"),
        ('{\n "a": 1,\n}', 2, "closing `}`"),
        ("[1,\n2,]", 2, "closing `]`"),
        ('{\n"a" 1}', 2, "expected a colon"),
        ('{"a": 1\n"b": 2}', 2, "expected a comma or `}`"),
        ("{'a': 1}", 1, "double quotes, found `'`"),
        ('{"a":\nNaN}', 2, "found `NaN`"),
        ('{"a": -Infinity}', 1, "found `-Infinity`"),
        ('{"a": 1e999}', 1, "too large"),
        ('{"a": None}', 1, "found `None`"),
        ('{"a": 01}', 1, "found `0`"),
        ('{"a": 1}\n// over', 2, "expected the end"),
        ('{"a": 1}\n}', 2, "end of the file, found `}`"),
        ('{"a": "b\nc"}', 1, "a string is not closed"),
        ('{"a": "\\x41"}', 1, "wrong escape"),
        ('{"a": "\\ud800"}', 1, "half of a surrogate pair"),
        ('{\n"a": [1, 2\n', 2, "ends too early"),
        ('{\n<<<<<<< HEAD\n"a": 1\n=======\n}', 2, "conflict marker"),
        ('{\n"a": 1,\n=======\n"b": 2}', 3, "conflict marker"),
        (b"\xef\xbb\xbf{}", 1, "byte-order mark"),
        (b'{\n"a": "\xff"}', 2, "not UTF-8"),
        (b'{\n"a": "\0"}', 2, "NUL"),
        ("\f{}", 1, "found `\\x0c`"),
        ("[" + "9" * 301 + "]", 1, "digits"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), 1, "nested"),
        ('{"a":' * 100_000, 1, "nested"),
        ("[" + "0," * MAX_VALUES + "0]", 1, "values"),
    ],
)
def test_each_fault_is_told_with_its_line(raw: bytes | str, line: int, words: str) -> None:
    told = fault(raw)
    assert words in told.message
    assert told.line == line
    assert told.hint


def test_what_is_too_large_is_not_read() -> None:
    told = fault(b" " * ((1 << 20) + 1))
    assert told.line is None
    assert told.hint
    assert "1,048,576" in told.message


def test_the_deepest_that_is_allowed_is_read() -> None:
    assert document("[" * MAX_DEPTH + "]" * MAX_DEPTH).line_of((0,) * (MAX_DEPTH - 1)) == 1


def test_doubled_keys_are_told_and_the_first_counts() -> None:
    read = document('{"a": 1,\n"b": {"c": 1,\n"c": [1]},\n"a": {"x": {}}}')
    assert read.value == {"a": 1, "b": {"c": 1}}
    assert read.doubled == ((("b", "c"), 3), (("a",), 4))
    assert read.line_of(("a",)) == 1


def test_a_key_that_is_twice_in_a_value_that_does_not_count_is_left_alone() -> None:
    assert document('{"a": 1, "a": {"b": 1, "b": 2}}').doubled == ((("a",), 1),)


def test_a_terminal_is_never_obeyed() -> None:
    assert "\x1b" not in fault('{"a": \x1b[31m}').message


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ((), ""),
        (("functions", 0, "description"), "functions[0].description"),
        (("inputs", "a b"), 'inputs["a b"]'),
        (("inputs", "a\x1b"), 'inputs["a\\x1b"]'),
    ],
)
def test_places_are_written_for_readers(place: JsonPath, words: str) -> None:
    assert dotted(place) == words
