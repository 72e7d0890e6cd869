"""The verb `analyze`: run the analyses on one tree, and check that two runs agree; the context of `verify`.

The analyses are those of the policy before the change (of the trusted ref, of the compared tree, or of HEAD),
never those of the analysed tree: a change cannot choose its own measure. A tree that is not in git is written
to the private store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from patchgate.check.policy_lookup import policy_of_analyses
from patchgate.commands.analysis_results import (
    AnalysisOutcome,
    AnalysisResult,
    AnalysisRun,
    Measurement,
    TreeRuns,
)
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.change_sources import pending_base, read_staged, read_worktree
from patchgate.git.diff import Detail
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.git.trees import resulting_tree
from patchgate.intents.intent import Intent
from patchgate.intents.stored_intents import StoredIntents, current_moment
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.policy.policy import Policy
from patchgate.values import dataclass, replace
from patchgate.verify.analysis_runner import AnalysisEnvironment, AnalysisRunner

STAGED, WORKTREE = "staged", "worktree"
REVISION = "a commit, a branch or a tag"
_ANY = f"{REVISION}, or {STAGED} or {WORKTREE}"
_TO_DECLARE = (
    'add [commands.NAME] with kind = "lint", output = "sarif", on = ["verify"] and command = ["ruff", '
    '"check", "--no-fix", "--output-format", "sarif", "--exit-zero", "."] to patchgate.toml, and commit it'
)


class AnalysedTree(NamedTuple):
    """A tree to analyse, and the commit that HEAD names there (None: an unborn branch)."""

    tree: str
    commit: str | None


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The options of `verify`: without `revision` what is staged, without `intent` that of this worktree.

    `base` is a revision; the comparison is with the merge base.
    """

    revision: str | None = None
    intent: str | None = None
    base: str | None = None


@dataclass(frozen=True, slots=True)
class AnalysisContext:
    """What the steps of `verify` share; `objects` reads through `store`, `policy` has the analyses."""

    objects: Objects
    store: PrivateStore
    policy: Policy
    environment: AnalysisEnvironment
    gate: ScopeGate

    @property
    def repository(self) -> Repository:
        """The repository of the command."""
        return self.objects.repository

    def find_tree(self, what: str, taken: str = _ANY) -> AnalysedTree:
        """Find the tree of `staged`, `worktree` or a revision, as `find_tree` does."""
        return find_tree(self.objects, self.store, what, taken)

    def runs(self, analysed: AnalysedTree) -> TreeRuns:
        """Return the runs of the analyses on a tree.

        Raises:
            UndecidedError: a scratch tree cannot be made.
        """
        config = self.policy.config
        runner = AnalysisRunner(
            self.objects, self.store, config.analyses, self.environment, config.environment
        )
        return runner.runs(*analysed)


@contextmanager
def open_context(
    repository: Repository, environment: AnalysisEnvironment, policy: Policy | None = None
) -> Iterator[AnalysisContext]:
    """Open a repository for analyses.

    Args:
        policy: the policy with the analyses; None: that of `policy_of_analyses`.
    """
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        if policy is None:
            policy, _ = policy_of_analyses(repository, objects)
        yield AnalysisContext(objects, store, policy, environment, ScopeGate(repository))


def keep_intents_alive(
    repository: Repository, intents: Sequence[Intent], environment: AnalysisEnvironment
) -> AnalysisEnvironment:
    """Renew the leases of these intents of this worktree now and with every progress report."""
    stored, now = StoredIntents(repository.common_dir), current_moment()
    names = [each.id for each in intents if each.git_dir == repository.git_dir and not each.is_over(now)]

    def touch() -> None:
        for name in names:
            with suppress(UndecidedError):
                fresh = stored.get(name)
                if fresh is not None:
                    stored.touch(fresh, current_moment())

    def report_progress(what: str, seconds: float) -> None:
        touch()
        environment.report_progress(what, seconds)

    touch()
    return replace(environment, report_progress=report_progress) if names else environment


def find_tree(objects: Objects, store: PrivateStore, what: str, taken: str = _ANY) -> AnalysedTree:
    """Find the tree of `staged`, `worktree` or a revision; new objects are written to the private store.

    Args:
        objects: reads through `store`.
        taken: what the caller accepts, for the hint.

    Raises:
        UsageError: there is no such revision, or no working tree.
        UndecidedError: the index has conflicts, or git failed.
    """
    if what not in {STAGED, WORKTREE}:
        named = tree_named(objects, what)
        if named is None:
            raise UsageError(f"unknown revision {printable(what, 120)}", f"name {taken}")
        return AnalysedTree(*named)
    repository = objects.repository
    if repository.work_tree is None:
        raise UsageError("a bare repository has no index and no working tree", "name a revision")
    base = pending_base(repository, objects)
    reading = (
        read_worktree(repository, objects, base, Detail(), store)
        if what == WORKTREE
        else read_staged(repository, objects, base, Detail())
    )
    # The cost depends on the change only: `git write-tree` would read every folder without a cached tree.
    return AnalysedTree(
        resulting_tree(objects, base.tree, reading.change.files, store.write).tree, base.commit
    )


def analysis_policy(objects: Objects, before: AnalysedTree | None = None) -> Policy:
    """Find the policy whose analyses count: the trusted ref's, else that of `before`, else HEAD's.

    Args:
        before: what a change is compared with. If it declares no analysis, HEAD counts.

    Raises:
        UsageError: it declares no analysis.
        ConfigError: it cannot be used.
        UndecidedError: it cannot be read.
    """
    policy, whose = policy_of_analyses(objects.repository, objects, None if before is None else before.tree)
    if not policy.config.analyses:
        raise UsageError(f"the policy of {printable(whose, 120)} declares no analysis", _TO_DECLARE)
    return policy


@dataclass(frozen=True, slots=True)
class UnstableAnalysis:
    """An analysis that reported something else the second time, for the same tree.

    `differences` are what only one of the two runs reported, the first run's first; it is empty if only the
    outcome differs.
    """

    analysis: str
    differences: tuple[AnalysisResult | Measurement, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was analysed (`staged`, `worktree`, or the revision as given), and the runs.

    `again` is the second run; None if none was requested.
    """

    what: str
    commit: str | None
    runs: TreeRuns
    again: TreeRuns | None = None

    @property
    def not_evaluated(self) -> tuple[AnalysisRun, ...]:
        """The runs that could not be evaluated, at most one for each analysis."""
        found: dict[str, AnalysisRun] = {}
        for runs in (self.runs, self.again):
            for name, run in runs.runs.items() if runs is not None else ():
                if run.outcome is AnalysisOutcome.NOT_EVALUATED:
                    found.setdefault(name, run)
        return tuple(found[name] for name in sorted(found))

    @property
    def unstable(self) -> tuple[UnstableAnalysis, ...]:
        """The evaluated analyses whose two runs differ."""
        if self.again is None:
            return ()
        silent = {run.analysis for run in self.not_evaluated}
        return tuple(
            UnstableAnalysis(name, _differences(run, self.again.runs[name]))
            for name, run in self.runs.runs.items()
            if name not in silent and run.digest != self.again.runs[name].digest
        )

    @property
    def exit_code(self) -> int:
        """0 if the analyses could be evaluated, else 3."""
        return 3 if self.not_evaluated or self.unstable else 0


def analyze(
    repository: Repository, what: str, environment: AnalysisEnvironment, *, check_stable: bool = False
) -> Analysis:
    """Run the analyses on a tree, or use stored runs; with `check_stable` run everything twice.

    The leases of the intents of this worktree are renewed meanwhile.

    Raises:
        UsageError: there is no such revision, or the policy declares no analysis.
        ConfigError: the policy cannot be used.
        UndecidedError: the tree cannot be read, or a scratch tree cannot be made.
    """
    here = ScopeGate(repository).here
    environment = keep_intents_alive(repository, here.active if here else (), environment)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        config = analysis_policy(objects).config
        analysed = find_tree(objects, store, what)
        runner = AnalysisRunner(objects, store, config.analyses, environment, config.environment)
        first, second = runner.twice(*analysed) if check_stable else (runner.runs(*analysed), None)
        return Analysis(what, analysed.commit, first, second)


def _differences(first: AnalysisRun, second: AnalysisRun) -> tuple[AnalysisResult | Measurement, ...]:
    found: list[AnalysisResult | Measurement] = []
    for one, other in ((first, second), (second, first)):
        left = Counter(_signals(one))
        left.subtract(_signals(other))
        found += (+left).elements()
    return tuple(found)


def _signals(run: AnalysisRun) -> list[AnalysisResult | Measurement]:
    return [*run.results, *run.suppressed, *run.measurements]
