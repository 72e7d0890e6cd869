"""Decide a verification: whether something got worse, and whether this work caused it.

Decides the status, who caused a signal, which facts are violations, and their order: expired, scope,
unverified, abuse, regressions, thresholds. Only comparable runs are used. Reads nothing: everything is in the
`VerificationInputs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import TypeAlias, TypeVar

from patchgate.commands.analysis_results import (
    AnalysisComparison,
    AnalysisOutcome,
    AnalysisResult,
    ThresholdState,
    TreeRuns,
    WorsenedMetric,
)
from patchgate.errors import DamagedIntentError
from patchgate.git.path import RepoPath
from patchgate.intents.intent import Intent, IntentScope, ScopeCheck, State
from patchgate.policy.settings import Preexisting, Strictness
from patchgate.values import dataclass, replace
from patchgate.verify import verification_reasons as reasons
from patchgate.verify.regressions import is_caused_by
from patchgate.verify.suppression_abuse import WHILE_REGRESSIONS, find_triggers
from patchgate.verify.verification_reasons import VerificationReason
from patchgate.verify.verification_result import (
    BASELINE_ABUSE,
    GATE_FAILURES,
    REGRESSIONS,
    SCOPE_VIOLATION,
    ExternalCommit,
    VerificationResult,
    VerificationStatus,
)

Signal = TypeVar("Signal", AnalysisResult, WorsenedMetric)
IsOwn: TypeAlias = Callable[[AnalysisResult | WorsenedMetric], bool]


def ownership_test(
    scope: IntentScope, dirty: Set[RepoPath] = frozenset(), since: AnalysisComparison | None = None
) -> IsOwn:
    """Return a function that checks whether a signal belongs to a scope; make it once, it caches paths.

    Args:
        scope: what the work declared.
        dirty: files that were changed before the work began and are unchanged since.
        since: the comparison with the tree that the work began on, including these files; None: unknown, and
            then everything in the scope belongs to the work.
    """
    known: dict[RepoPath, bool] = {}
    new = None if since is None else {*since.new, *map(_measured, since.worsened)}

    def is_within(path: RepoPath) -> bool:
        # Thousands of signals are in a few files, and each pattern is tried on each path.
        if path not in known:
            known[path] = scope.covers(path)
        return known[path]

    def is_own(signal: AnalysisResult | WorsenedMetric) -> bool:
        paths = (signal.path,) if isinstance(signal, WorsenedMetric) else signal.paths
        within = [path for path in paths if is_within(path)]
        if not within:
            return not paths
        if new is None or any(path not in dirty for path in within):
            return True
        return (_measured(signal) if isinstance(signal, WorsenedMetric) else signal) in new

    return is_own


def _measured(signal: WorsenedMetric) -> tuple[RepoPath, str, str]:
    """Return what was measured, without the values: they depend on what is compared."""
    return signal.path, signal.symbol, signal.name


def split_by_owner(
    signals: Iterable[Signal], is_own: IsOwn | None
) -> tuple[tuple[Signal, ...], tuple[Signal, ...]]:
    """Split signals into those of the work and external ones; without a scope (None) all are its own (A6)."""
    own: list[Signal] = []
    external: list[Signal] = []
    for signal in signals:
        (own if is_own is None or is_own(signal) else external).append(signal)
    return tuple(own), tuple(external)


@dataclass(frozen=True, slots=True)
class VerificationInputs:
    """Everything that a verification is decided from.

    `comparison` compares `before` and `after`; `same_tree`: the two trees are equal. `faults` say why the
    intent is expired, `unverified` why nothing can be verified, if only the caller knows; the first of
    each is the reason. `changed` are the suppression files that changed, `grown` those that grew, `has_code`:
    functional code changed. `dirty` are the files that were changed before the intent was declared and are
    unchanged since; `since` compares with the tree that it began on including them (None: unknown): what is
    not new there does not belong to the intent. `preexisting`: whether a threshold that fails as before
    counts without an intent. The other fields are passed on.
    """

    before: TreeRuns | None
    after: TreeRuns | None
    comparison: AnalysisComparison | None
    same_tree: bool = False
    intent: Intent | None = None
    faults: tuple[VerificationReason, ...] = ()
    unverified: tuple[VerificationReason, ...] = ()
    scope: ScopeCheck | None = None
    changed: tuple[RepoPath, ...] = ()
    grown: tuple[RepoPath, ...] = ()
    has_code: bool = False
    strictness: Strictness = "strict"
    preexisting: Preexisting = "report"
    external_commits: tuple[ExternalCommit, ...] = ()
    dirty: tuple[RepoPath, ...] = ()
    since: AnalysisComparison | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_queued(self) -> bool:
        """Whether the intent waits for another one."""
        return self.intent is not None and self.intent.state is State.QUEUED


def decide(inputs: VerificationInputs) -> VerificationResult:
    """Decide a verification."""
    problems = tuple(find_problems(inputs))
    facts = _facts(inputs, None if problems else inputs.comparison)
    # Without comparable runs, or without a valid intent, there are no signals and no such violations.
    signals = (REGRESSIONS,) * bool(facts.intent_regressions) + (GATE_FAILURES,) * bool(facts.caused)
    counted = signals if inputs.strictness == "strict" else ()
    breach = (SCOPE_VIOLATION,) if inputs.scope is not None and not inputs.scope.is_clean else ()
    debts = tuple(f"{BASELINE_ABUSE}:{trigger}" for trigger in facts.abuse)
    facts = replace(
        facts,
        violations=(*counted, *breach, *debts),
        reported_only=() if counted else signals,
    )
    status, why = _status(inputs, facts, problems)
    return replace(facts, status=status, reason=why.reason, next_step=why.next_step or None)


def damaged_intent(error: DamagedIntentError) -> VerificationResult:
    """Return the result for a damaged intent: nothing was compared."""
    return VerificationResult(VerificationStatus.EXPIRED, error.message, error.intent, next_step=error.hint)


def find_problems(inputs: VerificationInputs) -> Iterator[VerificationReason]:
    """Yield every reason why nothing can be verified, the deciding one first."""
    if inputs.is_queued:
        yield reasons.QUEUED
    yield from inputs.unverified
    before, after = inputs.before, inputs.after
    for when, runs in (("before", before), ("after", after)):
        if runs is None:
            yield reasons.missing(when)
    for when, runs in (("before", before), ("after", after)):
        if runs is not None:
            for name in sorted(runs.runs):
                if runs.runs[name].outcome is AnalysisOutcome.NOT_EVALUATED:
                    yield reasons.not_evaluated(when, runs.runs[name])
    if before is None or after is None:
        return
    if before.analyses != after.analyses or before.runs.keys() != after.runs.keys():
        yield reasons.OTHER_ANALYSES
    if not inputs.same_tree and _is_one_run(before, after):
        yield reasons.SAME_RUN
    if inputs.comparison is None:
        yield reasons.NOT_COMPARED
        return
    for state in inputs.comparison.thresholds:
        # Unknown: the analysis that measured it may have been disabled.
        if state.before is not None and state.after is None:
            yield reasons.no_longer_measured(state)


def _is_one_run(before: TreeRuns, after: TreeRuns) -> bool:
    """Check whether both sides have the same report; equal findings of two trees are fine."""
    keys = {run.key for run in before.runs.values() if run.key}
    return before.tree == after.tree or any(run.key in keys for run in after.runs.values())


def _facts(inputs: VerificationInputs, compared: AnalysisComparison | None) -> VerificationResult:
    """Gather the facts, without a status; without a valid intent nothing is split by owner (A1)."""
    intent = inputs.intent
    suppressed = compared.suppressed if compared is not None else ()
    abuse = find_triggers(
        has_changed=bool(inputs.changed),
        has_grown=bool(inputs.grown or suppressed),
        has_intent=intent is not None,
        has_code=inputs.has_code,
        comparison=compared,
    )
    facts = VerificationResult(
        VerificationStatus.UNVERIFIED,
        "",
        intent=intent.id if intent is not None else None,
        before=inputs.before,
        after=inputs.after,
        comparison=compared,
        scope=inputs.scope,
        abuse=abuse,
        external_commits=inputs.external_commits,
        dirty=inputs.dirty,
        warnings=inputs.warnings,
        suppression_files=(inputs.changed if WHILE_REGRESSIONS in abuse else ()) or inputs.grown,
        grown=inputs.grown,
    )
    if compared is None:
        return facts
    facts = replace(
        facts,
        gate_worsened=any(state.has_worsened for state in compared.thresholds),
        before_gate=any(state.failed_before for state in compared.thresholds),
        after_gate=any(state.fails_after for state in compared.thresholds),
        warnings=(*inputs.warnings, *map(reasons.never_measured, _unmeasured(compared))),
    )
    return facts if inputs.faults else _with_owners(facts, inputs, compared)


def _with_owners(
    facts: VerificationResult, inputs: VerificationInputs, compared: AnalysisComparison
) -> VerificationResult:
    """Split what got worse by whether the intent's own changes caused it."""
    intent = inputs.intent
    is_own = (
        ownership_test(intent.scope, frozenset(inputs.dirty), inputs.since) if intent is not None else None
    )
    own, external = split_by_owner(compared.new, is_own)
    own_worsened, external_worsened = split_by_owner(compared.worsened, is_own)
    caused = tuple(
        state
        for state in compared.thresholds
        if (_counts(inputs, state) if is_own is None else is_caused_by(state, (*own, *own_worsened)))
    )
    return replace(
        facts,
        intent_regressions=own,
        external_regressions=external,
        intent_worsened=own_worsened,
        external_worsened=external_worsened,
        intent_caused_gate=intent is not None and bool(caused),
        caused=caused,
        external_thresholds=tuple(
            state for state in compared.thresholds if state.is_worse and state not in caused
        ),
        preexisting=tuple(
            state for state in compared.thresholds if state.is_preexisting and state not in caused
        ),
    )


def _counts(inputs: VerificationInputs, state: ThresholdState) -> bool:
    """Check whether a threshold counts without an intent: if it is worse, or the policy refuses all."""
    is_absolute = inputs.preexisting == "refuse" and not inputs.same_tree
    return state.fails_after if is_absolute else state.is_worse


def _unmeasured(compared: AnalysisComparison) -> Iterator[ThresholdState]:
    return (state for state in compared.thresholds if state.after is None)


def _status(
    inputs: VerificationInputs, facts: VerificationResult, problems: tuple[VerificationReason, ...]
) -> tuple[VerificationStatus, VerificationReason]:
    """Choose the status, and the reason by the order of reasons."""
    if inputs.faults:
        return VerificationStatus.EXPIRED, inputs.faults[0]
    if inputs.is_queued:
        return VerificationStatus.UNVERIFIED, reasons.QUEUED
    if inputs.scope is not None and not inputs.scope.is_clean:
        return VerificationStatus.VIOLATED, reasons.out_of_scope(inputs.scope)
    if problems:
        return VerificationStatus.UNVERIFIED, problems[0]
    if facts.abuse:
        return VerificationStatus.VIOLATED, reasons.abused(facts)
    if REGRESSIONS in facts.violations:
        return VerificationStatus.VIOLATED, reasons.regressed(facts)
    if GATE_FAILURES in facts.violations:
        return VerificationStatus.VIOLATED, reasons.crossed(facts)
    if facts.external_regressions or facts.external_thresholds:
        return VerificationStatus.ACCEPTED_WITH_EXTERNAL_CHANGES, reasons.accepted(facts)
    if inputs.same_tree:
        return VerificationStatus.ACCEPTED, reasons.NOTHING_TO_COMPARE
    return VerificationStatus.ACCEPTED, reasons.accepted(facts)
