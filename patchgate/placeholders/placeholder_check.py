"""The check of placeholders alone, for a hook of a framework: what is staged, or a range as one change.

Decides what is compared, which policy speaks and how loud: as `[rules]` and `[placeholders] level` say, and
where they say nothing as errors, for who runs this asked for it. Other gates are not asked, so what is
accepted here is no verdict on the whole; the policy is bound with its level, and the verdict's id is its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from patchgate.check.case import Case, Governance
from patchgate.check.gate import Gate, judge
from patchgate.check.hook_decision import HookDecision, decide
from patchgate.check.judging_policy import BUILT_IN, reference
from patchgate.check.message_check import policy_of_pending
from patchgate.check.policy_lookup import detail_for, requested_policy, trusted_options
from patchgate.errors import UsageError
from patchgate.git.change_sources import LoadedChange, is_merging, pending_base, read_staged
from patchgate.git.history import Commit, Walk
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

if TYPE_CHECKING:
    from patchgate.git.private_store import PrivateStore


def judge_placeholders(
    repository: Repository, hook: str, names: Sequence[str], between: tuple[str, str] | None
) -> HookDecision:
    """Judge as `check_placeholders` does, and answer as a hook.

    Args:
        hook: its name, for the ledger.
    """
    report = check_placeholders(repository, names, between)
    branch = current_branch(repository) if between is None else None
    return decide(repository, hook, report, branch)


def check_placeholders(
    repository: Repository, names: Sequence[str], between: tuple[str, str] | None = None
) -> Report:
    """Judge the lines that some files get: those of what is staged, or from where two revisions part.

    What moves from one file to another is found in the whole change.

    Args:
        names: paths as a person types them, of a folder for all below it; none: all files.
        between: two revisions; the second is compared with their merge base, or else with the first.

    Raises:
        UsageError: a name leaves the repository, a revision is unknown.
        PatchgateError: the change or the policy cannot be read.
    """
    named = frozenset(RepoPath.from_user(name, repository.prefix) for name in names)
    if between is not None:
        return _range(repository, named, between)
    if not is_merging(repository):
        with Objects(repository) as objects:
            return _staged(repository, objects, named)
    from patchgate.git.private_store import PrivateStore

    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        return _staged(repository, objects, named, store)


def _staged(
    repository: Repository, objects: Objects, named: Collection[RepoPath], store: PrivateStore | None = None
) -> Report:
    policy, place = policy_of_pending(repository, objects)
    policy, profile = _with_default_level(policy), ScopeGate(repository).profile
    base = pending_base(repository, objects, store)
    reading = read_staged(repository, objects, base, detail_for([policy], profile))
    return _judge_reading(objects, reading, named, (policy, place), profile)


def _range(repository: Repository, named: Collection[RepoPath], between: tuple[str, str]) -> Report:
    with Objects(repository) as objects:
        (_, first), (after_tree, last) = (_commit(objects, revision) for revision in between)
        base = common_ancestor(repository, first, last) or first
        policies, terms = TreePolicies(objects), trusted_options(repository)
        before, after = (policies.at(policies.key(tree)) for tree in (_commit(objects, base)[0], after_tree))
        asked = requested_policy(objects, policies, terms)
        found = asked or (after if before.is_absent else before)
        policy = _with_default_level(require_usable(found))
    whole = Commit(last, after_tree, (base,), is_agents=False)
    with Walk(repository, [whole]) as walk:
        ((_, reading),) = walk.read([whole], detail_for([policy], Profile.COMMIT))
        place = terms.place or (last if found is after else base)[:12]
        return _judge_reading(walk.objects, reading, named, (policy, place), Profile.COMMIT)


def _commit(objects: Objects, revision: str) -> tuple[str, str]:
    """Find the tree and the commit that a revision names."""
    tree, commit = tree_named(objects, revision) or (None, None)
    if tree is None or commit is None:
        raise UsageError(f"unknown revision {printable(revision)}", "name a commit, a branch or a tag")
    return tree, commit


def _is_selected(path: RepoPath | None, named: Collection[RepoPath]) -> bool:
    """Tell whether a file or a folder above it is among the named."""
    above = path.raw if path is not None else b""
    while above:
        if RepoPath(above) in named:
            return True
        above = above.rpartition(b"/")[0]
    return False


def _with_default_level(policy: Policy) -> Policy:
    """Let every placeholder be an error where the policy does not say how loud they are."""
    config = policy.config
    if config.placeholders.level is not None:
        return policy
    level = PlaceholdersSettings("error")
    written = {**config.written, "placeholders": {"level": level.level}}
    return Policy(replace(config, placeholders=level, written=written), policy.file, policy.raw, policy.limit)


def _judge_reading(
    objects: Objects,
    reading: LoadedChange,
    named: Collection[RepoPath],
    judging: tuple[Policy, str],
    profile: Profile,
) -> Report:
    policy, place = judging
    require_version(policy)
    is_named = TreePolicies(objects).names_patchgate(reading.change.base)
    controls = frozenset(
        file.path
        for file in reading.change.files
        if is_control_by_name(file.path) or (is_named and file.path.raw == PRE_COMMIT_FILE.raw)
    )

    def of_the_named(case: Case) -> Iterable[Finding]:
        return (each for each in examine(case) if not named or _is_selected(each.path, named))

    gate = Gate("placeholders", of_the_named, lambda case: case.policy.judges_placeholders(case.profile))
    facts = gather_placeholders(objects, reading.change, policy, profile)
    by_gate = {} if facts is None else {"placeholders": facts}
    case = Case(reading.change, policy, profile, Governance(controls), facts=by_gate)
    outcomes, findings = judge(case, (gate,))
    about = reference(policy, place if policy.file else BUILT_IN, profile)
    verdict = ChangeVerdict(
        change=reading.change,
        source=reading.source,
        profile=profile.value,
        policy=about,
        gates=outcomes,
        findings=findings,
    )
    return Report((verdict,), objects.repository.limits)
