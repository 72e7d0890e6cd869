"""How a change that is past its budget may be split: into parts that are each within every budget.

Decides which paths have to stay together, and in which part each goes. Every part can be taken out of the
patch by its paths alone, and all parts together are the whole change, but for what no part can hold. A part
need not apply before another one does, nor mean anything by itself: only the author knows that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patchgate.check.case import Case
from patchgate.git.folders import Descent
from patchgate.git.model import FileChange
from patchgate.git.path import RepoPath

Spending = tuple[int | None, str, Sequence[FileChange]]
"""One budget: its limit (None is no limit), its name, and the files that it counts."""


@dataclass(frozen=True, slots=True)
class Split:
    """The parts, and the paths that are past a budget by themselves and so in no part."""

    parts: tuple[tuple[RepoPath, ...], ...]
    too_large: tuple[RepoPath, ...]

    @property
    def hint(self) -> str:
        """Say what to do, in words."""
        number = len(self.parts)
        names = "details.split in the JSON report names the files"
        if not self.too_large:
            return f"split it into {number} changes ({names})"
        large = ", ".join(path.quoted for path in self.too_large[:3])
        alone = f"{large}{', …' if len(self.too_large) > 3 else ''} alone is past the limit"
        smaller = f"{alone}: change it in smaller steps"
        if not self.parts:
            return smaller
        rest = f"the rest makes {number} change{'s' if number > 1 else ''}"
        return f"{smaller}; {rest} ({names})"


def propose_split(case: Case, budgets: Iterable[Spending]) -> Split:
    """Share out the files of a change, in the order of their paths.

    What one section of a patch names, the two sides of a rename, and a file and what lies below its name stay
    together. Control files stand alone where they must. What costs nothing (deletions, lock files) is
    in some part too.
    """
    limits: list[int] = []
    shares: dict[RepoPath, list[tuple[int, int]]] = {}
    for limit, name, files in budgets:
        if limit is None:
            continue
        for file in files:
            share = 1 if name == "max_files" else file.added_lines or 0
            shares.setdefault(file.path, []).append((len(limits), share))
        limits.append(limit)

    def cost_of(unit: Sequence[RepoPath]) -> list[int]:
        cost = [0] * len(limits)
        for path in unit:
            for budget, share in shares.get(path, ()):
                cost[budget] += share
        return cost

    def fits(cost: Sequence[int]) -> bool:
        return all(used <= limit for used, limit in zip(cost, limits, strict=True))

    parts: list[list[RepoPath]] = []
    too_large: list[RepoPath] = []
    for units in _apart(case):
        begun = False
        spent: list[int] = []
        for unit in units:
            cost = cost_of(unit)
            if not fits(cost):
                too_large.extend(unit)
                continue
            total = [one + more for one, more in zip(spent, cost, strict=True)] if begun else cost
            if begun and fits(total):
                parts[-1].extend(unit)
                spent = total
            else:
                parts.append(list(unit))
                spent, begun = cost, True
    return Split(tuple(map(tuple, parts)), tuple(too_large))


def _apart(case: Case) -> tuple[list[list[RepoPath]], list[list[RepoPath]]]:
    """Part the units that hold control files from the others, where those have to stand alone."""
    units = _units(case)
    if not case.governance.alone:
        return [], units
    controls = [unit for unit in units if any(map(case.is_control, unit))]
    return controls, [unit for unit in units if not any(map(case.is_control, unit))] if controls else units


def _units(case: Case) -> list[list[RepoPath]]:
    """Group the paths that have to stay together; groups and paths in the order of the change."""
    above = {file.path: file.path for file in case.change.files}

    def top(path: RepoPath) -> RepoPath:
        while above[path] != path:
            above[path] = above[above[path]]
            path = above[path]
        return path

    pairs = [*case.change.renames.items(), *case.together]

    def nearest(path: RepoPath | None, folder: bytes) -> RepoPath | None:
        return RepoPath(folder) if RepoPath(folder) in above else path

    # The nearest is enough: it is a pair with the next above it.
    descent = Descent[RepoPath | None](None, nearest)
    # One that is too long is refused whatever else the part holds.
    reached = ((path, descent.at(path.parent)) for path in above if not path.is_too_long)
    pairs.extend((path, folder) for path, folder in reached if folder is not None)
    for one, other in pairs:
        if one in above and other in above:
            first, last = sorted((top(one), top(other)))
            above[last] = first
    groups: dict[RepoPath, list[RepoPath]] = {}
    for path in above:
        groups.setdefault(top(path), []).append(path)
    return list(groups.values())
