"""Merge the events of runs that worked in other clones into this ledger.

All files are checked before anything is written. What is known already is dropped, so that a merge can be
repeated. The files of the components are not part of it: git or the CI engine moves them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from patchgate import __version__
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger, iso
from patchgate.report.json import plain_json
from patchgate.report.wording import count
from patchgate.runs.components_on_disk import on_disk, what_is_wrong
from patchgate.runs.run_events import OriginalEvent, RunEvents, events_of, name_of, read_run_events
from patchgate.runs.run_record import (
    checked_run,
    find_run,
    keep,
    last_actions,
    nobody_else_begins,
    status_now,
)
from patchgate.runs.run_state import KIND, RunAction, RunState, RunStatus
from patchgate.storage.record import Json
from patchgate.values import dataclass

_NAMED = 5


@dataclass(frozen=True, slots=True)
class MergedRun:
    """One run after a merge: how many of its events are new, and how many were known."""

    state: RunState
    added: int
    known: int


@dataclass(frozen=True, slots=True)
class MergedRuns:
    """The runs that a merge had events of, what is not as they say, and the components that none of them had.

    Of the last only those that are not as their baseline records them, and only if all is as the runs say.
    """

    runs: tuple[MergedRun, ...]
    warnings: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _NewEvents:
    """What a merge adds to one run: events in order; `ends`: whether its state has to be concluded."""

    run: str
    events: tuple[OriginalEvent, ...]
    known: int
    ends: bool


def merge_runs(
    repository: Repository, files: Sequence[str], directory: str, clock: Callable[[], float] = time.time
) -> MergedRuns:
    """Merge files of events: all of them or none.

    Args:
        files: their names.
        directory: the folder that relative names start from.

    Raises:
        UsageError: a file cannot be used or is of another repository, or a run is active here.
        UndecidedError: the ledger cannot be read or written.
    """
    if repository.work_tree is None:
        raise UsageError("a bare repository has no files to run", "merge in a clone")
    here = name_of(repository)
    read: dict[str, list[RunEvents]] = {}
    for name in files:
        found = read_run_events(name, directory)
        if not here.is_same(found.repository):
            raise UsageError(
                f"{printable(name)} has events of another repository",
                "merge it in a clone of that one; [governance] id and the root commits name a repository",
            )
        read.setdefault(found.run, []).append(found)
    ledger = Ledger(repository.common_dir, clock=clock)
    ledger.require_writable()
    with nobody_else_begins(repository):
        new = [_choose(repository, run, each, clock()) for run, each in read.items()]
        lines = [line for each in new for line in _lines(repository.work_tree, each, clock())]
        warnings = [ledger.record_all(lines)] if lines else []
    merged = tuple(MergedRun(checked_run(repository, each.run), len(each.events), each.known) for each in new)
    warnings += [keep(repository, each.state) for each in merged if each.added]
    wrong = [sentence for each in merged for sentence in what_is_wrong(repository, each.state)]
    left_out = () if wrong else _left_out(repository, merged)
    return MergedRuns(merged, (*filter(None, warnings), *wrong), left_out)


def _choose(repository: Repository, run: str, files: Iterable[RunEvents], now: float) -> _NewEvents:
    """Choose the events that are not here yet, in the order of their causes."""
    _require_idle(repository, run, now)
    try:
        here = events_of(repository, run)
    except ValueError as error:
        raise UndecidedError(f"an event of the run {run} {error}", "git patchgate log --verify") from error
    known = {event.hash: event for event in here}
    new: dict[str, OriginalEvent] = {}
    dropped = 0
    for event in (event for file in files for event in file.events):
        other = known.get(event.hash) or new.get(event.hash)
        if other is None:
            new[event.hash] = event
        elif set(other.causes) == set(event.causes):
            dropped += 1
        else:
            raise UsageError(
                f"the files contradict each other: an event of {event.at} has two different causes",
                "write them again: git patchgate run show RUN --format events",
            )
    # A merge that was killed may have left its events without an end.
    is_cut = bool(here) and here[-1].is_merged
    return _NewEvents(run, tuple(in_order(new)), dropped, ends=bool(new) or is_cut)


def _require_idle(repository: Repository, run: str, now: float) -> None:
    if run not in last_actions(repository):
        return
    state = find_run(repository, run)
    # What was merged before it ended is active elsewhere.
    is_here = state.owner.get("host") == os.uname().nodename
    if is_here and status_now(state, now) is RunStatus.ACTIVE:
        raise UsageError(f"the run {run} is active", f"wait until it has ended: git patchgate run show {run}")


def in_order(events: Mapping[str, OriginalEvent]) -> list[OriginalEvent]:
    """Sort events by time, but each after those of its causes that are among them."""
    waits = {name: sum(cause in events for cause in set(each.causes)) for name, each in events.items()}
    after: dict[str, list[str]] = {}
    for name, each in events.items():
        for cause in set(each.causes):
            after.setdefault(cause, []).append(name)
    ready = [(events[name].at, name) for name, number in waits.items() if number == 0]
    heapify(ready)
    found = []
    while ready:
        _, name = heappop(ready)
        found.append(events[name])
        for follower in after.get(name, ()):
            waits[follower] -= 1
            if waits[follower] == 0:
                heappush(ready, (events[follower].at, follower))
    return found


def _lines(work_tree: str, new: _NewEvents, now: float) -> list[Mapping[str, Json]]:
    """Return what is recorded for one run: its new events, and that they were merged."""
    if not new.ends:
        return []
    end: dict[str, Json] = {
        "kind": KIND,
        "at": iso(now),
        "version": __version__,
        "run": new.run,
        "action": RunAction.MERGED.value,
        "work_tree": plain_json(work_tree),
        "events": len(new.events),
    }
    return [*(event.plain() for event in new.events), end]


def _left_out(repository: Repository, merged: Sequence[MergedRun]) -> tuple[str, ...]:
    planned = {name for each in merged for name in each.state.plan.phases}
    found = on_disk(repository)
    return tuple(sorted(name for name in found if name not in planned and not found[name].is_recorded))


def merged_lines(merged: MergedRuns) -> list[str]:
    """Say what a merge added, and what was not part of it."""
    lines = [
        f"{each.state.id}: {count(each.added, 'event')} merged"
        + (f", {each.known} known already" if each.known else "")
        for each in merged.runs
    ]
    if merged.left_out:
        named = first_of(merged.left_out, _NAMED, lambda name: f"`{name}`")
        lines.append(f"not part of it, and not as a baseline records it: {named}")
    return lines
