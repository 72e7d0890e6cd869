"""Run the analyses of a tree, each in its own scratch tree, or use stored runs.

A run is stored in a sealed file; its key is a digest of its inputs (tree, settings, program). If the file is
damaged, foreign or missing, the analysis runs again. An analysis that wrote to tracked files has analysed
something else: it is not evaluated, and its run is not stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchgate.commands.analysis import run_analysis
from patchgate.commands.analysis_results import (
    AnalysisOutcome,
    AnalysisResult,
    AnalysisRun,
    Measurement,
    TreeRuns,
)
from patchgate.commands.environment import shared_environment, validate_environment
from patchgate.commands.programs import tool_identity
from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.policy.command import analyses_digest, canonical_text
from patchgate.policy.command_files import matching_files, needs_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.run_settings import EnvironmentSettings
from patchgate.policy.sealed_file import SealedFile
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.ledger.masking import Masks

RUN_FORM = "patchgate.analysis-run/1"
MOST_ENTRIES = 400
MOST_BYTES = 512 << 20
_MOST_ENTRY = 192 << 20
_KEY = re.compile(r"[0-9a-f]{64}")
# The mtime of a file is the time of its last use; it is not updated on every use.
_SELDOM = 3600.0


class AnalysisStore:
    """The stored runs of a repository, for all its worktrees; `now` is in seconds."""

    def __init__(self, common_dir: str, now: float) -> None:
        self._folder = os.path.join(common_dir, "patchgate", "analyses")
        self._now = now

    def find(self, key: str) -> AnalysisRun | None:
        """Return the run of a key; None if there is no valid one."""
        kept = self._file(key).load()
        if not kept:
            return None
        self._use(key)
        return _run_of(key, kept)

    def keep(self, run: AnalysisRun) -> AnalysisRun:
        """Store a run, and return it in canonical form, as `find` returns it.

        A run that could not be evaluated is returned unchanged and not stored.
        """
        if run.outcome is AnalysisOutcome.NOT_EVALUATED:
            return run
        body = _body(run)
        self._file(run.key).store(body.encode("ascii"))
        self._use(run.key)
        self._tidy()
        return _run_of(run.key, json.loads(body))

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, key)

    def _file(self, key: str) -> SealedFile:
        # The key is part of the seal: a renamed file is ignored.
        return SealedFile(self._path(key), f"{RUN_FORM} {key}", _MOST_ENTRY)

    def _use(self, key: str) -> None:
        with contextlib.suppress(OSError):
            path = self._path(key)
            if abs(self._now - os.stat(path).st_mtime) > _SELDOM:
                os.utime(path, (self._now, self._now))

    def _tidy(self) -> None:
        """Remove the least recently used entries if there are too many."""
        found: list[tuple[float, int, str]] = []
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                if _KEY.fullmatch(name):
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


def canonical_run(run: AnalysisRun) -> AnalysisRun:
    """Return a run in canonical form, with its digest, without storing it; see `AnalysisStore.keep`."""
    return run if run.outcome is AnalysisOutcome.NOT_EVALUATED else _run_of(run.key, json.loads(_body(run)))


def _body(run: AnalysisRun) -> str:
    output = json.dumps(_output(run), separators=(",", ":"), allow_nan=False)
    digest = "sha256:" + hashlib.sha256(output.encode("ascii")).hexdigest()
    about = {"analysis": run.analysis, "digest": digest, "tool": run.tool, "warnings": list(run.warnings)}
    return json.dumps({"about": about}, separators=(",", ":"))[:-1] + ',"told":' + output + "}"


def _ordered(run: AnalysisRun) -> AnalysisRun:
    """Sort the output of a run, by location and then by content: a tool may use any order."""
    return replace(
        run,
        results=tuple(sorted(run.results, key=_order)),
        suppressed=tuple(sorted(run.suppressed, key=_order)),
        measurements=tuple(
            sorted(run.measurements, key=lambda each: (each.path.raw, each.symbol, each.name, each.value))
        ),
    )


def _order(each: AnalysisResult) -> tuple[object, ...]:
    paths = tuple(path.raw for path in each.paths)
    return paths, each.line or 0, each.rule, each.mark, each.message, each.level, each.tool


class _Texts:
    """The texts of a run, each once, by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def path(self, path: RepoPath) -> int:
        return self.number(path.raw.decode("utf-8", "surrogateescape"))


def _output(run: AnalysisRun) -> dict[str, Any]:
    """Return the output of a run as JSON values, without where and when it ran."""
    ordered = _ordered(run)
    texts = _Texts()
    output = {
        "outcome": run.outcome.value,
        "results": _columns(ordered.results, texts),
        "suppressed": _columns(ordered.suppressed, texts),
        "measurements": [
            [texts.path(each.path), texts.number(each.symbol), texts.number(each.name), float(each.value)]
            for each in ordered.measurements
        ],
    }
    return {**output, "texts": list(texts.numbers)}


def _columns(results: Sequence[AnalysisResult], texts: _Texts) -> dict[str, Any]:
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


def _run_of(key: str, kept: dict[str, Any]) -> AnalysisRun:
    about, output = kept["about"], kept["told"]
    name, texts = about["analysis"], output["texts"]
    return AnalysisRun(
        name,
        key,
        about["digest"],
        AnalysisOutcome(output["outcome"]),
        about["tool"],
        results=tuple(_results(name, output["results"], texts)),
        suppressed=tuple(_results(name, output["suppressed"], texts)),
        measurements=tuple(
            Measurement(name, _path(texts[path]), texts[symbol], texts[metric], value)
            for path, symbol, metric, value in output["measurements"]
        ),
        warnings=tuple(about["warnings"]),
    )


def _results(analysis: str, columns: dict[str, Any], texts: Sequence[str]) -> Iterator[AnalysisResult]:
    # Share one tuple of paths per location: a hundred thousand tuples take a tenth of a second.
    places = [tuple(_path(texts[number]) for number in numbers) for numbers in columns["places"]]
    names = ("tool", "rule", "level", "message", "at", "line", "mark")
    for tool, rule, level, message, at, line, mark in zip(*map(columns.get, names), strict=True):
        yield AnalysisResult(
            analysis, texts[tool], texts[rule], texts[level], texts[message], places[at], line, mark
        )


def _path(text: str) -> RepoPath:
    return RepoPath(text.encode("utf-8", "surrogateescape"))


FORM = "patchgate.analysis-key/1"
_NAMED = 5
_PATIENCE = 300.0
_MUST_NOT_WRITE = "make it read-only: remove options that fix or format, or let it write elsewhere"


@dataclass(frozen=True, slots=True)
class AnalysisEnvironment:
    """What an analysis needs from outside: variables, the folder for caches, a progress callback, the time.

    `report_progress` is called about once a second with what runs (or with what it waits for) and for how
    many seconds; `now` is in seconds.
    """

    environ: Mapping[str, str]
    cache: str
    report_progress: Callable[[str, float], None]
    now: float


@dataclass(frozen=True, slots=True)
class _PlannedRun:
    """One analysis of one tree; without its program `tool` is None, and there is no key."""

    name: str
    settings: CommandSettings
    tool: str | None
    key: str


class AnalysisRunner:
    """Runs analyses on trees, each in its own scratch tree, or uses stored runs.

    Args:
        objects: reads through `store`.
        store: has the objects of the trees that the repository lacks.
        analyses: the analyses of one policy.
        shared: `[environment]` of that policy; it is checked before the first analysis runs.
    """

    def __init__(
        self,
        objects: Objects,
        store: PrivateStore,
        analyses: Mapping[str, CommandSettings],
        environment: AnalysisEnvironment,
        shared: EnvironmentSettings | None = None,
    ) -> None:
        self._objects = objects
        self._store = store
        self._analyses = analyses
        self._shared = shared or EnvironmentSettings()
        self._root = objects.repository.work_tree
        self._caller = environment.environ
        environ = shared_environment(self._caller, self._shared, self._root)
        self._environment = replace(environment, environ=environ)
        self._is_validated = self._shared == EnvironmentSettings()
        self._kept = AnalysisStore(objects.repository.common_dir, environment.now)

    def runs(self, tree: str, commit: str | None = None) -> TreeRuns:
        """Return the runs on a tree; analyses without a stored run are run and stored.

        Args:
            commit: the commit of HEAD for an analysis that runs git.

        Raises:
            UndecidedError: a scratch tree cannot be made, or the environment is not complete.
        """
        wanted = self._wanted(tree)
        runs = {each.name: self._known(each) or self._run(tree, each, commit) for each in wanted}
        return TreeRuns(tree, self._digest(wanted), runs)

    def twice(self, tree: str, commit: str | None = None) -> tuple[TreeRuns, TreeRuns]:
        """Run each analysis of a tree twice, ignoring stored runs; equal runs are stored.

        Raises:
            UndecidedError: a scratch tree cannot be made, or the environment is not complete.
        """
        wanted = self._wanted(tree)
        first: dict[str, AnalysisRun] = {}
        second: dict[str, AnalysisRun] = {}
        for each in wanted:
            for runs in (first, second):
                runs[each.name] = self._run(tree, each, commit, times=2)
            if first[each.name].digest == second[each.name].digest:
                self._kept.keep(second[each.name])
        digest = self._digest(wanted)
        return TreeRuns(tree, digest, first), TreeRuns(tree, digest, second)

    def _wanted(self, tree: str) -> list[_PlannedRun]:
        found = []
        for name, settings in sorted(self._analyses.items()):
            tool = tool_identity(settings, self._environment.environ)
            parts = [FORM, tree, canonical_text(name, settings), tool]
            key = "" if tool is None else hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()
            found.append(_PlannedRun(name, settings, tool, key))
        return found

    def _known(self, wanted: _PlannedRun) -> AnalysisRun | None:
        return self._kept.find(wanted.key) if wanted.key else None

    def _digest(self, wanted: list[_PlannedRun]) -> str:
        """Return the digest of the settings and the tools."""
        parts = [analyses_digest(self._analyses), *([each.name, each.tool] for each in wanted)]
        return "sha256:" + hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()

    def _files(self, settings: CommandSettings, tree: str) -> tuple[RepoPath, ...]:
        """List the files of a tree that an analysis is for, if it asks for them."""
        if not needs_files(settings):
            return ()
        listed = self._objects.repository.output(
            "ls-tree", "-r", "-z", "--full-tree", tree, variables=self._store.variables
        )
        regular = (line.partition(b"\t")[2] for line in listed.split(b"\0") if line.startswith(b"100"))
        return matching_files(settings, map(RepoPath, regular))

    def _run(self, tree: str, wanted: _PlannedRun, commit: str | None, times: int = 1) -> AnalysisRun:
        """Run one analysis in the scratch tree; with `times` > 1 ignore stored runs and store nothing."""
        from patchgate.git.binary_files import line_reader
        from patchgate.git.scratch import whole_tree
        from patchgate.ledger.masking import Masks
        from patchgate.storage.temporary_folder import TemporaryFolder

        environment, is_kept = self._environment, times == 1 and bool(wanted.key)
        if not self._is_validated:
            validate_environment(self._caller, self._shared, self._root)
            self._is_validated = True
        making = whole_tree(
            self._objects.repository,
            self._store,
            tree,
            cache=environment.cache,
            commit=commit,
            patience_seconds=_PATIENCE + times * sum(each.timeout for each in self._analyses.values()),
            pause=_reporting_pause(environment.report_progress),
        )
        with TemporaryFolder() as beside, making as scratch:
            # The previous user of the scratch tree may have run the same analysis.
            if is_kept and (known := self._known(wanted)) is not None:
                return known
            masks = Masks([environment.environ, wanted.settings.env])
            folder = os.path.join(beside.path, "run")
            os.mkdir(folder)
            run = run_analysis(
                wanted.name,
                wanted.settings,
                place=scratch.path,
                environ=environment.environ,
                folder=folder,
                text_of=line_reader(self._objects, tree),
                files=self._files(wanted.settings, tree),
                mask=masks.stream(),
                tick=lambda seconds: environment.report_progress(f"the analysis {wanted.name}", seconds),
            )
            run = replace(_without_secrets(run, masks), key=wanted.key)
            try:
                changed = scratch.changed()
            except UndecidedError as error:
                return _invalidate(
                    run, f"the analysis `{wanted.name}` was stopped: {error.message}", error.hint
                )
            if changed:
                named = ", ".join(path.quoted for path in changed[:_NAMED])
                more = f", and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
                return _invalidate(
                    run, f"the analysis `{wanted.name}` changed {named}{more}", _MUST_NOT_WRITE
                )
        return self._kept.keep(run) if is_kept else canonical_run(run)


def _without_secrets(run: AnalysisRun, masks: Masks) -> AnalysisRun:
    """Mask the messages of a run before it is stored and shown; they are not compared."""
    # Many results have the same message.
    masked: dict[str, str] = {}

    def of(result: AnalysisResult) -> AnalysisResult:
        message = masked.get(result.message)
        if message is None:
            message = masked[result.message] = masks.text(result.message)
        return result if message == result.message else replace(result, message=message)

    return replace(run, results=tuple(map(of, run.results)), suppressed=tuple(map(of, run.suppressed)))


def _reporting_pause(report_progress: Callable[[str, float], None]) -> Callable[[float], None]:
    """Return a sleep function that reports about once a second that it waits for the scratch tree."""
    began = time.monotonic()
    last_report = 0.0

    def pause(seconds: float) -> None:
        nonlocal last_report
        time.sleep(seconds)
        waited = time.monotonic() - began
        if waited - last_report >= 1:
            last_report = waited
            report_progress("waiting for another process that uses the scratch tree", waited)

    return pause


def _invalidate(run: AnalysisRun, reason: str, hint: str | None) -> AnalysisRun:
    """Mark an analysis that wrote to tracked files as not evaluated."""
    if run.outcome is AnalysisOutcome.NOT_EVALUATED:
        return run
    empty = AnalysisRun(run.analysis, run.key, "", AnalysisOutcome.NOT_EVALUATED, run.tool, reason, hint)
    return replace(empty, warnings=run.warnings)
