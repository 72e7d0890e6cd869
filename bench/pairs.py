"""Run commands side by side, and compare them by ratios that a noisy machine does not bend.

Decides how time is taken: each round runs every command once, as a whole process, and the next round
begins with another one; a ratio is formed inside a round, so whatever slows the machine for a while slows
both sides of it. A table shows the median of those ratios, and how far they lie apart.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Command:
    """One process to be timed: arguments, folder, whole environment, what it reads, its exit code."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: str = os.devnull
    code: int = 0


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
    """The seconds of every command, round by round."""

    seconds: Mapping[str, Sequence[float]]

    def times(self, name: str) -> Spread:
        """Sum up one command, in seconds."""
        return Spread.of(self.seconds[name])

    def ratios(self, ours: str, reference: str, *, less: str | None = None) -> Spread:
        """Compare two commands round by round; `less` names one whose time is taken off ours first."""
        start = self.seconds[less] if less else [0.0] * len(self.seconds[ours])
        triples = zip(self.seconds[ours], start, self.seconds[reference], strict=True)
        return Spread.of([(own - begun) / other for own, begun, other in triples])

    def differences(self, ours: str, reference: str) -> Spread:
        """Subtract one command from another round by round, in seconds."""
        pairs = zip(self.seconds[ours], self.seconds[reference], strict=True)
        return Spread.of([own - other for own, other in pairs])


def run_rounds(commands: Mapping[str, Command], rounds: int, *, most_seconds: float = MOST_SECONDS) -> Rounds:
    """Time the commands, after one round that does not count.

    Args:
        commands: what is timed, by name.
        rounds: how often, at least once.
        most_seconds: no further round begins after this time.
    """
    names = list(commands)
    for name in names:
        _seconds(name, commands[name])
    found: dict[str, list[float]] = {name: [] for name in names}
    began = time.monotonic()
    for number in range(max(1, rounds)):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(_seconds(name, commands[name]))
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        if time.monotonic() - began > most_seconds:
            break
    return Rounds(found)


def _seconds(name: str, command: Command) -> float:
    """Run one command to its end; one that fails ends the benchmark, for its time would mean nothing."""
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
        code = child.wait()
        taken = time.perf_counter() - begin
        watch.cancel()
        if code != command.code:
            said.seek(max(0, os.fstat(said.fileno()).st_size - 2000))
            words = said.read().decode("utf-8", "replace")
            raise SystemExit(f"{name}: exit code {code}, not {command.code}\n{words}")
    return taken
