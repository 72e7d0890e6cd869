"""Read the metrics of an analysis: `{"metrics": [{"path", "symbol", "name", "value"}]}`.

The format is ours, so it is checked strictly: paths of files from the root of the tree, names that a
threshold can use, finite numbers. `symbol` may be missing for a value of the whole file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import BinaryIO

from patchgate.commands.analysis_results import Lines, Measurement, TreeFiles
from patchgate.commands.json_stream import JsonStream, NotReadError
from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import printable
from patchgate.policy.validators import FINDINGS, METRIC

MAX_METRICS = 250_000
MAX_SYMBOL = 1000
_MOST_NAMED = 120
_KEYS = frozenset({"path", "symbol", "name", "value"})
_WANTED = 'the command must write {"metrics": [{"path": "a.py", "symbol": "f", "name": "size", "value": 7}]}'
_NAME = re.compile(METRIC)


def read_metrics(stream: BinaryIO, analysis: str, lines_of: Lines) -> tuple[Measurement, ...]:
    """Read the metrics of a document, sorted by path, symbol, name, value.

    Args:
        stream: its bytes.
        analysis: the name of the analysis.
        lines_of: gives the lines of a file of the tree, None if there is no such file.

    Raises:
        NotReadError: it is not such a document; the message names the path in it.
    """
    found = list(_read(JsonStream(stream), analysis, TreeFiles(lines_of, max_cached=0)))
    found.sort(key=lambda each: (each.path.raw, each.symbol, each.name, each.value))
    return tuple(found)


def _read(stream: JsonStream, analysis: str, files: TreeFiles) -> Iterator[Measurement]:
    if stream.kind == "end":
        raise NotReadError("its standard output is empty", _WANTED)
    if stream.kind != "object":
        raise NotReadError("its standard output is not a JSON object", _WANTED)
    is_there = False
    for key in stream.members():
        if key != "metrics":
            raise NotReadError("it has a key other than `metrics`", _WANTED)
        if is_there:
            raise NotReadError("it has `metrics` twice", _WANTED)
        is_there = True
        if stream.kind != "list":
            raise NotReadError("`metrics` is not a list", _WANTED)
        for number in stream.elements():
            if number >= MAX_METRICS:
                raise NotReadError(
                    f"it has more than {MAX_METRICS:,} metrics",
                    "report fewer: only those that a threshold limits",
                )
            measurement = _measurement(stream.value(), f"metrics[{number}]", analysis)
            if not files.has(measurement.path):
                named = printable(measurement.path.raw, _MOST_NAMED)
                raise NotReadError(
                    f"metrics[{number}].path names {named}, which is not a file of the tree",
                    "write paths from the root of the tree, like src/a.py",
                )
            yield measurement
    stream.end()
    if not is_there:
        raise NotReadError("it has no `metrics`", _WANTED)


def _measurement(value: object, at: str, analysis: str) -> Measurement:
    if not isinstance(value, dict) or not value.keys() <= _KEYS:
        raise NotReadError(f"{at} is not an object of path, symbol, name and value", _WANTED)
    path, name, symbol = value.get("path"), value.get("name"), value.get("symbol")
    symbol = "" if symbol is None else symbol
    if not isinstance(path, str) or not _is_text(path) or faults(RepoPath(path.encode())):
        raise NotReadError(
            f"{at}.path is not a plain file path", "write it from the root of the tree, like src/a.py"
        )
    if not isinstance(symbol, str) or len(symbol) > MAX_SYMBOL or not _is_text(symbol):
        raise NotReadError(f"{at}.symbol is not a string of at most {MAX_SYMBOL:,} characters", _WANTED)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.partition(":")[0] == FINDINGS:
        raise NotReadError(f"{at}.name is not a metric name", "write it like complexity or loc.code")
    number = _number(value.get("value"), at)
    return Measurement(
        analysis=analysis, path=RepoPath(path.encode()), symbol=symbol, name=name, value=number
    )


def _number(value: object, at: str) -> float:
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        # An int may be larger than every float.
        number = float(value) if abs(value) < 1 << 1000 else math.inf
    if not math.isfinite(number):
        raise NotReadError(f"{at}.value is not a finite number", "leave out metrics without a value")
    return number


def _is_text(text: str) -> bool:
    """Check whether a string can be written as UTF-8: it has no unpaired surrogates."""
    return text.isascii() or not re.search("[\ud800-\udfff]", text)
