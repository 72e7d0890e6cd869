"""Run commands side by side, and compare them by ratios that a noisy machine does not bend.

Decides how time is taken: each round runs every command once, as a whole process, in an order of its own; a
ratio is formed inside a round, so whatever slows the machine for a while slows both sides of it. A table
shows the median of those ratios, and how far they lie apart.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

MOST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Command:
    """One process to be timed: arguments, folder, whole environment, what it reads, its exit code.

    `before` puts back what an earlier run changed, outside of the time that is taken. A long one may run
    only in every third round, with what it is compared to.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: str = os.devnull
    code: int = 0
    before: Callable[[], None] | None = None
    every: int = 1


Task = Command | Callable[[], float]
"""What is timed: a process, or something done here that returns its seconds."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the median and the 90th percentile of some figures."""

    least: float
    median: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """Sum up at least one figure."""
        ordered = sorted(figures)
        return cls(
            ordered[0], statistics.median(ordered), ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)]
        )


@dataclass(frozen=True, slots=True)
class Rounds:
    """The seconds of every command, round by round; `processor` are those that it and its children worked."""

    seconds: Mapping[str, Sequence[float]]
    processor: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def spent(self) -> Rounds:
        """Give the processor times in place of those of the clock."""
        return Rounds(self.processor, self.processor)

    def times(self, name: str) -> Spread:
        """Sum up one command, in seconds."""
        return Spread.of(self.seconds[name])

    def milliseconds(self, name: str) -> Spread:
        """Sum up one command, in milliseconds."""
        return Spread.of([each * 1e3 for each in self.seconds[name]])

    def ratios(self, ours: str, *references: str, less: str | None = None) -> Spread:
        """Compare a command with the sum of others; `less` names one whose time is taken off ours first."""
        start = self.seconds[less] if less else [0.0] * len(self.seconds[ours])
        others = map(sum, zip(*(self.seconds[name] for name in references), strict=True))
        triples = zip(self.seconds[ours], start, others, strict=True)
        return Spread.of([(own - begun) / other for own, begun, other in triples])

    def differences(self, ours: str, reference: str) -> Spread:
        """Subtract one command from another round by round, in milliseconds."""
        pairs = zip(self.seconds[ours], self.seconds[reference], strict=True)
        return Spread.of([(own - other) * 1e3 for own, other in pairs])


def run_rounds(tasks: Mapping[str, Task], rounds: int, *, most_seconds: float = MOST_SECONDS) -> Rounds:
    """Time the tasks, after one round that does not count.

    Args:
        tasks: what is timed, by name.
        rounds: how often, at least once.
        most_seconds: no further round begins after this time.
    """
    names = list(tasks)
    for name in names:
        _seconds(name, tasks[name])
    found: dict[str, list[float]] = {name: [] for name in names}
    processor: dict[str, list[float]] = {name: [] for name in names}
    began = time.monotonic()
    for number in range(max(1, rounds)):
        # Mixed, not turned: what a long command leaves behind must not meet the same one each time.
        random.Random(number).shuffle(names)
        for name in names:
            task = tasks[name]
            if not isinstance(task, Command) or number % task.every == 0:
                taken, worked = _seconds(name, task)
                found[name].append(taken)
                processor[name].append(worked)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        if time.monotonic() - began > most_seconds:
            break
    return Rounds(found, processor)


def _seconds(name: str, command: Task) -> tuple[float, float]:
    """Run one task to its end; return its time, and how long its processes worked, where it is a command.

    One that fails ends the benchmark, for its time would mean nothing.
    """
    if not isinstance(command, Command):
        return command(), 0.0
    if command.before is not None:
        command.before()
    with open(command.stdin, "rb") as stdin, tempfile.TemporaryFile() as said:
        begin = time.perf_counter()
        child = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=command.env,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        # Not `wait(timeout)`: it polls, and rounds every time up to its 50 ms.
        watch = threading.Timer(MOST_SECONDS, child.kill)
        watch.start()
        _, status, usage = os.wait4(child.pid, 0)
        taken = time.perf_counter() - begin
        code = child.returncode = os.waitstatus_to_exitcode(status)
        watch.cancel()
        if code != command.code:
            said.seek(max(0, os.fstat(said.fileno()).st_size - 2000))
            words = said.read().decode("utf-8", "replace")
            raise SystemExit(f"{name}: exit code {code}, not {command.code}\n{words}")
    return taken, usage.ru_utime + usage.ru_stime
