"""What the verdicts on the commits of a range say already, and so need not be said of the whole.

An approval of a commit may allow what was reported of it. So its report counts for the whole only as far as
the whole has what that commit made.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding

_WEIGHT = {level: number for number, level in enumerate(Level)}
_WEAKENED = "drift-tests-weakened"
_ONCE_A_PLACE = ("drift-", "baseline-tampered", "component-undeclared")
# Losses of which the names say everything.
_NAMED_LOSSES = frozenset({"file", "function", "skipped"})


class CommitReports:
    """What was reported of the commits of a range, where each may have been approved.

    A report of one counts for the whole only as far as the whole has what that commit made: the file at the
    same path, or the same loss.

    Args:
        objects: reads `after` too.
        changes: the verdicts on the commits.
        after: the tree that the range ends in.
        told: verdicts on the whole, which nobody can approve.
    """

    def __init__(
        self,
        objects: Objects,
        changes: Iterable[ChangeVerdict],
        after: str,
        told: Iterable[ChangeVerdict] = (),
    ) -> None:
        self._objects = objects
        self._after = after
        self._known: dict[tuple[str, RepoPath | None], list[tuple[Finding, str]]] = {}
        made = [(change, change.change.after) for change in changes] + [(each, after) for each in told]
        for change, tree in made:
            for each in change.findings:
                self._known.setdefault((each.rule, each.path), []).append((each, tree))

    def have(self, finding: Finding) -> bool:
        """Return whether the same was reported of a commit, at the same or a higher level."""
        known = self._known.get((finding.rule, finding.path), ())
        same = [(each, tree) for each, tree in known if _WEIGHT[each.level] <= _WEIGHT[finding.level]]
        is_named = finding.details.get("loss") in _NAMED_LOSSES
        left = [each for each, tree in same if is_named or self._is_left(finding.path, tree)]
        return is_among(finding, left)

    def _is_left(self, path: RepoPath | None, tree: str) -> bool:
        if path is None:
            return True
        then, now = (self._objects.entry(each, path.raw) for each in (tree, self._after))
        return then == now


def is_among(finding: Finding, known: Iterable[Finding]) -> bool:
    """Return whether the same was reported, at the same or a higher level; for lost tests, each of them."""
    same = [
        each
        for each in known
        if (each.rule, each.path) == (finding.rule, finding.path)
        and _WEIGHT[each.level] <= _WEIGHT[finding.level]
    ]
    if finding.rule != _WEAKENED:
        is_once = finding.rule.startswith(_ONCE_A_PLACE)
        return any(is_once or each.message == finding.message for each in same)
    if any(each.message == finding.message for each in same):
        return True
    from patchgate.components.weakened_tests import MOST_NAMED_LOSSES

    loss, names = finding.details.get("loss"), _names_in(finding)
    # What is cut off in the details is not compared.
    is_named = loss in _NAMED_LOSSES and 0 < len(names) < MOST_NAMED_LOSSES
    return is_named and names <= {
        name for each in same if each.details.get("loss") == loss for name in _names_in(each)
    }


def _names_in(finding: Finding) -> set[str]:
    names = finding.details.get("functions")
    return {str(each) for each in names} if isinstance(names, (list, tuple)) else set()
