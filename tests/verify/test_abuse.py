"""Baselines that grow: what growth is, and when it counts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from patchgate.commands.analysis_results import AnalysisComparison, ThresholdState
from patchgate.verify.suppression_abuse import (
    GREENED,
    TRIGGERS,
    WHILE_REGRESSIONS,
    WITH_CODE,
    WITHOUT_INTENT,
    find_triggers,
    has_functional_code,
    has_grown,
)
from tests.verify.analysis_cases import found, path

ENTRIES = {"version": 1, "results": {"a.py": [{"rule": "F401", "line": 3}, {"rule": "E501", "line": 9}]}}


def _raw(value: Any) -> bytes:
    return json.dumps(value).encode()


def _with(rows: list[Any], name: str = "a.py") -> bytes:
    return _raw({"version": 1, "results": {name: rows}})


A, B = {"rule": "F401", "line": 3}, {"rule": "E501", "line": 9}


@pytest.mark.parametrize(
    "after",
    [
        _raw(ENTRIES),
        json.dumps(ENTRIES, indent=4, sort_keys=True).encode() + b"\n\n",
        b"\xef\xbb\xbf" + _raw(ENTRIES),
        _with([B, A]),
        _with([A]),
        _with([]),
        _raw({"version": 1, "results": {}}),
        _raw({}),
        _with([{"rule": "F401", "line": 2}, B]),
        _with([{"rule": "E501", "line": 1}]),
        _raw({"version": 0, "results": {"a.py": [A]}}),
        None,
    ],
    ids=[
        "same", "layout", "byte-order mark", "order", "one less", "none", "no file", "nothing",
        "smaller number", "one less and smaller", "all smaller", "gone",
    ],
)  # fmt: skip
def test_a_baseline_that_lost_entries_or_moved_them_has_not_grown(after: bytes | None) -> None:
    assert not has_grown(_raw(ENTRIES), after)


@pytest.mark.parametrize(
    "after",
    [
        _with([A, B, A]),
        _with([A, B, {}]),
        _with([A, {"rule": "E999", "line": 9}]),
        _with([{"rule": "F401", "line": 4}, B]),
        _with([A, B], "b.py"),
        _raw({**ENTRIES, "extra": None}),
        _raw({**ENTRIES, "extra": []}),
        _raw({**ENTRIES, "version": True}),
        _with([{"rule": "F401", "line": 9}]),
        _with([{"rule": "E501", "line": 3}, {"rule": "F401", "line": 9}]),
        b'{"version": 1, "results": {"a.py": [{"rule": "X"}], "a.py": [{"rule": "F401", "line": 3}]}}',
        b"F401\n",
    ],
    ids=[
        "doubled", "empty entry", "other rule", "larger number", "other file", "null", "empty list",
        "true is not 1", "larger number than its own", "halves swapped", "key twice", "no JSON any more",
    ],
)  # fmt: skip
def test_a_baseline_with_an_entry_that_it_had_not_has_grown(after: bytes) -> None:
    assert has_grown(_raw(ENTRIES), after)


@pytest.mark.parametrize(
    ("before", "after", "has"),
    [
        (b"a\nb\n", b"b\na\n", False),
        (b"a\nb\n", b"a\n\n\n", False),
        (b"a\nb\n", b"  a\r\nb", False),
        (b"a\nb\n", b"a\nb\nb\n", True),
        (b"a\nb\n", b"a\nc\n", True),
        (b"a\xff\n", b"a\xff\nb\xfe\n", True),
        (b"", b"a\n", True),
        (None, b"a\n", True),
        (None, b"\n \n", False),
        (None, b"{}", False),
        (None, b"[]", False),
        (None, b'{"a.py": {}}', True),
        (None, _raw(ENTRIES), True),
        (b"{}", b'{"a.py": 1}', True),
        (b'{"a": 1}\n', b'{"a": 1}\n{"a": 2}\n', True),
        (b'{"a": 2}\n{"a": 1}\n', b'{"a": 1}\n', False),
        (b"5\n", b"7\n", True),
        (b"[NaN]", b"[NaN, NaN]", True),
        (b"[NaN, 1e999]", b"[NaN]", False),
        (b"[" * 100_000, b"[" * 100_000 + b"\n", False),
        (b"[" * 100_000, b"[" * 100_001, True),
    ],
)
def test_lines_and_new_files_grow_by_what_they_hold(before: bytes | None, after: bytes, has: bool) -> None:
    assert has_grown(before, after) is has


def test_entries_with_several_numbers_may_all_get_smaller() -> None:
    before = [{"rule": "X", "line": 9, "column": 5}, {"rule": "X", "line": 5, "column": 9}]
    assert not has_grown(_raw(before), _raw([{"rule": "X", "line": 4, "column": 8}]))
    assert has_grown(_raw(before), _raw([{"rule": "X", "line": 9, "column": 9}]))


ROWS = {"a.py": [["E1", 3], ["E2", 1]]}
FILES = [
    {"file": "a.py", "total": 9, "by": {"E1": 3, "E2": 6}, "lines": [4, 8]},
    {"file": "b.py", "total": 1, "by": {"E1": 1, "E2": 0}, "lines": [5]},
]
DEEP = [{"of": {"name": "E1"}, "n": {"count": 3}}, {"of": {"name": "E2"}, "n": {"count": 1}}]
MIXED = [["E1", {"n": 3}], ["E2", {"n": 1}]]


def _file(number: int, **more: Any) -> bytes:
    return _raw([each | (more if number == at else {}) for at, each in enumerate(FILES)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ROWS, {"a.py": [["E1", 1], ["E2", 3]]}),
        (ROWS, {"a.py": [["E1", 3], ["E2", 2]]}),
        (ROWS, {"a.py": [["E1", 3], ["E3", 1]]}),
        (ROWS, {"a.py": [["E1", 3], [1, "E2"]]}),
        (ROWS, {"a.py": [["E1", 3, 0], ["E2", 1]]}),
        ({"a.py": [3, 30]}, {"a.py": [3, 4]}),
        ({"a.py": [3]}, {"a.py": [3, 3]}),
        ([30], [3]),
        (MIXED, [["E1", {"n": 1}], ["E2", {"n": 3}]]),
        (DEEP, [{"of": {"name": "E1"}, "n": {"count": 1}}, {"of": {"name": "E2"}, "n": {"count": 3}}]),
        ([["E1", [["x", 3]]], ["E2", [["x", 1]]]], [["E1", [["x", 1]]], ["E2", [["x", 3]]]]),
        (FILES, json.loads(_file(1, total=2))),
        (FILES, json.loads(_file(1, by={"E1": 3, "E2": 0}))),
        (FILES, json.loads(_file(1, by={"E1": 0, "E2": 1}))),
        (FILES, json.loads(_file(1, lines=[4]))),
        (FILES, json.loads(_file(1, file="c.py"))),
    ],
    ids=[
        "swapped", "larger", "other word", "other order", "longer row", "other line", "twice", "alone",
        "swapped further in", "swapped in objects", "swapped in lists", "larger beside lists",
        "another file's", "one more for one less", "another file's line", "another file",
    ],
)  # fmt: skip
def test_a_number_belongs_to_what_stands_beside_it(before: Any, after: Any) -> None:
    assert has_grown(_raw(before), _raw(after))
    assert has_grown(_raw({"in": before}), _raw({"in": after}))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ROWS, {"a.py": [["E2", 1], ["E1", 2]]}),
        (ROWS, {"a.py": [["E1", 0]]}),
        (ROWS, {"a.py": []}),
        ({"a.py": [3, 9, 30]}, {"a.py": [30, 3]}),
        (MIXED, [["E2", {"n": 1}], ["E1", {"n": 2}]]),
        (MIXED, [["E2", {}]]),
        (DEEP, [{"of": {"name": "E2"}, "n": {"count": 0}}]),
        ([["a", "b"], ["c"]], [["c"], ["b", "a"]]),
        (FILES, FILES[::-1]),
        (FILES, FILES[1:]),
        (FILES, json.loads(_file(0, total=3, by={"E1": 3}, lines=[8]))),
        (FILES, json.loads(_file(0, by={}, lines=[]))),
    ],
    ids=[
        "order and smaller", "one less and smaller", "none", "fewer lines", "smaller further in", "emptied",
        "smaller in objects", "words in another order", "files in another order", "one file less",
        "less of a file", "nothing of a file",
    ],
)  # fmt: skip
def test_less_of_an_entry_is_no_growth(before: Any, after: Any) -> None:
    assert not has_grown(_raw(before), _raw(after))
    assert not has_grown(_raw({"in": before}), _raw({"in": after}))


_JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-9, 9) | some.sampled_from(["", "a", "F401"]),
    lambda inner: (
        some.lists(inner, max_size=4) | some.dictionaries(some.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=15,
)


@given(some.lists(_JSON, max_size=5))
def test_any_json_is_no_growth_of_itself_and_of_nothing_less(value: list[Any]) -> None:
    whole = _raw({"entries": value})
    assert not has_grown(whole, _raw({"entries": value[::-1]}))
    for index in range(len(value)):
        assert not has_grown(whole, _raw({"entries": value[:index] + value[index + 1 :]}))
    assert has_grown(whole, _raw({"entries": [*value, "new"]}))
    assert has_grown(whole, _raw({"entries": [*value, {"new": 1}]}))


@given(some.none() | some.binary(max_size=200), some.none() | some.binary(max_size=200))
def test_no_bytes_can_crash_it(before: bytes | None, after: bytes | None) -> None:
    assert isinstance(has_grown(before, after), bool)
    assert not has_grown(before, before)


REGRESSED = AnalysisComparison(new=(found("other/b.py"),))
HELD = ThresholdState("all", "findings", 5, 9, 5, failed_before=True, fails_after=False)


@pytest.mark.parametrize(
    ("comparison", "has_intent", "has_code", "expected"),
    [
        (AnalysisComparison(), True, False, ()),
        (REGRESSED, True, False, (WHILE_REGRESSIONS,)),
        (AnalysisComparison(), True, True, (WITH_CODE,)),
        (AnalysisComparison(), False, False, (WITHOUT_INTENT,)),
        (AnalysisComparison(thresholds=(HELD,)), True, False, (GREENED,)),
        (AnalysisComparison(thresholds=(replace(HELD, fails_after=True),)), True, False, ()),
        (AnalysisComparison(thresholds=(replace(HELD, failed_before=False),)), True, False, ()),
        (None, True, False, ()),
        (replace(REGRESSED, thresholds=(HELD,)), False, True, TRIGGERS),
    ],
)
def test_growth_is_suspicious_for_four_reasons(
    comparison: AnalysisComparison | None, has_intent: bool, has_code: bool, expected: tuple[str, ...]
) -> None:
    """A19 and A20: any regression in the whole repository, also an external one, makes it suspicious."""
    known = {"has_intent": has_intent, "has_code": has_code, "comparison": comparison}
    assert find_triggers(has_changed=True, has_grown=True, **known) == expected  # type: ignore[arg-type]
    assert find_triggers(has_changed=False, has_grown=False, **known) == ()  # type: ignore[arg-type]
    # Any change counts while there are regressions; for the other reasons only growth does.
    only = tuple(each for each in expected if each == WHILE_REGRESSIONS)
    assert find_triggers(has_changed=True, has_grown=False, **known) == only  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "is_code"),
    [
        ("src/a.py", True),
        ("Makefile", True),
        ("pyproject.toml", True),
        ("requirements.txt", True),
        ("dev-requirements.txt", True),
        ("requirements-dev.txt", True),
        ("lib/CMakeLists.txt", True),
        ("notes.md/a.c", True),
        ("README", False),
        ("docs/a.MD", False),
        ("a.rst", False),
        ("a.txt", False),
        ("a.adoc", False),
        ("patchgate.toml", False),
        (".patchgate/allowed_signers", False),
        ("ruff-baseline.json", False),
        ("sub/ruff-baseline.json", True),
        (".pre-commit-config.yaml", False),
    ],
)
def test_functional_code_is_all_but_baselines_control_files_and_prose(name: str, is_code: bool) -> None:
    baselines, controls = {path("ruff-baseline.json")}, {path(".pre-commit-config.yaml")}
    assert has_functional_code([path("a.md"), path(name)], baselines, controls) is is_code
