"""Proposals that are made to hurt: nested, huge, half, or in several formats. All end in a refusal."""

from __future__ import annotations

import json

import pytest

from patchgate.patches.formats import proposal
from patchgate.patches.proposals import FORMATS
from tests.patches.format_world import read

FILES = {"a.txt": b"one\ntwo\n", "big.txt": b"line\n" * 200_000 + b"last\n"}
ENVELOPE = b"*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch\n"
BLOCK = b"a.txt\n<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n"
DIFF = b"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
STRINGS = b'{"file_path": "a.txt", "old_string": "two", "new_string": "2"}'
KINDS = [*FORMATS, "auto", "patch"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n",
        b"\0" * 100,
        ENVELOPE.replace(b"2", b"\0"),
        b"\xff\xfe" + ENVELOPE.decode().encode("utf-16-le"),
        b"\xef\xbb\xbf" + BLOCK,
        b"```\n" * 3,
        b"`" * 100_000,
        b"~" * 100_000 + b"`",
        b"[" * 100_000,
        b'{"input": ' * 5000,
        b"<old_string>" * 1000,
        b"<<<<<<< SEARCH\n" * 1000,
        b"=======\n" * 1000,
        b"*** Begin Patch\n" * 1000,
        b"*** Begin Patch\n" + b"*** Update File: a.txt\n@@\n" * 1000 + b"*** End Patch\n",
        b"*** Begin Patch\n*** Update File: a.txt\n" + b"@@ one\n" * 5000 + b"-two\n+2\n*** End Patch\n",
        b"*** Begin Patch\n" + b"*** Add File: " + b"x" * 5000 + b"\n+x\n*** End Patch\n",
        b"*** Begin Patch\n*** Add File: " + b"x " * 50_000 + b"y\n+x\n*** End Patch\n",
        b'{"file_path": "a.txt", "old_string": "two", "new_string": "\\ud800"}',
        b'{"file_path": "a.txt", "old_string": "", "new_string": ""}',
        b'{"file_path": "../a.txt", "content": "x"}',
        b'{"file_path": "", "content": "x"}',
        b"<path>a.txt</path><old_string>" + b"]]>" * 10_000 + b"</old_string><new_string></new_string>",
    ],
    ids=lambda raw: f"{len(raw)}-{raw[:12]!r}",
)
def test_what_is_no_whole_change_is_refused_in_every_format(kind: str, raw: bytes) -> None:
    assert isinstance(read(raw, kind, FILES, repair=True), list)


@pytest.mark.parametrize("kind", KINDS)
def test_much_prose_is_no_change(kind: str) -> None:
    prose = b"This is what I would do, if I were asked to do it at once. " * 80 + b"\n"
    for times in (1_000, 22_000):
        assert isinstance(read(prose * times, kind, FILES, repair=True), list)


@pytest.mark.parametrize(
    ("one", "other"),
    [(ENVELOPE, BLOCK), (BLOCK, DIFF), (ENVELOPE, DIFF), (ENVELOPE, b"```json\n" + STRINGS + b"\n```\n")],
)
@pytest.mark.parametrize("kind", ["auto", "envelope", "search-replace", "patch"])
def test_a_path_in_two_formats_at_once_is_refused(one: bytes, other: bytes, kind: str) -> None:
    for raw in (one + b"\n" + other, other + b"\n" + one):
        assert isinstance(read(raw, kind, FILES, repair=True), list)


def test_a_change_inside_another_document_is_not_dug_out() -> None:
    """An envelope within a fence within JSON, and JSON within JSON within JSON."""
    within = json.dumps({"patch": (b"```\n" + ENVELOPE + b"```\n").decode()}).encode()
    assert read(within, "auto", FILES) == ["not-a-unified-diff"]
    assert read(within, "envelope", FILES) == ["input-invalid"]
    once = json.dumps({"name": "Edit", "arguments": STRINGS.decode()})
    twice = json.dumps({"name": "Edit", "arguments": once})
    assert read(once.encode(), "auto", FILES) == {**FILES, "a.txt": b"one\n2\n"}
    assert read(twice.encode(), "string-edits", FILES) == ["input-invalid"]


def test_nested_fences_are_read_by_their_length() -> None:
    nested = b"````\ntext\n```diff\n" + DIFF + b"```\n````\n"
    assert read(nested, "patch", FILES, repair=True) == {**FILES, "a.txt": b"one\n2\n"}
    assert isinstance(read(nested.replace(b"````", b"```"), "patch", FILES, repair=True), list)


def test_many_changes_of_a_large_file_end_in_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "_MOST_READ", 20 << 20)
    edits = [{"file_path": "big.txt", "old_string": "last", "new_string": "last"[::-1]}] * 100
    edits[1::2] = [{**each, "old_string": "tsal", "new_string": "last"} for each in edits[1::2]]
    assert read(json.dumps(edits).encode(), "string-edits", FILES) == ["patch-too-large"]
    hunks = b"".join(b"@@\n-last\n+l%d\n" % number for number in range(100))
    raw = b"*** Begin Patch\n*** Update File: big.txt\n" + hunks + b"*** End Patch\n"
    assert read(raw, "envelope", FILES) == ["patch-too-large"]


def test_a_text_that_is_there_very_often_is_ambiguous_at_once() -> None:
    edit = {"file_path": "big.txt", "old_string": "line\n" * 100_000, "new_string": ""}
    assert read(json.dumps(edit).encode(), "string-edits", FILES) == ["hunk-ambiguous"]
    block = b"big.txt\n<<<<<<< SEARCH\n" + b"line\n" * 100_000 + b"=======\n>>>>>>> REPLACE\n"
    assert read(block, "search-replace", FILES) == ["hunk-ambiguous"]


def test_too_many_files_or_changes_are_refused() -> None:
    files = b"".join(b"*** Add File: f%d\n+x\n" % number for number in range(501))
    raw = b"*** Begin Patch\n" + files + b"*** End Patch\n"
    assert read(raw, "envelope", FILES) == ["patch-too-large"]
    edits = [{"file_path": f"f{number}", "content": "x\n"} for number in range(501)]
    assert read(json.dumps(edits).encode(), "string-edits", FILES) == ["patch-too-large"]
