"""What analyses told of a tree, what two of them make together, and the lines of a tree's files.

The words are SARIF's: a *result* is one thing that an analysis tells. Decides nothing: `sarif_file` and
`metrics` read results, `verify` compares them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from patchgate.git.path import RepoPath

Lines = Callable[[RepoPath], Sequence[bytes] | None]
"""Gives the lines of a file of the tree; None: no such file, none: one that has no text to be read."""
MAX_CACHED_BYTES = 16 << 20
# What an object of bytes takes besides its text, with its place in a list.
_OF_A_LINE = 41


class TreeFiles:
    """The files of one tree.

    Args:
        lines_of: gives the lines of a file.
        max_cached: how many bytes of text are kept.
    """

    def __init__(self, lines_of: Lines, max_cached: int = MAX_CACHED_BYTES) -> None:
        self._lines_of = lines_of
        self._free = max_cached
        self._exists: dict[RepoPath, bool] = {}
        self._cached: dict[RepoPath, Sequence[bytes]] = {}

    def has(self, path: RepoPath) -> bool:
        """Tell whether there is such a file."""
        if path not in self._exists:
            self._load(path)
        return self._exists[path]

    def lines(self, path: RepoPath) -> Sequence[bytes]:
        """Give the lines of a file; none where there is no text."""
        found = self._cached.get(path)
        return found if found is not None else self._load(path)

    def _load(self, path: RepoPath) -> Sequence[bytes]:
        lines = self._lines_of(path)
        self._exists[path] = lines is not None
        size = _OF_A_LINE * len(lines or ()) + sum(map(len, lines or ()))
        if lines is not None and size <= self._free:
            self._free -= size
            self._cached[path] = lines
        return lines or ()


class AnalysisOutcome(StrEnum):
    """What became of one analysis."""

    CLEAN = "clean"
    FINDINGS = "findings"
    NOT_EVALUATED = "not-evaluated"


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """One thing that an analysis tells of a tree.

    `paths` are all files that it names, the first is where it is; none where it names no file of the tree.
    `line` counts from 1. `mark` stands for what is there: a digest of the stripped text of that line, or of
    the message where there is no line. `level` is SARIF's: error, warning, note or none. `message` is as the
    tool wrote it, not safe for a terminal.
    """

    analysis: str
    tool: str
    rule: str
    level: str
    message: str
    paths: tuple[RepoPath, ...]
    line: int | None
    mark: str

    @property
    def path(self) -> RepoPath | None:
        """Where it is."""
        return self.paths[0] if self.paths else None


@dataclass(frozen=True, slots=True)
class Measurement:
    """The value of a metric of one symbol; `symbol` may be empty where it is that of the whole file."""

    analysis: str
    path: RepoPath
    symbol: str
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class AnalysisRun:
    """One run of one analysis on one tree.

    `key` is the digest of what it was made of: tree, settings, tool. `digest` is that of what it told, empty
    where it could not be evaluated; then `reason` says why in one sentence and `hint` is the next step.
    `tool` names the program by its file. `suppressed` are results that the tool leaves out by itself.
    """

    analysis: str
    key: str
    digest: str
    outcome: AnalysisOutcome
    tool: str = ""
    reason: str | None = None
    hint: str | None = None
    results: tuple[AnalysisResult, ...] = ()
    suppressed: tuple[AnalysisResult, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeRuns:
    """All analyses of one tree, by name; `analyses` is the digest of their settings and tools together."""

    tree: str
    analyses: str
    runs: Mapping[str, AnalysisRun] = field(default_factory=dict)

    @property
    def is_evaluated(self) -> bool:
        """Tell whether every analysis could be evaluated; true where there is none."""
        return all(run.outcome is not AnalysisOutcome.NOT_EVALUATED for run in self.runs.values())

    @property
    def digest(self) -> str:
        """The digest of everything that was told: `sha256:…`."""
        lines = [f"{name} {self.runs[name].digest}\n" for name in sorted(self.runs)]
        text = "patchgate.runs/1\n" + self.tree + "\n" + "".join(lines)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class WorsenedMetric:
    """A metric of a symbol that is higher than before; `before` None: the symbol is new, and over a limit."""

    path: RepoPath
    symbol: str
    name: str
    before: float | None
    after: float

    @property
    def is_worse(self) -> bool:
        """Tell whether the value is higher than before, or new; what is over a limit may be neither."""
        return self.before is None or self.after > self.before


@dataclass(frozen=True, slots=True)
class ThresholdState:
    """One threshold before and after.

    `before` and `after` are the numbers that were held against `max`: how many findings, or the highest value
    of the metric (None: nobody has that metric). `over` are the very signals that are over it afterwards:
    for findings those that are new, for a metric the symbols above `max`.
    """

    name: str
    metric: str
    max: float
    before: float | None
    after: float | None
    failed_before: bool
    fails_after: bool
    over: tuple[AnalysisResult | WorsenedMetric, ...] = ()

    @property
    def has_worsened(self) -> bool:
        """Tell whether it held before and fails after (A9)."""
        return self.fails_after and not self.failed_before

    @property
    def is_worse(self) -> bool:
        """Tell whether it fails and did not before, or fails by more: another symbol, or a higher value."""
        if not self.fails_after or not self.failed_before:
            return self.fails_after
        if self.before is not None and self.after is not None and self.after > self.before:
            return True
        return any(isinstance(each, WorsenedMetric) and each.is_worse for each in self.over)

    @property
    def is_preexisting(self) -> bool:
        """Tell whether it fails as it did before."""
        return self.fails_after and not self.is_worse


@dataclass(frozen=True, slots=True)
class AnalysisComparison:
    """What is different between the analyses of two trees.

    `new` are results that were not there before, `fixed` those that are gone, `unchanged` counts the rest.
    `suppressed` are the suppressed results that were not suppressed before, as many as there are more of that
    analysis, tool, rule and file.
    """

    new: tuple[AnalysisResult, ...] = ()
    fixed: tuple[AnalysisResult, ...] = ()
    unchanged: int = 0
    worsened: tuple[WorsenedMetric, ...] = ()
    thresholds: tuple[ThresholdState, ...] = ()
    suppressed: tuple[AnalysisResult, ...] = ()
