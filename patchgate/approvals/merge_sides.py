"""List what an approved merge decides beside its own change: it counts as it was shown to who approves it."""

from __future__ import annotations

from patchgate.approvals.approved_commits import tree_of
from patchgate.approvals.approved_slots import is_chosen
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestors
from patchgate.git.repository import Repository
from patchgate.git.trees import compare_trees
from patchgate.report.verdict import ChangeVerdict


def chosen_sides(repository: Repository, change: ChangeVerdict) -> dict[RepoPath, str | None]:
    """Map the paths that a merge has otherwise than git makes them to the parent whose content it has.

    None: it has that of the branch that gets it. What is its own change is not listed.

    Raises:
        UndecidedError: an object is missing.
    """
    parents, after = change.source.parents, change.change.after
    if not parents:
        return {}
    with Objects(repository) as objects:
        sides = [tree_of(objects, each) for each in parents]
        bases = [tree_of(objects, each) for each in common_ancestors(repository, *parents[:2])]
        differing = {path for side in sides for path in compare_trees(objects, side, after)}
        differing -= {file.path for file in change.change.files}
        found: dict[RepoPath, str | None] = {}
        for path in sorted(differing):
            made, *others = (objects.file_at(each, path.raw) for each in (after, *sides, *bases))
            if is_chosen(made, others[: len(sides)], others[len(sides) :]):
                like = (parent for parent, side in zip(parents, others, strict=False) if side == made)
                found[path] = next(like, None)
        return found
