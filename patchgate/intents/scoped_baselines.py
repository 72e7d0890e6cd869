"""Which baselines are in the scope of an intent that does not name them: those of components it works on.

Decides that a baseline which a change leaves goes with the files of its component: where an intent allows one
of them, `baseline capture` may record it anew. A baseline that a change takes away does not. Whether its
contents are what a capture writes, `components.drift` decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchgate.git.path import RepoPath
from patchgate.git.tree_view import TreeView
from patchgate.intents.entries import may_be_many
from patchgate.intents.intent import Scope
from patchgate.policy.component import BASELINES, Component, Components


def baselines_in_scope(
    scope: Scope, components: Components, touched: Iterable[RepoPath], view: TreeView
) -> frozenset[RepoPath]:
    """Name the baselines among some paths whose components the work may touch.

    Args:
        scope: what was declared.
        components: those of the policy.
        touched: what the change touches.
        view: the tree that the change leaves.

    Raises:
        UndecidedError: an object is missing.
    """
    # Most changes touch none, and then nothing is read.
    near = components.near(path for path in touched if path.raw.startswith(BASELINES))
    return frozenset(
        path
        for name, paths in near.items()
        for path in paths
        if view.entry(path.raw) is not None and _works_on(scope, components[name], view)
    )


def _works_on(scope: Scope, component: Component, view: TreeView) -> bool:
    """Tell whether a scope allows a file of a component: one that it names, or one that is in the tree."""
    entries = (*scope.allowed, *scope.related)
    if any(component.role(entry) is not None for entry in entries):
        return True
    if not any(may_be_many(entry) for entry in entries):
        return False
    return any(
        component.role(path) is not None and scope.covers(path)
        for folder in component.folders
        for path in view.below(folder)
    )
