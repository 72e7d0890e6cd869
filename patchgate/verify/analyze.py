"""What the analyses tell of one tree, and whether they tell the same twice.

Decides when an answer is one: every analysis could be evaluated, and none told other things the second time.
Compares with no other tree; that is `verify`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from patchgate.commands.results import AnalysisRun, Evaluated, Measurement, Result, TreeRuns
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.verify.analyses import Around, runs_of, twice
from patchgate.verify.content import analysis_policy, source_of


@dataclass(frozen=True, slots=True)
class Unstable:
    """An analysis that told other things the second time, of the very same tree.

    `once` are what only one of the two runs told, the first run's first; it may be empty where only the
    outcome was another.
    """

    analysis: str
    once: tuple[Result | Measurement, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was analysed (`staged`, `worktree`, or the revision as it was named), and what was told.

    `again` is what a second run told; None where nobody asked for one.
    """

    what: str
    commit: str | None
    runs: TreeRuns
    again: TreeRuns | None = None

    @property
    def silent(self) -> tuple[AnalysisRun, ...]:
        """The runs that could not be evaluated; of an analysis that ran twice at most one."""
        found: dict[str, AnalysisRun] = {}
        for runs in (self.runs, self.again):
            for name, run in runs.runs.items() if runs is not None else ():
                if run.outcome is Evaluated.NOT_EVALUATED:
                    found.setdefault(name, run)
        return tuple(found[name] for name in sorted(found))

    @property
    def unstable(self) -> tuple[Unstable, ...]:
        """The analyses that told two things; one that could not be evaluated tells nothing."""
        if self.again is None:
            return ()
        silent = {run.analysis for run in self.silent}
        return tuple(
            Unstable(name, _once(run, self.again.runs[name]))
            for name, run in self.runs.runs.items()
            if name not in silent and run.digest != self.again.runs[name].digest
        )

    @property
    def exit_code(self) -> int:
        """0 for an answer, whatever it is; 3 where there is none."""
        return 3 if self.silent or self.unstable else 0


def analyze(repository: Repository, what: str, around: Around, *, check_stable: bool = False) -> Analysis:
    """Take what is known of a tree, or run what is not; with `check_stable` run everything twice.

    The intents of this worktree are held on to meanwhile.

    Raises:
        UsageError: there is no such revision, or the policy names no analysis.
        ConfigError: the policy cannot be used.
        UndecidedError: the tree cannot be read, or a scratch tree cannot be had.
    """
    from patchgate.verify.intent import touching_here

    around = touching_here(repository, around)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        analyses = analysis_policy(repository, objects).config.analyses
        tree, commit = source_of(repository, objects, store, what)
        if check_stable:
            first, second = twice(repository, objects, store, tree, analyses, around, commit=commit)
            return Analysis(what, commit, first, second)
        runs = runs_of(repository, objects, store, tree, analyses, around, commit=commit)
        return Analysis(what, commit, runs)


def _once(first: AnalysisRun, second: AnalysisRun) -> tuple[Result | Measurement, ...]:
    found: list[Result | Measurement] = []
    for one, other in ((first, second), (second, first)):
        left = Counter(_said(one))
        left.subtract(_said(other))
        found += (+left).elements()
    return tuple(found)


def _said(run: AnalysisRun) -> list[Result | Measurement]:
    return [*run.results, *run.suppressed, *run.measurements]
