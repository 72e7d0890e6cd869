"""The process that does one work of a run: `process.command` allows one command at a time in a process.

The run writes its process id and the task as JSON to its standard input, and reads lines of JSON: what is
going on, and at the end the result. When the run ends, it asks its workers to end; when it is killed, they
see that their parent is another process.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.repository import Repository
from patchgate.process.child import Child
from patchgate.process.child_environment import own_program
from patchgate.runs.phase_task import (
    AbandonedWorkError,
    PhaseOutcome,
    PhaseResult,
    PhaseTask,
    WorkEnvironment,
)
from patchgate.runs.phases import Phase, Work
from patchgate.runs.timeouts import Activity, ActivityKind
from patchgate.runs.triage import OF_WORKER, FaultKind
from patchgate.values import asdict, dataclass, field

_DAY = 86_400.0
SILENT_SECONDS = 900.0
"""A worker may write nothing for so long. It writes about once a second while it waits for anything."""
# The commands of a work have no limit of memory, as those of `apply`.
_MEMORY = 1 << 46
_MOST_LINE = 4 << 20


@dataclass(slots=True)
class Workers:
    """The workers of one run: starts one for each work, and ends those that still run.

    Args:
        argv: the command of a worker.
        environ: its environment.
        task_of: makes the task of a work.
        report: gets what is going on in a work, and for how many seconds.
        clock: seconds that never run backwards.
    """

    argv: list[str]
    environ: Mapping[str, str]
    task_of: Callable[[Work], PhaseTask]
    report: Callable[[str, float], None] = lambda what, seconds: None
    clock: Callable[[], float] = time.monotonic
    _running: dict[Work, Child] = field(default_factory=dict)
    _activities: dict[Work, Activity] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_stopped: bool = False

    def perform(self, work: Work) -> PhaseResult:
        """Do one work in a process of its own; called in a thread."""
        asked = {"runner": os.getpid(), "task": asdict(self.task_of(work))}
        try:
            with Child(self.argv, cwd=None, env=self.environ, seconds=_DAY, memory=_MEMORY) as child:
                with self._lock:
                    if self._is_stopped:
                        return _ended(work, "the run was stopped", None)
                    self._running[work] = child
                    self._activities[work] = activity = Activity(self.clock)
                    activity.record(ActivityKind.TRANSITION)
                child.write(json.dumps(asked).encode("ascii"))
                child.close_input()
                result = self._read(work, child, activity)
                done = child.finish()
        except UndecidedError as error:
            return _ended(work, error.sentence, FaultKind.TEMPORARY)
        finally:
            with self._lock:
                self._running.pop(work, None)
                self._activities.pop(work, None)
        if result is not None:
            return result
        if activity.is_idle(SILENT_SECONDS):
            return _ended(work, f"its process wrote nothing for {SILENT_SECONDS:.0f} s", FaultKind.TIME_OUT)
        return _ended(work, f"its process ended with code {done.code} and no result", FaultKind.TEMPORARY)

    def _read(self, work: Work, child: Child, activity: Activity) -> PhaseResult | None:
        result = None
        with os.fdopen(os.dup(child.out.fileno()), "rb") as stream:
            while line := stream.readline(_MOST_LINE):
                said = json.loads(line)
                activity.record(ActivityKind.OUTPUT)
                if "result" in said:
                    result = read_result(said["result"])
                else:
                    self.report(f"{work.component}, {work.phase.value}: {said['what']}", said["seconds"])
        return result

    def end_idle(self) -> None:
        """End the workers that have written nothing for `SILENT_SECONDS`: none waits for so long."""
        with self._lock:
            idle = [each for each, done in self._activities.items() if done.is_idle(SILENT_SECONDS)]
            children = [self._running[work] for work in idle]
        for child in children:
            child.terminate()

    def stop(self) -> None:
        """Ask every worker to end, and wait; each ends its commands first."""
        with self._lock:
            self._is_stopped = True
            running = list(self._running.values())
        for child in running:
            child.terminate()


def _ended(work: Work, why: str, kind: FaultKind | None) -> PhaseResult:
    """Describe the end of a worker without a result, which says nothing about the component or its cost."""
    return PhaseResult(
        PhaseOutcome.FAULT, f"{work.component}: {why}", cost=None, kind=kind, subject=OF_WORKER
    )


def read_result(value: Mapping[str, Any]) -> PhaseResult:
    """Read a result that a worker wrote."""
    lists = {key: tuple(value[key]) for key in ("tail", "attempts", "files", "missing", "warnings")}
    kind = None if value["kind"] is None else FaultKind(value["kind"])
    return PhaseResult(**{**value, **lists, "outcome": PhaseOutcome(value["outcome"]), "kind": kind})


def do_work(
    repository: Repository, asked: bytes, say: Callable[[str], None], environ: Mapping[str, str], cache: str
) -> None:
    """Do the work that a run asks for.

    Args:
        asked: the task, and the process id of the run that waits for it, as JSON.
        say: writes a line to the run.
        environ: the environment of the commands.
        cache: the folder for scratch trees.
    """
    from patchgate.runs.phase_work import perform

    try:
        # Not the parent at this time: the run may have been killed while this process started.
        runner, task = itemgetter("runner", "task")(json.loads(asked))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError("this is no task of a run", "git patchgate run start") from error

    def is_wanted() -> bool:
        return bool(os.getppid() == runner)

    def write(value: object) -> None:
        say(json.dumps(value))

    def report(what: str, seconds: float) -> None:
        # Called about once a second while a command runs: an error ends the command.
        if not is_wanted():
            raise AbandonedWorkError("the run that asked for this work has ended, so it was stopped")
        write({"what": what, "seconds": round(seconds, 1)})

    environment = WorkEnvironment(
        environ=environ,
        cache=cache,
        report=report,
        is_wanted=is_wanted,
    )
    done = perform(repository, PhaseTask(**{**task, "phase": Phase(task["phase"])}), environment)
    write({"result": {**asdict(done), "counts": None if done.counts is None else dict(done.counts)}})


def worker_command(directory: str, environ: Mapping[str, str]) -> list[str]:
    """Return the command of a worker in a working tree, for its environment."""
    return [*own_program(environ), "-C", directory, "run", "work"]
