"""What was allowed on this machine: the fast path reads the file as the full check does, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.commands.trusted_commands import allow, allowed_file, is_surely_allowed, read_allowed
from tests.amount import often

TEXTS = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2).map(json.dumps)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("allowed"))


@settings(max_examples=often(500), deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS, st.data())
def test_what_is_surely_allowed_is_allowed(
    folder: str, texts: list[str], other: str, data: st.DataObject
) -> None:
    Path(allowed_file(folder)).unlink(missing_ok=True)
    allow(folder, texts)
    assert all(is_surely_allowed(folder, text) for text in texts)
    assert is_surely_allowed(folder, other) == (other in texts)
    place = Path(allowed_file(folder))
    content = place.read_bytes()
    at = data.draw(st.integers(0, len(content)))
    put = data.draw(st.sampled_from([b"", b'"', b"\\", b"]", b",", b" ", b"\xff", b"\n"]))
    place.write_bytes(content[:at] + put + content[at + data.draw(st.integers(0, 2)) :])
    allowed = read_allowed(folder).values()
    assert all(text in allowed for text in (*texts, other) if is_surely_allowed(folder, text))


def test_without_a_file_nothing_is_allowed(tmp_path: Path) -> None:
    assert not is_surely_allowed(str(tmp_path), "{}")
