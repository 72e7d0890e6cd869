"""Compare a protected ref with what it becomes: every owned path must be as an approved commit made it.

The commits alone do not show that: a clean merge can combine what nobody approved, bring back what was there
before, and make a file a control file. The owners are those of the ref itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from patchgate.approvals.approved_commits import ApprovedPath, Contents, approved_paths, find_part, tree_of
from patchgate.approvals.approved_slots import MissingPart
from patchgate.approvals.binding import RulesState
from patchgate.approvals.owner_finding import GATE, owner_finding
from patchgate.approvals.signers import has_signers
from patchgate.check.hook_decision import ApprovalSources
from patchgate.check.judging_policy import controls_of, owned_paths, reference
from patchgate.check.policy_lookup import CheckOptions
from patchgate.check.refs import show_ref
from patchgate.check.repository_ids import repository_id, repository_of
from patchgate.errors import UndecidedError
from patchgate.git.model import Change, Entry, FileChange, Source, pair_renames
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestors
from patchgate.git.repository import Repository
from patchgate.git.revisions import commit_named
from patchgate.git.trees import compare_trees
from patchgate.policy.policy import Profile
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies, built_in
from patchgate.report.rules import Level
from patchgate.report.verdict import (
    OWNER_RULE,
    ChangeVerdict,
    Finding,
    GateOutcome,
    Outcome,
    OwnedPaths,
    ProtectedRef,
    Verdict,
)
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace


def compare_ref(
    objects: Objects,
    ref: ProtectedRef,
    changes: Sequence[ChangeVerdict],
    sources: ApprovalSources,
    rules_of: Callable[[str | None], RulesState] | None,
    contents: Contents,
) -> list[ChangeVerdict]:
    """Return a verdict on what a ref becomes, if not every owned path is as an approved commit made it.

    Args:
        ref: the ref, with what it has and becomes.
        changes: the commits that it gets, with what their owners' approvals lack.
        rules_of: returns which commits of a history have changed control files, where the ref may lose some.
        contents: what is known for all refs.
    """
    if ref.tip is None:
        return []
    try:
        findings = list(_uncovered(objects, ref, changes, sources, rules_of, contents))
    except UndecidedError as error:
        return [_verdict(objects, ref, GateOutcome(GATE, Outcome.UNDECIDED, error.sentence), ())]
    if not findings:
        return []
    # What could not be compared with the rules is not refused: a fetch may bring what is missing.
    unknown = next((reason for each in changes if (reason := _not_known(each)) is not None), None)
    if unknown is not None:
        return [_verdict(objects, ref, GateOutcome(GATE, Outcome.UNDECIDED, unknown), ())]
    return [_verdict(objects, ref, GateOutcome(GATE, Outcome.FAIL), findings)]


def _not_known(change: ChangeVerdict) -> str | None:
    """Return why it is not known whether a change has its approvals; None if it is."""
    gates = (gate for gate in change.context_gates if gate.gate == GATE)
    unknown = (gate for gate in gates if gate.outcome is Outcome.UNDECIDED)
    return next((gate.reason or "" for gate in unknown), None)


def landing_place(repository: Repository, asked: CheckOptions) -> ProtectedRef:
    """Return the branch whose policy judges, as what gets a change.

    Raises:
        UndecidedError: git could not answer.
    """
    with Objects(repository) as objects:
        named = repository_of(objects, TreePolicies(objects), asked)
    return ProtectedRef(asked.target, asked.branch, repository=named)


def range_landing(repository: Repository, revision: str, asked: CheckOptions) -> tuple[ProtectedRef, ...]:
    """Return what a range `A..B` makes of the branch whose policy judges it; nothing for another revision.

    Raises:
        UsageError: there is no such revision.
        UndecidedError: git could not answer.
    """
    first, dots, last = revision.partition("..")
    if not dots or last.startswith(".") or asked.policy_from is None:
        return ()
    with Objects(repository) as objects:
        tip = commit_named(objects, last or "HEAD")
        bases = common_ancestors(repository, commit_named(objects, first or "HEAD"), tip)
    return (
        replace(
            landing_place(repository, asked),
            policy=asked.policy_from,
            tip=tip,
            base=bases[0] if bases else None,
            other_bases=tuple(bases[1:]),
        ),
    )


def _uncovered(
    objects: Objects,
    ref: ProtectedRef,
    changes: Sequence[ChangeVerdict],
    sources: ApprovalSources,
    rules_of: Callable[[str | None], RulesState] | None,
    contents: Contents,
) -> Iterator[Finding]:
    before = tree_of(objects, ref.base) if ref.base is not None else objects.empty_tree
    after = tree_of(objects, ref.tip or "")
    is_there = all(tree_of(objects, each) == after for each in ref.other_bases)
    if before == after and is_there and not (ref.is_forced or ref.is_new):
        return
    if ref.has_landed:
        # Nothing is ever pushed to a tag.
        return
    owners = tree_of(objects, ref.policy) if ref.policy is not None else objects.empty_tree
    found = contents.policies.at(contents.policies.key(owners))
    can_sign = has_signers(objects, owners) or bool(sources.signers)
    if not (can_sign or _may_own(found, sources)):
        return
    now = before if ref.commit is None else tree_of(objects, ref.commit)
    becomes = contents.policies.at(contents.policies.key(after)) if can_sign else FoundPolicy()
    comparison = _Comparison(objects, ref, changes, found, owners, becomes, contents)
    findings: list[Finding] = []
    for view in _views(objects, ref, before, now, after):
        findings = list(comparison.findings(view))
        if not findings:
            break
    yield from findings
    if ref.commit is not None and _is_renamed(objects, ref, contents, now, after):
        yield _renamed(ref)
    if rules_of is not None and (lost := rules_of(ref.commit).commits - rules_of(ref.tip).commits):
        yield _lost(ref, min(lost))


@dataclass(frozen=True, slots=True)
class _View:
    """One way to see what a ref becomes.

    `here` is what it has otherwise, `controls` which of these are control files. What any of the trees of
    `there`, or for a control file of `rules_there`, has is there already.
    """

    here: Mapping[RepoPath, FileChange]
    controls: frozenset[RepoPath]
    there: Sequence[str]
    rules_there: Sequence[str]

    def is_there(self, objects: Objects, path: RepoPath) -> bool:
        """Return whether a path is as it is there already."""
        trees = self.rules_there if path in self.controls else self.there
        return any(objects.entry(tree, path.raw) == self.here[path].new for tree in trees)


def _views(objects: Objects, ref: ProtectedRef, before: str, now: str, after: str) -> Iterator[_View]:
    """Yield how a ref may be seen; one of them must be right.

    A new branch may be as the default one is now, or as that was where it begins, but for the rules: these
    are those of today. It is not partly the one and partly the other.
    """

    def view(here: Mapping[RepoPath, FileChange], there: Sequence[str], rules_there: Sequence[str]) -> _View:
        controls = controls_of(objects, before, after, here) | controls_of(objects, now, after, here)
        return _View(here, controls, there, rules_there)

    here = compare_trees(objects, before, after)
    if not ref.is_new or now == before:
        there = [before, now, *(tree_of(objects, each) for each in ref.other_bases)]
        yield view(here, there, there)
        return
    unlike_now = compare_trees(objects, now, after)
    yield view(unlike_now, [now], [now])
    rules = controls_of(objects, now, after, unlike_now)
    here |= {path: file for path, file in unlike_now.items() if path in rules}
    yield view(here, [before], [now])


class _Comparison:
    """Compares what a ref becomes with what the approved commits make.

    Args:
        found: the policy that names the owners, of the tree `owners`.
        becomes: the policy that the ref gets; absent where nobody could approve that.
    """

    def __init__(
        self,
        objects: Objects,
        ref: ProtectedRef,
        changes: Sequence[ChangeVerdict],
        found: FoundPolicy,
        owners: str,
        becomes: FoundPolicy,
        contents: Contents,
    ) -> None:
        self._objects, self._ref, self._found, self._contents = objects, ref, found, contents
        approved, self._whole = approved_paths(objects, changes, found, owners)
        self._refused = _refused(changes)
        self._is_refused = any(change.verdict is Verdict.REJECTED for change in changes)
        self._becomes = becomes
        self._made: dict[RepoPath, list[ApprovedPath]] = defaultdict(list)
        for each in approved:
            self._made[each.path].append(each)

    def findings(self, view: _View) -> Iterator[Finding]:
        """Yield what lands in part, and what no approved commit made.

        Raises:
            UndecidedError: the policy that names the owners cannot be read.
        """
        _require_readable(self._found, view.controls, view.here)

        def begins(path: RepoPath) -> Sequence[str]:
            return view.rules_there if path in view.controls else view.there

        part = None
        if not self._is_refused or self._contents.effort_for_refused.spend(len(self._whole)):
            part = find_part(self._objects, self._ref, self._whole, begins, self._found, self._contents)
            part = part or self._moved_part(view)
        if part is not None:
            yield _part(self._ref, part)
        tables = list(owned_paths(self._found, view.here, view.controls, self._becomes))
        named = {path for each in tables if each.table is not None for path in each.paths}
        for owned in tables:
            if owned.table is None and named.issuperset(owned.paths):
                continue
            left = [path for path in owned.paths if not self._is_explained(owned, path, view)]
            if left:
                yield _finding(owned, left, view.here, self._ref)

    def _moved_part(self, view: _View) -> MissingPart | None:
        """Find a file of a denied kind that no commit was asked about: nobody is asked about a move.

        Beside approved exceptions it must be a move of what the branch has: else a part of one comes so. That
        a file is binary shows in its content alone, which is then that of the exception.
        """
        policy = self._found.policy
        asked = [each for each in self._whole if each.is_exception and not each.is_policy and each.new]
        if policy is None or not asked:
            return None
        had = {
            self._objects.empty_blob,
            *(file.old.oid for file in view.here.values() if file.old is not None),
        }
        contents = {each.new.oid for each in asked if each.new is not None and each.is_binary} - had

        def is_denied(path: RepoPath, new: Entry | None, *, is_new: bool) -> bool:
            ruling = policy.ruling(path)
            limits = [policy.limits(profile, ruling.owner) for profile in Profile]
            kinds = frozenset[str]().union(*(each.deny_classes for each in limits))
            kinds = kinds.union(*(each.deny_new_classes for each in limits if is_new))
            is_of_content = new is not None and new.oid in contents and "binary" in kinds
            return is_of_content or ruling.suffix is not None or not kinds.isdisjoint(ruling.classes)

        moves = pair_renames([*view.here.values()], self._objects.empty_blob)
        made = {each.path for each in self._whole}
        for path, file in view.here.items():
            is_move = path in moves and is_denied(moves[path], None, is_new=True)
            is_known = file.new is None or is_move or path in made or view.is_there(self._objects, path)
            if not is_known and is_denied(path, file.new, is_new=file.old is None):
                commit = next((each.commit for each in asked if each.new == file.new), asked[0].commit)
                return MissingPart(commit, path)
        return None

    def _is_explained(self, owned: OwnedPaths, path: RepoPath, view: _View) -> bool:
        if path in self._refused or view.is_there(self._objects, path):
            return True
        file, is_control = view.here[path], path in view.controls
        return any(each.covers(owned, file, is_control, self._contents) for each in self._made[path])


def _require_readable(found: FoundPolicy, controls: Collection[RepoPath], here: Collection[RepoPath]) -> None:
    """Refuse a change of other files than the rules while these cannot be read."""
    if found.fault is not None and len(controls) < len(here):
        raise UndecidedError(
            f"the policy that names the owners cannot be read: {found.fault.in_one_line}",
            "first push its repair alone, approved by a signer",
        )


def _may_own(found: FoundPolicy, sources: ApprovalSources) -> bool:
    """Return whether the server must ask although nobody can approve: pre-push cannot know its signers."""
    has_tables = found.policy is not None and bool(found.policy.config.owners)
    return sources.is_final and (has_tables or found.fault is None)


def _refused(changes: Sequence[ChangeVerdict]) -> set[RepoPath]:
    """List the paths of commits that lack an approval for a ref: that is reported already."""
    return {
        path
        for change in changes
        if any(each.rule == OWNER_RULE and each.level is Level.ERROR for each in change.findings)
        for owned in change.owned
        for path in owned.paths
    }


def _finding(
    owned: OwnedPaths, left: Sequence[RepoPath], here: Mapping[RepoPath, FileChange], ref: ProtectedRef
) -> Finding:
    name = show_ref(ref.ref) if ref.ref is not None else "the branch"
    what = "would lose" if here[left[0]].new is None else "would get a content of"
    return owner_finding(
        f"{name} {what} {left[0].quoted}, which has owners, that no approved commit of this push made; "
        "a merge brings it, or commits that were approved elsewhere",
        left[0],
        f"rebase onto {'the default branch' if ref.is_new else name}, so that one commit makes this change, "
        "and ask an owner to approve it",
        ref,
        owned,
    )


def _part(ref: ProtectedRef, missing: MissingPart) -> Finding:
    name = show_ref(ref.ref) if ref.ref is not None else "the branch"
    short = (missing.commit or ref.tip or "")[:SHORT_OID]
    return owner_finding(
        f"{name} would get a part of {short}, which was approved as a whole: {missing.path.quoted} is not "
        "as it made it, or was not as it began; a merge left that out",
        missing.path,
        f"land {short} whole, or rebase onto {name}, so that one commit makes what is wanted, and ask an "
        "owner to approve that",
        ref,
    )


def _is_renamed(objects: Objects, ref: ProtectedRef, contents: Contents, now: str, after: str) -> bool:
    """Return whether a ref would get another id of the repository than the one that is named, or lose it.

    What has the id with which it began, before the branch had another one, leaves that to the merge.
    """

    def policy_of(tree: str) -> FoundPolicy:
        return contents.policies.at(contents.policies.key(tree))

    last = policy_of(after)
    if not ref.repository or last.id == ref.repository:
        return False
    if ref.is_new:
        return repository_id(objects, contents.policies, [ref.tip]) not in {None, ref.repository}
    if last.fault is not None and last.id is None:
        return False
    has = policy_of(now)
    begins = [tree_of(objects, each) for each in (ref.base, *ref.other_bases) if each is not None]
    began = map(policy_of, begins or [objects.empty_tree])
    is_kept = has.fault is None and last.id == has.id
    return not is_kept and any(each.fault is not None or last.id != each.id for each in began)


def _renamed(ref: ProtectedRef) -> Finding:
    name = show_ref(ref.ref) if ref.ref is not None else "the branch"
    return owner_finding(
        f"{name} would get another [governance] id, or none: approvals that are for another repository would "
        "count here",
        None,
        "keep it; a fork changes it before its checks are installed, or an administrator does without them",
        ref,
    )


def _lost(ref: ProtectedRef, commit: str) -> Finding:
    name = show_ref(ref.ref) if ref.ref is not None else "the branch"
    return owner_finding(
        f"{name} has owners, and would lose {commit[:SHORT_OID]}, which changed its rules",
        None,
        f"keep it: push commits on top of {name}, without force",
        ref,
    )


def _verdict(
    objects: Objects, ref: ProtectedRef, outcome: GateOutcome, findings: Sequence[Finding]
) -> ChangeVerdict:
    empty = objects.empty_tree
    place = (ref.policy or ref.tip or "")[:12]
    return ChangeVerdict(
        change=Change.of(empty, empty, ()),
        source=Source("ref", ref=ref.ref),
        profile=Profile.COMMIT.value,
        policy=reference(built_in(), place, Profile.COMMIT),
        gates=(outcome,),
        findings=tuple(findings),
    )
