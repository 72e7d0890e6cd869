"""Judge what a merge has at its paths in conflict, compared with a branch that gets it.

One side of a conflict is no change of the merge. But its author chose the sides, and one may have what the
branch has removed since. Only rules about what a change adds are asked, and nothing costs a budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

from patchgate.check.case import Case
from patchgate.check.gate import ORDER, Gate, GateResults, judge
from patchgate.git.change_sources import LoadedChange
from patchgate.git.merge_paths import merge_bases
from patchgate.git.model import Change
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Finding, GateOutcome, Outcome
from patchgate.values import replace

_GATES = frozenset({"paths", "policy", "content", "shape"})
# Not the budgets, nor the rules that deny by name: there a merge is compared with the branch anyway.
_RULES = frozenset(
    {"deny-class", "secret", "conflict-marker", "deny-content", "mode-change", "symlink", "gitlink"}
    | {rule.id for rule in RULES.values() if rule.gate == "paths"}
)
_NOTE = "the branch does not have it: one side of a conflict brings it back"


def judge_solved(
    case: Case, reading: LoadedChange, tree: str, commits: Sequence[str], objects: Objects
) -> GateResults:
    """Find what a merge brings back to a branch.

    What every parent has was there when they were merged; the branch may have removed it later. The same
    holds of what every merge base with the branch has: git keeps what the branch made of it since.

    Args:
        case: the merge, as it was judged.
        tree: that of the branch.
        commits: those of the branches that have this tree, where they are known.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    bases = cache(partial(_bases, reading, commits, objects))
    outcomes: list[GateOutcome] = []
    findings: list[Finding] = []
    for gate in ORDER:
        found, said = _refused(case, reading, gate, (tree,), objects.empty_blob)
        if found:
            others, more = _refused(case, reading, gate, reading.parents, objects.empty_blob)
            said = said or more
            fresh = {(each.rule, each.path) for each in others}
            found = [each for each in found if (each.rule, each.path) in fresh]
        if found and bases():
            others, more = _refused(case, reading, gate, bases(), objects.empty_blob)
            said = said or more
            fresh = {(each.rule, each.path) for each in others}
            found = [
                each
                for each in found
                if (each.rule, each.path) in fresh or not _have(bases(), each.path, objects)
            ]
        findings += (replace(each, notes=(*each.notes, _NOTE)) for each in found)
        outcomes.append(said or GateOutcome(gate.name, Outcome.FAIL if found else Outcome.NOT_APPLICABLE))
    return tuple(outcomes), tuple(findings)


def _bases(reading: LoadedChange, commits: Sequence[str], objects: Objects) -> list[str]:
    """List the trees of the merge bases of a merge and the branches; none where they are not sure."""
    repository = objects.repository
    headers = objects.headers([commit + "^{commit}" for commit in commits])
    if not reading.heads or None in headers or repository.shallow:
        return []
    names = [header.oid for header in headers if header is not None]
    found = [merge_bases(repository, objects, (name, *reading.heads)) for name in names]
    return sorted({tree for trees in found for tree in trees})


def _have(trees: Sequence[str], path: RepoPath | None, objects: Objects) -> bool:
    """Return whether each of some trees has a path."""
    return path is not None and all(objects.entry(tree, path.raw) is not None for tree in trees)


def _refused(
    case: Case, reading: LoadedChange, gate: Gate, trees: Sequence[str], empty_blob: str
) -> tuple[list[Finding], GateOutcome | None]:
    """List what a gate refuses at the paths in conflict, against trees; and its outcome if undecided."""
    found: list[Finding] = []
    for outcomes, findings in _judged(case, reading, gate, trees, empty_blob):
        if outcomes[0].outcome is Outcome.UNDECIDED:
            return found, outcomes[0]
        found += (each for each in findings if each.rule in _RULES and each.level is Level.ERROR)
    return found, None


def _judged(
    case: Case, reading: LoadedChange, gate: Gate, trees: Sequence[str], empty_blob: str
) -> Iterator[GateResults]:
    if gate.name not in _GATES or reading.solved is None:
        return
    for tree in trees:
        change = Change.of(tree, case.change.after, reading.solved(tree), empty_blob)
        yield judge(
            replace(case, change=change, copied=(), merged=(), folders=_folders(case, change)), (gate,)
        )


def _folders(case: Case, change: Change) -> dict[bytes, Sequence[bytes]]:
    """List the folders above the paths of a change, as far as the merge differs there from each parent.

    Where it does not, what collides there collides in a parent, too.
    """
    names: dict[bytes, Sequence[bytes]] = {}
    for file in change.files:
        above = file.path.raw
        while above:
            above = above.rpartition(b"/")[0]
            names[above] = ()
    return {**names, **{each.path: tuple(each.names) for each in case.merged}, **case.folders}
