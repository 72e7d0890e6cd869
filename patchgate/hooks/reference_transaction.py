"""reference-transaction: judge every commit that a branch is about to get, whoever made it.

Decides which lines of the transaction matter (branches that get a value they do not have), what becomes of
the verdict (receipts, the ledger), and how somebody comes back from a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
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

if TYPE_CHECKING:
    from patchgate.intents.intent_commits import IntentCommits

FETCH, RECEIVE = "fetch", "receive-pack"
Pusher = Callable[[Repository], Repository | None]


def judge_transaction(
    repository: Repository,
    lines: bytes,
    command: Callable[[], str],
    process: Callable[[], str],
    pusher: Pusher = lambda repository: repository,
) -> HookDecision:
    """Judge the branches of a transaction that is prepared.

    Args:
        lines: what git sends: old value, new value and name of each ref.
        command: finds git's command that is at work; asked only where something is refused.
        process: names git's command that runs the hook, for certain; asked only where a branch is created,
            and where this worktree has an intent.
        pusher: opens the repository as that worktree of it has it which pushes into it; None where another
            repository pushes. Asked only where a push runs the hook, and there are intents.

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
            told = report_unchecked(repository, update.old, update.ref, asked)
            report = replace(report, warnings=(*report.warnings, *told))
        judged = decide(repository, "reference-transaction", report, update.ref)
        stopping = stopping or (update if judged.stops else None)
        warnings |= dict.fromkeys(judged.report.warnings)
        changes.extend(judged.report.changes)
    warnings |= dict.fromkeys(add_receipts(known.receipts, changes))
    if makings:
        gate.touch()
    if stopping is None:
        warnings |= dict.fromkeys(record_made(repository, makings))
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
    """Record which commits land unjudged because somebody said so.

    Args:
        process: as `judge_transaction` asks it.
        pusher: as `judge_transaction` asks it.

    Returns:
        How many they are, and warnings of the ledger.
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
    """Give the intents that bind commits, and those of the commits that they bind.

    What another repository pushes into this one no intent binds, except what the reflog of this worktree
    shows as made here. What a worktree of this one pushes, its intents bind: plumbing leaves no reflog.

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
    """Record which commits were made under which intent of this worktree; return warnings of the ledger."""
    ledger = Ledger(repository.common_dir)
    warnings: list[str] = []
    for making in makings:
        for name, commits in making.bound.items():
            about: dict[str, Json] = {"intent": name, "ref": printable(making.update.ref), "commits": commits}
            warning = ledger.record("made", about)
            warnings += [warning] if warning else []
    return warnings


def read_updates(repository: Repository, lines: bytes) -> Iterator[BranchUpdate]:
    """Read the branches that would get another value.

    Raises:
        UndecidedError: a line is none of git's, or a branch would not name a commit.
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
