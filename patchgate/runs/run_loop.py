"""The loop of a run: start what is ready, record what ends, decide what a fault means, and stop in time.

Works run beside each other, each in a process of its own that `perform` waits for; this loop alone records
events, before a work starts and after it ended. Does not know what a work does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from patchgate.errors import Terminated
from patchgate.report.wording import count
from patchgate.runs.commit_lines import commit_lines
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult
from patchgate.runs.phases import Schedule, Work
from patchgate.runs.run_record import RunRecord
from patchgate.runs.run_state import SEE_STATUS, RunAction, RunState
from patchgate.runs.triage import (
    FaultClass,
    FaultKind,
    RunFault,
    backoff,
    classify,
    find_systemic,
    is_retried,
)
from patchgate.storage.record import Json
from patchgate.values import dataclass, field

_GLANCE = 0.5
_NAMED = 5
_LAST_LINES = 8
_FIRST_STEP = {
    FaultKind.NOTHING_COLLECTED: "git patchgate doctor",
    FaultKind.IMPORT_ERROR: "git patchgate doctor",
    FaultKind.MISSING_TOOL: "git patchgate doctor",
    FaultKind.PATCH_REFUSED: SEE_STATUS,
}


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How much a run does at once, how often it tries again, and when a fault is systemic."""

    jobs: int
    max_retries: int
    systemic_threshold: int


@dataclass(frozen=True, slots=True)
class LoopEnvironment:
    """Inputs from outside.

    Args:
        perform: does one work, and returns how it ended; called in a thread.
        stop: ends what is being performed.
        glance: called about twice a second; ends what does nothing any more.
        report: gets a sentence for the user after each work.
        report_end: gets how an interrupt or a signal ended the run, line by line.
        monotonic: seconds that never run backwards.
        chance: a number from 0 to 1, for the wait before a retry.
    """

    perform: Callable[[Work], PhaseResult]
    stop: Callable[[], None] = lambda: None
    glance: Callable[[], None] = lambda: None
    report: Callable[[str], None] = lambda sentence: None
    report_end: Callable[[str], None] = lambda sentence: None
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class _Halt:
    """Why nothing more is started: how the run ends, and what to say."""

    action: RunAction
    reason: str
    hint: str | None


@dataclass(slots=True)
class RunLoop:
    """One run while it goes on."""

    record: RunRecord
    schedule: Schedule
    settings: LoopSettings
    environment: LoopEnvironment
    _running: dict[Future[PhaseResult], Work] = field(default_factory=dict)
    _later: list[tuple[float, Work]] = field(default_factory=list)
    _tries: dict[Work, int] = field(default_factory=dict)
    _faults: list[RunFault] = field(default_factory=list)
    _hints: list[str | None] = field(default_factory=list)
    _ended: set[Work] = field(default_factory=set)
    _has_made: bool = False
    _halt: _Halt | None = None

    def run(self) -> RunState:
        """Go on until everything is done, or nothing more can be; return the last state.

        Raises:
            UndecidedError: an event could not be recorded: what runs is ended, nothing more is started.
        """
        with ThreadPoolExecutor(max_workers=self.settings.jobs) as pool:
            try:
                self._go_on(pool)
            except BaseException as error:
                self.environment.stop()
                if isinstance(error, KeyboardInterrupt | Terminated):
                    self._pause_for(error)
                raise
        return self._close()

    def _go_on(self, pool: ThreadPoolExecutor) -> None:
        while True:
            if self._halt is None:
                for work in self.schedule.ready():
                    self.schedule.start(work)
                    self._start(pool, work)
                self._start_again(pool)
            if not self._running and (self._halt is not None or not self._later):
                return
            self.environment.glance()
            done, _ = wait(self._running, timeout=self._until_next(), return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda each: self._running[each]):
                work = self._running.pop(future)
                self._handle(work, future.result())

    def _until_next(self) -> float:
        if not self._later or self._halt is not None:
            return _GLANCE
        due = min(moment for moment, _ in self._later)
        return max(0.0, min(_GLANCE, due - self.environment.monotonic()))

    def _start(self, pool: ThreadPoolExecutor, work: Work) -> None:
        self.record.write(RunAction.BEGAN, _named(work))
        self._tries[work] = self._tries.get(work, 0) + 1
        self._running[pool.submit(self.environment.perform, work)] = work

    def _start_again(self, pool: ThreadPoolExecutor) -> None:
        now = self.environment.monotonic()
        for moment, work in list(self._later):
            if moment <= now:
                self._later.remove((moment, work))
                self._start(pool, work)

    def _handle(self, work: Work, result: PhaseResult) -> None:
        about: dict[str, Json] = {**_named(work), "seconds": round(result.seconds, 3)}
        about |= {"attempts": list(result.attempts), "cost": result.cost}
        for each in result.warnings:
            self.environment.report(f"{work.component}: warning: {each}")
        if result.has_passed:
            counts: Json = None if result.counts is None else dict(result.counts)
            self.record.write(RunAction.FINISHED, {**about, "files": list(result.files), "counts": counts})
            self.schedule.finish(work)
            self._has_made |= bool(result.files)
            self._ended.add(work)
            self.environment.report(f"{work.component}: {work.phase.value} passed")
            return
        fault = _fault_of(work, result)
        tries = self._tries[work]
        if result.outcome is not PhaseOutcome.WAITING and is_retried(fault, tries, self.settings.max_retries):
            self._try_later(work, result, about, tries)
            return
        self.record.write(RunAction.FAULTED, {**about, **_described(result, fault)})
        self.schedule.fail(work)
        self._hints.append(result.hint)
        self._ended.add(work)
        self._report(work, f"{_word(result)}: ", result)
        for line in result.tail[-_LAST_LINES:]:
            self.environment.report(f"  | {line}")
        if result.hint is not None:
            self.environment.report(f"  help: {result.hint}")
        if result.outcome is not PhaseOutcome.WAITING or result.kind is FaultKind.PATCH_REFUSED:
            self._faults.append(fault)
            self._look_for_halt(work, result, fault)

    def _try_later(self, work: Work, result: PhaseResult, about: Mapping[str, Json], tries: int) -> None:
        seconds = backoff(tries, self.environment.chance())
        described = _described(result, _fault_of(work, result))
        self.record.write(RunAction.RETRIED, {**about, **described, "tail": []})
        self._later.append((self.environment.monotonic() + seconds, work))
        self._report(work, f"is tried again in {max(1.0, seconds):.0f} s: ", result)

    def _report(self, work: Work, what: str, result: PhaseResult) -> None:
        reason = result.reason.removeprefix(f"{work.component}: ")
        self.environment.report(f"{work.component}: {work.phase.value} {what}{reason}")

    def _look_for_halt(self, work: Work, result: PhaseResult, fault: RunFault) -> None:
        """Halt at a permanent fault, or where several components have the same one."""
        if self._halt is not None:
            return
        if classify(fault) is FaultClass.PERMANENT:
            self._halt = _Halt(RunAction.ABORTED, result.reason, result.hint)
            return
        same = [each for each in self._faults if each.phase is work.phase]
        completed = sum(each.phase is work.phase for each in self._ended)
        pattern = find_systemic(same, threshold=self.settings.systemic_threshold, completed=completed)
        if pattern is not None:
            self._halt = _Halt(RunAction.PAUSED, pattern.recommendation, _FIRST_STEP.get(pattern.pattern))

    def _pause_for(self, error: BaseException) -> None:
        name = "an interrupt" if isinstance(error, KeyboardInterrupt) else "a signal"
        state = self.record.write(RunAction.PAUSED, {"reason": f"stopped by {name}", "hint": self._resume})
        for line in report_lines(state):
            self.environment.report_end(line)

    @property
    def _resume(self) -> str:
        return f"git patchgate run resume {self.record.run}"

    def _close(self) -> RunState:
        if self._has_made:
            for line in commit_lines(self.record.repository, self.record.run):
                self.environment.report(line)
        if self._halt is not None:
            hint = self._resume if self._halt.hint is None else f"{self._halt.hint}, then {self._resume}"
            return self.record.write(self._halt.action, {"reason": self._halt.reason, "hint": hint})
        if not self.schedule.failed:
            return self.record.write(RunAction.COMPLETED, {})
        hints = {each for each in self._hints if each is not None}
        hint = f"fix that, then {self._resume}"
        if len(self._hints) == 1 and hints:
            (hint,) = hints
            hint = hint if self._resume in hint else f"{hint}, then {self._resume}"
        return self.record.write(RunAction.PAUSED, {"reason": self._what_failed(), "hint": hint})

    def _what_failed(self) -> str:
        failed = [f"{work.component} ({work.phase.value})" for work in sorted(self.schedule.failed)]
        more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        blocked = len({each.work.component for each in self.schedule.blocked()})
        waiting = f"; {count(blocked, 'component')} cannot go on without them" if blocked else ""
        return f"not done: {', '.join(failed[:_NAMED])}{more}{waiting}"


def _named(work: Work) -> dict[str, Json]:
    return {"component": work.component, "phase": work.phase.value}


def _described(result: PhaseResult, fault: RunFault) -> dict[str, Json]:
    # What only waits for somebody has no fault.
    is_fault = result.kind is not None or result.outcome is not PhaseOutcome.WAITING
    return {
        "outcome": result.outcome.value,
        "reason": result.reason,
        "hint": result.hint,
        "fault": fault.kind.value if is_fault else None,
        "signature": fault.signature if is_fault else None,
        "tail": list(result.tail),
    }


def _fault_of(work: Work, result: PhaseResult) -> RunFault:
    kind = FaultKind.CHECK_FAILED if result.kind is None else result.kind
    sample = result.sample or result.reason
    return RunFault(work.component, work.phase, kind, subject=result.subject, sample=sample)


def _word(result: PhaseResult) -> str:
    return "waits" if result.outcome is PhaseOutcome.WAITING else "failed"


def report_lines(state: RunState) -> Sequence[str]:
    """Say in lines how a run ended, and the next step."""
    lines = [f"run {state.id}: {state.status.value}"]
    if state.reason is not None:
        lines.append(f"  {state.reason}")
    if state.hint is not None:
        lines.append(f"  help: {state.hint}")
    return lines
