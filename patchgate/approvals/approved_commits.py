"""What the approved commits of a ref make of paths that not everybody may change, and what lands in part.

A path counts here if it has owners, or if an exception was approved for it from a rule about paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from patchgate.approvals import whole_commits
from patchgate.approvals.approved_slots import Approved, Effort, MissingPart, Slot, Values
from patchgate.approvals.new_history import NewHistory
from patchgate.approvals.owner_finding import GATE
from patchgate.approvals.signatures import base_tree
from patchgate.check.judging_policy import controls_of
from patchgate.errors import UndecidedError
from patchgate.git.model import Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestors
from patchgate.policy.file_kinds import ALLOWED_SIGNERS, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies, built_in
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, Outcome, OwnedPaths, ProtectedRef
from patchgate.values import dataclass

# Everybody may change in them what says nothing about the rules.
_WITH_OTHER_CONTENT = frozenset({PRE_COMMIT_FILE.raw, PYPROJECT_FILE.raw})
_PATH_RULES = frozenset({"outside-allow-roots", "deny-prefix", "deny-pattern", "deny-suffix", "deny-class"})
# A lookup takes some microseconds. What is more is compared strictly.
_MOST_LOOKED_UP = 300_000
# Paths of commits of refs that are refused in any case.
_MOST_OF_REFUSED = 500


@dataclass(frozen=True, slots=True)
class ApprovedPath:
    """What an approved commit made of a path, by which table, and whether as a control file.

    `is_exception`: a rule about the path refuses the change, and the approval allows it; `is_binary`: and its
    content is binary.
    """

    commit: str
    path: RepoPath
    old: Entry | None
    new: Entry | None
    table: int | None = None
    is_policy: bool = False
    is_exception: bool = False
    is_binary: bool = False

    @property
    def slot(self) -> Slot:
        """What was approved of the path."""
        return self.path, self.is_policy and self.path.raw in _WITH_OTHER_CONTENT

    @property
    def asked(self) -> tuple[int | None, bool, bool]:
        """Whose approval it is: that of a table, of any signer, or one of an exception.

        For control files those count, too, whom the server names.
        """
        return self.table, self.is_policy, self.is_exception

    def covers(self, owned: OwnedPaths, file: FileChange, is_control: bool, contents: Contents) -> bool:
        """Return whether this approves what a path becomes, for the owners of a table."""
        is_bound = self.is_policy or not is_control
        is_meant = self.table == owned.table or (owned.table is None and self.is_policy)
        is_so = self.path == file.path and is_bound and is_meant
        return is_so and contents.value(self.slot, self.new) == contents.value(self.slot, file.new)


class Contents:
    """Says what counts of the content of a path, and what two sides of a merge have in common."""

    def __init__(self, objects: Objects, policies: TreePolicies) -> None:
        self._objects, self.policies = objects, policies
        self._written: list[Policy] = []
        self._bases: dict[tuple[str, ...], list[str]] = {}
        self.effort = Effort()
        self.effort_for_refused = Effort(_MOST_OF_REFUSED)
        self._has_compared = False

    def new_history(self, ref: ProtectedRef) -> NewHistory:
        """Return the commits that a ref gets. Those of the first one are as many as the push has.

        Raises:
            UndecidedError: all refs together get too many of them, or git could not answer.
        """
        found = None if self.effort.is_spent else NewHistory(self._objects.repository, ref)
        if found is None or (self._has_compared and not self.effort.spend(len(found))):
            raise UndecidedError(
                "it takes too long to compare what so many branches get", "push fewer branches at once"
            )
        self._has_compared = True
        return found

    def value(self, slot: Slot, entry: Entry | None) -> Hashable:
        """Return it; of a file in which everybody may change the rest, what it says about the rules."""
        path, as_policy = slot
        if not as_policy:
            return entry
        if path.raw == PRE_COMMIT_FILE.raw:
            return entry if self.policies.is_naming(entry) else None
        key = self.policies.key_of(None, entry)
        policy = self.policies.at(key).policy
        if policy is None:
            return None if key[1] is None else entry
        same = next((index for index, each in enumerate(self._written) if each.is_written_as(policy)), None)
        if same is None:
            self._written.append(policy)
            return len(self._written) - 1
        return same

    def at(self, slot: Slot, tree: str) -> Hashable:
        """Return it for what a tree has there."""
        return self.value(slot, self.entry(slot, tree))

    def bases(self, *parents: str) -> Sequence[str]:
        """Return the commits in which two parents of a merge began; the empty tree if there is none."""
        if parents not in self._bases:
            found = common_ancestors(self._objects.repository, *parents)
            self._bases[parents] = found or [self._objects.empty_tree]
        return self._bases[parents]

    @property
    def empty_tree(self) -> str:
        """What a commit has that stands on nothing."""
        return self._objects.empty_tree

    def tree(self, commit: str) -> str:
        """Return the tree of a commit."""
        return tree_of(self._objects, commit)

    def entry(self, slot: Slot, tree: str) -> Entry | None:
        """Return what a tree has there."""
        return self._objects.file_at(tree, slot[0].raw)


def approved_paths(
    objects: Objects, changes: Sequence[ChangeVerdict], found: FoundPolicy, owners: str
) -> tuple[set[ApprovedPath], set[ApprovedPath]]:
    """List what approved commits of a ref make of owned paths, and what all make for which somebody is asked.

    It is listed by the policy and signers of the ref.
    What lacks an approval is reported already: whether it lands whole is asked as if it had one.

    Args:
        changes: the commits that the ref gets.
        found: the policy that names the owners.
        owners: its tree.
    """
    policy = found.policy or built_in()
    signers = objects.entry(owners, ALLOWED_SIGNERS.raw)
    approved: set[ApprovedPath] = set()
    lacking: set[ApprovedPath] = set()
    for change in changes:
        # What a host would merge is no commit of the ref yet.
        if change.source.kind == "range":
            continue
        is_meant = found.policy is None or change.policy.digest == policy.digest(Profile(change.profile))
        tree = base_tree(objects, change)
        if not is_meant or tree is None or objects.entry(tree, ALLOWED_SIGNERS.raw) != signers:
            continue
        outcomes = {gate.outcome for gate in change.context_gates if gate.gate == GATE}
        if Outcome.PASS in outcomes:
            approved.update(_owned_by(change))
        elif Outcome.FAIL in outcomes:
            lacking.update(_owned_by(change))
        lacking.update(_exceptions_of(change))
        lacking.update(_beside_signers(objects, change))
    return approved, approved | lacking


def _owned_by(change: ChangeVerdict) -> Iterator[ApprovedPath]:
    """Yield what a change makes of paths that have owners."""
    files = {file.path: file for file in change.change.files}
    for owned in change.owned:
        for path in owned.paths:
            if path in files:
                old, new = files[path].old, files[path].new
                commit = change.source.commit or ""
                yield ApprovedPath(commit, path, old, new, owned.table, owned.is_policy)


def _beside_signers(objects: Objects, change: ChangeVerdict) -> Iterator[ApprovedPath]:
    """Yield the rules that a change makes beside signers: without a table nobody is asked for these."""
    paths = {path for owned in change.owned for path in owned.paths}
    if ALLOWED_SIGNERS not in paths:
        return
    files = {file.path: file for file in change.change.files}
    for path in controls_of(objects, change.change.base, change.change.after, files) - paths:
        commit, file = change.source.commit or "", files[path]
        yield ApprovedPath(commit, path, file.old, file.new, is_policy=True, is_exception=True)


def _exceptions_of(change: ChangeVerdict) -> Iterator[ApprovedPath]:
    """Yield what a change makes of paths for which an exception was approved, or must be."""
    excepted = {each.path for each in change.findings if _is_exception(each)}
    for file in change.change.files if excepted else ():
        if file.path in excepted:
            commit = change.source.commit or ""
            yield ApprovedPath(
                commit, file.path, file.old, file.new, is_exception=True, is_binary=file.binary
            )


def _is_exception(finding: Finding) -> bool:
    is_asked = finding.level is Level.ERROR or "approved" in finding.details
    return is_asked and finding.rule in _PATH_RULES


def find_part(
    objects: Objects,
    ref: ProtectedRef,
    approved: set[ApprovedPath],
    begins: Callable[[RepoPath], Sequence[str]],
    found: FoundPolicy,
    contents: Contents,
) -> MissingPart | None:
    """Find what lands, or would with the merge that a head will get, of approved commits without the rest.

    Args:
        begins: gives the trees of what counts as there already at a path.
        found: the policy that names the owners.

    Raises:
        UndecidedError: git could not answer, or the refs of a push got too many commits.
    """
    if not approved or ref.tip is None:
        return None
    history = contents.new_history(ref)
    slots, free = _slots(objects, history, approved, found, contents)
    tip = tree_of(objects, ref.tip)
    head = {slot: contents.at(slot, tip) for slot in slots}
    before = {slot: frozenset(contents.at(slot, tree) for tree in begins(slot[0])) for slot in slots}
    commits = _Commits(history, approved, free, contents)
    missing = commits.find_part(before, head)
    is_stale = ref.commit is not None and ref.base != ref.commit and not (ref.is_new or ref.is_forced)
    if missing is not None or ref.commit is None or not is_stale:
        return missing
    now = tree_of(objects, ref.commit)
    bases = [tree_of(objects, base) for base in (ref.base, *ref.other_bases) if base is not None]
    merged = {slot: _merged(slot, bases, now, tip, contents) for slot in slots}
    return commits.find_part({slot: frozenset([contents.at(slot, now)]) for slot in slots}, merged)


def _merged(slot: Slot, bases: Sequence[str], ours: str, theirs: str, contents: Contents) -> Hashable:
    """Return what a merge makes of a path, if nobody is asked about it.

    Where both sides have changed it, that is what the branch has. Nobody knows what the merge makes where
    several bases lead to different results, nor where both have changed a file of which only a part counts:
    then it is a value that nothing else is like.
    """
    one, other = (contents.entry(slot, tree) for tree in (ours, theirs))
    was = {contents.entry(slot, base) for base in bases}
    found = {other if each == one else one for each in was}
    is_joined = slot[1] and one != other and any(each not in {one, other} for each in was)
    return contents.value(slot, found.pop()) if len(found) == 1 and not is_joined else ("unknown", *bases)


def _slots(
    objects: Objects,
    history: NewHistory,
    approved: set[ApprovedPath],
    found: FoundPolicy,
    contents: Contents,
) -> tuple[list[Slot], list[tuple[str, Approved]]]:
    """List what is compared, and what commits do with it for which no rule asks anybody.

    After an exception from a rule that is what the rule allows, such as a deletion. Where nothing was there
    before, each commit is judged by the policy of its parent: such paths are not compared.
    """
    owned = {each.slot for each in approved if not each.is_exception}
    slots = {each.slot for each in approved}
    sought = slots - owned if found.policy is not None else slots
    free: list[tuple[str, Approved]] = []
    if len(sought) * len(history) <= _MOST_LOOKED_UP:
        asked = {(each.commit, each.path) for each in approved}
        free = [
            (commit, each)
            for commit in history.fresh_at([path for path, _ in sorted(sought)])
            for each in _changes(objects, history, commit, sorted(sought), contents)
            # Nobody is asked for a move, which makes a file under a new name: what makes it must come itself.
            if all((commit, path) not in asked for path, _ in each.makes)
            and (found.policy is None or None not in each.begins.values())
        ]
    if found.policy is None:
        slots -= {slot for _, each in free for slot in each.makes if slot[0] != ALLOWED_SIGNERS}
    return sorted(slots), [(commit, each) for commit, each in free if slots.issuperset(each.makes)]


def _changes(
    objects: Objects, history: NewHistory, commit: str, slots: Sequence[Slot], contents: Contents
) -> Iterator[Approved]:
    """Yield what a commit does with each of some paths. What a merge does with them is judged otherwise."""
    trees = [tree_of(objects, each) for each in (commit, *history.parents_of(commit))]
    for slot in slots:
        new, old = contents.at(slot, trees[0]), contents.at(slot, [*trees, objects.empty_tree][1])
        if old != new:
            yield Approved({slot: old}, {slot: new})


class _Commits:
    """The approved commits of a ref, from what it has."""

    def __init__(
        self,
        history: NewHistory,
        approved: set[ApprovedPath],
        free: Sequence[tuple[str, Approved]],
        contents: Contents,
    ) -> None:
        self._history, self._contents = history, contents
        self._by_commit: dict[str, list[ApprovedPath]] = {}
        self._owners: dict[Slot, set[Hashable]] = {}
        self._free: dict[str, list[Approved]] = {}
        for commit, one in free:
            self._free.setdefault(commit, []).append(one)
        for each in sorted(approved, key=lambda each: each.path):
            self._by_commit.setdefault(each.commit, []).append(each)
            self._owners.setdefault(each.slot, set()).add(each.asked)

    def find_part(self, before: Values, result: Mapping[Slot, Hashable]) -> MissingPart | None:
        """Return what would land in part, as `whole_commits.find_part` does."""
        makes = {commit: [*free] for commit, free in self._free.items()}
        for commit, mine in self._by_commit.items():
            if any(each.slot in before for each in mine):
                makes.setdefault(commit, []).append(self._approved(commit, mine, before))
        new = _GitSlotHistory(self._history, self._contents)
        return whole_commits.find_part(new, before, result, makes, self._contents.effort)

    def _approved(self, commit: str, mine: Sequence[ApprovedPath], before: Values) -> Approved:
        """Return what was approved of a commit, and for whom it may decide about other slots."""
        value = self._contents.value
        is_merge = len(self._history.parents_of(commit)) > 1
        begins: dict[Slot, Hashable] = {}
        makes: dict[Slot, Hashable] = {}
        for each in mine:
            for slot in ((each.path, False), (each.path, True)):
                old, new = value(slot, each.old), value(slot, each.new)
                # One commit may have been asked about the rules in a file, and another one about the file. Of
                # a merge, who was asked about the file was not shown the rules in it.
                is_shown = each.is_policy or not slot[1] if is_merge else old != new
                if slot in before and (is_shown or slot == each.slot):
                    begins[slot], makes[slot] = old, new
        asked = {each.asked for each in mine}
        return Approved(begins, makes, lambda slot: self._owners[slot] <= asked)


class _GitSlotHistory:
    """What is asked of these to see what lands as a whole."""

    def __init__(self, history: NewHistory, contents: Contents) -> None:
        self._history, self._contents = history, contents
        self._trees: dict[str, str] = {}
        self.parents_of = history.parents_of

    def __iter__(self) -> Iterator[str]:
        return reversed(list(self._history))

    def begins_of(self, commit: str) -> Sequence[str]:
        """Return the newest commits of the branch on which any commit stands; the empty tree if none."""
        return self._history.begins_of(commit) or [self._contents.empty_tree]

    def bases_of(self, merge: str) -> Sequence[str]:
        """Return the commits in which the two parents of a merge began; the empty tree if none."""
        return self._contents.bases(*self.parents_of(merge))

    def value_of(self, commit: str, slot: Slot) -> Hashable:
        """Return what any commit has at a slot."""
        if commit not in self._trees:
            self._trees[commit] = self._contents.tree(commit)
        return self._contents.at(slot, self._trees[commit])


def tree_of(objects: Objects, revision: str) -> str:
    """Return the tree of a revision.

    Raises:
        UndecidedError: it is missing.
    """
    header = objects.header(revision + "^{tree}")
    if header is None:
        raise UndecidedError(f"{revision[:12]} is missing here", "git fetch")
    return header.oid
