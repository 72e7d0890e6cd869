"""A JSON document read one value at a time: the same as read at once, in any pieces, within bounds."""

from __future__ import annotations

import io
import json
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.commands import json_stream
from patchgate.commands.json_stream import MAX_DEPTH, JsonStream, NotReadError
from patchgate.git.quoting import is_printable
from tests.amount import often

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


class Drops(io.BytesIO):
    """A stream that gives a few bytes at a time, whatever it is asked for."""

    def __init__(self, raw: bytes, size: int) -> None:
        super().__init__(raw)
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._size)


def walked(stream: JsonStream) -> object:
    """Read a document member by member, as far down as it goes."""
    if stream.kind == "object":
        return {key: walked(stream) for key in stream.members()}
    if stream.kind == "list":
        return [walked(stream) for _ in stream.elements()]
    return stream.value()


def read(raw: bytes | BinaryIO) -> object:
    stream = JsonStream(io.BytesIO(raw) if isinstance(raw, bytes) else raw)
    found = stream.value()
    stream.end()
    return found


@settings(max_examples=often(300), deadline=None)
@given(VALUES, st.integers(1, 9), st.sampled_from([None, 1]))
def test_in_any_pieces_a_document_is_what_it_is_at_once(value: object, size: int, indent: int | None) -> None:
    raw = json.dumps(value, indent=indent, ensure_ascii=bool(size % 2)).encode()
    assert read(Drops(raw, size)) == value
    stream = JsonStream(Drops(raw, size))
    assert walked(stream) == value
    stream.end()
    stream = JsonStream(Drops(raw, size))
    stream.skip()
    stream.end()


@settings(max_examples=often(500), deadline=None)
@given(
    st.binary(max_size=60)
    | st.text('{}[]",:\\ue0123456789-+.tfn \n', max_size=60).map(str.encode)
    | st.builds(lambda value, cut: json.dumps(value).encode()[:cut], VALUES, st.integers(0, 60)),
    st.integers(1, 9),
)
def test_what_is_read_is_what_python_reads_and_the_rest_is_refused_in_words(raw: bytes, size: int) -> None:
    try:
        expected = [json.loads(raw.decode("utf-8-sig"), parse_constant=lambda _: 1 / 0)]
    except (ValueError, ZeroDivisionError):
        expected = []
    if expected:
        assert read(Drops(raw, size)) == expected[0]
        return
    with pytest.raises(NotReadError) as refused:
        read(Drops(raw, size))
    assert all(map(is_printable, refused.value.message))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "expected a value, found the end"),
        (b"[1,]", "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b'{"a": 1} 2', "expected the end"),
        (b"\n\n[1 2]", "line 3 is not JSON"),
        (b"1" * 5000, "digits"),
        (b"\xff\xfe[]", "not UTF-8"),
        (b'"' + b"a" * 9_000_000 + b'"', " 8,388,608 "),
        (b"[" + b'"a",' * 3_000_000, " 8,388,608 "),
        (b"[" * 100_000, " 64 "),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), " 64 "),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), " 64 "),
    ],
    ids=lambda each: each[:12] if isinstance(each, bytes) else "",
)
def test_what_is_no_json_or_too_much_of_it_is_named(raw: bytes, said: str) -> None:
    with pytest.raises(NotReadError, match=said):
        read(raw)


def test_what_is_as_deep_or_as_long_as_allowed_is_read() -> None:
    assert read(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert read(b"[" + b"[],{}," * 1000 + b"1]")
    assert read(b'"' + b"a" * 8_000_000 + b'"')


def test_a_byte_order_mark_is_none_of_the_document() -> None:
    assert read(b"\xef\xbb\xbf[1]") == [1]


def test_what_is_not_taken_is_skipped_and_has_to_be_json_all_the_same() -> None:
    stream = JsonStream(io.BytesIO(b'{"a": {"b": [[{}, 1]]}, "c": 2, "d": [3]}'))
    assert [(key, stream.value()) for key in stream.members() if key == "c"] == [("c", 2)]
    stream.end()
    with pytest.raises(NotReadError, match="not JSON"):
        list(JsonStream(io.BytesIO(b'{"a": {"b": [[{}, x]]}, "c": 2}')).members())


def test_a_key_that_stands_twice_is_told_twice() -> None:
    stream = JsonStream(io.BytesIO(b'{"a": 1, "a": 2}'))
    assert [(key, stream.value()) for key in stream.members()] == [("a", 1), ("a", 2)]


@pytest.mark.parametrize("raw", [b"[1,2", b"[1", b"[", b"[1,", b"[,]", b"[1,]", b"[1:2]"])
def test_a_list_that_is_walked_through_is_as_strict_as_one_that_is_taken(raw: bytes) -> None:
    with pytest.raises(NotReadError, match="not JSON"):
        walked(JsonStream(io.BytesIO(raw)))


@pytest.mark.parametrize(
    "raw", [b"{", b"{1:2}", b'{"a"}', b'{"a":}', b'{"a":1,}', b'{"a":1', b'{"a":1;"b":2}']
)
def test_an_object_that_is_walked_through_is_as_strict_as_one_that_is_taken(raw: bytes) -> None:
    with pytest.raises(NotReadError, match="not JSON"):
        walked(JsonStream(io.BytesIO(raw)))


def test_a_large_document_of_small_values_costs_a_window_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", 1000)
    stream = JsonStream(io.BytesIO(b"[" + b'{"a": "b"},' * 10_000 + b"1]"))
    longest = 0
    for _ in stream.elements():
        stream.value()
        longest = max(longest, len(stream._text))
    assert longest < 3000
