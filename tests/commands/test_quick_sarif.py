"""SARIF that the fast path takes for clean, the reader takes for clean, too."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.commands.json_stream import NotReadError
from patchgate.commands.quick_sarif import is_clean_sarif
from patchgate.commands.sarif_reader import read_sarif
from tests.amount import often

RUN: dict[str, Any] = {"tool": {"driver": {"name": "ruff", "rules": []}}, "results": []}
CLEAN: dict[str, Any] = {"$schema": "https://x", "version": "2.1.0", "runs": [RUN]}
VALUES = st.sampled_from([None, [], {}, "2.1.0", "", 0, [{}], [RUN], RUN, [{"level": "error"}], "x" * 70_000])
KEYS = st.sampled_from(
    [
        *("version", "runs", "tool", "results", "driver", "name", "rules", "invocations", "artifacts"),
        *("originalUriBaseIds", "extensions", "globalMessageStrings", "other"),
    ]
)


def is_read_as_clean(output: bytes) -> bool:
    try:
        return read_sarif(io.BytesIO(output), "x", "/tree", lambda path: None) == ((), ())
    except NotReadError:
        return False


def is_taken_for_clean(output: bytes) -> bool:
    try:
        return is_clean_sarif(output)
    except ValueError:
        return False


def changed(document: Any, place: list[int], key: str, value: Any) -> Any:
    """Set or remove a key somewhere in a document."""
    if isinstance(document, list):
        return [changed(each, place, key, value) for each in document]
    if not isinstance(document, dict):
        return document
    if place and document:
        name = list(document)[place[0] % len(document)]
        return {**document, name: changed(document[name], place[1:], key, value)}
    if value == "remove":
        return {name: each for name, each in document.items() if name != key}
    return {**document, key: value}


@settings(max_examples=often(3000), deadline=None)
@given(st.lists(st.integers(0, 5), max_size=3), KEYS, st.one_of(VALUES, st.just("remove")), st.data())
def test_what_is_taken_for_clean_is_read_as_clean(
    place: list[int], key: str, value: Any, data: st.DataObject
) -> None:
    output = json.dumps(changed(CLEAN, place, key, value)).encode()
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(output)))
        output = (
            output[:at]
            + data.draw(st.sampled_from([b"", b" ", b"{", b"\xff", b'"', b","]))
            + output[at + 1 :]
        )
    assert is_read_as_clean(output) or not is_taken_for_clean(output)


def test_a_clean_run_is_taken_for_clean() -> None:
    assert is_clean_sarif(json.dumps(CLEAN, indent=2).encode() + b"\n")


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b'{"version": "2.1.0", "version": "2.1.0", "runs": [1]}',
        json.dumps(CLEAN).encode() + b"{}",
        json.dumps({**CLEAN, "version": "2.0.0"}).encode(),
        json.dumps({**CLEAN, "runs": []}).encode(),
        json.dumps({**CLEAN, "runs": [{**RUN, "results": None}]}).encode(),
        json.dumps({**CLEAN, "more": float("nan")}).encode(),
        b"[" * 100_000,
    ],
)
def test_what_says_anything_else_is_left_to_the_reader(output: bytes) -> None:
    assert not is_taken_for_clean(output)
