"""What one phase of one component is asked for, and how it ended; values that may cross processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum

from patchgate.errors import UndecidedError
from patchgate.runs.phases import Phase
from patchgate.runs.triage import FaultKind, RunFault
from patchgate.values import dataclass


@dataclass(frozen=True, slots=True)
class PhaseTask:
    """One phase of one component.

    Args:
        run: the id of the run.
        component: the id of the component.
        phase: the phase.
        seconds: how long a test command may take.
        author_seconds: how long one call of an author may take; None: as long as its `timeout` says.
        stall: after so many seconds without output an author is ended. Tests have no such limit: many write
            nothing before their end.
        retry_of: the last attempt of this work, if the run knows it; else it is found in the ledger.
    """

    run: str
    component: str
    phase: Phase
    seconds: float
    stall: float
    retry_of: str | None = None
    author_seconds: float | None = None

    @property
    def name(self) -> str:
        """Name the work in the ledger: `RUN/COMPONENT/PHASE`."""
        return f"{self.run}/{self.component}/{self.phase.value}"


class PhaseOutcome(StrEnum):
    """How a phase ended: the component failed, the environment has a fault, or a maintainer is awaited."""

    PASSED = "passed"
    FAILED = "failed"
    FAULT = "fault"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """How a phase ended; all texts are safe for a terminal.

    `reason` is one sentence, `hint` the next step. `tail` are the last lines of the output that shows it.
    `attempts` are the ids of the attempts that were made, `files` the paths that they wrote, `counts` those
    of the tests. `cost` is what its authors reported, as money; None if its process was killed. `kind`,
    `subject` and `sample` say what went wrong, as in `triage.RunFault`; the kind is None if that is unknown,
    or a maintainer's turn. `missing` are programs that were not found. `warnings` hold whatever the outcome
    is.
    """

    outcome: PhaseOutcome
    reason: str
    hint: str | None = None
    tail: tuple[str, ...] = ()
    attempts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    counts: Mapping[str, int] | None = None
    seconds: float = 0.0
    cost: float | None = 0.0
    kind: FaultKind | None = None
    subject: str = ""
    sample: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def fault(self, task: PhaseTask) -> RunFault | None:
        """Return what triage needs to know; None if the phase passed, or its kind is None."""
        if self.kind is None or self.has_passed:
            return None
        sample = self.sample or self.reason
        return RunFault(task.component, task.phase, self.kind, self.subject, sample)

    @property
    def has_passed(self) -> bool:
        """Whether the phase is done."""
        return self.outcome is PhaseOutcome.PASSED


@dataclass(frozen=True, slots=True)
class WorkEnvironment:
    """Inputs from outside.

    Args:
        environ: the environment of the commands, authors and tests.
        cache: the folder for scratch trees, outside the repository.
        clock: seconds since the epoch.
        monotonic: seconds that never run backwards.
        report: gets what is going on, and for how many seconds; about once a second.
        is_wanted: whether the run that asked for the work still exists.
        pause: waits for so many seconds.
    """

    environ: Mapping[str, str]
    cache: str
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    report: Callable[[str, float], None] = lambda what, seconds: None
    is_wanted: Callable[[], bool] = lambda: True
    pause: Callable[[float], None] = time.sleep

    def require_wanted(self) -> None:
        """Require that somebody still waits for the result.

        Raises:
            AbandonedWorkError: the run is gone.
        """
        if not self.is_wanted():
            raise AbandonedWorkError("the run that asked for this work has ended, so it was stopped")


class AbandonedWorkError(UndecidedError):
    """The run that asked for some work is gone: nothing of it may land."""

    kind = "abandoned"
