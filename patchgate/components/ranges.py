"""What the commits of a range do together, beside the revision whose policy is asked for (`--policy-from`).

Decides what is compared: that revision with what the range would make of it. Where the range does not go on
from it, this is git's merge of the two; where they conflict, the range alone since both parted. A protected
local branch is compared with what a fast-forward or a merge of several commits makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from patchgate.check.cases import reference
from patchgate.check.ref_terms import USUAL_BRANCHES
from patchgate.check.terms import Asked, asked_policy
from patchgate.components.steps import Span, Together, judge_together
from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.model import Change, Source
from patchgate.git.novelty import Update
from patchgate.git.objects import Objects
from patchgate.git.pushes import common_ancestor, is_ancestor
from patchgate.git.repository import Repository
from patchgate.policy.policies import Found, Policies, built_in
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.refs import matches
from patchgate.report.verdict import ChangeVerdict, GateOutcome, Outcome, Report
from patchgate.report.wording import SHORT_OID


def with_range(repository: Repository, report: Report, revision: str, asked: Asked) -> Report:
    """Add to the verdicts on the commits of a range what they do together to the components of a revision.

    Only components are compared of which a commit of the range touches a file.

    Args:
        report: the verdicts on the commits, parents first.
        revision: the range as it was asked for.
        asked: names the revision whose policy counts; where it names none, nothing is added.
    """
    if asked.policy_from is None or not report.changes:
        return report
    tip = report.changes[-1].source.commit
    with Objects(repository) as objects:
        known = objects.header(asked.policy_from + "^{commit}") or objects.header(
            asked.policy_from + "^{tree}"
        )
        if known is None or tip is None:
            return report
        try:
            together = _together(repository, objects, (known.oid, known.type), tip, report)
        except PatchgateError as error:
            reason = error.message if error.hint is None else f"{error.message}; {error.hint}"
            together = Together((GateOutcome("drift", Outcome.UNDECIDED, reason),))
        if together.is_silent:
            return report
        empty = objects.empty_tree
    last = report.changes[-1]
    verdict = ChangeVerdict(
        Change.of(empty, empty, ()),
        Source("range", ref=revision),
        last.profile,
        last.policy,
        together.gates,
        together.findings,
    )
    return replace(report, changes=(*report.changes, verdict))


def with_landing(
    repository: Repository, update: Update, commits: int, report: Report, asked: Callable[[], Asked]
) -> Report:
    """Add to the verdicts on an update of a branch what its commits do together, where it is protected.

    Args:
        commits: how many the update brings; one is compared by itself already.
        report: the verdicts on those that nobody has answered for.
        asked: tells how to judge.
    """
    if update.old is None or commits < 2:
        return report
    with Objects(repository) as objects:
        policies = Policies(objects)
        had, has = (_found(objects, policies, each) for each in (update.old, update.new))
        policy = had.policy
        if policy is None or not policy.config.components or not _is_protected(policy, update.ref):
            return report
        if not is_ancestor(repository, update.old, update.new):
            # A branch that is rewritten here is compared with what the other side has, at the push.
            return report
        judging = asked_policy(objects, policies, asked()) or had
        shown = f"{update.old[:SHORT_OID]}, which the branch has"
        trees = _tree(objects, update.old), _tree(objects, update.new)
        span = Span(*trees, had, has, judging.policy or policy, shown)
        together = judge_together(objects, span, report.changes)
        if together.is_silent:
            return report
        verdict = ChangeVerdict(
            Change.of(objects.empty_tree, objects.empty_tree, ()),
            Source("ref", ref=update.ref),
            Profile.COMMIT.value,
            reference(span.judging, update.old[:SHORT_OID], Profile.COMMIT),
            together.gates,
            together.findings,
        )
    return replace(report, changes=(*report.changes, verdict))


def _is_protected(policy: Policy, ref: str) -> bool:
    listed = policy.config.push.protected_refs
    return ref in USUAL_BRANCHES if listed is None else matches(listed, ref)


def _parting(repository: Repository, one: str, other: str) -> str:
    """Find the commit from which two go on; the first of them where they have none in common.

    Raises:
        UndecidedError: a shallow history may hide it.
    """
    base = common_ancestor(repository, one, other)
    if base is None and repository.shallow:
        raise UndecidedError(
            f"this clone is shallow, and shows no commit that {one[:SHORT_OID]} and {other[:SHORT_OID]} have "
            "in common",
            "git fetch --unshallow",
        )
    return base or one


def _together(
    repository: Repository, objects: Objects, known: tuple[str, str], tip: str, report: Report
) -> Together:
    oid, kind = known
    policies = Policies(objects)
    had, has = (_found(objects, policies, each) for each in (oid, tip))
    if not any(each.policy is not None and each.policy.config.components for each in (had, has)):
        return Together()
    judging = had.policy or built_in()
    shown = f"{oid[:SHORT_OID]}, whose policy judges"
    touched = {file.path for change in report.changes for file in change.change.files}
    after = _tree(objects, tip)

    def judged(objects: Objects, span: Span) -> Together:
        return judge_together(objects, span, report.changes, touched)

    if kind != "commit" or is_ancestor(repository, oid, tip):
        return judged(objects, Span(_tree(objects, oid), after, had, has, judging, shown))
    if is_ancestor(repository, tip, oid):
        return Together()
    parting = _parting(repository, oid, tip)
    from patchgate.git.merges import automatic_merges
    from patchgate.git.private import PrivateStore

    with PrivateStore(repository) as store, Objects(repository, store.variables) as joined:
        (merged,) = automatic_merges(store, [(oid, tip)])
        if not merged.conflicts:
            whole = _found(joined, Policies(joined), merged.tree)
            trees = _tree(objects, oid), merged.tree
            return judged(joined, Span(*trees, had, whole, judging, shown, store.variables))
    had = _found(objects, policies, parting)
    return judged(objects, Span(_tree(objects, parting), after, had, has, judging, parting[:SHORT_OID]))


def _found(objects: Objects, policies: Policies, revision: str) -> Found:
    return policies.at(policies.key(_tree(objects, revision)))


def _tree(objects: Objects, revision: str) -> str:
    header = objects.header(revision + "^{tree}")
    assert header is not None
    return header.oid
