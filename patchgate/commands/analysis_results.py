"""The values of analyses: results, measurements, runs of a tree, their comparison; the lines of a tree.

The words are those of SARIF: a *result* is one thing that an analysis reports. Values only: `sarif_reader`
and `metrics_file` read results, `verify` compares them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from patchgate.git.path import RepoPath
from patchgate.values import dataclass, field

Lines = Callable[[RepoPath], Sequence[bytes] | None]
"""Returns the lines of a file of the tree; None: no such file; empty: it has no readable text."""
MAX_CACHED_BYTES = 16 << 20
# The size of a bytes object without its text, with its slot in a list.
_OF_A_LINE = 41


class TreeFiles:
    """The files of one tree.

    Args:
        lines_of: gives the lines of a file.
        max_cached: how many bytes of text to cache.
    """

    def __init__(self, lines_of: Lines, max_cached: int = MAX_CACHED_BYTES) -> None:
        self._lines_of = lines_of
        self._free = max_cached
        self._exists: dict[RepoPath, bool] = {}
        self._cached: dict[RepoPath, Sequence[bytes]] = {}

    def has(self, path: RepoPath) -> bool:
        """Check whether there is such a file."""
        if path not in self._exists:
            self._load(path)
        return self._exists[path]

    def lines(self, path: RepoPath) -> Sequence[bytes]:
        """Return the lines of a file; empty if there is no text."""
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
    """The outcome of one analysis."""

    CLEAN = "clean"
    FINDINGS = "findings"
    NOT_EVALUATED = "not-evaluated"


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """One thing that an analysis reports on a tree.

    `paths` are all files that it names, its own file first; empty if it names no file of the tree. `line`
    counts from 1. `mark` identifies its content: a digest of the stripped text of that line, or of the
    message if there is no line. `level` is that of SARIF: error, warning, note or none. `message` is as the
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
        """Its file."""
        return self.paths[0] if self.paths else None


@dataclass(frozen=True, slots=True)
class Measurement:
    """The value of a metric of one symbol; an empty `symbol` means the whole file."""

    analysis: str
    path: RepoPath
    symbol: str
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class AnalysisRun:
    """One run of one analysis on one tree.

    `key` is the digest of its inputs: tree, settings, tool. `digest` is that of its output, empty if it could
    not be evaluated; then `reason` says why in one sentence and `hint` is the next step. `tool` is the file
    of the program. `suppressed` are results that the tool suppressed.
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
        """Whether every analysis could be evaluated; true if there is none."""
        return all(run.outcome is not AnalysisOutcome.NOT_EVALUATED for run in self.runs.values())

    @property
    def digest(self) -> str:
        """The digest of all outputs: `sha256:…`."""
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
        """Whether the value is higher than before, or new; a value over a limit may be neither."""
        return self.before is None or self.after > self.before


@dataclass(frozen=True, slots=True)
class ThresholdState:
    """One threshold before and after.

    `before` and `after` are the numbers that were compared with `max`: the number of findings, or the highest
    value of the metric (None: not measured). `over` are the signals over the limit afterwards: for findings
    the new ones, for a metric the symbols above `max`.
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
        """Whether it passed before and fails after (A9)."""
        return self.fails_after and not self.failed_before

    @property
    def is_worse(self) -> bool:
        """Whether it fails and passed before, or fails by more: another symbol, or a higher value."""
        if not self.fails_after or not self.failed_before:
            return self.fails_after
        if self.before is not None and self.after is not None and self.after > self.before:
            return True
        return any(isinstance(each, WorsenedMetric) and each.is_worse for each in self.over)

    @property
    def is_preexisting(self) -> bool:
        """Whether it fails as it did before."""
        return self.fails_after and not self.is_worse


@dataclass(frozen=True, slots=True)
class AnalysisComparison:
    """The difference between the analyses of two trees.

    `new` are results that did not exist before, `fixed` those that disappeared, `unchanged` counts the rest.
    `suppressed` are the new suppressed results: as many as there are more for an analysis, tool, rule and
    file.
    """

    new: tuple[AnalysisResult, ...] = ()
    fixed: tuple[AnalysisResult, ...] = ()
    unchanged: int = 0
    worsened: tuple[WorsenedMetric, ...] = ()
    thresholds: tuple[ThresholdState, ...] = ()
    suppressed: tuple[AnalysisResult, ...] = ()
