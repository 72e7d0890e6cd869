"""What the working tree has of the components of a run: their files, and what the index has otherwise."""

from __future__ import annotations

from collections.abc import Callable

from patchgate.components.baseline_status import component_statuses
from patchgate.components.component_cache import ComponentCache
from patchgate.components.drift_gathering import files_of
from patchgate.components.policy_tree import tree_to_capture
from patchgate.errors import PatchgateError
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import first_of
from patchgate.git.repository import Repository
from patchgate.git.tree_view import TreePaths
from patchgate.policy.component import Role
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Policy
from patchgate.runs.run_state import ComponentOnDisk, RunPlan, RunState, inconsistencies
from patchgate.runs.worktree_changes import look_at, unstaged

_POLICY_FILES = frozenset({CONFIG_FILE, PYPROJECT_FILE})
_NAMED = 5


def warn_of_unstaged(
    repository: Repository, policy: Policy, plan: RunPlan, report: Callable[[str], None]
) -> None:
    """Name the files of the components that the index does not have as they are on disk."""
    components = [policy.components[name] for name in plan.phases]
    paths = [
        path
        for path in unstaged(look_at(repository))
        if path in _POLICY_FILES or any(component.role(path) is not None for component in components)
    ]
    if paths:
        named = first_of(sorted(paths), _NAMED, lambda path: path.quoted)
        report(f"warning: a run checks the index, which differs from what is on disk: {named}")
        report("  help: git add them, if they belong to the components")


def what_is_wrong(repository: Repository, state: RunState) -> list[str]:
    """Say what contradicts what in a run, or that what is on disk cannot be read."""
    try:
        return inconsistencies(state, on_disk(repository))
    except PatchgateError as error:
        return [f"what is on disk cannot be read: {error.message}"]


def on_disk(repository: Repository) -> dict[str, ComponentOnDisk]:
    """Say of each component of the working tree what there is, and whether its baseline matches.

    Raises:
        UndecidedError: something cannot be read.
        ConfigError: the policy of the working tree cannot be used.
    """
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        content = tree_to_capture(repository, objects, store, from_disk=True)
        with ComponentCache.of(repository) as cache:
            statuses = component_statuses(objects, content.tree, content.policy, TreePaths(objects), cache)
        found: dict[str, ComponentOnDisk] = {}
        for status in statuses:
            roles = {role for role, _ in files_of(status.component, content.view).values()}
            found[status.component.id] = ComponentOnDisk(
                has_contract=Role.CONTRACT in roles,
                has_tests=Role.TESTS in roles,
                has_code=Role.IMPLEMENTATION in roles,
                is_recorded=status.baseline is not None and not status.has_drifted,
            )
        return found
