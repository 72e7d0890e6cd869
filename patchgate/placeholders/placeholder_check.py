"""Checks placeholders only, for pre-commit and prek: what is staged, or a range as one change.

Decides what is compared, which policy applies, and the level: that of `[rules]` and `[placeholders] level`,
or error where they set none, because the user requested for this check. No other gate runs, so the verdict
is not one on the whole change; its id includes the level.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from patchgate.check.case import Case, Governance
from patchgate.check.commit_message import policy_of_pending
from patchgate.check.gate import Gate, judge
from patchgate.check.hook_decision import HookDecision, decide
from patchgate.check.judging_policy import BUILT_IN, reference
from patchgate.check.policy_lookup import detail_for, requested_policy, trusted_options
from patchgate.errors import UsageError
from patchgate.git.change_sources import LoadedChange, is_merging, pending_base, read_staged
from patchgate.git.commit_lists import Commit
from patchgate.git.history import Walk
from patchgate.git.new_commits import current_branch
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestor
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.placeholders.placeholder_gate import examine
from patchgate.placeholders.placeholder_search import gather_placeholders
from patchgate.policy.file_kinds import PRE_COMMIT_FILE, is_control_by_name
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.settings import PlaceholdersSettings
from patchgate.policy.tree_policies import TreePolicies, require_usable, require_version
from patchgate.report.verdict import ChangeVerdict, Finding, Report
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.git.private_store import PrivateStore


def judge_placeholders(
    repository: Repository, hook: str, names: Sequence[str], between: tuple[str, str] | None
) -> HookDecision:
    """Run `check_placeholders` as a hook.

    Args:
        hook: the name of the hook, for the ledger.
    """
    report = check_placeholders(repository, names, between)
    branch = current_branch(repository) if between is None else None
    return decide(repository, hook, report, branch)


def check_placeholders(
    repository: Repository, names: Sequence[str], between: tuple[str, str] | None = None
) -> Report:
    """Check the added lines of some files: of what is staged, or since the merge base of two revisions.

    Moves between files are found in the whole change.

    Args:
        names: paths as the user gives them; a folder stands for all below it; none: all files.
        between: two revisions; the second is compared with their merge base, or else with the first.

    Raises:
        UsageError: a path is outside the repository, or a revision is unknown.
        PatchgateError: the change or the policy cannot be read.
    """
    selected = frozenset(RepoPath.from_user(name, repository.prefix) for name in names)
    if between is not None:
        return _range(repository, selected, between)
    if not is_merging(repository):
        with Objects(repository) as objects:
            return _staged(repository, objects, selected)
    from patchgate.git.private_store import PrivateStore

    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        return _staged(repository, objects, selected, store)


def _staged(
    repository: Repository,
    objects: Objects,
    selected: Collection[RepoPath],
    store: PrivateStore | None = None,
) -> Report:
    policy, origin = policy_of_pending(repository, objects)
    policy, profile = _with_default_level(policy), ScopeGate(repository).profile
    base = pending_base(repository, objects, store)
    loaded = read_staged(repository, objects, base, detail_for([policy], profile))
    return _judge_loaded(objects, loaded, selected, (policy, origin), profile)


def _range(repository: Repository, selected: Collection[RepoPath], between: tuple[str, str]) -> Report:
    with Objects(repository) as objects:
        (_, first), (after_tree, last) = (_commit(objects, revision) for revision in between)
        base = common_ancestor(repository, first, last) or first
        policies, terms = TreePolicies(objects), trusted_options(repository)
        before, after = (policies.at(policies.key(tree)) for tree in (_commit(objects, base)[0], after_tree))
        requested = requested_policy(objects, policies, terms)
        found = requested or (after if before.is_absent else before)
        policy = _with_default_level(require_usable(found))
    whole = Commit(last, after_tree, (base,))
    with Walk(repository, [whole]) as walk:
        ((_, loaded),) = walk.read([whole], detail_for([policy], Profile.COMMIT))
        origin = terms.place or (last if found is after else base)[:12]
        return _judge_loaded(walk.objects, loaded, selected, (policy, origin), Profile.COMMIT)


def _commit(objects: Objects, revision: str) -> tuple[str, str]:
    """Find the tree and the commit that a revision names."""
    tree, commit = tree_named(objects, revision) or (None, None)
    if tree is None or commit is None:
        raise UsageError(f"unknown revision {printable(revision)}", "name a commit, a branch or a tag")
    return tree, commit


def _is_selected(path: RepoPath | None, selected: Collection[RepoPath]) -> bool:
    """Return whether a file or a folder above it is selected."""
    above = path.raw if path is not None else b""
    while above:
        if RepoPath(above) in selected:
            return True
        above = above.rpartition(b"/")[0]
    return False


def _with_default_level(policy: Policy) -> Policy:
    """Make every placeholder an error where the policy sets no level."""
    config = policy.config
    if config.placeholders.level is not None:
        return policy
    level = PlaceholdersSettings("error")
    written = {**config.written, "placeholders": {"level": level.level}}
    changed = replace(config, placeholders=level, written=written)
    return Policy(changed, file=policy.file, raw=policy.raw, limit=policy.limit)


def _judge_loaded(
    objects: Objects,
    loaded: LoadedChange,
    selected: Collection[RepoPath],
    judging: tuple[Policy, str],
    profile: Profile,
) -> Report:
    policy, origin = judging
    require_version(policy)
    is_named = TreePolicies(objects).names_patchgate(loaded.change.base)
    controls = frozenset(
        file.path
        for file in loaded.change.files
        if is_control_by_name(file.path) or (is_named and file.path.raw == PRE_COMMIT_FILE.raw)
    )

    def examine_selected(case: Case) -> Iterable[Finding]:
        return (each for each in examine(case) if not selected or _is_selected(each.path, selected))

    gate = Gate("placeholders", examine_selected, lambda case: case.policy.judges_placeholders(case.profile))
    facts = gather_placeholders(objects, loaded.change, policy, profile)
    by_gate = {} if facts is None else {"placeholders": facts}
    case = Case(
        change=loaded.change, policy=policy, profile=profile, governance=Governance(controls), facts=by_gate
    )
    outcomes, findings = judge(case, (gate,))
    about = reference(policy, origin if policy.file else BUILT_IN, profile)
    verdict = ChangeVerdict(
        change=loaded.change,
        source=loaded.source,
        profile=profile.value,
        policy=about,
        gates=outcomes,
        findings=findings,
    )
    return Report((verdict,), objects.repository.limits)
