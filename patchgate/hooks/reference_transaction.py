"""reference-transaction: check every commit that a branch is about to get.

Selects the lines of the transaction that matter (branches that get a new value), writes receipts and the
ledger, and adds the commands that undo a refused update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from patchgate.check.hook_decision import HookDecision, add_receipts, decide
from patchgate.check.policy_lookup import trusted_options
from patchgate.check.ref_updates import JudgedCommits, judge_update
from patchgate.errors import UndecidedError
from patchgate.git.new_commits import BRANCHES, BranchUpdate, find_new_commits, had_value, ref_value
from patchgate.git.quoting import printable
from patchgate.git.refs import describe_symbolic_refs
from patchgate.git.repository import Repository
from patchgate.hooks.recovery_steps import recovery_steps, without_repeats
from patchgate.hooks.unchecked_commits import report_unchecked
from patchgate.intents.worktree_intents import ScopeGate, WorktreeIntents
from patchgate.ledger.ledger import Ledger
from patchgate.report.verdict import ChangeVerdict, Json, Report
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.intents.intent_commits import IntentCommits

FETCH, RECEIVE = "fetch", "receive-pack"
Pusher = Callable[[Repository], Repository | None]


def _close(
    repository: Repository, gate: ScopeGate, makings: Sequence[IntentCommits], *, stops: bool
) -> Sequence[str]:
    """Touch the intent under which commits were made, and record them if they land."""
    if makings:
        gate.touch()
    return () if stops else record_made(repository, makings)


def judge_transaction(
    repository: Repository,
    lines: bytes,
    command: Callable[[], str],
    process: Callable[[], str],
    pusher: Pusher = lambda repository: repository,
) -> HookDecision:
    """Check the branches of a prepared transaction.

    Args:
        lines: git's input: old value, new value and name of each ref.
        command: finds the running git command; called only if something is refused.
        process: names the git command that started the hook, from the process table; called only if a branch
            is created, or this worktree has an intent.
        pusher: opens the repository for the worktree of it that pushes into it; None if another repository
            pushes. Called only if a push runs the hook, and there are intents.

    Raises:
        PatchgateError: it could not be read.
    """
    known = JudgedCommits.at(repository, lines)
    asked = cache(lambda: trusted_options(repository))
    changes: list[ChangeVerdict] = []
    updates = list(read_updates(repository, lines))
    warnings = dict.fromkeys(describe_symbolic_refs(repository, [update.ref for update in updates]))
    stopping: BranchUpdate | None = None
    gate = ScopeGate(repository)
    makings: list[IntentCommits] = []

    def making(update: BranchUpdate, fresh: Sequence[str]) -> IntentCommits | None:
        if gate.here is None:
            return None
        from patchgate.intents.intent_commits import find_intent_commits

        whose, fresh = intents_of_commits(repository, gate.here, fresh, process, pusher)
        found = find_intent_commits(
            repository, whose, update, fresh, settled=known.settled, arriving=known.arriving
        )
        makings.extend([found] if found is not None else [])
        return found

    for update in updates:
        report = judge_update(repository, update, known, asked, lambda: process() == FETCH, making)
        if report.changes and update.old is not None:
            unchecked = report_unchecked(repository, update.old, update.ref, asked)
            report = replace(report, warnings=(*report.warnings, *unchecked))
        judged = decide(repository, "reference-transaction", report, update.ref)
        stopping = stopping or (update if judged.stops else None)
        warnings |= dict.fromkeys(judged.report.warnings)
        changes.extend(judged.report.changes)
    warnings |= dict.fromkeys(add_receipts(known.receipts, changes))
    warnings |= dict.fromkeys(_close(repository, gate, makings, stops=stopping is not None))
    whole = Report(tuple(changes), tuple(warnings))
    if updates:
        whole = without_repeats(repository, whole, stops=stopping is not None)
    if stopping is not None:
        whole = replace(whole, recovery=recovery_steps(repository, stopping, command()))
    return HookDecision(whole, stops=stopping is not None)


def skip_transaction(
    repository: Repository,
    lines: bytes,
    reason: str,
    process: Callable[[], str],
    pusher: Pusher = lambda repository: repository,
) -> tuple[int, tuple[str, ...]]:
    """Record the commits that land unchecked because the hooks are skipped.

    Args:
        process: as for `judge_transaction`.
        pusher: as for `judge_transaction`.

    Returns:
        Their number, and warnings of the ledger.
    """
    ledger = Ledger(repository.common_dir)
    known = JudgedCommits.at(repository, lines)
    gate = ScopeGate(repository)
    gate.touch()
    number, warnings = 0, []
    for update in read_updates(repository, lines):
        if had_value(repository, update):
            continue
        brought = find_new_commits(repository, update, known.settled, known.arriving)
        commits: list[str] = [commit.oid for commit in brought.own]
        if commits:
            number += len(commits)
            about = {
                "hook": "reference-transaction",
                "reason": reason,
                "ref": printable(update.ref),
                "commits": commits,
            }
            warnings.append(ledger.record("skipped", about))
            if gate.here is None:
                continue
            from patchgate.intents.intent_commits import find_intent_commits

            unseen = [oid for oid in commits if not known.receipts.has(oid)]
            whose, own = intents_of_commits(repository, gate.here, unseen, process, pusher)
            making = find_intent_commits(
                repository, whose, update, own, settled=known.settled, arriving=known.arriving
            )
            if making is not None:
                making.bind_all(repository)
                warnings += record_made(repository, [making])
    return number, tuple(warning for warning in warnings if warning)


def intents_of_commits(
    repository: Repository,
    here: WorktreeIntents | None,
    commits: Sequence[str],
    process: Callable[[], str],
    pusher: Pusher,
) -> tuple[WorktreeIntents | None, Sequence[str]]:
    """Return the intents that bind commits, and the commits that they bind.

    Commits that another repository pushes are bound by no intent, except those made here according to the
    reflog of this worktree. Commits that a worktree of this repository pushes are bound by its intents, for
    plumbing commands leave no reflog.

    Raises:
        UndecidedError: the reflog cannot be read.
    """
    if process() != RECEIVE:
        return here, commits
    source = pusher(repository)
    if source is not None:
        if source.git_dir == repository.git_dir:
            return here, commits
        whose = ScopeGate(source).here
        if whose is not None and whose.binds:
            return whose, commits
    from patchgate.git.refs import commits_made_in

    made = commits_made_in(repository.git_dir, 0)
    return here, [oid for oid in commits if oid in made]


def record_made(repository: Repository, makings: Sequence[IntentCommits]) -> list[str]:
    """Record which commits were made under which intent; return warnings of the ledger."""
    ledger = Ledger(repository.common_dir)
    warnings: list[str] = []
    for making in makings:
        for name, commits in making.bound.items():
            about: dict[str, Json] = {"intent": name, "ref": printable(making.update.ref), "commits": commits}
            warning = ledger.record("made", about)
            warnings += [warning] if warning else []
    return warnings


def read_updates(repository: Repository, lines: bytes) -> Iterator[BranchUpdate]:
    """Read the branches that would get a new value.

    Raises:
        UndecidedError: a line is malformed, or a branch would not name a commit.
    """
    for line in lines.split(b"\n"):
        if not line:
            continue
        words = line.decode("utf-8", "surrogateescape").split(" ")
        if len(words) != 3:
            raise UndecidedError("git's reference transaction could not be read", "run git fsck")
        _, new, ref = words
        if not ref.startswith(BRANCHES):
            continue
        if new.startswith("ref:"):
            new = ref_value(repository, new.removeprefix("ref:")) or repository.zero_oid
        if not new.strip("0"):
            continue
        old = ref_value(repository, ref)
        if new != old:
            yield BranchUpdate(ref, old, new)
