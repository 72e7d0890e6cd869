"""The state of a run is a fold over its events: nothing else records it.

Pure: decides which actions there are, what each changes, what a damaged or impossible event means, and what
contradicts what is on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from patchgate.errors import UndecidedError
from patchgate.ledger.ledger import Event
from patchgate.runs.phases import PHASES, Phase, Scheduling, Work
from patchgate.storage.record import Json
from patchgate.values import dataclass, field, replace

KIND = "run"
_MOST_WARNINGS = 20
_MOST_NAMED = 5

SEE_STATUS = "git patchgate status, for the attempts to reset"


class RunAction(StrEnum):
    """What an event of a run says."""

    STARTED = "started"
    BEGAN = "began"
    FINISHED = "finished"
    RETRIED = "retried"
    FAULTED = "faulted"
    PAUSED = "paused"
    ABORTED = "aborted"
    COMPLETED = "completed"
    RESUMED = "resumed"
    SPENT = "spent"
    MERGED = "merged"


class RunStatus(StrEnum):
    """The status of a run: it waits for somebody (`paused`), cannot go on (`failed`), or is over.

    `interrupted` is an active run whose process has ended.
    """

    ACTIVE = "active"
    INTERRUPTED = "interrupted"
    PAUSED = "paused"
    FAILED = "failed"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run has to do, as its first event says: the phases of each component, and how many at once."""

    phases: Mapping[str, Sequence[Phase]]
    scheduling: Scheduling = Scheduling.PHASED
    jobs: int = 1

    @property
    def works(self) -> list[Work]:
        """All its works, sorted by component and phase."""
        return [Work(name, phase) for name in sorted(self.phases) for phase in self.phases[name]]

    def plain(self) -> dict[str, Json]:
        """Return the plan as plain JSON."""
        phases: Json = {name: [phase.value for phase in each] for name, each in sorted(self.phases.items())}
        return {"phases": phases, "scheduling": self.scheduling.value, "jobs": self.jobs}

    def joined(self, other: RunPlan) -> RunPlan:
        """Return the plan that has what both have."""
        phases: dict[str, Sequence[Phase]] = {}
        for name in sorted({*self.phases, *other.phases}):
            either = {*self.phases.get(name, ()), *other.phases.get(name, ())}
            phases[name] = tuple(phase for phase in PHASES if phase in either)
        return RunPlan(phases, other.scheduling, max(self.jobs, other.jobs))

    @classmethod
    def from_plain(cls, about: Mapping[str, Any]) -> RunPlan:
        """Read what `plain` made.

        Raises:
            ValueError: it is something else.
        """
        written = about.get("phases")
        jobs = about.get("jobs")
        if not isinstance(written, dict) or type(jobs) is not int or jobs < 1:
            raise ValueError("its plan is damaged")
        phases: dict[str, Sequence[Phase]] = {}
        for name, each in written.items():
            if not isinstance(each, list):
                raise ValueError("its plan is damaged")
            phases[name] = tuple(Phase(value) for value in each)
        return cls(phases, Scheduling(str(about.get("scheduling"))), jobs)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a work is not done: `outcome` as the work gave it, `tail` its last output; faults have a kind."""

    outcome: str
    reason: str
    hint: str | None = None
    kind: str | None = None
    signature: str | None = None
    tail: tuple[str, ...] = ()


@dataclass(slots=True)
class RunState:
    """One run, as its events say.

    `done` maps finished works to the time of their event; `trouble` are works that failed, and why;
    `in_flight` began and did not end. `checkpoint` is the newest finished work. `reason` and `hint` say why
    it is paused or failed. `owner` is the process that works on it, as plain values. `starts` is how often it
    was started: several jobs may share a run. Times are those of the ledger. `warnings` are about events that
    could not be used.
    """

    id: str
    status: RunStatus = RunStatus.ACTIVE
    plan: RunPlan = field(default_factory=lambda: RunPlan({}))
    work_tree: str = ""
    owner: Mapping[str, Json] = field(default_factory=dict)
    began: str = ""
    last: str = ""
    done: dict[Work, str] = field(default_factory=dict)
    trouble: dict[Work, Trouble] = field(default_factory=dict)
    in_flight: set[Work] = field(default_factory=set)
    tries: dict[Work, int] = field(default_factory=dict)
    checkpoint: Work | None = None
    reason: str | None = None
    hint: str | None = None
    resumed: int = 0
    starts: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def left(self) -> list[Work]:
        """The works that are not done, sorted."""
        return [work for work in self.plan.works if work not in self.done]

    @property
    def phase(self) -> Phase | None:
        """The first phase in which something is left to do; None if nothing is."""
        return min((work.phase for work in self.left), key=PHASES.index, default=None)

    @property
    def failed_phase(self) -> Phase | None:
        """The first phase in which a work failed or was interrupted; None if none was."""
        stopped = {*self.trouble, *self.in_flight}
        return min((work.phase for work in stopped), key=PHASES.index, default=None)

    @property
    def completed_components(self) -> list[str]:
        """The components whose works are all done, sorted."""
        left = {work.component for work in self.left}
        return sorted(name for name in self.plan.phases if name not in left)

    def warn(self, sentence: str) -> None:
        """Add a warning, up to a limit."""
        if len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(sentence)


def fold(run: str, events: Iterable[Event]) -> RunState:
    """Make the state of a run of its events, oldest first; events of other runs are ignored.

    An event that cannot be used is left out with a warning, so damage gives a partial state.

    Raises:
        UndecidedError: there is no event of this run.
    """
    state: RunState | None = None
    for event in events:
        if event.kind != KIND or event.about.get("run") != run:
            continue
        if state is None:
            state = RunState(run, began=event.at)
            if event.about.get("action") != RunAction.STARTED:
                state.warn("its first event is missing: what it had to do is not known")
        add_event(state, event)
    if state is None:
        raise UndecidedError(f"the ledger has no event of the run {run}", "git patchgate run list")
    return state


def add_event(state: RunState, event: Event) -> None:
    """Add one event to a state; one that cannot be used only adds a warning."""
    state.last = event.at
    try:
        _apply(state, event)
    except (ValueError, KeyError, TypeError) as error:
        state.warn(f"an event of {event.at or 'an unknown time'} cannot be used: {_cause(error)}")


def _cause(error: Exception) -> str:
    return f"the key {error} is missing" if isinstance(error, KeyError) else str(error)


def _apply(state: RunState, event: Event) -> None:
    about = event.about
    action = RunAction(str(about.get("action")))
    if action is RunAction.STARTED:
        plan = RunPlan.from_plain(about)
        state.work_tree = _text(about, "work_tree")
        _join(state, plan)
        _take_over(state, about)
    elif action is RunAction.RESUMED:
        for work in _works(about.get("cleared")):
            state.done.pop(work, None)
        _remove(state, about.get("removed"))
        state.trouble.clear()
        state.in_flight.clear()
        state.resumed += 1
        _take_over(state, about)
    elif action is RunAction.MERGED:
        state.work_tree, state.owner = _text(about, "work_tree"), {}
        _conclude(state)
    elif action is RunAction.COMPLETED:
        state.status, state.reason, state.hint = RunStatus.COMPLETED, None, None
        if state.starts > 1:
            # It is what one job had to do, and others may have failed.
            _conclude(state)
    elif action is RunAction.SPENT:
        # `cost` reads them: they change nothing else.
        return
    elif action in {RunAction.PAUSED, RunAction.ABORTED}:
        state.status = RunStatus.PAUSED if action is RunAction.PAUSED else RunStatus.FAILED
        state.reason, state.hint = _text(about, "reason"), _optional(about, "hint")
    else:
        _apply_to_work(state, action, event)


def _join(state: RunState, plan: RunPlan) -> None:
    """Add the plan of a start; its works are done again if they were done."""
    state.plan = state.plan.joined(plan) if state.starts else plan
    state.starts += 1
    for work in plan.works:
        state.done.pop(work, None)
        state.trouble.pop(work, None)
        state.in_flight.discard(work)


def _conclude(state: RunState) -> None:
    """Set the status of a run of which no process works any more."""
    left = [str(work) for work in state.left]
    state.status, state.reason, state.hint = RunStatus.COMPLETED, None, None
    if left:
        more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
        state.status = RunStatus.PAUSED
        state.reason = f"not done: {', '.join(left[:_MOST_NAMED])}{more}"
        state.hint = f"git patchgate run resume {state.id}"


def _apply_to_work(state: RunState, action: RunAction, event: Event) -> None:
    about = event.about
    work = Work(_text(about, "component"), Phase(str(about.get("phase"))))
    if not state.plan.phases:
        # That its plan is not known was said once.
        return
    if work.phase not in state.plan.phases.get(work.component, ()):
        raise ValueError(f"{work.component} has no phase {work.phase} in this run")
    if action is RunAction.BEGAN:
        state.in_flight.add(work)
        state.trouble.pop(work, None)
        state.tries[work] = state.tries.get(work, 0) + 1
        return
    state.in_flight.discard(work)
    if action is RunAction.FINISHED:
        state.done[work] = event.at
        state.checkpoint = work
    else:
        state.trouble[work] = Trouble(
            outcome=_text(about, "outcome"),
            reason=_text(about, "reason"),
            hint=_optional(about, "hint"),
            kind=_optional(about, "fault"),
            signature=_optional(about, "signature"),
            tail=tuple(_texts(about.get("tail"))),
        )


def _take_over(state: RunState, about: Mapping[str, Json]) -> None:
    owner = about.get("owner")
    state.owner = owner if isinstance(owner, Mapping) else {}
    state.status, state.reason, state.hint = RunStatus.ACTIVE, None, None


def _remove(state: RunState, names: Json) -> None:
    """Leave out the components that the policy no longer declared when the run was resumed."""
    gone = set(_texts(names))
    if gone:
        left = {name: phases for name, phases in state.plan.phases.items() if name not in gone}
        state.plan = replace(state.plan, phases=left)
        state.done = {work: at for work, at in state.done.items() if work.component not in gone}


def _works(written: Json) -> list[Work]:
    return [read_work(each) for each in _texts(written)]


def read_work(text: Json) -> Work:
    """Read a work from `component:phase`.

    Raises:
        ValueError: it is something else.
    """
    component, _, phase = str(text).rpartition(":")
    return Work(component, Phase(phase))


def write_work(work: Work) -> str:
    """Write a work as `component:phase`."""
    return f"{work.component}:{work.phase.value}"


def _text(about: Mapping[str, Json], key: str) -> str:
    value = about[key]
    if not isinstance(value, str):
        raise ValueError(f"the key {key!r} is no text")
    return value


def _texts(written: Json) -> list[str]:
    if not isinstance(written, Sequence) or isinstance(written, str):
        return []
    return [each for each in written if isinstance(each, str)]


def _optional(about: Mapping[str, Json], key: str) -> str | None:
    return None if about.get(key) is None else _text(about, key)


@dataclass(frozen=True, slots=True)
class ComponentOnDisk:
    """What there is of a component: a contract, tests, code; and whether its baseline is as its files are."""

    has_contract: bool
    has_tests: bool
    has_code: bool
    is_recorded: bool


_NEEDED = {
    Phase.CONTRACT: ("has_contract", "its contract"),
    Phase.TESTS: ("has_tests", "its tests"),
    Phase.IMPLEMENTATION: ("has_code", "its implementation"),
}


def inconsistencies(state: RunState, found: Mapping[str, ComponentOnDisk]) -> list[str]:
    """Say what contradicts what: a phase that is done without its files, or before an earlier one.

    Args:
        found: what is on disk, for each component that the policy still declares.
    """
    wrong: list[str] = []
    for name, phases in sorted(state.plan.phases.items()):
        here = found.get(name)
        if here is None:
            wrong.append(f"{name}: the policy does not declare it any more")
            continue
        done = [phase for phase in phases if Work(name, phase) in state.done]
        wrong += [
            f"{name}: {phase.value} is done, but {what} is not there"
            for phase, (key, what) in _NEEDED.items()
            if phase in done and not getattr(here, key)
        ]
        if Phase.IMPLEMENTATION in done and here.has_code and not here.is_recorded:
            wrong.append(f"{name}: implementation is done, but its baseline does not match its files")
        for phase in done:
            before = [each for each in phases[: phases.index(phase)] if each not in done]
            if before:
                wrong.append(f"{name}: {phase.value} is done before {before[0].value}")
    return wrong
