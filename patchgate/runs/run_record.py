"""The record of runs: events in the ledger, and beside it a cache of each run's state.

Decides the ids, who owns a run, when one counts as active, and what `rebuild` compares. The cache is for
readers outside; nothing here believes it.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Event, Ledger, iso
from patchgate.ledger.timestamps import parse_timestamp
from patchgate.runs.cost import contradictions
from patchgate.runs.run_state import KIND, RunAction, RunState, RunStatus, add_event, fold, write_work
from patchgate.storage.atomic_write import write_atomically
from patchgate.storage.hash_chain import ChainProblem
from patchgate.storage.lock import acquire
from patchgate.storage.owner import Owner
from patchgate.storage.record import Json, parse_line
from patchgate.values import dataclass

ID = re.compile(r"r-[0-9a-f]{8,40}", re.ASCII)
STATE_SCHEMA = "patchgate.run/1"
# Lines of the ledger are canonical: the keys are sorted, and a quote in a value is escaped.
_EVENTS = re.compile(rb'"kind":"run"[^\n]*?"run":"(r-[0-9a-f]{8,40})"')
_PLANS = re.compile(
    rb'"action":"started"[^\n]*?"kind":"run"[^\n]*?"phases":(\{[^\n{}]*\})[^\n]*?"run":"(r-[0-9a-f]{8,40})"'
)
_ACTION = re.compile(rb'"action":"([a-z-]+)"')
_LEAST_NAME = len("r-")
_BEGIN_SECONDS = 60.0
LEASE = 600.0
"""Seconds after its last event in which a run of another machine counts as active."""


def new_id(chance: Callable[[int], str]) -> str:
    """Make the id of a new run."""
    return f"r-{chance(6)}"


def this_process() -> dict[str, Json]:
    """Describe this process as the owner of a run."""
    owner = Owner.current()
    return {
        "host": os.uname().nodename,
        "pid": owner.pid,
        "boot_id": owner.boot_id,
        "started": owner.started,
    }


def is_owned(state: RunState, now: float) -> bool:
    """Return whether the process of an active run still works on it.

    On this machine the process itself says so; of another one the lease after its last event.
    """
    owner = state.owner
    pid, boot, started = owner.get("pid"), owner.get("boot_id"), owner.get("started")
    if owner.get("host") != os.uname().nodename or type(pid) is not int:
        last = parse_timestamp(state.last)
        return last is not None and now < last + LEASE
    return Owner(pid, str(boot), str(started)).is_running()


def status_now(state: RunState, now: float) -> RunStatus:
    """Return the status of a run at a time: without its process an active one is interrupted."""
    if state.status is RunStatus.ACTIVE and not is_owned(state, now):
        return RunStatus.INTERRUPTED
    return state.status


def next_step(state: RunState, now: float) -> str | None:
    """Return the command that goes on with an interrupted run, or replaces a damaged one; None for others."""
    status = status_now(state, now)
    if not state.plan.phases and status is not RunStatus.COMPLETED:
        return "git patchgate run start, because the event with what this run had to do is damaged"
    if status is not RunStatus.INTERRUPTED:
        return None
    return f"git patchgate run resume {state.id}, because its process has ended"


@dataclass(slots=True)
class RunRecord:
    """Records the events of one run, and folds them as they are written.

    Raises from `write`:
        UndecidedError: the ledger cannot be written: nothing may go on that is not recorded.
    """

    repository: Repository
    run: str
    clock: Callable[[], float] = time.time
    state: RunState | None = None

    def write(self, action: RunAction, about: Mapping[str, Json]) -> RunState:
        """Record one event, and return the state after it."""
        whole: dict[str, Json] = {"run": self.run, "action": action.value, **about}
        now = self.clock()
        warning = Ledger(self.repository.common_dir, clock=self.clock).record(KIND, whole)
        if warning is not None and warning.startswith("this was not recorded"):
            raise UndecidedError(
                f"the run stopped: {warning}", f"git patchgate run resume {self.run}, once that is fixed"
            )
        event = Event(KIND, whole, at=iso(now))
        if self.state is None:
            self.state = fold(self.run, [event])
        else:
            add_event(self.state, event)
        keep(self.repository, self.state)
        return self.state


def runs_folder(repository: Repository) -> Path:
    """Return the folder of the caches and logs of runs."""
    return Path(repository.common_dir) / "patchgate" / "runs"


@contextmanager
def nobody_else_begins(repository: Repository) -> Iterator[None]:
    """Keep others from starting, resuming or merging a run between a look at the runs and the event of one.

    Raises:
        UndecidedError: another process begins for too long, or the lock cannot be made.
    """
    place = runs_folder(repository) / "begin.lock"
    with ExitStack() as locked:
        try:
            locked.enter_context(acquire(place, timeout_seconds=_BEGIN_SECONDS))
        except OSError as error:
            why = f"the lock {printable(str(place))} cannot be made: {error.strerror or error}"
            raise UndecidedError(
                f"nothing was done: {why}", "free disk space, or correct the permissions of that folder"
            ) from error
        yield


def plain_state(state: RunState) -> dict[str, Json]:
    """Return a state as plain JSON, as it is cached and shown; the status is that of its events."""
    return {
        "schema": STATE_SCHEMA,
        "id": state.id,
        "status": state.status.value,
        "began": state.began,
        "last": state.last,
        "work_tree": state.work_tree,
        "plan": state.plan.plain(),
        "done": {write_work(work): at for work, at in sorted(state.done.items())},
        "in_flight": sorted(write_work(work) for work in state.in_flight),
        "trouble": {
            write_work(work): {
                "outcome": each.outcome,
                "reason": each.reason,
                "hint": each.hint,
                "fault": each.kind,
                "signature": each.signature,
                "tail": list(each.tail),
            }
            for work, each in sorted(state.trouble.items())
        },
        "checkpoint": None if state.checkpoint is None else write_work(state.checkpoint),
        "phase": None if state.phase is None else state.phase.value,
        "completed_components": list(state.completed_components),
        "reason": state.reason,
        "hint": state.hint,
        "resumed": state.resumed,
        "warnings": list(state.warnings),
    }


def keep(repository: Repository, state: RunState) -> str | None:
    """Write the cache of a state; return a warning if that fails, which changes nothing."""
    place = runs_folder(repository) / f"{state.id}.json"
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(place, _cached(state), mode=0o600)
    except OSError as error:
        return f"the cache {printable(str(place))} could not be written: {error.strerror or error}"
    return None


def _cached(state: RunState) -> bytes:
    return json.dumps(plain_state(state), indent=1, sort_keys=True).encode("ascii") + b"\n"


def find_run(repository: Repository, name: str | None) -> RunState:
    """Find a run by its id or the beginning of it; the newest one without a name.

    Raises:
        UsageError: there is none, or several begin so.
        UndecidedError: the ledger cannot be read.
    """
    known = list(last_actions(repository))
    if not known:
        raise UsageError("there is no run here", "git patchgate run start")
    if name is None:
        return _read_run(repository, known[-1])
    found = (
        [name]
        if name in known
        else [each for each in known if len(name) > _LEAST_NAME and each.startswith(name)]
    )
    if len(found) == 1:
        return _read_run(repository, found[0])
    shown = printable(name, 60)
    if not found:
        raise UsageError(f"there is no run {shown}", "git patchgate run list")
    raise UsageError(f"several runs begin with {shown}", "give more of its id: git patchgate run list")


def newest_to_resume(repository: Repository) -> str | None:
    """Return the id of the newest run that is not complete; None if all are.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    runs = unfinished_runs(repository).runs
    return runs[-1].id if runs else None


def _read_run(repository: Repository, run: str) -> RunState:
    events = Ledger(repository.common_dir).find_events({KIND}, f'"run":"{run}"', strict=True)
    return fold(run, (event for event in events if event.about.get("run") == run))


def last_actions(repository: Repository) -> dict[str, str]:
    """Return the id of every run, oldest first, with its last action; reads few of the events.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    content = Ledger(repository.common_dir).content(strict=True)
    return {run: _last_action(content, places) for run, places in _places(content).items()}


def _places(content: bytes) -> dict[str, list[int]]:
    """Find the events of every run, oldest first: a place in the line of each."""
    places: dict[bytes, list[int]] = {}
    for found in _EVENTS.finditer(content):
        places.setdefault(found[1], []).append(found.start())
    return {run.decode("ascii"): each for run, each in places.items()}


def _last_action(content: bytes, places: Sequence[int]) -> str:
    begin = content.rfind(b"\n", 0, places[-1]) + 1
    action = _ACTION.search(content, begin, places[-1])
    return "" if action is None else action[1].decode("ascii")


def _events_at(content: bytes, places: Sequence[int], run: str) -> Iterator[Event]:
    """Read the events of a run; damaged ones are skipped."""
    for place in places:
        begin, end = content.rfind(b"\n", 0, place) + 1, content.find(b"\n", place)
        with suppress(ValueError):
            record = parse_line(content[begin : len(content) if end < 0 else end])
            event = Event.from_record(record.event, record.hash)
            if event.kind == KIND and event.about.get("run") == run:
                yield event


@dataclass(frozen=True, slots=True)
class UnfinishedRuns:
    """The runs that are not complete, oldest first, and how many are.

    `overtaken` are the ids of runs of which each phase of each component is in one that was begun later.
    """

    runs: tuple[RunState, ...]
    completed: int
    overtaken: frozenset[str]


def unfinished_runs(repository: Repository) -> UnfinishedRuns:
    """Find the runs that are not complete.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    content = Ledger(repository.common_dir).content(strict=True)
    places = _places(content)
    unfinished = []
    for run, each in places.items():
        if _last_action(content, each) != RunAction.COMPLETED:
            state = fold(run, _events_at(content, each, run))
            unfinished += [state] if state.status is not RunStatus.COMPLETED else []
    overtaken = _overtaken(content, list(places)) if unfinished else frozenset()
    return UnfinishedRuns(tuple(unfinished), len(places) - len(unfinished), overtaken)


def _overtaken(content: bytes, runs: Sequence[str]) -> frozenset[str]:
    """Find the runs of which each work is in a run that was begun later; `runs` are oldest first."""
    planned: dict[str, set[tuple[str, str]]] = {}
    for each in _PLANS.finditer(content):
        # A damaged plan takes up nothing.
        with suppress(ValueError, TypeError, AttributeError):
            works = {(name, phase) for name, phases in json.loads(each[1]).items() for phase in phases}
            planned.setdefault(each[2].decode("ascii"), set()).update(works)
    later: set[tuple[str, str]] = set()
    found = set()
    for run in reversed(runs):
        own = planned.get(run, set())
        if own and own <= later:
            found.add(run)
        later |= own
    return frozenset(found)


def list_runs(repository: Repository) -> tuple[list[RunState], list[str]]:
    """Return every run, oldest first, and what is damaged in the ledger, which is checked.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    events: dict[str, list[Event]] = {}
    damaged: list[str] = []
    for line in _checked_lines(repository):
        if isinstance(line, ChainProblem):
            damaged.append(_damaged(line))
        elif isinstance(name := line.about.get("run"), str) and ID.fullmatch(name):
            events.setdefault(name, []).append(line)
    return [fold(name, each) for name, each in events.items()], damaged


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A run as the ledger alone says, and whether its cache differs (None: there is none)."""

    state: RunState
    differs: bool | None
    is_written: bool


def rebuild(repository: Repository, name: str | None, *, is_dry_run: bool) -> Rebuilt:
    """Make a run's state of the ledger, each event checked against the chain; correct its cache.

    Raises:
        UsageError: there is no such run.
        UndecidedError: the ledger cannot be read, or the cache not be written.
    """
    run = find_run(repository, name).id
    events, damaged = _read_checked(repository, run)
    state = fold(run, events)
    # What is wrong with the ledger is not the run's, so the cache does not have it.
    place = runs_folder(repository) / f"{state.id}.json"
    try:
        differs: bool | None = place.read_bytes() != _cached(state)
    except OSError:
        differs = None
    is_written = differs is not False and not is_dry_run
    if is_written and (warning := keep(repository, state)) is not None:
        raise UndecidedError(warning, "free disk space, or correct the permissions of that folder")
    for sentence in (*damaged, *contradictions(events, run)):
        state.warn(sentence)
    return Rebuilt(state, differs, is_written)


def checked_run(repository: Repository, name: str | None) -> RunState:
    """Find a run as `find_run` does, with a warning for each damaged line of the ledger.

    Raises:
        UsageError: there is no such run.
        UndecidedError: the ledger cannot be read.
    """
    run = find_run(repository, name).id
    events, damaged = _read_checked(repository, run)
    state = fold(run, events)
    for sentence in damaged:
        state.warn(sentence)
    return state


def _read_checked(repository: Repository, run: str) -> tuple[list[Event], list[str]]:
    """Read the events of a run, each checked against the chain, and what is damaged."""
    damaged: list[str] = []
    events: list[Event] = []
    for line in _checked_lines(repository, f'"run":"{run}"'):
        if isinstance(line, ChainProblem):
            damaged.append(_damaged(line))
        elif line.about.get("run") == run:
            events.append(line)
    return events, damaged


def _damaged(problem: ChainProblem) -> str:
    return f"line {problem.line} of the ledger is damaged: git patchgate log --verify"


def _checked_lines(repository: Repository, containing: str = "") -> Iterator[Event | ChainProblem]:
    ledger = Ledger(repository.common_dir)
    try:
        yield from ledger.lines({KIND}, containing)
    except OSError as error:
        raise UndecidedError(
            f"the ledger {printable(str(ledger.path))} cannot be read: {error.strerror or error}",
            "correct the permissions of that file and its folder",
        ) from error
