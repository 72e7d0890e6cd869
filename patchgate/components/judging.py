"""What components take part in when a change, a branch's update or a push is judged (`check.features`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.check.features import Scene
from patchgate.components.components import all_components, components_near, with_undeclared
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.policy.policy import Policy
from patchgate.report.verdict import ChangeVerdict, Report

if TYPE_CHECKING:
    from patchgate.check.ref_terms import RefTerms
    from patchgate.check.terms import Asked
    from patchgate.components.component_case import ComponentsNear
    from patchgate.git.novelty import Update
    from patchgate.git.pushes import RefUpdate


def gather(scene: Scene) -> ComponentsNear | None:
    """Gather the components near a change, by the policy that declares them."""
    if scene.reading is None:
        return None
    near = components_near(scene.objects, scene.reading, scene.declaring, scene.known)
    if scene.own is None:
        return near
    return with_undeclared(near, scene.objects, scene.reading, scene.declaring, scene.own)


def gather_all(objects: Objects, files: Sequence[FileChange], policy: Policy) -> ComponentsNear | None:
    """Gather all components of a tree of these files; None where the policy has none."""
    return all_components(objects, files, policy)


def with_landing(
    repository: Repository, update: Update, commits: int, report: Report, asked: Callable[[], Asked]
) -> Report:
    """Add what the commits of an update do together, where its branch is protected."""
    if update.old is None or commits < 2:
        return report
    # Most updates bring one commit.
    from patchgate.components import ranges

    return ranges.with_landing(repository, update, commits, report, asked)


def with_push(
    objects: Objects,
    terms: RefTerms,
    commits: Mapping[str, str | None],
    updates: Sequence[RefUpdate],
    changes: Sequence[ChangeVerdict],
    now: float | None,
) -> list[ChangeVerdict]:
    """Add what a push makes of the components of its branches: its commits together, and each tip."""
    from patchgate.components.tips import with_steps, with_tips

    changes = with_steps(objects, terms, commits, updates, changes)
    return with_tips(objects, terms, commits, updates, changes, now)
