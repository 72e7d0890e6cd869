"""What the verdicts on the commits of a range say already, and so need not be said of the whole.

An approval of a commit may allow what was reported of it, and nothing else. So an error of a commit counts
for the whole only where the whole does to the component what that commit did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.policy.component import Role
from patchgate.policy.settings import ComponentSettings
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding

_WEIGHT = {level: number for number, level in enumerate(Level)}
_WEAKENED = "drift-tests-weakened"
_ONCE_A_PLACE = ("drift-", "baseline-tampered", "component-undeclared")
_ASSERTIONS = "assertions"
_ALL = frozenset(Role)
_ABOUT_PROMISES = frozenset({"drift-contract-without-tests", _WEAKENED, "drift-tests", "drift-version"})

_State = tuple[ComponentSettings | None, dict[bytes, Entry | None]]


class CommitReports:
    """What was reported of the commits of a range, where each may have been approved.

    Args:
        objects: reads both trees too.
        changes: the verdicts on the commits.
        ends: the trees that the range begins and ends in; the first is None where there was nothing.
        told: verdicts on the whole, which nobody can approve.
    """

    def __init__(
        self,
        objects: Objects,
        changes: Iterable[ChangeVerdict],
        ends: tuple[str | None, str],
        told: Iterable[ChangeVerdict] = (),
    ) -> None:
        self._objects = objects
        self._policies = TreePolicies(objects)
        self._ends = (ends[0] or objects.empty_tree, ends[1])
        self._told = [each for change in told for each in change.findings]
        self._made: dict[tuple[str, RepoPath | None], list[tuple[Finding, ChangeVerdict]]] = {}
        for change in changes:
            for each in change.findings:
                self._made.setdefault((each.rule, each.path), []).append((each, change))
        self._state = cache(self._read_state)

    def have(self, finding: Finding) -> bool:
        """Return whether the same was reported of a commit, at the same or a higher level."""
        if is_among(finding, self._told):
            return True
        made = self._made.get((finding.rule, finding.path), ())
        if finding.level is not Level.ERROR:
            return is_among(finding, [each for each, _ in made])
        return any(is_among(finding, [each]) and self._is_whole(finding, change) for each, change in made)

    def is_untouched(self, finding: Finding) -> bool:
        """Return whether the range leaves what a finding is about as it was."""
        name, roles = finding.details.get("component"), _roles_of(finding)
        if not isinstance(name, str):
            return True
        before, after = (self._state(tree, name, roles) for tree in self._ends)
        return before == after

    def _is_whole(self, finding: Finding, change: ChangeVerdict) -> bool:
        """Return whether a commit alone does to a component what the range does to it."""
        name, trees = finding.details.get("component"), (change.change.base, change.change.after)
        if finding.rule.startswith(_ONCE_A_PLACE) and isinstance(name, str):
            pairs = zip(trees, self._ends, strict=True)
            is_merge = change.source.kind == "merge"
            return not is_merge and all(
                self._state(one, name, _ALL) == self._state(other, name, _ALL) for one, other in pairs
            )
        # A mistake in a contract is the same mistake where the file is the same.
        if finding.path is None:
            return True
        then, now = (self._objects.entry(tree, finding.path.raw) for tree in (trees[1], self._ends[1]))
        return then == now

    def _read_state(self, tree: str, name: str, roles: frozenset[Role]) -> _State:
        """Read what there is of a component in a tree: its declaration, and its files by either end's."""
        from patchgate.components.drift_gathering import files_of
        from patchgate.git.tree_view import TreeView

        found: dict[bytes, Entry | None] = {}
        for each in dict.fromkeys((*self._ends, tree)):
            policy = self._policies.at(self._policies.key(each)).policy
            component = None if policy is None else policy.components.get(name)
            if component is not None:
                files = files_of(component, TreeView(self._objects, tree))
                found |= {path.raw: entry for path, (role, entry) in files.items() if role in roles}
                found[component.baseline.raw] = self._objects.entry(tree, component.baseline.raw)
        policy = self._policies.at(self._policies.key(tree)).policy
        component = None if policy is None else policy.components.get(name)
        return (None if component is None else component.settings), found


def _roles_of(finding: Finding) -> frozenset[Role]:
    """Return the roles of the files that a finding is about."""
    return _ALL - {Role.IMPLEMENTATION} if finding.rule in _ABOUT_PROMISES else _ALL


def is_among(finding: Finding, known: Iterable[Finding]) -> bool:
    """Return whether the same was reported, at the same or a higher level; for lost tests, each of them."""
    same = [
        each
        for each in known
        if (each.rule, each.path) == (finding.rule, finding.path)
        and _WEIGHT[each.level] <= _WEIGHT[finding.level]
    ]
    if finding.rule == _WEAKENED:
        return _has_losses(finding, same)
    is_once = finding.rule.startswith(_ONCE_A_PLACE)
    return any(is_once or each.message == finding.message for each in same)


def _has_losses(finding: Finding, same: Sequence[Finding]) -> bool:
    """Return whether every lost test of a finding was lost in others, in the same way."""
    loss, names = finding.details.get("loss"), _names_in(finding)
    if loss is None:
        # Of many losses, the rest.
        return any((each.message, each.unnamed) == (finding.message, finding.unnamed) for each in same)
    same = [each for each in same if each.details.get("loss") == loss]
    if loss == _ASSERTIONS or not names:
        return any(each.message == finding.message and _names_in(each) == names for each in same)
    return names <= {name for each in same for name in _names_in(each)}


def _names_in(finding: Finding) -> set[str]:
    """Return the whole names of the functions that a finding is about: what is cut off is among `unnamed`."""
    from patchgate.components.weakened_tests import MOST_IN_A_MESSAGE, MOST_OF_A_NAME

    names = finding.details.get("functions")
    shown = names[:MOST_IN_A_MESSAGE] if isinstance(names, (list, tuple)) else ()
    return {*(str(each) for each in shown if len(str(each)) < MOST_OF_A_NAME), *finding.unnamed}
