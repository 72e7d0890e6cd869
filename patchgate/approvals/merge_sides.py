"""List what an approved merge decides beside its own change: it counts with its tree, for who approves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from patchgate.approvals.approved_commits import PATH_RULES, tree_of
from patchgate.approvals.owned_refs import differences
from patchgate.approvals.signatures import base_tree
from patchgate.check.judging_policy import controls_of, owned_paths
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestors
from patchgate.git.repository import Repository
from patchgate.policy.policy import PathRuling
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.verdict import ChangeVerdict, Finding, OwnedPaths


def chosen_sides(
    repository: Repository, change: ChangeVerdict, owned: Sequence[OwnedPaths], findings: Sequence[Finding]
) -> dict[RepoPath, str | None]:
    """Map the paths of which an approved merge takes one side, where git would not, to that parent.

    None: it takes what the branch has that gets it. Listed are paths of the tables that are asked, and after
    an exception from a rule about paths those that rules deny; but not what is the merge's own change.

    Args:
        owned: the paths for whose owners the approval counts.
        findings: what it allows.

    Raises:
        UndecidedError: an object is missing.
    """
    parents = change.source.parents
    with Objects(repository) as objects:
        base = base_tree(objects, change) if parents else None
        if base is None:
            return {}
        first, *others = (tree_of(objects, each) for each in parents)
        joined = [tree_of(objects, each) for each in common_ancestors(repository, *parents[:2])]
        differing = {path for tree in others for path in differences(objects, first, tree)}
        differing -= {file.path for file in change.change.files}
        found: dict[RepoPath, str | None] = {}
        for path in sorted(set(_decided(objects, base, change, differing, owned, findings))):
            made, *sides = (objects.file_at(tree, path.raw) for tree in (change.change.after, first, *others))
            was = {objects.file_at(tree, path.raw) for tree in joined}
            # What one side alone has changed is as that side has it.
            if len(sides) > 2 or {*sides} - was != {made}:
                names = (name for name, entry in zip(parents, sides, strict=True) if entry == made)
                found[path] = next(names, None)
        return found


def _decided(
    objects: Objects,
    base: str,
    change: ChangeVerdict,
    paths: Set[RepoPath],
    owned: Sequence[OwnedPaths],
    findings: Sequence[Finding],
) -> Iterator[RepoPath]:
    """Yield those of some paths for which an approval counts, by the policy of a tree."""
    policies = TreePolicies(objects)
    found = policies.at(policies.key(base))
    controls = controls_of(objects, base, change.change.after, paths)
    tables = {each.table for each in owned}
    for each in owned_paths(found, paths, controls):
        yield from each.paths if each.table in tables else ()
    if found.policy is not None and any(each.rule in PATH_RULES for each in findings):
        yield from (path for path in paths if _is_denied(found.policy.ruling(path)))


def _is_denied(ruling: PathRuling) -> bool:
    return ruling.denied is not None or ruling.outside or ruling.suffix is not None or bool(ruling.classes)
