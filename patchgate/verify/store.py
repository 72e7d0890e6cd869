"""Keep what analyses told, so that the same analysis of the same tree is never run twice.

Decides the canonical form of a run, which its digest is of, and what is kept how long. An entry is found by
its key, which is everything that the run follows from, and is sealed; what is damaged, foreign or missing is
nothing, and then the analysis runs again. A run that could not be evaluated is never kept.

The form is made for speed: texts stand once, and of results each column is a list.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from patchgate.commands.results import AnalysisRun, Evaluated, Measurement, Result
from patchgate.git.path import RepoPath
from patchgate.policy.sealed_file import SealedFile

FORM = "patchgate.analysis-run/1"
MOST_ENTRIES = 400
MOST_BYTES = 512 << 20
_MOST_ENTRY = 192 << 20
_NAME = re.compile(r"[0-9a-f]{64}")
# When an entry was used last is its file's time; it is not written at every look.
_SELDOM = 3600.0


class AnalysisStore:
    """The runs that are kept of one repository, for all its working trees; `now` is in seconds."""

    def __init__(self, common_dir: str, now: float) -> None:
        self._folder = os.path.join(common_dir, "patchgate", "analyses")
        self._now = now

    def find(self, key: str) -> AnalysisRun | None:
        """Give the run of a key; None where there is none that counts."""
        kept = self._file(key).load()
        if not kept:
            return None
        self._use(key)
        return _run(key, kept)

    def keep(self, run: AnalysisRun) -> AnalysisRun:
        """Keep a run, and give it in its canonical form, as it will be found.

        One that could not be evaluated is given back as it is.
        """
        if run.outcome is Evaluated.NOT_EVALUATED:
            return run
        body = _body(run)
        self._file(run.key).store(body.encode("ascii"))
        self._use(run.key)
        self._tidy()
        return _run(run.key, json.loads(body))

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, key)

    def _file(self, key: str) -> SealedFile:
        # The key is part of the seal: a file under another's name counts for nothing.
        return SealedFile(self._path(key), f"{FORM} {key}", _MOST_ENTRY)

    def _use(self, key: str) -> None:
        with contextlib.suppress(OSError):
            path = self._path(key)
            if abs(self._now - os.stat(path).st_mtime) > _SELDOM:
                os.utime(path, (self._now, self._now))

    def _tidy(self) -> None:
        """Remove the entries that nobody used for the longest time, where there are too many."""
        found: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                if _NAME.fullmatch(name):
                    with contextlib.suppress(FileNotFoundError):
                        about = os.lstat(self._path(name))
                        found.append((about.st_mtime, about.st_size, name))
        found.sort(reverse=True)
        left = MOST_BYTES
        for number, (_, size, name) in enumerate(found):
            left -= size
            if number >= MOST_ENTRIES or (left < 0 and number > 0):
                with contextlib.suppress(OSError):
                    os.unlink(self._path(name))


def settled(run: AnalysisRun) -> AnalysisRun:
    """Give a run in its canonical form, with its digest, and keep nothing; see `AnalysisStore.keep`."""
    return run if run.outcome is Evaluated.NOT_EVALUATED else _run(run.key, json.loads(_body(run)))


def _body(run: AnalysisRun) -> str:
    told = json.dumps(_told(run), separators=(",", ":"), allow_nan=False)
    digest = "sha256:" + hashlib.sha256(told.encode("ascii")).hexdigest()
    about = {"analysis": run.analysis, "digest": digest, "tool": run.tool, "warnings": list(run.warnings)}
    return json.dumps({"about": about}, separators=(",", ":"))[:-1] + ',"told":' + told + "}"


def _ordered(run: AnalysisRun) -> AnalysisRun:
    """Put what a run told in order, by place and then by what it says: a tool may tell it in any."""
    return replace(
        run,
        results=tuple(sorted(run.results, key=_order)),
        suppressed=tuple(sorted(run.suppressed, key=_order)),
        measurements=tuple(
            sorted(run.measurements, key=lambda each: (each.path.raw, each.symbol, each.name, each.value))
        ),
    )


def _order(each: Result) -> tuple[object, ...]:
    paths = tuple(path.raw for path in each.paths)
    return paths, each.line or 0, each.rule, each.mark, each.message, each.level, each.tool


class _Texts:
    """The texts of a run, each once, by their number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def path(self, path: RepoPath) -> int:
        return self.number(path.raw.decode("utf-8", "surrogateescape"))


def _told(run: AnalysisRun) -> dict[str, Any]:
    """Write what a run told as plain JSON, which says nothing of where and when it ran."""
    ordered = _ordered(run)
    texts = _Texts()
    told = {
        "outcome": run.outcome.value,
        "results": _columns(ordered.results, texts),
        "suppressed": _columns(ordered.suppressed, texts),
        "measurements": [
            [texts.path(each.path), texts.number(each.symbol), texts.number(each.name), float(each.value)]
            for each in ordered.measurements
        ],
    }
    return {**told, "texts": list(texts.numbers)}


def _columns(results: Sequence[Result], texts: _Texts) -> dict[str, Any]:
    places: dict[tuple[RepoPath, ...], int] = {}
    at = [places.setdefault(each.paths, len(places)) for each in results]
    return {
        "tool": [texts.number(each.tool) for each in results],
        "rule": [texts.number(each.rule) for each in results],
        "level": [texts.number(each.level) for each in results],
        "message": [texts.number(each.message) for each in results],
        "at": at,
        "line": [each.line for each in results],
        "mark": [each.mark for each in results],
        "places": [[texts.path(path) for path in paths] for paths in places],
    }


def _run(key: str, kept: dict[str, Any]) -> AnalysisRun:
    about, told = kept["about"], kept["told"]
    name, texts = about["analysis"], told["texts"]
    return AnalysisRun(
        name,
        key,
        about["digest"],
        Evaluated(told["outcome"]),
        about["tool"],
        results=tuple(_results(name, told["results"], texts)),
        suppressed=tuple(_results(name, told["suppressed"], texts)),
        measurements=tuple(
            Measurement(name, _path(texts[path]), texts[symbol], texts[metric], value)
            for path, symbol, metric, value in told["measurements"]
        ),
        warnings=tuple(about["warnings"]),
    )


def _results(analysis: str, columns: dict[str, Any], texts: Sequence[str]) -> Iterator[Result]:
    # One tuple of paths for all that are at one place: a hundred thousand of them are a tenth of a second.
    places = [tuple(_path(texts[number]) for number in numbers) for numbers in columns["places"]]
    names = ("tool", "rule", "level", "message", "at", "line", "mark")
    for tool, rule, level, message, at, line, mark in zip(*map(columns.get, names), strict=True):
        yield Result(analysis, texts[tool], texts[rule], texts[level], texts[message], places[at], line, mark)


def _path(text: str) -> RepoPath:
    return RepoPath(text.encode("utf-8", "surrogateescape"))
