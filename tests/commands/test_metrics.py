"""Metrics that an analysis tells: read strictly, and refused with the place of what is wrong."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.commands import metrics_file as metrics
from patchgate.commands.analysis_results import Measurement
from patchgate.commands.json_stream import NotReadError
from patchgate.commands.metrics_file import read_metrics
from patchgate.git.path import RepoPath
from patchgate.git.quoting import is_printable
from tests.amount import often


def metric(**more: Any) -> dict[str, Any]:
    return {"path": "src/a.py", "symbol": "f", "name": "complexity", "value": 7} | more


def read(found: Any) -> tuple[Measurement, ...]:
    raw = found if isinstance(found, bytes) else json.dumps(found).encode()
    return read_metrics(io.BytesIO(raw), "radon", lambda path: [])


def told(**more: Any) -> Measurement:
    (found,) = read({"metrics": [metric(**more)]})
    return found


def test_a_metric_has_its_path_symbol_name_and_value() -> None:
    assert told() == Measurement("radon", RepoPath(b"src/a.py"), "f", "complexity", 7.0)
    assert told(path="ä b.py", symbol="Käse.f", name="loc.code", value=-0.5) == Measurement(
        "radon", RepoPath("ä b.py".encode()), "Käse.f", "loc.code", -0.5
    )


def test_a_metric_of_a_whole_file_has_no_symbol() -> None:
    without = metric()
    del without["symbol"]
    assert [each.symbol for each in read({"metrics": [without, metric(symbol=None)]})] == ["", ""]


def test_metrics_come_out_in_one_order_however_they_are_told() -> None:
    several = [
        metric(path=path, symbol=symbol, value=value) for path in "ba" for symbol in "gf" for value in (2, 1)
    ]
    assert read({"metrics": several}) == read({"metrics": several[::-1]})
    assert [each.path.raw for each in read({"metrics": several})] == [b"a"] * 4 + [b"b"] * 4
    assert read({"metrics": []}) == ()


NO_PATHS: list[Any] = [
    *("", "/a", "./a", "a/../b", "../a", "a//b", "a/", ".git/config", "a\nb", "\ud800"),
    *(None, 1, []),
]
NO_SYMBOLS: list[Any] = [1, "\udfff", "x" * 1001, []]
NO_NAMES: list[Any] = ["", "findings", "findings:new", "a b", "9", "x\n", None, "x" * 101]
NO_VALUES: list[Any] = ["7", None, True, [7], 10**400]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (b"", "is empty"),
        (b"complexity: 7", "not a JSON object"),
        ([], "not a JSON object"),
        ({}, "has no `metrics`"),
        ({"metrics": {}}, "`metrics` is not a list"),
        ({"metrics": None}, "`metrics` is not a list"),
        ({"metrics": [], "more": 1}, "a key other than"),
        (b'{"metrics": [], "metrics": []}', "`metrics` twice"),
        (b'{"metrics": []} {}', "expected the end"),
        (b'{"metrics": [', "found the end"),
        ({"metrics": [metric(), 1]}, r"metrics\[1\] is not an object"),
        ({"metrics": [metric(extra=1)]}, r"metrics\[0\] is not an object of"),
        *(({"metrics": [metric(path=path)]}, r"metrics\[0\].path .*plain") for path in NO_PATHS),
        *(({"metrics": [metric(symbol=symbol)]}, r"metrics\[0\].symbol") for symbol in NO_SYMBOLS),
        *(({"metrics": [metric(name=name)]}, r"metrics\[0\].name") for name in NO_NAMES),
        *(
            ({"metrics": [metric(), metric(value=value)]}, r"metrics\[1\].value .*finite")
            for value in NO_VALUES
        ),
        (b'{"metrics": [{"path": "a", "name": "x", "value": 1e999}]}', r"metrics\[0\].value .*finite"),
        (b'{"metrics": [{"path": "a", "name": "x", "value": NaN}]}', "contains NaN"),
    ],
)
def test_what_is_not_strictly_metrics_is_refused_with_its_place(found: Any, said: str) -> None:
    with pytest.raises(NotReadError, match=said) as refused:
        read(found)
    assert all(map(is_printable, refused.value.message))


@pytest.mark.parametrize("wrong", ["a.py", "src/A.PY", "src", "src/a.py/x", "src/�.py"])
def test_a_path_that_is_no_file_of_the_tree_is_refused_with_its_place(wrong: str) -> None:
    files: dict[RepoPath, list[bytes]] = {RepoPath(b"src/a.py"): [b"x"], RepoPath(b"large.bin"): []}

    def read_in_tree(*told: dict[str, Any]) -> tuple[Measurement, ...]:
        return read_metrics(io.BytesIO(json.dumps({"metrics": told}).encode()), "radon", files.get)

    assert len(read_in_tree(metric(), metric(path="large.bin"))) == 2
    with pytest.raises(NotReadError) as refused:
        read_in_tree(metric(), metric(path=wrong))
    assert "metrics[1].path " in refused.value.message
    assert wrong in re.split("[ ,]", refused.value.message)
    assert refused.value.hint


def test_a_file_is_looked_for_once_however_many_metrics_name_it() -> None:
    asked: list[bytes] = []

    def lines(path: RepoPath) -> list[bytes]:
        asked.append(path.raw)
        return [b"x"]

    told = {"metrics": [metric(symbol=str(number)) for number in range(9)]}
    assert len(read_metrics(io.BytesIO(json.dumps(told).encode()), "radon", lines)) == 9
    assert asked == [b"src/a.py"]


def test_how_many_are_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_METRICS", 2)
    assert len(read({"metrics": [metric()] * 2})) == 2
    with pytest.raises(NotReadError, match=r"\b2 metrics"):
        read({"metrics": [metric()] * 3})


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metrics", "path", "symbol", "name", "value"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=often(300), deadline=None)
@given(
    st.binary(max_size=60)
    | ANYTHING.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(st.sampled_from(["path", "symbol", "name", "value"]), ANYTHING).map(
        lambda more: json.dumps({"metrics": [metric(**more)]}).encode()
    )
)
def test_any_bytes_are_read_or_refused_in_words(raw: bytes) -> None:
    try:
        found: tuple[Measurement, ...] = read(raw)
    except NotReadError as error:
        found, said = (), error.message
    else:
        said = ""
    assert all(map(is_printable, said))
    assert all(isinstance(each.value, float) and each.value - each.value == 0 for each in found)
