"""The budget of a piece of work: how many attempts, added lines and minutes all of it may take together.

Attempts are those of `apply` in its worktree since it was declared, refused ones too. Added lines are what
its files have more than on the commit where it began, with what a merge brought. Minutes pass from the
declaration on. Until it is cleared, an agent changes its files under it alone, in whichever worktree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.check.case import find
from patchgate.git.quoting import printable
from patchgate.report.verdict import Finding, Fixer
from patchgate.report.wording import count, format_duration
from patchgate.values import dataclass

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.git.objects import Objects
    from patchgate.git.path import RepoPath
    from patchgate.git.repository import Repository
    from patchgate.intents.intent import Intent, Moment

RULE = "intent-budget"
_ATTEMPTED = "attempted"
_MOST_NAMED = 20
_MOST_PLACE = 200
_PROPOSALS = frozenset({"patch", "edits"})


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """What a piece of work has used: attempts, added lines, and the seconds since its declaration."""

    attempts: int
    added_lines: int
    seconds: float


def spent_at(objects: Objects, intent: Intent, tree: str, now: Moment) -> SpentBudget:
    """Find what a piece of work has used up to a tree; what has no limit is not counted.

    Raises:
        UndecidedError: the ledger or an object cannot be read.
    """
    budget = intent.budget
    since = intent.declared.until(now)
    return SpentBudget(
        attempts=0 if budget.max_attempts is None else _attempts(objects.repository, intent),
        added_lines=0 if budget.max_added_lines is None else _added(objects, intent, tree),
        # A clock that went back cannot give time.
        seconds=float("inf") if since is None else since,
    )


def added_in(intent: Intent, files: Sequence[FileChange]) -> int:
    """Count the lines that a change adds to the files of a piece of work; binary files have none."""
    return sum(file.added_lines or 0 for file in files if intent.scope.covers(file.path))


def budget_findings(intent: Intent, spent: SpentBudget, adds: int, kind: str) -> Iterator[Finding]:
    """Find which limits of a piece of work a change exceeds.

    Args:
        intent: the piece of work.
        spent: what it has used before this change.
        adds: the lines that this change adds to its files.
        kind: the `Source.kind` of the change; only proposals are attempts.
    """
    budget, name = intent.budget, intent.id
    ends = (
        f"stop here: a maintainer ends this work (git patchgate intent clear {name}) and says what comes next"
    )
    if budget.max_attempts is not None and kind in _PROPOSALS and spent.attempts >= budget.max_attempts:
        limit = count(budget.max_attempts, "attempt")
        yield _find(f"{name} may take {limit}, and none is left", ends, budget.max_attempts, spent.attempts)
    total = spent.added_lines + adds
    if budget.max_added_lines is not None and adds and total > budget.max_added_lines:
        left = max(0, budget.max_added_lines - spent.added_lines)
        message = (
            f"{name} may add {count(budget.max_added_lines, 'line')} in all, {left:,} of them left: "
            f"this adds {adds:,}"
        )
        step = f"send at most {count(left, 'added line')}" if left else ends
        who = Fixer.AGENT if left else Fixer.PERSON
        yield _find(message, step, budget.max_added_lines, total, who)
    if budget.max_minutes is not None and spent.seconds > 60 * budget.max_minutes:
        message = f"{name} may take {format_duration(60 * budget.max_minutes)}, and no time is left"
        yield _find(message, ends, budget.max_minutes, None)


def outside_findings(found: Sequence[tuple[RepoPath, Intent]]) -> Iterator[Finding]:
    """Report files that an agent changes without the intent whose budget counts for them: the first 20.

    Args:
        found: the files, each with that intent.
    """
    for path, intent in found[:_MOST_NAMED]:
        place = printable(intent.work_tree, _MOST_PLACE)
        message = f"{intent.id} has a budget for this file, which counts only under it, in {place}"
        hint = f"work there while it is active; a maintainer ends it: git patchgate intent clear {intent.id}"
        yield find(RULE, message, path, hint, who=Fixer.PERSON, details={"intent": intent.id})
    more = len(found) - _MOST_NAMED
    if more > 0:
        message = f"{count(more, 'more file')} of intents with a budget"
        hint = "work under those intents: git patchgate intent list"
        yield find(RULE, message, None, hint, who=Fixer.PERSON)


def describe_budget(intent: Intent, spent: SpentBudget) -> list[str]:
    """Say what is left of each limit."""
    budget = intent.budget
    left = []
    if budget.max_attempts is not None:
        left.append(_left(budget.max_attempts, spent.attempts, "attempts"))
    if budget.max_added_lines is not None:
        left.append(_left(budget.max_added_lines, spent.added_lines, "added lines"))
    if budget.max_minutes is not None:
        used = budget.max_minutes if spent.seconds == float("inf") else int(spent.seconds // 60)
        left.append(_left(budget.max_minutes, used, "minutes"))
    return left


def _left(limit: int, used: int, what: str) -> str:
    return f"{max(0, limit - used):,} of {limit:,} {what} left"


def is_spent(finding: Finding) -> bool:
    """Return whether a finding says that nothing of a limit is left, so that no other patch is accepted."""
    return finding.rule == RULE and finding.who_can_fix is Fixer.PERSON


def _find(message: str, hint: str, limit: int, actual: int | None, who: Fixer = Fixer.PERSON) -> Finding:
    return find(RULE, message, None, hint, who=who, details={"limit": limit, "actual": actual})


def _attempts(repository: Repository, intent: Intent) -> int:
    from patchgate.ledger.ledger import Ledger

    events = Ledger(repository.common_dir).find_events({_ATTEMPTED}, since=intent.declared.wall, strict=True)
    made = {str(event.about.get("attempt")) for event in events if _is_here(event.about, intent)}
    return len(made)


def _is_here(about: Mapping[str, object], intent: Intent) -> bool:
    return about.get("work_tree") == intent.work_tree


def _added(objects: Objects, intent: Intent, tree: str) -> int:
    if tree == intent.tree:
        return 0
    from patchgate.git.diff import Detail, read_difference

    trees, detail = (intent.tree, tree), Detail(lines=True)
    command = ("diff-tree", "-r")
    files, _ = read_difference(objects.repository, objects, command, trees, detail, objects.variables)
    return added_in(intent, files)
