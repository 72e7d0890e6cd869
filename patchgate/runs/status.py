"""Where a repository stands, on one page: runs, drift, staleness, intents, open chains, and what comes next.

Everything is read from where it is recorded. What cannot be read is named, and hides nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from patchgate.apply.attempt_records import AttemptRecord, ResetRecord, list_events, reset_command
from patchgate.components.baseline_status import BaselineStatus, baselines_of_head
from patchgate.components.policy_tree import head_tree
from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of
from patchgate.git.repository import Repository
from patchgate.intents.actions import all_intents
from patchgate.intents.intent import Intent
from patchgate.intents.stored_intents import current_moment, is_alive
from patchgate.ledger.ledger import Ledger
from patchgate.policy.component import Component
from patchgate.report.json import json_line
from patchgate.report.schema import Schema, Shape, about, document_schema
from patchgate.report.wording import count, safe
from patchgate.runs.run_questions import ask_questions
from patchgate.runs.run_record import UnfinishedRuns, next_step, status_now, unfinished_runs
from patchgate.runs.run_state import SEE_STATUS, RunState, RunStatus
from patchgate.storage.checked_chain import damaged_line
from patchgate.storage.record import Json
from patchgate.values import dataclass, field

SCHEMA = "patchgate.status/1"
_EXHAUSTED = "retry-exhausted"
_DAYS = 30 * 86_400.0
_MOST = 20
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class OpenChain:
    """A chain of attempts that ended in a refusal: the first attempt, the last, and how many count."""

    first: str
    last: str
    refused: int
    is_exhausted: bool
    rules: tuple[str, ...]


@dataclass(slots=True)
class RepositoryStatus:
    """What was found at a time.

    `runs` are those that are not complete, `completed` is the number of the others; `overtaken` are ids of
    runs whose components a later run has taken up. `uncommitted` are
    components whose baseline is in the working tree only. `doubtful` are questions that nobody has answered
    with some confidence. `next` are the steps for a person; `missing` says
    what could not be read.
    """

    now: float
    runs: list[RunState] = field(default_factory=list)
    completed: int = 0
    overtaken: frozenset[str] = frozenset()
    components: list[BaselineStatus] = field(default_factory=list)
    uncommitted: list[str] = field(default_factory=list)
    intents: list[tuple[Intent, bool]] = field(default_factory=list)
    chains: list[OpenChain] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def repository_status(repository: Repository, now: float | None = None) -> RepositoryStatus:
    """Gather where a repository stands."""
    status = RepositoryStatus(time.time() if now is None else now)

    def read(what: str, find: Callable[[], _Found], otherwise: _Found) -> _Found:
        try:
            return find()
        except PatchgateError as error:
            status.missing.append(f"{what}: {error.message}")
            return otherwise

    none = UnfinishedRuns((), 0, frozenset())
    found = read("runs", lambda: unfinished_runs(repository), none)
    status.runs, status.completed, status.overtaken = list(found.runs), found.completed, found.overtaken
    status.components = read(
        "components", lambda: list(baselines_of_head(repository, status.now).components), []
    )
    status.uncommitted = [
        each.status.component.id
        for each in status.components
        if each.verified is None and _is_in_work_tree(repository, each.status.component)
    ]
    moment = current_moment()
    nothing: tuple[tuple[Intent, ...], tuple[UndecidedError, ...]] = ((), ())
    intents, damaged = read("intents", lambda: all_intents(repository), nothing)
    status.intents = [(each, is_alive(each, moment)) for each in intents]
    status.missing += [f"intents: {each.message}" for each in damaged]
    status.chains = read("attempts", lambda: _open_chains(repository, status.now), [])
    ledger = Ledger(repository.common_dir)
    line = read("ledger", lambda: damaged_line(str(ledger.path), ledger.content(strict=True)), None)
    if line is not None:
        status.missing.append(f"ledger: line {line} is damaged: git patchgate log --verify")
    status.doubtful = read("questions", lambda: ask_questions(repository).doubtful, [])
    status.next = list(dict.fromkeys(_next_steps(status)))
    return status


def _is_in_work_tree(repository: Repository, component: Component) -> bool:
    root = repository.work_tree
    return root is not None and os.path.exists(os.path.join(os.fsencode(root), component.baseline.raw))


def _open_chains(repository: Repository, now: float) -> list[OpenChain]:
    with Objects(repository) as objects:
        limit = head_tree(repository, objects).policy.config.apply.max_attempts
    chains: dict[str, list[AttemptRecord]] = {}
    for event in list_events(Ledger(repository.common_dir), since=now - _DAYS):
        if isinstance(event, AttemptRecord):
            chains.setdefault(event.chain, []).append(event)
        elif isinstance(event, ResetRecord):
            chains.pop(event.chain, None)
    found = []
    for first, records in chains.items():
        last = records[-1]
        if last.applied or last.dry_run or last.verdict != "rejected":
            continue
        refused = sum(each.counts and _EXHAUSTED not in each.rules for each in records)
        found.append(OpenChain(first, last.attempt, refused, refused >= limit, last.rules))
    return found


def _next_steps(status: RepositoryStatus) -> list[str]:
    # A run that is resumed before its chains are reset waits for them again.
    steps = [reset_command(chain.last) for chain in status.chains if chain.is_exhausted]
    found = [
        next_step(state, status.now) or state.hint
        for state in status.runs
        if state.id not in status.overtaken
    ]
    # This page names the attempts already.
    steps += [each.removeprefix(f"{SEE_STATUS}, then ") for each in found if each is not None]
    drifted = [each.status.component.id for each in status.components if each.status.has_drifted]
    if status.uncommitted:
        named = ", ".join(status.uncommitted[:_MOST])
        steps.append(
            f"git add .patchgate/baselines && git commit, because these baselines are not committed: {named}"
        )
    if drifted:
        steps.append(f"git patchgate baseline capture {' '.join(drifted[:_MOST])}")
    steps += [f"git patchgate run answer {each} ANSWER" for each in status.doubtful[:1]]
    steps += [f"git patchgate intent clear {each.id}" for each, alive in status.intents if not alive]
    return steps


def status_text(status: RepositoryStatus) -> list[str]:
    """Write the status as lines, safe for a terminal."""
    lines = [_runs_line(status)]
    for state in status.runs[-_MOST:]:
        reason = f": {safe(state.reason)}" if state.reason else ""
        lines.append(f"  {state.id} {status_now(state, status.now).value}{reason}")
    drifted = [each for each in status.components if each.status.has_drifted]
    unrecorded = [each for each in status.components if each.verified is None]
    stale = [each for each in status.components if each not in drifted and each.findings]
    lines.append(
        f"components: {len(status.components)}; {len(drifted)} drifted, {len(stale)} not fresh, "
        f"{len(unrecorded)} without a baseline"
    )
    lines += [f"  {each.status.component.id}: drifted" for each in drifted[:_MOST]]
    lines += [f"  {each.status.component.id}: {safe(each.findings[0].message)}" for each in stale[:_MOST]]
    lines.append(f"intents: {len(status.intents)}")
    lines += [
        f"  {each.id} {'active' if alive else 'over'}: {safe(each.reason, 200)}"
        for each, alive in status.intents[:_MOST]
    ]
    lines.append(f"open chains of attempts: {len(status.chains)}")
    lines += [
        f"  {chain.last}: refused {count(chain.refused, 'time')} ({', '.join(chain.rules[:3]) or 'no rule'})"
        for chain in status.chains[:_MOST]
    ]
    if status.doubtful:
        named = first_of(status.doubtful, _MOST)
        lines.append(f"warning: answers that nobody has confirmed: {named}")
    lines += [f"not read: {safe(each)}" for each in status.missing]
    return [*lines, *(f"next: {safe(each)}" for each in status.next)]


def _runs_line(status: RepositoryStatus) -> str:
    by_status = {RunStatus.COMPLETED.value: status.completed} if status.completed else {}
    for state in status.runs:
        name = status_now(state, status.now).value
        by_status[name] = by_status.get(name, 0) + 1
    words = ", ".join(f"{number} {name}" for name, number in sorted(by_status.items()))
    return f"runs: {len(status.runs) + status.completed}" + (f"; {words}" if words else "")


def status_json(status: RepositoryStatus) -> str:
    """Write the status as a JSON document."""
    runs: Sequence[Json] = [
        {
            "id": state.id,
            "status": status_now(state, status.now).value,
            "done": len(state.done),
            "works": len(state.plan.works),
            "reason": state.reason,
        }
        for state in status.runs
    ]
    components: Sequence[Json] = [
        {
            "id": each.status.component.id,
            "is_recorded": each.verified is not None,
            "has_drifted": each.status.has_drifted,
            "rules": [finding.rule for finding in each.findings],
        }
        for each in status.components
    ]
    document: Mapping[str, Json] = {
        "schema": SCHEMA,
        "runs": runs,
        "completed_runs": status.completed,
        "components": components,
        "intents": [
            {"id": each.id, "is_active": alive, "reason": each.reason} for each, alive in status.intents
        ],
        "chains": [
            {
                "first": chain.first,
                "last": chain.last,
                "refused": chain.refused,
                "is_exhausted": chain.is_exhausted,
                "rules": list(chain.rules),
            }
            for chain in status.chains
        ],
        "doubtful": list(status.doubtful),
        "next": list(status.next),
        "missing": list(status.missing),
    }
    return json_line(document)


def status_schema() -> Schema:
    """Return the schema of the status of a repository."""
    run: Shape = {"id": str, "status": RunStatus, "done": int, "works": int, "reason": str | None}
    component: Shape = {
        "id": str,
        "is_recorded": about(bool, "whether HEAD has a baseline"),
        "has_drifted": bool,
        "rules": [str],
    }
    chain: Shape = {
        "first": str,
        "last": str,
        "refused": about(int, "how many attempts count"),
        "is_exhausted": about(bool, "whether a maintainer must allow another attempt"),
        "rules": [str],
    }
    return document_schema(
        SCHEMA,
        "Where a repository stands",
        {
            "runs": about([run], "those that are not complete, oldest first"),
            "completed_runs": int,
            "components": [component],
            "intents": [{"id": str, "is_active": bool, "reason": str}],
            "chains": about([chain], "chains of attempts that ended in a refusal"),
            "doubtful": about([str], "questions that nobody has answered with some confidence"),
            "next": about([str], "what a person does next"),
            "missing": about([str], "what could not be read"),
        },
    )
