"""The intent that a verification is checked against: which one, and whether it is still as declared.

Of several intents in a worktree, it is the owner of the commit (ledger, trailer), else the one whose files
are touched, as in the hooks. The ledger has the declaration and the before-report; the intent file alone
is not trusted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from patchgate.check.pending import pending_change
from patchgate.commands.analysis_results import AnalysisOutcome, TreeRuns
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.intent_commits import changes_of, with_ids
from patchgate.git.pushes import is_ancestor
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.intents.intent import Intent, Moment
from patchgate.intents.intent_commits import intents_of
from patchgate.intents.queue import IntentQueue, require_intent
from patchgate.intents.stored_intents import (
    KIND,
    IntentEvent,
    StoredIntents,
    current_moment,
    declared_digest,
    is_gone,
)
from patchgate.intents.worktree_intents import WorktreeIntents
from patchgate.ledger.ledger import Ledger
from patchgate.policy.command import analyses_digest
from patchgate.policy.policy import Policy
from patchgate.report.wording import SHORT_OID, safe
from patchgate.values import dataclass, replace
from patchgate.verify.analysis_runner import AnalysisEnvironment
from patchgate.verify.analyze import (
    AnalysedTree,
    AnalysisContext,
    VerifyOptions,
    keep_intents_alive,
    open_context,
)
from patchgate.verify.verification_reasons import VerificationReason

_MOST_PATH = 200


def choose_intent(context: AnalysisContext, asked: VerifyOptions, after: AnalysedTree) -> Intent | None:
    """Choose the intent; None if this worktree has none and none was named.

    Raises:
        UsageError: there is no such intent, or it belongs to another worktree.
        UndecidedError: an intent cannot be read.
    """
    if asked.intent is not None:
        intent = require_intent(StoredIntents(context.repository.common_dir), asked.intent)
        if asked.revision is None:
            _require_this_worktree(context, intent)
        return intent
    here = context.gate.here
    if here is None:
        return None
    _require_readable(here)
    if len(here.own) > 1:
        return _choose_among(context, here, asked, after)
    # An expired or queued intent accepts nothing.
    return next(iter((*here.active, *reversed(here.over), *reversed(here.queued))), None)


def _require_this_worktree(context: AnalysisContext, intent: Intent) -> None:
    if intent.git_dir == context.repository.git_dir:
        return
    place = printable(intent.work_tree, _MOST_PATH)
    if is_gone(intent, context.repository):
        raise UsageError(
            f"{intent.id} belongs to the worktree {place}, which no longer exists",
            f"git patchgate intent recover {intent.id} moves it to this worktree",
        )
    shown = shlex.quote(intent.work_tree) if place == intent.work_tree else "WORKTREE"
    raise UsageError(
        f"{intent.id} belongs to the worktree {place}, not to this one",
        f"git -C {shown} patchgate verify, or name a commit",
    )


def _choose_among(
    context: AnalysisContext, here: WorktreeIntents, asked: VerifyOptions, after: AnalysedTree
) -> Intent | None:
    """Choose among several: the owner of the commit, else by the touched files."""
    if asked.revision is None:
        return here.choose_binding_intent(
            pending_change(context.repository, context.objects, context.store).files
        )
    assert after.commit is not None
    owner = intents_of(context.repository, here.own, [after.commit]).get(after.commit)
    named = next((intent for intent in here.own if intent.id == owner), None)
    if named is not None:
        return named
    ((_, change),) = changes_of(context.repository, with_ids(context.repository, [after.commit]))
    return here.choose_binding_intent(change.files)


def predates_intent(context: AnalysisContext, intent: Intent, after: AnalysedTree) -> bool:
    """Check whether a commit is older than the start of an intent."""
    if intent.base is None or after.commit is None or after.commit == intent.base:
        return False
    return is_ancestor(context.repository, after.commit, intent.base)


def describe_unused_intent(asked: VerifyOptions, intent: Intent, after: AnalysedTree) -> str:
    """Describe that a commit from before an intent is verified without it.

    Raises:
        UsageError: this intent was requested.
    """
    said = f"{str(after.commit)[:SHORT_OID]} was committed before {intent.id} began"
    if asked.intent is not None:
        raise UsageError(said, "name a commit of the intent, or remove --intent")
    return f"{said}: it is verified without the intent"


def intent_of_commit(context: AnalysisContext, commit: str) -> Intent | None:
    """Choose the newest active intent of this worktree whose base a commit contains; None if there is none.

    Raises:
        UndecidedError: an intent of this worktree cannot be read.
    """
    here = context.gate.here
    if here is None:
        return None
    _require_readable(here)
    newest = sorted(here.active, key=lambda each: (each.declared.wall, each.id), reverse=True)
    return next(
        (each for each in newest if each.base is None or is_ancestor(context.repository, each.base, commit)),
        None,
    )


def _require_readable(here: WorktreeIntents) -> None:
    if here.fault is not None:
        raise here.fault


@dataclass(frozen=True, slots=True)
class IntentValidity:
    """Why an intent is expired (`faults`), or why it cannot be used (`unverified`)."""

    faults: tuple[VerificationReason, ...] = ()
    unverified: tuple[VerificationReason, ...] = ()


def check_validity(
    repository: Repository, intent: Intent, policy: Policy, now: Moment, before: TreeRuns | None
) -> IntentValidity:
    """Check an intent against the record of its declaration and against the time.

    Args:
        policy: the policy whose analyses count now.
        before: the runs on the tree that it began on.
    """
    ledger = Ledger(repository.common_dir)
    unverified: tuple[VerificationReason, ...] = ()
    if analyses_digest(policy.config.analyses) != intent.analyses:
        unverified = (
            VerificationReason(
                f"the analyses of the policy have changed since {intent.id} was declared",
                _redeclare(intent),
            ),
        )
        # Other analyses say nothing about its before-report.
        before = None
    return IntentValidity(tuple(_faults(ledger, intent, now, before)), unverified)


def _faults(
    ledger: Ledger, intent: Intent, now: Moment, before: TreeRuns | None
) -> Iterator[VerificationReason]:
    known = {digest for digest in (intent.before, _recorded_digest(ledger, intent)) if digest is not None}
    if len(known) > 1:
        yield VerificationReason(
            f"the before-report of {intent.id} differs from the one in the ledger", _redeclare(intent)
        )
    elif known and before is not None and before.is_evaluated and before.digest not in known:
        # Also if a tool was replaced and now reports something else.
        yield VerificationReason(
            f"the before-report of {intent.id} has changed since it was captured", _redeclare(intent)
        )
    recorded = declared_digest(ledger, intent.id)
    if recorded is None:
        yield VerificationReason(
            f"the ledger has no record that {intent.id} was declared", _redeclare(intent)
        )
    elif recorded != intent.digest:
        yield VerificationReason(
            f"{intent.id} was changed after its declaration: the ledger has another digest",
            _redeclare(intent),
        )
    if intent.is_over(now):
        yield VerificationReason(
            f"{intent.id} has expired",
            f"git patchgate intent recover {intent.id} continues it; "
            f"git patchgate intent clear {intent.id} ends it",
        )


def _redeclare(intent: Intent) -> str:
    return f"git patchgate intent clear {intent.id}, then declare it again"


def _recorded_digest(ledger: Ledger, intent: Intent) -> str | None:
    """Return the digest of the newest before-report in the ledger for this declaration."""
    found = None
    for event in ledger.find_events({KIND}, intent.id):
        about = event.about
        if (about.get("id"), about.get("action"), about.get("digest")) == (
            intent.id,
            IntentEvent.CAPTURED,
            intent.digest,
        ):
            before = about.get("before")
            found = before if isinstance(before, str) else None
    return found


def capture_before_report(
    repository: Repository, intent: Intent, environment: AnalysisEnvironment
) -> tuple[str, ...]:
    """Run the analyses on the tree that an intent begins on, and record the digest of this before-report.

    Nothing runs if the policy declares no analysis.

    Returns:
        warnings: why there is none; the first verification tries again.
    """
    try:
        with open_context(repository, environment) as context:
            if not context.policy.config.analyses:
                return ()
            environment = keep_intents_alive(repository, [intent], environment)
            before = replace(context, environment=environment).runs(AnalysedTree(intent.tree, intent.base))
    except PatchgateError as error:
        return (f"{intent.id} has no before-report yet: {error.message}",)
    for name in sorted(before.runs):
        run = before.runs[name]
        if run.outcome is AnalysisOutcome.NOT_EVALUATED:
            why = safe(run.reason or f"the analysis `{name}` could not be evaluated").rstrip(".")
            return (f"{intent.id} has no before-report yet: {why}; run git patchgate analyze for details",)
    return record_before_report(repository, intent, before)


def record_before_report(repository: Repository, intent: Intent, before: TreeRuns) -> tuple[str, ...]:
    """Record the digest of the before-report in the ledger and the intent, the first time it is known.

    An intent that is changed or ended meanwhile is not modified.

    Returns:
        warnings: it could not be saved, which does not affect this verification.
    """
    if intent.before is not None or not before.is_evaluated:
        return ()
    try:
        return tuple(IntentQueue(repository, current_moment()).capture(intent, before.digest))
    except UndecidedError as error:
        return (f"the before-report of {intent.id} could not be saved: {error.message}",)
