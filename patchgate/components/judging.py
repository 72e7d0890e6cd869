"""The functions of this feature that the pipeline calls (`check.features`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.check.features import FactSources
from patchgate.errors import PatchgateError
from patchgate.git.change_sources import LoadedChange
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.policy.component import Role
from patchgate.policy.policy import Policy
from patchgate.report.verdict import ChangeVerdict, Report
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.check.policy_lookup import CheckOptions
    from patchgate.check.protected_refs import RefRules
    from patchgate.components.component_facts import ComponentFacts, ComponentState, ContractsView
    from patchgate.git.new_commits import BranchUpdate
    from patchgate.git.pushes import RefUpdate
    from patchgate.git.tree_view import TreeView


def gather(scene: FactSources) -> ComponentFacts | None:
    """Gather the components that a change touches; None if there are none, or git could not apply it.

    What the change no longer declares is judged by the previous policy, which sets its level.
    """
    reading, before, own = scene.reading, scene.declaring, scene.own
    if reading is None or (reading.is_proposed and reading.overlay is None):
        return None
    near = _gather_touched(scene.objects, reading, before, scene.known)
    if own is None or not any(name not in own.config.components for name in before.config.components):
        return near
    return _with_undeclared(
        near, before, _undeclared_baselines(own, before, _view_of(scene.objects, reading))
    )


def _gather_touched(
    objects: Objects, reading: LoadedChange, policy: Policy, before: Policy | None
) -> ComponentFacts | None:
    """Gather the components that a change touches, and those whose declaration changed."""
    if not (policy.config.components or (before is not None and before.config.components)):
        return None
    files = reading.change.files
    near = policy.components.affected_by(file.path for file in files)
    otherwise: set[str] = set()
    if before is not None:
        from patchgate.components.contract_gathering import changed_declarations

        otherwise = changed_declarations(policy, before)
        declared, known = policy.config.components, before.config.components
        near.update(
            (name, set()) for name in declared if declared[name] != known.get(name) and name not in near
        )
    # Any deleted file may be named in a contract.
    if not (near or otherwise) and not any(file.is_removed for file in files):
        return None
    view = _view_of(objects, reading)
    found = _gather_components(policy, view, near, files, otherwise, is_merge=reading.source.kind == "merge")
    left = _undeclared_baselines(policy, before, view) if before is not None else {}
    return _with_undeclared(found, policy, left)


def _view_of(objects: Objects, reading: LoadedChange) -> TreeView:
    # 5 ms to import: only if the change may touch a component.
    from patchgate.git.tree_view import TreeView

    after = {file.path.raw: file.new for file in reading.change.files}
    return TreeView(objects, *(reading.overlay or (reading.change.base, after)))


def _with_undeclared(
    near: ComponentFacts | None, declared: Policy, left: Mapping[str, RepoPath]
) -> ComponentFacts | None:
    if not left:
        return near
    from patchgate.components.component_facts import ComponentFacts

    return replace(near or ComponentFacts(declared=declared), undeclared=left)


def gather_all(objects: Objects, files: Sequence[FileChange], policy: Policy) -> ComponentFacts | None:
    """Gather all components of a tree of these files and its contracts; None if the policy has none."""
    if not policy.config.components:
        return None
    from patchgate.git.tree_view import TreeView

    view = TreeView(objects, objects.empty_tree, {file.path.raw: file.new for file in files})
    near: dict[str, set[RepoPath]] = {name: set() for name in policy.components.ids}
    return _gather_components(policy, view, near)


def _gather_components(
    policy: Policy,
    view: TreeView,
    near: Mapping[str, set[RepoPath]],
    files: Sequence[FileChange] | None = None,
    otherwise: Collection[str] = (),
    *,
    is_merge: bool = False,
) -> ComponentFacts | None:
    """Gather components with their touched paths, and contracts.

    Args:
        files: the files that the change touches; None means the whole tree.
        otherwise: the components whose declaration changed.
    """
    from patchgate.components.component_facts import ComponentFacts
    from patchgate.components.drift_gathering import component_states

    faults: dict[str, str] = {}
    states: tuple[ComponentState, ...] = ()
    contracts: ContractsView | None = None
    old = {file.path: file.old for file in files or ()}
    try:
        states = component_states(policy.components, near, view, old, is_merge=is_merge)
    except PatchgateError as error:
        faults["drift"] = error.sentence
    claims = [policy.components.claims(path) for paths in near.values() for path in paths]
    # A change of only implementation files breaks no contract.
    if (
        files is None
        or otherwise
        or any(file.is_removed for file in files)
        or any(len(each) > 1 or (each and each[0][1] is not Role.IMPLEMENTATION) for each in claims)
    ):
        try:
            contracts = _contracts(policy, view, files, otherwise)
        except PatchgateError as error:
            faults["contracts"] = error.sentence
    if not (states or contracts is not None or faults):
        return None
    return ComponentFacts(states, contracts, faults, policy)


def _contracts(
    policy: Policy, view: TreeView, files: Sequence[FileChange] | None, otherwise: Collection[str]
) -> ContractsView | None:
    # 10 ms to import.
    from patchgate.components.component_cache import FactsCache
    from patchgate.components.contract_gathering import contracts_of_change, contracts_of_tree

    with FactsCache.of(view.objects.repository) as cache:
        if files is None:
            return contracts_of_tree(policy, view, cache)
        return contracts_of_change(policy, view, files, cache, otherwise)


def _undeclared_baselines(policy: Policy, before: Policy, view: TreeView) -> dict[str, RepoPath]:
    """Find the remaining baselines of components that are no longer declared."""
    gone = [name for name in before.components.ids if name not in policy.config.components]
    places = {name: before.components[name].baseline for name in gone}
    return {name: place for name, place in places.items() if view.entry(place.raw) is not None}


def with_landing(
    repository: Repository,
    update: BranchUpdate,
    commits: int,
    report: Report,
    asked: Callable[[], CheckOptions],
) -> Report:
    """Add what the commits of an update of a protected branch do together."""
    if update.old is None or commits < 2:
        return report
    # Most updates bring one commit.
    from patchgate.components import cumulative_drift as steps

    return steps.add_update_findings(repository, update.ref, update.old, update.new, report, asked)


def with_push(
    objects: Objects,
    terms: RefRules,
    commits: Mapping[str, str | None],
    updates: Sequence[RefUpdate],
    changes: Sequence[ChangeVerdict],
    judged_for: Callable[[str], Sequence[ChangeVerdict]],
    now: float | None,
) -> list[ChangeVerdict]:
    """Add the findings about components in a push: its commits together, and each tip."""
    from patchgate.components.push_tips import add_cumulative_findings, add_tip_findings

    changes = add_cumulative_findings(objects, terms, commits, updates, changes, judged_for)
    return add_tip_findings(objects, terms, commits, updates, changes, judged_for, now)
