"""Judge what a merge has at its paths in conflict, compared with a branch that gets it.

One side of a conflict is no change of the merge. But its author chose the sides, and one may have what the
branch has removed since. Only rules about what a change adds are asked, and nothing costs a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

from patchgate.check.case import Case
from patchgate.check.gate import ORDER, Gate, GateResults, judge
from patchgate.errors import UndecidedError
from patchgate.git.change_sources import LoadedChange
from patchgate.git.merge_paths import BASE_SECONDS, CarryLimit, merge_bases
from patchgate.git.model import Change
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import UNCHANGED, Finding, GateOutcome, Outcome
from patchgate.values import replace

_GATES = frozenset({"paths", "policy", "content", "shape"})
# Not the budgets, nor the rules that deny a path: there a merge is compared with the branch anyway.
_RULES = frozenset(
    {
        "deny-class",
        "deny-suffix",
        "secret",
        "conflict-marker",
        "deny-content",
        "mode-change",
        "symlink",
        "gitlink",
    }
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
        if found:
            found, more = _since(case, reading, gate, bases, found, objects)
            said = said or more
        findings += map(_brought_back, found)
        outcomes.append(said or GateOutcome(gate.name, Outcome.FAIL if found else Outcome.NOT_APPLICABLE))
    return tuple(outcomes), tuple(findings)


def _brought_back(finding: Finding) -> Finding:
    details = finding.details if finding.path is None else {**finding.details, UNCHANGED: finding.path}
    return replace(finding, notes=(*finding.notes, _NOTE), details=details)


def _since(
    case: Case,
    reading: LoadedChange,
    gate: Gate,
    bases: Callable[[], list[str]],
    found: list[Finding],
    objects: Objects,
) -> tuple[list[Finding], GateOutcome | None]:
    """Leave out of the findings what every merge base has; and the outcome of the gate if undecided."""
    try:
        trees = bases()
    except UndecidedError as error:
        return [], GateOutcome(gate.name, Outcome.UNDECIDED, error.sentence)
    if not trees:
        return found, None
    others, said = _refused(case, reading, gate, trees, objects.empty_blob)
    fresh = {(each.rule, each.path) for each in others}
    kept = [each for each in found if (each.rule, each.path) in fresh or not _have(trees, each.path, objects)]
    return kept, said


def _bases(reading: LoadedChange, commits: Sequence[str], objects: Objects) -> list[str]:
    """List the trees of the merge bases of a merge and the branches; none where they are not sure."""
    repository = objects.repository
    headers = objects.headers([commit + "^{commit}" for commit in commits])
    if not reading.heads or None in headers or repository.shallow:
        return []
    found: set[str] = set()
    limit = reading.limit or CarryLimit(seconds=BASE_SECONDS)
    with limit.spent_on([(head, "") for head in reading.heads]):
        for header in headers:
            limit.require_time()
            found.update(
                merge_bases(repository, objects, ("" if header is None else header.oid, *reading.heads))
            )
    return sorted(found)


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
