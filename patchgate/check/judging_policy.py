"""Judge one change: choose the policy that judges it, build its case, and run the gates.

The policy from before the change judges. A change of the policy must be its own commit and pass under the
old policy and the new one. The first policy judges itself. A broken policy can be fixed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache

from patchgate.check.case import Case, Governance, MergedFolder
from patchgate.check.features import FactSources, gather_facts
from patchgate.check.gate import ORDER, GateResults, join_results, judge
from patchgate.check.profiles import judged_profiles
from patchgate.check.shape import budgets
from patchgate.check.symlinks import gather_links
from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.change_sources import LoadedChange
from patchgate.git.model import Change
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.policy.file_kinds import ALLOWED_SIGNERS, PRE_COMMIT_FILE, PYPROJECT_FILE, is_control_by_name
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies, built_in, require_version
from patchgate.report.rules import Level
from patchgate.report.verdict import (
    Budget,
    ChangeVerdict,
    GateOutcome,
    Outcome,
    OwnedPaths,
    PolicyReference,
)
from patchgate.values import dataclass, field, replace

OWN_POLICY = "this change"
BUILT_IN = "built-in defaults"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchgate.git.merge_paths import Restricted
    from patchgate.git.model import FileChange


@dataclass(frozen=True, slots=True)
class PolicySides:
    """The policy before a change and the one after it, and how to recognise control files.

    `before` judges; where it is absent (the first commit, or nothing before had a policy) the change's
    own policy does. `is_first` is whether the change is the first commit of the repository, which has no
    limits. `place` is where `before` was found, for messages. `hooks_named` is whether the
    `.pre-commit-config.yaml` of the base, of a branch or of a merge's parent names patchgate. `base` is the
    policy of the change's own base, also where
    another one judges (`--policy-from`, a protected ref, a merge): it declares the components, and shows
    whether the change changes the policy. `is_borrowed` is whether `before` comes from another line of
    history because this one had no policy: then the first policy need not be its own commit. `parents` are
    the policies of what a merge joins; empty for another change. `branches` maps the trees of the branches
    that get the change, where they are known, to their commits, and `landing` are the policies there: the
    author of a merge chooses its first parent.
    """

    before: FoundPolicy
    after: FoundPolicy
    place: str
    is_first: bool = False
    hooks_named: bool = False
    base: FoundPolicy = field(default_factory=FoundPolicy)
    is_borrowed: bool = False
    parents: tuple[FoundPolicy, ...] = ()
    branches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    landing: tuple[FoundPolicy, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether a merge has no policy although one of its parents has."""
        return self.after.is_absent and any(not each.is_absent for each in self.parents)

    @property
    def is_spoiled(self) -> bool:
        """Whether a merge makes a policy that cannot be read: what it joins can be clean, and not fit."""
        return self.after.fault is not None and bool(self.parents) and self.parents[0].fault is None


def is_control(path: RepoPath, rules: PolicySides) -> bool:
    """Return whether a path is a control file in a change."""
    if is_control_by_name(path):
        return True
    if path.raw == PRE_COMMIT_FILE.raw:
        return rules.hooks_named
    if path.raw != PYPROJECT_FILE.raw:
        return False
    # A merge with a parent from before the branch's last change of the policy changes nothing by itself.
    is_other = [any(_differs(each, rules.after) for each in side) for side in (rules.landing, rules.parents)]
    return all(is_other) or _differs(rules.base, rules.after)


def _differs(before: FoundPolicy, after: FoundPolicy) -> bool:
    """Return whether `[tool.patchgate]` differs between the two sides."""
    if not before.from_pyproject and not after.from_pyproject:
        return False
    if before.policy is None or after.policy is None:
        return True
    return not before.policy.is_written_as(after.policy) or before.from_pyproject != after.from_pyproject


def controls_of(objects: Objects, before: str, after: str, paths: Iterable[RepoPath]) -> frozenset[RepoPath]:
    """List the control files among some paths, between two trees that can be read.

    Raises:
        UndecidedError: an object is missing.
    """
    policies = TreePolicies(objects)
    base, last = policies.at(policies.key(before)), policies.at(policies.key(after))
    named = policies.names_patchgate(before)
    rules = PolicySides(FoundPolicy(), last, place="", hooks_named=named, base=base)
    return frozenset(path for path in paths if is_control(path, rules))


def judge_reading(
    reading: LoadedChange, rules: PolicySides, profile: Profile, objects: Objects, reason: str = ""
) -> ChangeVerdict:
    """Judge one change that was loaded.

    A change of the policy is judged under the old policy and under the new one; its verdict names the old.
    What its author says is an agent's must also pass what people may not do.

    Args:
        objects: reads the objects of the change, also those that are not in the repository yet.
        reason: why the change is an agent's, if its author says so.
    """
    profiles = judged_profiles(profile, reason)
    try:
        reading, rules, carried = _with_carried(reading, rules, profiles, objects)
        controls = frozenset(file.path for file in reading.change.files if is_control(file.path, rules))
        policy, place, governance = _choose(rules, controls, is_empty=not reading.change.files)
        own = _proposed(rules, controls, policy)
        merged = _merged_folders(objects, reading)
    except PatchgateError as error:
        return replace(undecided(reading, rules, profile, error), profile_reason=reason)
    declaring, new = _declaring(rules, policy)
    scene = FactSources(
        objects=objects,
        change=reading.change,
        policy=policy,
        profile=profile,
        declaring=declaring,
        known=new,
        own=own,
        reading=reading,
    )
    case = replace(
        _case(scene, reading, governance, has_budgets=not rules.is_first),
        from_text=reading.is_proposed,
        copied=reading.copied,
        blocked=reading.blocked,
        rename_pairs=reading.rename_pairs,
        merged=merged,
        carried=carried,
    )
    cases = [case]
    if own is not None:
        under_own = replace(scene, policy=own, declaring=own, known=declaring, own=None)
        cases.append(_case(under_own, reading, governance, has_budgets=False))
    outcomes, findings = _judge_cases(cases, profiles[1:], reading, rules.branches, objects)
    return ChangeVerdict(
        change=reading.change,
        source=reading.source,
        profile=profile.value,
        policy=reference(policy, place, profile, rules.before.tree),
        gates=outcomes,
        findings=findings,
        limits=_limits(case),
        owned=tuple(_owned(case, rules)),
        profile_reason=reason,
    )


def _judge_cases(
    cases: list[Case],
    others: tuple[Profile, ...],
    reading: LoadedChange,
    branches: Mapping[str, tuple[str, ...]],
    objects: Objects,
) -> GateResults:
    """Judge the cases of a change, under other profiles too; of a merge also what it brings back."""
    more = [_under(each, other, objects, reading) for each in cases for other in others]
    results = [*map(judge, cases), *map(_refused, more)]
    if reading.solved is not None and branches:
        # Few merges have a conflict.
        from patchgate.check.solved_conflicts import judge_solved

        results += (
            judge_solved(each, reading, tree, commits, objects)
            for each in (*cases, *more)
            for tree, commits in branches.items()
        )
    return join_results(*results)


def _under(case: Case, profile: Profile, objects: Objects, reading: LoadedChange) -> Case:
    """Build the same case under another profile; what the features gathered holds for both."""
    return replace(case, profile=profile, links=gather_links(objects, reading, case.policy, profile))


def _refused(case: Case) -> GateResults:
    """Judge a case, and leave out of the findings what refuses nothing."""
    outcomes, findings = judge(case)
    return outcomes, tuple(each for each in findings if each.level is Level.ERROR)


def _with_carried(
    reading: LoadedChange, rules: PolicySides, profiles: tuple[Profile, ...], objects: Objects
) -> tuple[LoadedChange, PolicySides, Mapping[RepoPath, FileChange | None]]:
    """Count as a merge's own change what no side made so, unless the judging branch has it so.

    Returns:
        The change, the sides of the policy for it, and what budgets count at the paths that it brings.
    """
    if reading.carried is None:
        return reading, rules, {}
    from patchgate.git.merge_paths import Landing
    from patchgate.git.tree_view import listings_above

    is_restricted = restriction(rules, profiles)
    carried = reading.carried(Landing(tuple(rules.branches), is_restricted))

    def is_there(file: FileChange) -> bool:
        return all(objects.entry(tree, file.path.raw) == file.new for tree in rules.branches)

    if rules.branches:
        carried = [file for file in carried if not is_there(file)]
    change, known = reading.change, {file.path for file in carried}
    own = [
        file
        for file in change.files
        if file.path not in known and not (rules.branches and is_restricted(file.path) and is_there(file))
    ]
    if not carried and len(own) == len(change.files):
        return reading, rules, {}
    files = [*own, *carried]
    whole = replace(
        reading,
        change=Change.of(change.base, change.after, files, objects.empty_blob),
        folders={**listings_above(objects, change.after, carried), **reading.folders},
    )
    # Of such a change the first parent is the base.
    made = {file.path: file for file in change.files}
    return whole, replace(rules, base=rules.parents[0]), {path: made.get(path) for path in known}


def restriction(rules: PolicySides, profiles: tuple[Profile, ...]) -> Restricted:
    """Build the function that returns whether not everybody may change a path of the judging branch: it is a
    control file, has owners, or is denied by name. Without such a branch there is no path of this kind.
    """
    policy = rules.before.policy

    def is_restricted(path: RepoPath) -> bool:
        if not rules.branches:
            return False
        return is_control(path, rules) or (policy is not None and _by_name(policy, profiles)(path))

    return is_restricted


@lru_cache(maxsize=8)
def _by_name(policy: Policy, profiles: tuple[Profile, ...]) -> Restricted:
    """Build the function that returns whether a policy restricts a path by its name; answers are kept."""

    def is_restricted(path: RepoPath) -> bool:
        ruling = policy.ruling(path)
        if ruling.denied is not None or ruling.outside or ruling.suffix is not None:
            return True
        limits = (policy.limits(profile, ruling.owner) for profile in profiles)
        return any(ruling.classes & each.deny_classes for each in limits) or any(policy.owned([path], ()))

    return cache(is_restricted)


def _owned(case: Case, rules: PolicySides) -> Iterator[OwnedPaths]:
    """Yield the paths of a change that have owners, by the policy before it."""
    paths = {file.path for file in case.change.files} | {*case.copied}
    yield from owned_paths(rules.before, paths, case.governance.controls, rules.after)


def owned_paths(
    before: FoundPolicy, paths: Iterable[RepoPath], controls: frozenset[RepoPath], after: FoundPolicy
) -> Iterator[OwnedPaths]:
    """Yield the paths that have owners, by the policy before a change.

    Without a table any signer owns the list of signers; and all control files, where there are tables, or
    may be, because the policy cannot be read, and where the change brings the first `[governance] id`:
    approvals name that from then on.
    """
    has_tables = before.policy is not None and bool(before.policy.config.owners)
    is_named = before.id is None and after.id is not None
    own = controls if has_tables or before.fault is not None or is_named else controls & {ALLOWED_SIGNERS}
    if own:
        yield OwnedPaths(paths=tuple(sorted(own)), is_policy=True, has_tables=has_tables)
    if has_tables and before.policy is not None:
        yield from before.policy.owned(paths, controls)


def _case(scene: FactSources, reading: LoadedChange, governance: Governance, *, has_budgets: bool) -> Case:
    """Build the case of a change under one policy."""
    return Case(
        change=reading.change,
        policy=scene.policy,
        profile=scene.profile,
        governance=governance,
        folders=reading.folders,
        has_budgets=has_budgets,
        facts=gather_facts(scene),
        links=gather_links(scene.objects, reading, scene.policy, scene.profile),
    )


def _merged_folders(objects: Objects, reading: LoadedChange) -> tuple[MergedFolder, ...]:
    """List the folders of a merge that differ from each parent's; none for another change.

    Raises:
        UndecidedError: a tree is missing, or the merge has a malformed one.
    """
    if not reading.parents:
        return ()
    # Most changes are not merges.
    from patchgate.git.tree_view import differing_folders

    return tuple(
        MergedFolder(folder.path, tuple(folder.entries), folder.others)
        for folder in differing_folders(objects, reading.change.after, reading.parents)
    )


def _declaring(rules: PolicySides, judging: Policy) -> tuple[Policy, Policy | None]:
    """Return the policy that declares the components, and the one before it where it is new.

    The change's own line of history declares them: otherwise a declaration and its first baseline could not
    be pushed together to a branch that has neither. The levels of rules are those of the judging policy.
    """
    if rules.base.policy is not None:
        return rules.base.policy, None
    if rules.base.fault is not None:
        return judging, None
    # Before the first policy nothing is declared, so the first policy declares.
    return (judging if judging is rules.after.policy else built_in()), built_in()


def reference(policy: Policy, place: str, profile: Profile, tree: str | None = None) -> PolicyReference:
    """Describe a policy in a verdict, with its settings for the local hooks."""
    hooks = policy.config.hooks
    return PolicyReference(
        digest=policy.digest(profile),
        origin=f"{place}:{policy.file}" if policy.file else place,
        observes=hooks.mode == "observe",
        draft_refs=hooks.draft_refs,
        refuses_messages=policy.refuses_messages(profile) or bool(policy.config.profile.agent_trailers),
        judges_messages=policy.judges_messages(profile),
        tree=tree,
        budget_ms=hooks.budget_ms,
        repository=policy.config.governance.id,
        runs=any("commit" in each.on for each in policy.config.commands.values()),
    )


def _limits(case: Case) -> dict[str, Budget]:
    """Count the limits; where that fails, the shape gate has reported it."""
    try:
        return budgets(case)
    except UndecidedError:
        return {}


_MOST_MISTAKES = 20


def _choose(
    rules: PolicySides, controls: frozenset[RepoPath], *, is_empty: bool
) -> tuple[Policy, str, Governance]:
    """Choose the policy that judges, with its place, and find what the change does to the policy."""
    before, after = rules.before, rules.after
    is_changed = bool(controls) or rules.is_spoiled
    faults = after.fault.mistakes[:_MOST_MISTAKES] if after.fault is not None and is_changed else ()
    if before.is_absent:
        governance = Governance(controls, must_be_own_commit=False, proposed_faults=faults)
        if after.policy is not None:
            return after.policy, OWN_POLICY, governance
        return built_in(), BUILT_IN, governance
    if before.fault is not None:
        # A merge without a change of its own only brings a repair that was judged by itself.
        if (controls or (rules.parents and is_empty)) and after.policy is not None:
            return after.policy, OWN_POLICY, Governance(controls, repaired=True)
        if controls:
            governance = Governance(controls, removed=after.is_absent, proposed_faults=faults)
            return built_in(), BUILT_IN, governance
        raise UndecidedError(
            f"the policy before this change cannot be read: {before.fault.in_one_line}",
            "let its repair land first; until then only control files may change",
        )
    assert before.policy is not None
    # A line of history without a policy cannot remove one.
    had = any(not each.is_absent for each in (rules.base, *rules.parents))
    removed = not rules.is_borrowed and (rules.is_lost or (after.is_absent and bool(controls) and had))
    return (
        before.policy,
        rules.place,
        Governance(
            controls, must_be_own_commit=not rules.is_borrowed, removed=removed, proposed_faults=faults
        ),
    )


def _proposed(rules: PolicySides, controls: frozenset[RepoPath], judging: Policy) -> Policy | None:
    """Return the policy that a change proposes; None if it proposes none, or that one judges.

    Raises:
        UndecidedError: this version cannot judge by one of the two; by the proposed one not even its repair.
    """
    require_version(judging)
    own = rules.after.policy
    if own is None or own is judging or not controls:
        return None
    require_version(own)
    return own


def undecided(
    reading: LoadedChange, rules: PolicySides, profile: Profile, error: PatchgateError
) -> ChangeVerdict:
    """Make the verdict of a change that no policy could judge: governance has the reason."""
    outcomes = tuple(
        GateOutcome(gate.name, Outcome.UNDECIDED, error.sentence)
        if gate.name == "governance"
        else GateOutcome(gate.name, Outcome.NOT_RUN)
        for gate in ORDER
    )
    raw = rules.before.policy.raw if rules.before.policy else b""
    digest = "sha256:" + hashlib.sha256(b"patchgate.policy/none\n" + raw).hexdigest()
    return ChangeVerdict(
        change=reading.change,
        source=reading.source,
        profile=profile.value,
        policy=PolicyReference(digest, rules.place),
        gates=outcomes,
        findings=(),
    )
