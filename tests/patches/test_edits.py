"""Structured edits: what is refused, and the diff that the others become."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchgate.patches.edit_diff import edits_to_diff
from patchgate.patches.edits import Edits, parse_edits
from patchgate.patches.line_ends import adapt_line_ends
from patchgate.patches.patch_parser import SectionKind, print_patch
from patchgate.patches.planning import Fitted, fit
from tests.amount import often
from tests.patches.patch_world import PatchWorld, accepted

FILE = b"".join(b"line %d\n" % number for number in range(1, 21))


def edit(start: Any, end: Any, new_text: Any, path: Any = "src/a.py") -> dict[str, Any]:
    return {"path": path, "start": start, "end": end, "new_text": new_text}


def written(*edits: Any, summary: str = "why") -> bytes:
    return json.dumps({"patch": {"edits": list(edits)}, "summary": summary}).encode()


def good(*edits: Any) -> Edits:
    result = parse_edits(written(*edits))
    assert isinstance(result, Edits), result
    return result


def rules(raw: bytes) -> list[str]:
    result = parse_edits(raw)
    assert not isinstance(result, Edits)
    assert all(fault.message and fault.hint for fault in result)
    return [fault.rule for fault in result]


def made(preimage: bytes, *edits: Any) -> bytes:
    """Turn edits into a diff, and the diff into the new file, through our own parts."""
    raw = edits_to_diff(good(*edits), preimage)
    assert isinstance(raw, bytes), raw
    patch = accepted(raw)
    assert print_patch(patch) == raw
    adapted = adapt_line_ends(patch.sections[0], preimage)
    section = patch.sections[0] if adapted is None else accepted(adapted).sections[0]
    result = fit(section, preimage)
    assert isinstance(result, Fitted), result
    assert result.moved == ()
    return result.result


def refusal(preimage: bytes | None, *edits: Any) -> str:
    result = edits_to_diff(good(*edits), preimage)
    assert not isinstance(result, bytes)
    return result[0].rule


@pytest.mark.parametrize("number", [True, False, 1.0, 1.9, "1", None, [1]], ids=repr)
@pytest.mark.parametrize("field", ["start", "end"])
def test_what_is_no_whole_number_is_refused_as_a_line(field: str, number: Any) -> None:
    """E8."""
    assert rules(written(edit(1, 1, "x\n") | {field: number})) == ["invalid-patch-schema"]


@pytest.mark.parametrize("field", ["start", "end", "new_text"])
def test_a_missing_field_is_refused(field: str) -> None:
    """E8."""
    entry = edit(1, 1, "x\n")
    del entry[field]
    assert rules(written(entry)) == ["invalid-patch-schema"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b"not json",
        b'{"patch": {}}',
        b'{"patch": {"edits": []}}',
        b'{"patch": {"edits": {}}}',
        b'{"patch": {"edits": [1]}}',
        b'{"patch": {"edits": []}, "patch": {"edits": []}}',
        b'{"patch": {"edits": [{"path": "a", "path": "b", "start": 1, "end": 1, "new_text": ""}]}}',
        b'{"patch": {"edits": [{"path": "a", "start": NaN, "end": 1, "new_text": ""}]}}',
        b'{"patch": {"edits": [{"path": "a", "start": 1, "end": 1, "new_text": "", "mode": 1}]}}',
        b'{"patch": {"edits": [{"path": "a", "start": 1, "end": 1, "new_text": ""}]}, "more": 1}',
        b'{"patch": {"edits": [{"path": "a", "start": 1, "end": 1, "new_text": ""}]}, "summary": 1}',
        b'{"patch": {"edits": [{"path": ["a"], "start": 1, "end": 1, "new_text": ""}]}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_what_is_no_edit_is_refused_as_a_value(raw: bytes) -> None:
    """E8, E21."""
    assert rules(raw) == ["invalid-patch-schema"]


def test_a_path_that_is_absent_or_empty_is_refused() -> None:
    """E12."""
    assert rules(written(edit(1, 1, "x\n", path=""))) == ["path-missing"]
    assert rules(written({"start": 1, "end": 1, "new_text": "x\n"})) == ["path-missing"]


def test_edits_of_two_files_are_refused() -> None:
    """E9."""
    assert rules(written(edit(1, 1, "x\n"), edit(1, 1, "x\n", path="b"))) == ["multi-file-diff"]


def test_text_without_a_newline_at_its_end_is_refused() -> None:
    """E10."""
    assert rules(written(edit(1, 1, "x"))) == ["newline-missing"]


@pytest.mark.parametrize(
    ("start", "end"),
    [("0", "0"), ("-1", "1"), ("5", "3"), ("1", "-1"), ("1" * 30, "1" * 30), ("1", "1" * 5000)],
    ids=["zero", "negative", "backwards", "negative-end", "thirty-digits", "five-thousand-digits"],
)
def test_a_range_that_cannot_be_is_refused(start: str, end: str) -> None:
    """E11."""
    raw = f'{{"patch": {{"edits": [{{"path": "a", "start": {start}, "end": {end}, "new_text": "x\\n"}}]}}}}'
    assert rules(raw.encode()) == ["range-invalid"]


@pytest.mark.parametrize(
    "pair", [((1, 3), (3, 4)), ((2, 5), (3, 4)), ((4, 3), (4, 3)), ((4, 6), (5, 4))], ids=repr
)
def test_ranges_that_overlap_are_refused(pair: tuple[tuple[int, int], tuple[int, int]]) -> None:
    """E11."""
    for edits in (pair, pair[::-1]):
        assert rules(written(*(edit(start, end, "x\n") for start, end in edits))) == ["range-invalid"]


def test_a_range_past_the_end_of_the_file_is_refused() -> None:
    """E11."""
    assert refusal(FILE, edit(20, 21, "x\n")) == "range-invalid"
    assert refusal(FILE, edit(22, 21, "x\n")) == "range-invalid"


@pytest.mark.parametrize(
    "raw",
    [b"\xff", b"\xef\xbb\xbf{}", written(edit(1, 1, "\ud800\n")), written(edit(1, 1, "x\n", path="\udc80"))],
)
def test_what_is_not_utf_8_is_refused(raw: bytes) -> None:
    """E15."""
    assert rules(raw) == ["encoding-unsupported"]


def test_a_file_that_is_not_utf_8_is_refused() -> None:
    """E15."""
    assert refusal(b"caf\xe9\n", edit(1, 1, "x\n")) == "encoding-unsupported"
    assert refusal(b"a\0b\n", edit(1, 1, "x\n")) == "binary-payload"


def test_a_file_that_does_not_exist_is_refused_unless_the_edit_makes_it() -> None:
    assert refusal(None, edit(1, 1, "x\n")) == "target-missing"
    assert refusal(None, edit(1, 0, "x\n"), edit(2, 1, "y\n")) == "target-missing"
    raw = edits_to_diff(good(edit(1, 0, "x\ny\n", path="my file")), None)
    assert isinstance(raw, bytes)
    (section,) = accepted(raw).sections
    assert (section.kind, section.path.raw, section.new_mode) == (SectionKind.ADD, b"my file", "100644")
    assert fit(section, b"") == Fitted(b"x\ny\n", fit(section, b"").placements)  # type: ignore[union-attr]


def test_edits_that_change_nothing_are_refused() -> None:
    assert refusal(FILE, edit(3, 3, "line 3\n")) == "missing-hunk"


def test_replacing_deleting_and_inserting_work_together_from_the_bottom_up() -> None:
    result = made(FILE, edit(2, 3, ""), edit(10, 9, "new\n"), edit(18, 18, "x\ny\n"), edit(21, 20, "end\n"))
    lines = FILE.splitlines(keepends=True)
    assert result == b"".join(
        [lines[0], *lines[3:9], b"new\n", *lines[9:17], b"x\n", b"y\n", *lines[18:], b"end\n"]
    )


def test_lines_that_stay_as_they_are_do_not_count_as_changed() -> None:
    raw = edits_to_diff(good(edit(1, 20, FILE.decode().replace("line 10\n", "line ten\n"))), FILE)
    assert isinstance(raw, bytes)
    assert (accepted(raw).added_lines, accepted(raw).removed_lines) == (1, 1)


def test_a_file_can_be_emptied_and_filled() -> None:
    assert made(FILE, edit(1, 20, "")) == b""
    assert made(b"", edit(1, 0, "x\n")) == b"x\n"


def test_appending_to_a_file_without_its_last_newline_gives_it_one() -> None:
    assert made(b"a\nb", edit(3, 2, "c\n")) == b"a\nb\nc\n"
    assert made(b"a\nb", edit(2, 2, "B\n"), edit(3, 2, "c\n")) == b"a\nB\nc\n"
    assert made(b"a\nb", edit(1, 1, "A\n")) == b"A\nb"
    assert made(b"a\nb", edit(2, 2, "b\n")) == b"a\nb\n"


def test_line_ends_of_the_text_follow_the_file() -> None:
    """E20."""
    crlf = FILE.replace(b"\n", b"\r\n")
    for text in ("x\ny\n", "x\r\ny\r\n"):
        assert made(crlf, edit(10, 10, text)) == crlf.replace(b"line 10\r\n", b"x\r\ny\r\n")
        assert made(FILE, edit(10, 10, text)) == FILE.replace(b"line 10\n", b"x\ny\n")


def test_a_strange_name_is_quoted_for_the_parser_to_read_back() -> None:
    raw = edits_to_diff(good(edit(1, 1, "x\n", path='ü\t"q" \\ b/..')), b"a\n")
    assert isinstance(raw, bytes)
    assert accepted(raw).sections[0].path.raw == 'ü\t"q" \\ b/..'.encode()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> PatchWorld:
    return PatchWorld(tmp_path_factory.mktemp("edits"))


_TEXTS = st.lists(st.sampled_from(["a", "b", "", "-- x", "++ y"]), max_size=3).map(
    lambda lines: "".join(line + "\n" for line in lines)
)


@settings(max_examples=often(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), ended=st.booleans())
def test_edits_make_what_replacing_lines_from_the_bottom_up_makes(
    world: PatchWorld, data: st.DataObject, ended: bool
) -> None:
    """And git makes the same of their diff."""
    lines = data.draw(st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=20))
    preimage = b"".join(line + b"\n" for line in lines)[: None if ended or not lines else -1]
    edits: list[dict[str, Any]] = []
    begin = 1
    while begin <= len(lines) + 1 and len(edits) < 4:
        start = data.draw(st.integers(begin, len(lines) + 1))
        end = data.draw(st.integers(start - 1, min(start + 2, len(lines))))
        edits.append(edit(start, end, data.draw(_TEXTS), path="f"))
        begin = end + 2
    wanted = list(lines)
    for each in reversed(edits):
        wanted[each["start"] - 1 : each["end"]] = each["new_text"].encode().split(b"\n")[:-1]
    raw = edits_to_diff(good(*edits), preimage)
    if not isinstance(raw, bytes):
        assert raw[0].rule == "missing-hunk"
        return
    result = made(preimage, *edits)
    assert result.rstrip(b"\n").split(b"\n") == b"\n".join(wanted).rstrip(b"\n").split(b"\n")
    world.put({b"f": ("100644", preimage)})
    assert world.apply(raw)
    assert world.files()[b"f"][1] == result
