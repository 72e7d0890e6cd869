"""Gather what a change is near to: components that it touches, their baselines, contracts to validate.

Decides which components are looked at for a change: those with a touched file, a touched baseline or another
declaration than before. Everything else costs nothing, however many components there are. What is read of
each is told in `drift` and `contracts`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.change.model import Entry, FileChange
from patchgate.change.path import RepoPath
from patchgate.declared.policy import Policy
from patchgate.errors import PatchgateError
from patchgate.git.objects import Objects
from patchgate.git.sources import Reading

if TYPE_CHECKING:
    from patchgate.gates.component_case import ComponentsNear, ComponentState, ContractsView
    from patchgate.git.tree_view import TreeView


def components_near(
    objects: Objects,
    reading: Reading,
    policy: Policy,
    before: Policy | None = None,
) -> ComponentsNear | None:
    """Gather the components near a change; None where none is, or where git could not make its effect.

    Args:
        objects: reads the objects of the change, also new ones.
        before: the policy of before, where one judges the change that brings it: what is declared otherwise
            than there is looked at too.
    """
    if not policy.config.components or (reading.is_proposed and reading.laid is None):
        return None
    files = reading.change.files
    near = policy.components.near(file.path for file in files)
    otherwise: set[str] = set()
    if before is not None:
        declared, known = policy.config.components, before.config.components
        otherwise = {name for name in {*declared, *known} if declared.get(name) != known.get(name)}
        near.update((name, set()) for name in otherwise if name in declared and name not in near)
        if policy.config.baselines.source_roots != before.config.baselines.source_roots:
            # What every contract names outside may lie elsewhere now.
            otherwise |= set(declared)
    # What goes may be what some contract names, wherever it lies.
    if not (near or otherwise) and not any(_goes(file) for file in files):
        return None
    # 5 ms to import: only where a component may be near.
    from patchgate.git.tree_view import TreeView

    tree, over = reading.laid or (reading.change.base, {file.path.raw: file.new for file in files})
    old = {file.path: file.old for file in files}
    return _gathered(policy, near, TreeView(objects, tree, over), old, files, otherwise)


def all_components(
    objects: Objects, tree: str, files: Sequence[FileChange], policy: Policy
) -> ComponentsNear | None:
    """Gather all components of a tree and its contracts; None where the policy has none.

    Args:
        tree: a tree that can be read.
        files: what lies over it.
    """
    if not policy.config.components:
        return None
    from patchgate.git.tree_view import TreeView

    view = TreeView(objects, tree, {file.path.raw: file.new for file in files})
    near: dict[str, set[RepoPath]] = {name: set() for name in policy.components.ids}
    return _gathered(policy, near, view, {}, None, ())


def _goes(file: FileChange) -> bool:
    """Tell whether a path no longer is what it was: removed, or of another type."""
    return file.old is not None and (file.new is None or file.old.is_file != file.new.is_file)


def _gathered(
    policy: Policy,
    near: Mapping[str, set[RepoPath]],
    view: TreeView,
    old: Mapping[RepoPath, Entry | None],
    files: Sequence[FileChange] | None,
    otherwise: Collection[str],
) -> ComponentsNear | None:
    from patchgate.gates.component_case import ComponentsNear
    from patchgate.operations.judge.contract_cache import FactsCache
    from patchgate.operations.judge.contracts import contracts_view
    from patchgate.operations.judge.drift import component_states

    repository = view.objects.repository
    baselines = policy.config.baselines
    components = policy.components
    faults: dict[str, str] = {}
    states: tuple[ComponentState, ...] = ()
    contracts: ContractsView | None = None
    try:
        states = component_states(components, near, view, old)
    except PatchgateError as error:
        faults["drift"] = _sentence(error)
    try:
        with FactsCache(repository.common_dir, is_writable=not repository.is_receiving) as cache:
            contracts = contracts_view(components, baselines, view, files, cache, otherwise=otherwise)
    except PatchgateError as error:
        faults["contracts"] = _sentence(error)
    return ComponentsNear(states, contracts, faults) if states or contracts is not None or faults else None


def _sentence(error: PatchgateError) -> str:
    return error.message if error.hint is None else f"{error.message}; {error.hint}"
