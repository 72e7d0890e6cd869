"""Verify what a push brings to each branch, where a policy requires it (`[verify] on_push`).

A branch is compared with the tree that an active intent of this worktree began on, else with what the remote
has of it. The outcome is a context gate of the branch; a policy that cannot be used leaves it undecided.
`branches_to_verify` runs at every push and loads nothing that the push has not. Never used on a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from patchgate.check.gate import at_policy_level
from patchgate.check.judging_policy import BUILT_IN, reference
from patchgate.check.policy_lookup import trusted_options
from patchgate.check.push_commands import add_to_ref
from patchgate.errors import ConfigError, UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.pushes import (
    BRANCHES,
    USUAL_BRANCHES,
    RefUpdate,
    Remote,
    common_ancestor,
    is_ancestor,
    peel,
)
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import TreePolicies, built_in, require_usable
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, GateOutcome, Outcome, Report
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.intents.intent import Intent
    from patchgate.verify.analysis_runner import AnalysisEnvironment
    from patchgate.verify.analyze import AnalysedTree, AnalysisContext
    from patchgate.verify.verification_result import VerificationResult


@dataclass(frozen=True, slots=True)
class PushVerification:
    """The branches of a push that may need verification.

    `everywhere`: all of them do. `is_first`: the remote has nothing yet, as far as is known. `only_here`:
    only the policy of HEAD requires it, so this push may enable it.
    """

    branches: tuple[RefUpdate, ...]
    everywhere: bool
    is_first: bool = False
    only_here: bool = False


def branches_to_verify(
    repository: Repository, remote: Remote, updates: Sequence[RefUpdate]
) -> PushVerification | None:
    """Return the branches of a push to verify; None if there are none.

    Raises:
        UndecidedError: an object or the trusted ref is missing.
    """
    branches = tuple(
        each for each in updates if each.ref.startswith(BRANCHES) and each.new and each.new != each.old
    )
    if not branches:
        return None
    with Objects(repository) as objects:
        policies = TreePolicies(objects)

        def asks(revision: str) -> bool:
            header = objects.header(revision + "^{tree}")
            found = policies.at(policies.key(header.oid)).policy if header is not None else None
            return found is not None and found.config.verify.on_push

        by_others = any(map(asks, _overriding_revisions(repository, remote)))
        by_branches = any(asks(each.old) for each in branches if each.old)
        here = by_others or asks("HEAD")
        if not (here or by_branches):
            return None
    is_first = remote.is_named and not remote.had and not any(each.old for each in updates)
    return PushVerification(branches, here, is_first, only_here=not (by_others or by_branches))


def _overriding_revisions(repository: Repository, remote: Remote) -> Iterator[str]:
    """Yield the revisions besides HEAD whose policy applies to every branch."""
    above = trusted_options(repository).policy_from
    if above is not None:
        yield above
    defaults = USUAL_BRANCHES if remote.default is None else (remote.default,)
    yield from (remote.had[ref] for ref in defaults if ref in remote.had)


GATE = "verify"


@dataclass(frozen=True, slots=True)
class _BranchPolicy:
    """The policy for the verification of a branch, and its source."""

    policy: Policy
    place: str


def verify_pushed(
    repository: Repository,
    remote: Remote,
    asking: PushVerification,
    report: Report,
    environment: Callable[[], AnalysisEnvironment],
) -> Report:
    """Add the verification of its branches to the report on a push.

    Args:
        remote: what is known about the remote.
        asking: the branches that may need verification.
        report: the report on the push.
        environment: makes the environment; called only if something is verified.
    """
    from patchgate.verify.analyze import open_context

    with open_context(repository, environment(), built_in()) as context:
        outcomes = [_verify_branch(context, remote, each, asking) for each in asking.branches]
    changes = list(report.changes)
    for update, (terms, outcome, findings) in zip(asking.branches, outcomes, strict=True):
        place = reference(terms.policy, terms.place, Profile.COMMIT)
        add_to_ref(changes, update, place, context.objects.empty_tree, (outcome,), findings)
    return replace(report, changes=tuple(changes))


def _verify_branch(
    context: AnalysisContext, remote: Remote, update: RefUpdate, asking: PushVerification
) -> tuple[_BranchPolicy, GateOutcome, list[Finding]]:
    terms = _BranchPolicy(built_in(), BUILT_IN)
    try:
        tip = context.objects.header(f"{update.new}^{{commit}}")
        tree = context.objects.header(f"{update.new}^{{tree}}")
        if tip is None or tree is None:
            # A missing object, or one that is not a commit, is reported by the ref gate.
            return terms, GateOutcome(GATE, Outcome.NOT_APPLICABLE), []
        after = _analysed(tree.oid, tip.oid)
        before = None if asking.is_first else _find_before(context, remote, update, tip.oid)
        terms = _policy_of_branch(context, before)
        if not (asking.everywhere or terms.policy.config.verify.on_push):
            return terms, GateOutcome(GATE, Outcome.NOT_APPLICABLE), []
        outcome, findings = _compare_branch(context, terms.policy, before, after, remote, asking)
        return terms, outcome, findings
    except (UsageError, ConfigError, UndecidedError) as error:
        return terms, GateOutcome(GATE, Outcome.UNDECIDED, error.sentence), []


def _policy_of_branch(context: AnalysisContext, before: AnalysedTree | None) -> _BranchPolicy:
    """Find the policy for a branch: the first in order that declares analyses.

    Raises:
        UsageError: none declares any.
        ConfigError: one cannot be used.
        UndecidedError: one cannot be read.
    """
    objects, policies = context.objects, TreePolicies(context.objects)
    asked, had = trusted_options(context.repository), None if before is None else before.commit
    for revision, place in (
        (asked.policy_from, printable(asked.place or "", 120)),
        (had, (had or "")[:SHORT_OID]),
        ("HEAD", "HEAD"),
    ):
        header = objects.header(revision + "^{tree}") if revision is not None else None
        if revision is not None and header is not None:
            policy = require_usable(policies.at(policies.key(header.oid)))
            if policy.config.analyses:
                return _BranchPolicy(policy, place)
    raise UsageError(
        "the policy requires verification of each push, but declares no analysis",
        'add "verify" to the `on` of a command, or remove on_push, and commit it',
    )


def _compare_branch(
    context: AnalysisContext,
    policy: Policy,
    before: AnalysedTree | None,
    after: AnalysedTree,
    remote: Remote,
    asking: PushVerification,
) -> tuple[GateOutcome, list[Finding]]:
    from patchgate.verify.checked_intent import intent_of_commit
    from patchgate.verify.verification_reasons import findings_of
    from patchgate.verify.verify import compare_trees, verify_against_intent

    intent = intent_of_commit(context, after.commit or "")
    found: list[VerificationResult] = []
    if intent is not None:
        chosen = _policy_under_intent(context, policy, intent)
        found.append(verify_against_intent(replace(context, policy=chosen), intent, after, with_staged=False))
        if (
            before is not None
            and before.tree != intent.tree
            and not _remote_has_base(context, before, intent)
        ):
            # Commits of the push from before the intent do not belong to it, but must be verified too.
            began = _analysed(intent.tree, intent.base)
            found.append(compare_trees(replace(context, policy=policy), before, began))
    elif before is None:
        reason = f"{remote.shown} has nothing yet to compare with"
        return GateOutcome(GATE, Outcome.NOT_APPLICABLE, reason), []
    else:
        found.append(compare_trees(replace(context, policy=policy), before, after))
        if asking.only_here and _is_before_missing(found[0]):
            # The change that adds the analyses may also add what they need.
            reason = f"the policy of {remote.shown} does not require it yet, and its tree cannot be analysed"
            findings = [replace(each, level=Level.WARNING) for each in findings_of(found[0])]
            return GateOutcome(GATE, Outcome.NOT_APPLICABLE, reason), findings
    findings = [
        judged
        for each in found
        for finding in findings_of(each)
        if (judged := at_policy_level(policy, Profile.COMMIT, finding)) is not None
    ]
    errors = [finding for finding in findings if finding.level is Level.ERROR]
    if not errors:
        return GateOutcome(GATE, Outcome.PASS), findings
    is_undecided = all(finding.definition.undecided for finding in errors)
    return GateOutcome(GATE, Outcome.UNDECIDED if is_undecided else Outcome.FAIL), findings


def _is_before_missing(found: VerificationResult) -> bool:
    """Check whether only the tree before could not be analysed."""
    return (
        found.before is not None
        and found.after is not None
        and not found.before.is_evaluated
        and found.after.is_evaluated
    )


def _remote_has_base(context: AnalysisContext, before: AnalysedTree, intent: Intent) -> bool:
    """Check whether the remote has the base commit of an intent."""
    if intent.base is None or before.commit is None:
        return intent.base is None
    return is_ancestor(context.repository, intent.base, before.commit)


def _policy_under_intent(context: AnalysisContext, policy: Policy, intent: Intent) -> Policy:
    """Choose the policy with the analyses and limits for an intent.

    Its analyses must be those of its declaration. If the remote does not have them yet, because they were
    committed before the intent began, the policy of HEAD is used if it has them.
    """
    from patchgate.policy.command import analyses_digest
    from patchgate.verify.analyze import analysis_policy

    if analyses_digest(policy.config.analyses) == intent.analyses:
        return policy
    here = analysis_policy(context.objects)
    return here if analyses_digest(here.config.analyses) == intent.analyses else policy


def _analysed(tree: str, commit: str | None) -> AnalysedTree:
    from patchgate.verify.analyze import AnalysedTree

    return AnalysedTree(tree, commit)


def _find_before(context: AnalysisContext, remote: Remote, update: RefUpdate, tip: str) -> AnalysedTree:
    """Find what a branch is compared with: its merge base with its remote branch, else with any remote ref.

    Raises:
        UndecidedError: git failed.
    """
    repository, objects = context.repository, context.objects
    own = [update.old] if update.old is not None else []
    commits = peel(objects, [*own, *remote.had.values()])
    known = [oid for each in own if (oid := commits[each])]
    known = known or list(dict.fromkeys(oid for each in remote.had.values() if (oid := commits[each])))
    if known:
        base = common_ancestor(repository, tip, *known)
        tree = objects.header(base + "^{tree}") if base else None
        if tree is not None:
            return _analysed(tree.oid, base)
    if repository.shallow:
        raise UndecidedError(
            "this clone is shallow: the start of the branch is missing", "git fetch --deepen=50"
        )
    return _analysed(objects.empty_tree, None)
