"""What several changes together do to the components of a protected branch.

Decides which components are compared, by which declaration (both sides together, so that no file leaves a
component in between), and which findings are new: without those of a single commit and earlier ones. The
gates `drift` and `contracts` make the findings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.check.gate import at_policy_level
from patchgate.check.judging_policy import reference
from patchgate.check.policy_lookup import CheckOptions, requested_policy
from patchgate.components.commit_reports import CommitReports, is_among
from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.model import Change, Entry, FileChange, Source
from patchgate.git.objects import Header, Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import USUAL_BRANCHES, common_ancestor, is_ancestor
from patchgate.git.repository import Repository
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Component, Components, Role
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.glob_matching import matches_ref
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies, built_in, require_usable
from patchgate.report.rules import Level
from patchgate.report.verdict import (
    ChangeVerdict,
    Finding,
    GateOutcome,
    Outcome,
    PolicyReference,
    Report,
)
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, field, replace

if TYPE_CHECKING:
    from patchgate.components.component_cache import FactsCache
    from patchgate.git.merges import TipMerges

_DRIFT, _CONTRACTS = "drift", "contracts"
_WEAKENED = "drift-tests-weakened"
_POLICY_FILES = frozenset({CONFIG_FILE.raw, PYPROJECT_FILE.raw})
_ONE_COMMIT = "restore it, or make the change in one commit with the new baseline, which can be approved"
_RETIRE_FIRST = (
    "restore it, or declare the component again; if it should be removed, first push the removal of its "
    "declaration in a separate commit"
)


@dataclass(frozen=True, slots=True)
class Span:
    """The two trees that are compared, each with its policy, and the policy that sets the levels.

    `before` is the tree of the protected side, and `shown` names it in a sentence. Both are read under
    `variables`.
    """

    before: str
    after: str
    had: FoundPolicy
    has: FoundPolicy
    judging: Policy
    shown: str
    variables: Mapping[str, str] = field(default_factory=dict)


def declares_any(*sides: FoundPolicy) -> bool:
    """Return whether any of some policies declares a component."""
    return any(each.policy is not None and each.policy.config.components for each in sides)


@dataclass(frozen=True, slots=True)
class CumulativeVerdict:
    """The verdict on several changes together: the gates' outcomes and the findings."""

    gates: tuple[GateOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Return whether there is nothing to report."""
        return not self.findings and all(gate.outcome is Outcome.PASS for gate in self.gates)


def judge_cumulative(
    objects: Objects,
    span: Span,
    changes: Sequence[ChangeVerdict],
    touched: Collection[RepoPath] | None = None,
) -> CumulativeVerdict:
    """Judge the difference of two trees as one change to their components.

    Args:
        changes: the verdicts on the commits in between; their findings are not repeated.
        touched: compare only components that own one of these files; None means all.
    """
    if not declares_any(span.had, span.has) or span.before == span.after:
        return CumulativeVerdict()
    judged = CommitReports(objects, changes, (span.before, span.after))
    profile = Profile.AGENT if any(each.profile == Profile.AGENT for each in changes) else Profile.COMMIT
    gates: list[GateOutcome] = []
    findings: list[Finding] = []
    between: _TreeDifference | None = None
    for gate, examine in ((_CONTRACTS, _contracts), (_DRIFT, _drift)):
        try:
            between = between or _TreeDifference(objects, span, touched)
            raised = at_policy_levels(span.judging, examine(objects, between), profile)
            new = [each for each in raised if each.level is not Level.NOTE and not judged.have(each)]
            if any(each.level is Level.ERROR for each in new):
                names = {str(each.details.get("component")) for each in new}
                had = at_policy_levels(span.judging, _findings_before(objects, span, gate, names), profile)
                new = [each for each in new if not is_among(each, had)]
        except PatchgateError as error:
            gates.append(GateOutcome(gate, Outcome.UNDECIDED, error.sentence))
            continue
        gates.append(outcome_of(gate, new))
        findings += new
    note = f"compared with {span.shown}, for all commits together"
    return CumulativeVerdict(
        tuple(gates), tuple(replace(each, notes=(*each.notes, note)) for each in findings)
    )


def outcome_of(gate: str, findings: Iterable[Finding]) -> GateOutcome:
    """Return the outcome of a gate with these findings."""
    failed = any(finding.level is Level.ERROR for finding in findings)
    return GateOutcome(gate, Outcome.FAIL if failed else Outcome.PASS)


def at_policy_levels(
    policy: Policy, findings: Iterable[Finding], profile: Profile = Profile.COMMIT
) -> list[Finding]:
    """Return the findings at the levels that a policy sets, without those that it turned off."""
    found = (at_policy_level(policy, profile, each) for each in findings)
    return [each for each in found if each is not None]


class _TreeDifference:
    """The difference of the two trees of a span, as far as components are concerned."""

    def __init__(self, objects: Objects, span: Span, touched: Collection[RepoPath] | None) -> None:
        self.span = span
        self.known = _components(span.had)
        self.now = _components(span.has)
        self.files = _difference(objects, span)
        self.old = {file.path: file.old for file in self.files}
        near = {**self.known.affected_by(self.old), **self.now.affected_by(self.old)}
        if touched is not None:
            asked = {**self.known.affected_by(touched), **self.now.affected_by(touched)}
            if not any(path.raw in _POLICY_FILES for path in touched):
                near = {name: paths for name, paths in near.items() if name in asked}
        self.near = sorted(near)

    def component(self, name: str) -> Component:
        """Return a component with the files that either side declares."""
        old, new = self.known.get(name), self.now.get(name)
        if old is None or new is None:
            return old or self.now[name]
        tests = dict.fromkeys((*old.settings.tests, *new.settings.tests))
        code = dict.fromkeys((*old.settings.implementation, *new.settings.implementation))
        return Component(name, replace(new.settings, tests=tuple(tests), implementation=tuple(code)))


def _drift(objects: Objects, between: _TreeDifference) -> Iterator[Finding]:
    # 10 ms to import, and most pushes touch no component.
    from patchgate.components.drift import examine_cumulative
    from patchgate.components.drift_gathering import is_forged, recorded_at, state_over

    view = TreeView(objects, between.span.after)
    before = TreeView(objects, between.span.before)
    for name in between.near:
        component = between.component(name)
        place = component.baseline
        recorded = before.entry(place.raw)
        changed = frozenset(
            path
            for path in between.old
            if path == place or component.role(path) in {Role.CONTRACT, Role.TESTS}
        )
        if recorded is None or not changed:
            continue
        is_declared, was_declared = name in between.now.ids, name in between.known.ids
        more = {} if is_declared else _possible_new_places(between, recorded_at(component, recorded, objects))
        state = state_over(
            component, changed, view, between.old, recorded, more=more, asks_all=not was_declared
        )
        forged = is_declared and place in changed and is_forged(state.recorded, state.before, objects)
        hint = _ONE_COMMIT if is_declared else _RETIRE_FIRST
        for finding in examine_cumulative(
            state, is_declared=is_declared, was_declared=was_declared, is_forged=forged
        ):
            is_error = finding.level is Level.ERROR and not finding.definition.invariant
            yield replace(finding, hint=hint) if is_error else finding


def _possible_new_places(between: _TreeDifference, before: object) -> dict[RepoPath, tuple[Role, Entry]]:
    """Find the new files that may contain those of a component that is no longer declared."""
    from patchgate.components.baseline_file import Baseline
    from patchgate.components.drift_comparison import is_named_as_test

    recorded = {each.oid: each.role for each in before.files.values()} if isinstance(before, Baseline) else {}
    found: dict[RepoPath, tuple[Role, Entry]] = {}
    for file in between.files:
        if file.old is not None or file.new is None or not file.new.is_file:
            continue
        claims = [role for each, role in between.now.claims(file.path) if each.id not in between.known.ids]
        role = recorded.get(file.new.oid) or (claims[0] if claims else None)
        if role is None and is_named_as_test(file.path) and not between.now.claims(file.path):
            role = Role.TESTS
        if role is not None:
            found[file.path] = (role, file.new)
    return found


def _contracts(objects: Objects, between: _TreeDifference) -> Iterator[Finding]:
    own = between.span.has.policy
    if own is None or not between.now:
        return
    from patchgate.components.component_cache import FactsCache
    from patchgate.components.contract_gathering import changed_declarations, contracts_of_change
    from patchgate.components.contracts import examine_contracts

    had = between.span.had.policy
    otherwise = changed_declarations(own, had) if had is not None else set(between.now.ids)
    with FactsCache.of(objects.repository) as cache:
        view = contracts_of_change(
            own, TreeView(objects, between.span.after), between.files, cache, otherwise
        )
        if view is not None:
            yield from examine_contracts(view, own)


def _findings_before(objects: Objects, span: Span, gate: str, names: Collection[str]) -> Iterator[Finding]:
    """Find what was wrong with some components before: contracts, and lost tests."""
    had = span.had.policy
    if had is None:
        return
    view = TreeView(objects, span.before)
    if gate == _CONTRACTS:
        from patchgate.components.component_cache import FactsCache

        with FactsCache.of(objects.repository) as cache:
            yield from contracts_of(had, view, cache)
        return
    from patchgate.components.drift import examine_state
    from patchgate.components.drift_gathering import state_of

    for name in sorted(names):
        component = had.components.get(name)
        if component is not None:
            found = examine_state(state_of(component, view))
            yield from (each for each in found if each.rule == _WEAKENED)


def contracts_of(policy: Policy, view: TreeView, cache: FactsCache) -> Iterator[Finding]:
    """Find what is wrong with the contracts of a whole tree."""
    from patchgate.components.contract_gathering import contracts_of_tree
    from patchgate.components.contracts import examine_contracts

    contracts = contracts_of_tree(policy, view, cache)
    if contracts is not None:
        yield from examine_contracts(contracts, policy)


def _components(found: FoundPolicy) -> Components:
    return found.policy.components if found.policy is not None else Components({})


def _difference(objects: Objects, span: Span) -> Sequence[FileChange]:
    from patchgate.git.diff import Detail, read_difference

    command, trees = ("diff-tree", "-r"), [span.before, span.after]
    files, _ = read_difference(objects.repository, objects, command, trees, Detail(), span.variables or None)
    return files


def add_range_findings(
    repository: Repository, report: Report, revision: str, asked: CheckOptions, merges: TipMerges | None
) -> Report:
    """Add to the verdicts on the commits of a range what they do together to the components of a revision.

    Only components are compared that a commit of the range touches.

    Args:
        report: the verdicts on the commits, parents first.
        revision: the range as given.
        asked: names the revision whose policy counts; without one, nothing is added.
        merges: makes the merge with a branch that has moved on; None: the range replaces what it has.
    """
    # Commits are cleared only where neither end of their range declares a component.
    if asked.policy_from is None or report.cleared is not None or not report.changes:
        return report
    last = report.changes[-1]
    with Objects(repository) as objects:
        there = asked.branch or asked.policy_from
        known = objects.header(there + "^{commit}") or objects.header(there + "^{tree}")
        if known is None or last.source.commit is None:
            return report
        try:
            judging = _found(objects, TreePolicies(objects), asked.policy_from).policy or built_in()
            together = _judge_range(objects, known, last.source.commit, report, judging, merges)
        except PatchgateError as error:
            together = CumulativeVerdict((GateOutcome("drift", Outcome.UNDECIDED, error.sentence),))
        return _add_verdict(
            report, objects, together, Source("range", ref=revision), last.profile, last.policy
        )


def add_update_findings(
    repository: Repository, ref: str, old: str, new: str, report: Report, asked: Callable[[], CheckOptions]
) -> Report:
    """Add to the verdicts on an update of a protected branch what its commits do together.

    Args:
        report: the verdicts on the commits that were not checked before.
        asked: returns how to judge.
    """
    with Objects(repository) as objects:
        policies = TreePolicies(objects)
        had, has = (_found(objects, policies, each) for each in (old, new))
        policy = had.policy
        if policy is None or not policy.config.components or not _is_protected(policy, ref):
            return report
        if not is_ancestor(repository, old, new):
            # A rewritten branch is compared at the push, with what the remote has.
            return report
        requested = requested_policy(objects, policies, asked())
        judging = policy if requested is None else require_usable(requested)
        shown = f"{old[:SHORT_OID]}, which the branch has"
        span = Span(tree_of(objects, old), tree_of(objects, new), had, has, judging, shown)
        together = judge_cumulative(objects, span, report.changes)
        bound = reference(judging, old[:SHORT_OID], Profile.COMMIT)
        return _add_verdict(report, objects, together, Source("ref", ref=ref), Profile.COMMIT.value, bound)


def _add_verdict(
    report: Report,
    objects: Objects,
    together: CumulativeVerdict,
    source: Source,
    profile: str,
    bound: PolicyReference,
) -> Report:
    if together.is_silent:
        return report
    verdict = ChangeVerdict(
        change=Change.of(objects.empty_tree, objects.empty_tree, ()),
        source=source,
        profile=profile,
        policy=bound,
        gates=together.gates,
        findings=together.findings,
    )
    return replace(report, changes=(*report.changes, verdict))


def _is_protected(policy: Policy, ref: str) -> bool:
    listed = policy.config.push.protected_refs
    return ref in USUAL_BRANCHES if listed is None else matches_ref(listed, ref)


def _judge_range(
    objects: Objects, known: Header, tip: str, report: Report, judging: Policy, merges: TipMerges | None
) -> CumulativeVerdict:
    repository, oid, policies = objects.repository, known.oid, TreePolicies(objects)
    had, has = (_found(objects, policies, each) for each in (oid, tip))
    if not declares_any(had, has):
        return CumulativeVerdict()
    shown = f"{oid[:SHORT_OID]}, which the branch has"
    touched = {file.path for change in report.changes for file in change.change.files}
    after = tree_of(objects, tip)
    if known.type != "commit" or is_ancestor(repository, oid, tip):
        span = Span(tree_of(objects, oid), after, had, has, judging, shown)
        return judge_cumulative(objects, span, report.changes, touched)
    if is_ancestor(repository, tip, oid):
        return CumulativeVerdict()
    parting = common_ancestor(repository, oid, tip)
    if parting is None and repository.shallow:
        raise UndecidedError(
            f"this clone is shallow, and has no common commit of {oid[:SHORT_OID]} and {tip[:SHORT_OID]}",
            "git fetch --unshallow",
        )
    parting = parting or oid
    if merges is not None and not (merged := merges.of(oid, tip)).conflicts:
        store = merges.store
        with Objects(repository, store.variables) as joined:
            whole = _found(joined, TreePolicies(joined), merged.tree)
            span = Span(tree_of(objects, oid), merged.tree, had, whole, judging, shown, store.variables)
            return judge_cumulative(joined, span, report.changes, touched)
    had = _found(objects, policies, parting)
    span = Span(tree_of(objects, parting), after, had, has, judging, parting[:SHORT_OID])
    return judge_cumulative(objects, span, report.changes, touched)


def _found(objects: Objects, policies: TreePolicies, revision: str) -> FoundPolicy:
    return policies.at(policies.key(tree_of(objects, revision)))


def tree_of(objects: Objects, revision: str) -> str:
    """Return the tree of a commit, or of a tree itself.

    Raises:
        UndecidedError: it is not here.
    """
    header = objects.header(revision + "^{tree}")
    if header is None:
        message = f"commit {revision[:12]} has no tree in this clone"
        raise UndecidedError(message, "git fetch --refetch, then try again")
    return header.oid
