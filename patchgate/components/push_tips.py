"""Component findings of a push: drift and contracts of each branch tip, and staleness.

Decides which branches are read, whose policy sets the levels, and what is not repeated. What was so before
the push is not an error: a push that does not touch it cannot fix it. Contracts are checked if the push has a
merge: two correct sides can be wrong together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.check.judging_policy import reference
from patchgate.check.policy_lookup import CheckOptions
from patchgate.check.protected_refs import RefRules
from patchgate.check.ref_verdicts import with_verdict_on_ref
from patchgate.components.attestations import VERIFIED_REF, VerifiedNotes
from patchgate.components.commit_reports import CommitReports
from patchgate.components.cumulative_drift import (
    Span,
    at_policy_levels,
    contracts_of,
    declares_any,
    judge_cumulative,
    outcome_of,
    tree_of,
)
from patchgate.errors import UndecidedError
from patchgate.git.model import Change, Source
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import BRANCHES, RefUpdate, common_ancestor, is_ancestor
from patchgate.git.repository import Repository
from patchgate.git.revisions import commit_named
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.settings import ComponentSettings
from patchgate.policy.tree_policies import TreePolicies, built_in
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome, Report
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.git.merges import TipMerges

Subject = tuple[str, RepoPath | None]
"""A rule, and the path of a finding of it."""

_CONTRACTS, _DRIFT, _STALENESS = "contracts", "drift", "staleness"
_MOST = 20
_PREEXISTING = "this was so before the push, so it does not refuse the push"
_LEVELS = tuple(Level)


@dataclass(frozen=True, slots=True)
class _BranchTip:
    """A pushed branch: its new commit, its old one, the policy in the new one, and the judging policy.

    `known` are the components as they were declared before. `tree` is the commit's, or that of the merge that
    a host would make of it.
    """

    update: RefUpdate
    commit: str
    tree: str
    before: str | None
    policy: Policy
    judging: Policy
    known: Mapping[str, ComponentSettings]


def add_tip_findings(
    objects: Objects,
    terms: RefRules,
    commits: Mapping[str, str | None],
    updates: Sequence[RefUpdate],
    changes: Sequence[ChangeVerdict],
    judged_for: Callable[[str], Sequence[ChangeVerdict]],
    now: float | None,
) -> list[ChangeVerdict]:
    """Add to the verdicts of a push the findings about the components at the tips of its branches.

    It costs nothing if no policy declares a component.

    Args:
        commits: the commit that each object peels to; None if it is not a commit, or missing.
        changes: the verdicts on refs and commits.
        judged_for: returns the verdicts on the commits that a ref gets.
        now: seconds since the epoch; None means the current time.
    """
    tips = list(_branch_tips(terms, commits, updates))
    if not tips:
        return list(changes)
    now = time.time() if now is None else now
    pushed = (each.new for each in updates if each.ref == VERIFIED_REF and each.new is not None)
    notes = VerifiedNotes(objects, now, [VERIFIED_REF, *pushed])
    found = list(changes)
    # Many branches may get one commit.
    examined: dict[Sequence[object], tuple[tuple[GateOutcome, ...], GateOutcome, list[Finding]]] = {}
    for tip in tips:
        own = judged_for(tip.update.ref)
        has_merge = any(change.source.kind == "merge" for change in own)
        of_ref = [each for each in found if each.source.kind == "ref" and each.source.ref == tip.update.ref]
        key = (tip.commit, tip.before, *map(id, (tip.policy, tip.judging, *own, *of_ref)))
        if key not in examined:
            judged = CommitReports(objects, own, _ends(objects, tip), told=of_ref)
            examined[key] = _examine_tip(objects, tip, judged, notes, has_merge=has_merge)
        gates, staleness, findings = examined[key]
        if not findings and all(gate.reason is None for gate in gates):
            continue
        found = with_verdict_on_ref(terms, found, tip.update, gates, findings, (staleness,))
    return found


def add_range_tip(
    repository: Repository, report: Report, revision: str, asked: CheckOptions, merges: TipMerges | None
) -> Report:
    """Add to the report on a range `A..B` what a push of B to the branch of the policy says of its tip.

    Where B lacks commits of that branch, the merge of the two is examined.

    Args:
        merges: makes that merge; None: B replaces what the branch has.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    _, dots, last = revision.partition("..")
    if not dots or last.startswith(".") or asked.policy_from is None:
        return report
    with Objects(repository) as objects:
        if not _declares(objects, asked.branch or asked.policy_from, last or "HEAD"):
            return report
    with Objects(repository, merges.store.variables if merges is not None else None) as objects:
        tip = _range_tip(objects, merges, asked, asked.policy_from, last or "HEAD")
        if tip is None:
            return report
        judged = CommitReports(objects, report.changes, _ends(objects, tip))
        is_merged = tip.tree != tree_of(objects, tip.commit)
        has_merge = is_merged or any(change.source.kind == "merge" for change in report.changes)
        notes = VerifiedNotes(objects, time.time())
        gates, staleness, findings = _examine_tip(objects, tip, judged, notes, has_merge=has_merge)
        # A baseline that ages is told at the push, where the branch is; here only if that is an error.
        findings = [
            each for each in findings if each.level is Level.ERROR or each.definition.gate != _STALENESS
        ]
        if not findings and all(gate.reason is None for gate in gates):
            return report
        verdict = ChangeVerdict(
            change=Change.of(objects.empty_tree, objects.empty_tree, ()),
            source=Source("range", ref=revision),
            profile=Profile.COMMIT.value,
            policy=reference(tip.judging, (asked.place or asked.policy_from)[:SHORT_OID], Profile.COMMIT),
            gates=gates,
            findings=tuple(findings),
            context_gates=(staleness,),
        )
    return replace(report, changes=(*report.changes, verdict))


def _declares(objects: Objects, base: str, last: str) -> bool:
    """Return whether one end of a range declares a component, and the base is a commit."""
    known = objects.header(base + "^{commit}")
    if known is None:
        return False
    policies = TreePolicies(objects)
    ends = (known.oid, commit_named(objects, last))
    return declares_any(*(policies.at(policies.key(tree_of(objects, end))) for end in ends))


def _range_tip(
    objects: Objects, merges: TipMerges | None, asked: CheckOptions, policy_from: str, last: str
) -> _BranchTip | None:
    """Find what the branch of a range becomes; None if it declares no component."""
    repository, policies = objects.repository, TreePolicies(objects)
    head, base = commit_named(objects, last), objects.header((asked.branch or policy_from) + "^{commit}")
    if base is None or (merges is not None and is_ancestor(repository, head, base.oid)):
        return None
    judging, old, own = (
        policies.at(policies.key(tree_of(objects, each))).policy for each in (policy_from, base.oid, head)
    )
    tree = tree_of(objects, head)
    if merges is not None and not is_ancestor(repository, base.oid, head):
        # Where there is a conflict a host may solve it by itself (`merge=union`): the tree has markers there.
        tree = merges.of(base.oid, head).tree
        own = policies.at(policies.key(tree)).policy
    if own is None or not own.config.components:
        return None
    known = {} if old is None else old.config.components
    update = RefUpdate(asked.target or "", base.oid, head)
    return _BranchTip(update, head, tree, base.oid, own, judging or old or own, known)


def add_cumulative_findings(
    objects: Objects,
    terms: RefRules,
    commits: Mapping[str, str | None],
    updates: Sequence[RefUpdate],
    changes: Sequence[ChangeVerdict],
    judged_for: Callable[[str], Sequence[ChangeVerdict]],
) -> list[ChangeVerdict]:
    """Add to the verdicts of a push what its commits do together to components of protected branches.

    It costs nothing if no policy declares a component.

    Args:
        commits: the commit that each object peels to; None if it is not a commit, or missing.
        changes: the verdicts on refs and commits.
        judged_for: returns the verdicts on the commits that a ref gets.
    """
    found = list(changes)
    for update in updates:
        seen: set[tuple[Level, Subject]] = set()
        before = commits.get(update.old or "") or terms.default_tip
        for old in (before, *terms.destination.been.get(update.ref, ())):
            try:
                span = _span(objects, terms, commits, update, old)
            except UndecidedError as error:
                unknown = GateOutcome(_DRIFT, Outcome.UNDECIDED, error.message)
                found = with_verdict_on_ref(terms, found, update, (unknown,), ())
                continue
            if span is None:
                continue
            together = judge_cumulative(objects, span, judged_for(update.ref))
            about = [(each.level, (each.rule, each.path)) for each in together.findings]
            findings = [each for each, what in zip(together.findings, about, strict=True) if what not in seen]
            seen.update(about)
            if not together.is_silent:
                found = with_verdict_on_ref(terms, found, update, together.gates, findings)
    return found


def _span(
    objects: Objects, terms: RefRules, commits: Mapping[str, str | None], update: RefUpdate, old: str | None
) -> Span | None:
    """Return the old and new tree of a protected branch; None if neither declares a component.

    A branch that is new, or is not a fast-forward, is compared with its merge base with the old tip
    (or the default branch); without a common commit, with the whole old tip.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    tip = commits.get(update.new or "")
    is_branch = update.ref.startswith(BRANCHES) and terms.is_owned(update.ref)
    if tip is None or old is None or not is_branch:
        return None
    had, has = (terms.policies.at(terms.key_of(each)) for each in (old, tip))
    if not declares_any(had, has):
        return None
    if not terms.reaches(tip, old):
        base = common_ancestor(objects.repository, old, tip)
        if base is None and objects.repository.shallow:
            raise UndecidedError(f"this clone is shallow, and does not show how {tip[:SHORT_OID]} began")
        old = base or old
        had = terms.policies.at(terms.key_of(old))
    place = terms.judged_by(update)
    judging = terms.policies.at(terms.key_of(place)).policy if place is not None else had.policy
    shown = f"{old[:SHORT_OID]}, which {terms.name} has"
    return Span(tree_of(objects, old), tree_of(objects, tip), had, has, judging or built_in(), shown)


def _branch_tips(
    terms: RefRules, commits: Mapping[str, str | None], updates: Sequence[RefUpdate]
) -> Iterator[_BranchTip]:
    """Yield the branches to check."""
    for update in updates:
        commit = commits.get(update.new or "")
        if commit is None or not update.ref.startswith(BRANCHES):
            continue
        own = terms.policies.at(terms.key_of(commit)).policy
        if own is None or not own.config.components:
            continue
        place = terms.judged_by(update)
        key = terms.key_of(place) if place is not None else None
        judging = terms.policies.at(key).policy if key is not None else None
        before = commits.get(update.old or "") or terms.default_tip
        old = terms.policies.at(terms.key_of(before)).policy if before is not None else None
        known = old.config.components if old is not None else {}
        tree = tree_of(terms.objects, commit)
        yield _BranchTip(update, commit, tree, before, own, judging or own, known)


def _examine_tip(
    objects: Objects,
    tip: _BranchTip,
    judged: CommitReports,
    notes: VerifiedNotes,
    *,
    has_merge: bool,
) -> tuple[tuple[GateOutcome, ...], GateOutcome, list[Finding]]:
    """Check one tip: the gates' outcomes and the new findings, most severe first, limited in number."""
    try:
        contracts = _contracts(objects, tip, judged) if has_merge else []
        drift, aged = _findings(objects, tip, judged, notes)
    except UndecidedError as error:
        unknown = GateOutcome(_DRIFT, Outcome.UNDECIDED, error.sentence)
        return (unknown,), GateOutcome(_STALENESS, Outcome.NOT_RUN), []
    findings = sorted([*contracts, *drift, *aged], key=lambda finding: _LEVELS.index(finding.level))
    rest = findings[_MOST:]
    if rest:
        message = f"and {len(rest)} more findings on its components; git patchgate baseline status shows them"
        findings[_MOST:] = [replace(rest[0], message=message, path=None, line=None, notes=())]
    gates: tuple[GateOutcome, ...] = (outcome_of(_DRIFT, drift),)
    if has_merge:
        gates = (outcome_of(_CONTRACTS, contracts), *gates)
    return gates, outcome_of(_STALENESS, aged), findings


def _contracts(objects: Objects, tip: _BranchTip, judged: CommitReports) -> list[Finding]:
    """Find mistakes in the contracts of a tip that are new and not reported for a commit."""
    from patchgate.components.component_cache import FactsCache
    from patchgate.git.tree_view import TreeView

    def raised(revision: str) -> list[Finding]:
        view = TreeView(objects, tree_of(objects, revision))
        return at_policy_levels(tip.judging, contracts_of(tip.policy, view, cache))

    with FactsCache.of(objects.repository) as cache:
        found = [finding for finding in raised(tip.tree) if finding.level is not Level.NOTE]
        before = _highest_levels(raised(tip.before)) if found and tip.before is not None else {}
    return [each for each in found if not (judged.have(each) or _is_reported(each, before))]


def _findings(
    objects: Objects, tip: _BranchTip, judged: CommitReports, notes: VerifiedNotes
) -> tuple[list[Finding], list[Finding]]:
    # Imported only if a tip has components: 10 ms, and most repositories have none.
    from patchgate.components.baseline_status import component_statuses, unchanged_components
    from patchgate.components.component_cache import ComponentCache
    from patchgate.components.staleness import examine
    from patchgate.components.staleness_gathering import StalenessFacts
    from patchgate.git.tree_view import TreePaths

    paths = TreePaths(objects)
    with ComponentCache.of(objects.repository) as cache:
        tree = tip.tree
        settled: set[str] = set()
        if tip.before is not None:
            # Unchanged components were reported before; a first push from a clone need not read them all.
            settled = unchanged_components(paths, tree, tree_of(objects, tip.before), tip.policy, tip.known)
        found = component_statuses(objects, tree, tip.policy, paths, cache, settled=settled)
        recorded = [each for status in found if (each := status.recorded) is not None]
        staleness = StalenessFacts(objects, paths, cache, tip.policy)
        verified = staleness.verified(tip.commit, tree, recorded, notes)
        # A note refuses nothing and is reported for its commit.
        drift = [
            each
            for each in at_policy_levels(tip.judging, (each for one in found for each in one.findings))
            if each.level is not Level.NOTE and not judged.have(each)
        ]
        refused = {(each.rule, each.path) for each in drift if each.level is Level.ERROR}
        refusing = {
            each.component.id
            for each in found
            if any((finding.rule, finding.path) in refused for finding in each.findings)
        }
        before: Mapping[Subject, Level] = {}
        if refusing and tip.before is not None:
            old = component_statuses(
                objects, tree_of(objects, tip.before), tip.policy, paths, cache, refusing
            )
            before = _highest_levels(
                at_policy_levels(tip.judging, (each for one in old for each in one.findings))
            )
    drift = [
        replace(each, level=Level.WARNING, notes=(*each.notes, _PREEXISTING))
        if each.level is Level.ERROR and _is_reported(each, before) and judged.is_untouched(each)
        else each
        for each in drift
    ]
    drifted = {status.component.id: status.has_drifted for status in found}
    aged = [
        finding
        for each in verified
        for finding in examine(each, tip.judging, notes.now, has_drifted=drifted[each.component])
    ]
    return drift, aged


def _ends(objects: Objects, tip: _BranchTip) -> tuple[str | None, str]:
    return (None if tip.before is None else tree_of(objects, tip.before)), tip.tree


def _highest_levels(findings: Iterable[Finding]) -> dict[Subject, Level]:
    """Return the highest level reported for each subject."""
    found: dict[Subject, Level] = {}
    for finding in findings:
        subject = (finding.rule, finding.path)
        found[subject] = min(finding.level, found.get(subject, finding.level), key=_LEVELS.index)
    return found


def _is_reported(finding: Finding, said: Mapping[Subject, Level]) -> bool:
    """Return whether the same was reported before, at the same or a higher level."""
    level = said.get((finding.rule, finding.path))
    return level is not None and _LEVELS.index(level) <= _LEVELS.index(finding.level)
