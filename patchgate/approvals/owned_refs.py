"""Compare a protected ref with what it becomes: every owned path must be as an approved commit made it.

The commits alone do not show that: a clean merge can combine what nobody approved, bring back what was there
before, and make a file a control file. The owners are those of the ref itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from patchgate.approvals.binding import RulesState
from patchgate.approvals.owner_finding import GATE, owner_finding
from patchgate.approvals.signatures import base_tree
from patchgate.approvals.signers import has_signers
from patchgate.approvals.whole_commits import Missing, Slot, WholeCommit, find_missing
from patchgate.check.hook_decision import ApprovalSources
from patchgate.check.judging_policy import controls_of, owned_paths, reference
from patchgate.check.policy_lookup import CheckOptions
from patchgate.check.refs import show_ref
from patchgate.errors import UndecidedError
from patchgate.git.diff import Detail, read_difference
from patchgate.git.model import Change, Entry, FileChange, Source
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestors
from patchgate.git.repository import Repository
from patchgate.git.revisions import commit_named
from patchgate.policy.file_kinds import ALLOWED_SIGNERS, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Policy, Profile
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
)
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass

# Everybody may change in them what says nothing about the rules.
_WITH_OTHER_CONTENT = frozenset({PRE_COMMIT_FILE.raw, PYPROJECT_FILE.raw})


def compare_ref(
    objects: Objects,
    ref: ProtectedRef,
    changes: Sequence[ChangeVerdict],
    sources: ApprovalSources,
    rules_of: Callable[[str | None], RulesState] | None,
) -> list[ChangeVerdict]:
    """Return a verdict on what a ref becomes, if not every owned path is as an approved commit made it.

    Args:
        ref: the ref, with what it has and becomes.
        changes: the commits that it gets, with what their owners' approvals lack.
        rules_of: returns which commits of a history have changed control files, where the ref may lose some.
    """
    if ref.tip is None:
        return []
    try:
        findings = list(_uncovered(objects, ref, changes, sources, rules_of))
    except UndecidedError as error:
        return [_verdict(objects, ref, GateOutcome(GATE, Outcome.UNDECIDED, error.sentence), ())]
    if not findings:
        return []
    # What could not be compared with the rules is not refused: a fetch may bring what is missing.
    unknown = next((reason for each in changes if (reason := _not_known(each, ref)) is not None), None)
    if unknown is not None:
        return [_verdict(objects, ref, GateOutcome(GATE, Outcome.UNDECIDED, unknown), ())]
    return [_verdict(objects, ref, GateOutcome(GATE, Outcome.FAIL), findings)]


def _not_known(change: ChangeVerdict, ref: ProtectedRef) -> str | None:
    """Return why it is not known whether a change that a ref gets has its approvals; None if it is."""
    gates = change.context_gates if ref in change.lands_on else ()
    unknown = (gate for gate in gates if gate.gate == GATE and gate.outcome is Outcome.UNDECIDED)
    return next((gate.reason or "" for gate in unknown), None)


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
        ProtectedRef(
            ref=asked.target,
            commit=asked.branch,
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
) -> Iterator[Finding]:
    before = _tree(objects, ref.base) if ref.base is not None else objects.empty_tree
    after = _tree(objects, ref.tip or "")
    if before == after and not (ref.is_forced or ref.is_new):
        return
    if ref.has_landed:
        # Nothing is ever pushed to a tag.
        return
    policies = TreePolicies(objects)
    owners = _tree(objects, ref.policy) if ref.policy is not None else objects.empty_tree
    found = policies.at(policies.key(owners))
    if not _may_own(objects, found, owners, sources):
        return
    now = before if ref.commit is None else _tree(objects, ref.commit)
    trees = [before, after]
    files, _ = read_difference(objects.repository, objects, ("diff-tree", "-r"), trees, Detail())
    here = {file.path: file for file in files}
    if ref.is_new and now != before:
        # A branch from long ago has the rules of today.
        trees = [now, after]
        files, _ = read_difference(objects.repository, objects, ("diff-tree", "-r"), trees, Detail())
        rules = controls_of(objects, now, after, [file.path for file in files])
        here |= {file.path: file for file in files if file.path in rules}
    controls = controls_of(objects, before, after, here) | controls_of(objects, now, after, here)
    if found.fault is not None and len(controls) < len(here):
        raise UndecidedError(
            f"the policy that names the owners cannot be read: {found.fault.in_one_line}",
            "first push its repair alone, approved by a signer",
        )
    approved = _made_by(objects, ref, changes, found, owners, Outcome.PASS)
    # What lacks an approval is reported already: here it counts as if it had one.
    whole = approved | _made_by(objects, ref, changes, found, owners, Outcome.FAIL)
    refused = _refused(ref, changes)
    # What any of these has is there already: the merge of the two is judged by itself.
    there = [now, *(_tree(objects, each) for each in ref.other_bases)]
    contents = _Contents(objects, policies)
    part = _partial(objects, ref, whole, [before, *there], contents)
    if part is not None:
        yield part
    if rules_of is not None and (lost := rules_of(ref.commit).commits - rules_of(ref.tip).commits):
        yield _lost(ref, min(lost))
    made: dict[RepoPath, list[_Approved]] = defaultdict(list)
    for each in approved:
        made[each.path].append(each)
    tables = list(owned_paths(found, here, controls))
    named = {path for each in tables if each.table is not None for path in each.paths}
    for owned in tables:
        if owned.table is None and named.issuperset(owned.paths):
            continue
        left = [
            path
            for path in owned.paths
            if path not in refused
            and not any(each.covers(owned, here[path], path in controls, contents) for each in made[path])
            and all(here[path].new != objects.entry(tree, path.raw) for tree in there)
        ]
        if left:
            yield _finding(owned, left, here, ref)


def _may_own(objects: Objects, found: FoundPolicy, tree: str, sources: ApprovalSources) -> bool:
    """Return whether anybody can approve, or the server must ask: pre-push cannot know its signers."""
    if has_signers(objects, tree) or sources.signers:
        return True
    has_tables = found.policy is not None and bool(found.policy.config.owners)
    return sources.is_final and (has_tables or found.fault is None)


@dataclass(frozen=True, slots=True)
class _Approved:
    """What an approved commit made of an owned path, by which table, and whether as a control file."""

    commit: str
    path: RepoPath
    old: Entry | None
    new: Entry | None
    table: int | None
    is_policy: bool

    @property
    def slot(self) -> Slot:
        """What was approved of the path."""
        return self.path, self.is_policy and self.path.raw in _WITH_OTHER_CONTENT

    def covers(self, owned: OwnedPaths, file: FileChange, is_control: bool, contents: _Contents) -> bool:
        """Return whether this approves what a path becomes, for the owners of a table."""
        is_bound = self.is_policy or not is_control
        is_meant = self.table == owned.table or (owned.table is None and self.is_policy)
        is_so = self.path == file.path and is_bound and is_meant
        return is_so and contents.value(self.slot, self.new) == contents.value(self.slot, file.new)


class _Contents:
    """Says what counts of the content of an owned path."""

    def __init__(self, objects: Objects, policies: TreePolicies) -> None:
        self._objects, self._policies = objects, policies
        self._written: list[Policy] = []

    def value(self, slot: Slot, entry: Entry | None) -> Hashable:
        """Return it; of a file in which everybody may change the rest, what it says about the rules."""
        path, as_policy = slot
        if not as_policy:
            return entry
        if path.raw == PRE_COMMIT_FILE.raw:
            return entry if self._policies.is_naming(entry) else None
        key = self._policies.key_of(None, entry)
        policy = self._policies.at(key).policy
        if policy is None:
            return None if key[1] is None else entry
        same = next((index for index, each in enumerate(self._written) if each.is_written_as(policy)), None)
        if same is None:
            self._written.append(policy)
            return len(self._written) - 1
        return same

    def at(self, slot: Slot, tree: str) -> Hashable:
        """Return it for what a tree has there."""
        return self.value(slot, self._objects.file_at(tree, slot[0].raw))


def _made_by(
    objects: Objects,
    ref: ProtectedRef,
    changes: Sequence[ChangeVerdict],
    found: FoundPolicy,
    owners: str,
    outcome: Outcome,
) -> set[_Approved]:
    """List what commits make of owned paths, by the policy and signers of the ref.

    Args:
        outcome: that of the gate for the owners: of approved commits, or of those that lack an approval.
    """
    policy = found.policy or built_in()
    signers = objects.entry(owners, ALLOWED_SIGNERS.raw)
    made: set[_Approved] = set()
    for change in changes:
        is_meant = found.policy is None or change.policy.digest == policy.digest(Profile(change.profile))
        is_judged = any(gate.gate == GATE and gate.outcome is outcome for gate in change.context_gates)
        if ref not in change.lands_on or not is_meant or not is_judged:
            continue
        tree = base_tree(objects, change)
        if tree is None or objects.entry(tree, ALLOWED_SIGNERS.raw) != signers:
            continue
        files = {file.path: file for file in change.change.files}
        made |= {
            _Approved(
                change.source.commit or "",
                path,
                files[path].old,
                files[path].new,
                each.table,
                each.is_policy,
            )
            for each in change.owned
            for path in each.paths
            if path in files
        }
    return made


def _partial(
    objects: Objects, ref: ProtectedRef, approved: set[_Approved], there: Sequence[str], contents: _Contents
) -> Finding | None:
    """Find what lands, or would with the merge that a head will get, of approved commits without the rest.

    Args:
        there: the trees of what counts as there already.
    """
    if not approved or ref.tip is None:
        return None
    slots = sorted({each.slot for each in approved})
    commits = _whole_commits(objects, ref, approved, slots, contents)

    def values(*trees: str) -> dict[Slot, frozenset[Hashable]]:
        return {slot: frozenset(contents.at(slot, tree) for tree in trees) for slot in slots}

    after = _tree(objects, ref.tip)
    head = {slot: contents.at(slot, after) for slot in slots}
    missing = find_missing(values(*there), head, commits)
    is_stale = ref.commit is not None and ref.base != ref.commit and not (ref.is_new or ref.is_forced)
    if missing is None and ref.commit is not None and is_stale:
        now = _tree(objects, ref.commit)
        for base in filter(None, (ref.base, *ref.other_bases)):
            merged = _merged(slots, _tree(objects, base), now, after, contents)
            missing = missing or find_missing(values(now), merged, commits)
    return None if missing is None else _part(ref, missing)


def _merged(
    slots: Sequence[Slot], base: str, ours: str, theirs: str, contents: _Contents
) -> dict[Slot, Hashable]:
    """Return what a merge makes of some paths; without those that both sides change: owners are asked."""
    merged = {}
    for slot in slots:
        was, one, other = (contents.at(slot, tree) for tree in (base, ours, theirs))
        if was in (one, other) or one == other:
            merged[slot] = other if was == one else one
    return merged


def _whole_commits(
    objects: Objects,
    ref: ProtectedRef,
    approved: set[_Approved],
    slots: Sequence[Slot],
    contents: _Contents,
) -> list[WholeCommit]:
    """List the approved commits of a ref, the oldest first."""
    history = _Ancestors(objects.repository, ref)
    by_commit: dict[str, dict[Slot, _Approved]] = defaultdict(dict)
    for each in approved:
        by_commit[each.commit][each.slot] = each
    found = []
    for commit in history.newest_first:
        if commit not in by_commit:
            continue
        mine, parents = by_commit[commit], history.parents_of(commit)
        begins = {slot: {contents.value(slot, each.old)} for slot, each in mine.items()}
        makes = {slot: contents.value(slot, each.new) for slot, each in sorted(mine.items())}
        if len(parents) > 1:
            # Its approval is for its tree.
            makes = {slot: contents.at(slot, _tree(objects, commit)) for slot in slots}
            for slot in slots:
                sides = {contents.at(slot, _tree(objects, parent)) for parent in parents}
                begins[slot] = sides | begins.get(slot, set())
        below = frozenset(history.of(commit).intersection(by_commit))
        found.append(WholeCommit(commit, begins, makes, below, is_merge=len(parents) > 1))
    return found[::-1]


class _Ancestors:
    """The ancestors of commits that are new to a ref, as far as they are new themselves."""

    def __init__(self, repository: Repository, ref: ProtectedRef) -> None:
        known = [] if ref.base is None else ["^" + ref.base]
        raw = repository.output("rev-list", "--topo-order", "--parents", ref.tip or "", *known)
        # Children stand before their parents.
        self._parents = {line[0]: line[1:] for line in map(str.split, raw.decode("ascii").splitlines())}
        self._found: dict[str, set[str]] = {}

    @property
    def newest_first(self) -> Iterable[str]:
        """All of these commits, each before its ancestors."""
        return self._parents

    def parents_of(self, commit: str) -> Sequence[str]:
        """Return the parents of one of these commits."""
        return self._parents.get(commit, ())

    def of(self, commit: str) -> set[str]:
        """Return them, without the commit."""
        if commit not in self._found:
            found: set[str] = set()
            waiting = list(self._parents.get(commit, ()))
            while waiting:
                oid = waiting.pop()
                if oid in self._parents and oid not in found:
                    found.add(oid)
                    waiting += self._parents[oid]
            self._found[commit] = found
        return self._found[commit]


def _refused(ref: ProtectedRef, changes: Sequence[ChangeVerdict]) -> set[RepoPath]:
    """List the paths of commits that lack an approval for a ref: that is reported already."""
    return {
        path
        for change in changes
        if any(each.rule == OWNER_RULE and each.level is Level.ERROR for each in change.findings)
        and ref in change.lands_on
        for owned in change.owned
        for path in owned.paths
    }


def _finding(
    owned: OwnedPaths, left: Sequence[RepoPath], here: dict[RepoPath, FileChange], ref: ProtectedRef
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


def _part(ref: ProtectedRef, missing: Missing) -> Finding:
    name = show_ref(ref.ref) if ref.ref is not None else "the branch"
    short = missing.commit[:SHORT_OID]
    return owner_finding(
        f"{name} would get a part of {short}, which was approved as a whole: {missing.path.quoted} is not "
        "as it made it, or was not as it began; a merge left that out",
        missing.path,
        f"land {short} whole, or rebase onto {name}, so that one commit makes what is wanted, and ask an "
        "owner to approve that",
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


def _tree(objects: Objects, revision: str) -> str:
    header = objects.header(revision + "^{tree}")
    if header is None:
        raise UndecidedError(f"{revision[:12]} is missing here", "git fetch")
    return header.oid
