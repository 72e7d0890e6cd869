"""The programs that are broken off: how each is started, and what puts right what it left.

Decides the command line. It knows neither faults nor states.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.crash.cases import Place
from tests.world import EXECUTABLE, Answer


@dataclass(frozen=True)
class Program:
    """One way to apply a patch.

    `index` says that the index changes with the working tree; `ours` that `git patchgate recover` puts right
    what it left, and that it answers as the tool does.
    """

    name: str
    start: tuple[str, ...]
    index: bool
    ours: bool

    def command(self, patch: Path, *more: str) -> list[str]:
        """Give the command line for one patch."""
        return [*self.start, *more, str(patch)]

    def popen(
        self, place: Place, *more: str, patch: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start it, with the signals as a terminal would have them."""
        return started(self.command(patch or place.patch, *more), place, env)

    def run(
        self, place: Place, *more: str, patch: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Answer:
        """Run it to its end."""
        return ended(self.popen(place, *more, patch=patch, env=env))


GIT = Program("git apply", ("git", "apply"), index=False, ours=False)
GIT_INDEX = Program("git apply --index", ("git", "apply", "--index"), index=True, ours=False)
OURS = Program("git patchgate apply", (str(EXECUTABLE), "apply"), index=False, ours=True)
OURS_INDEX = Program(
    "git patchgate apply --index", (str(EXECUTABLE), "apply", "--index"), index=True, ours=True
)
PROGRAMS = {"git": (GIT, GIT_INDEX), "patchgate": (OURS, OURS_INDEX)}


def started(
    command: Sequence[str], place: Place, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command in a copy, with the signals as a terminal would have them."""
    return subprocess.Popen(
        command,
        cwd=place.repo.path,
        env={**place.repo.env, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_plain_signals,  # noqa: PLW1509 - no threads here
    )


def _plain_signals() -> None:
    # A test runner in the background may have SIGINT ignored, and a child would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def ended(process: subprocess.Popen[bytes]) -> Answer:
    """Wait for a process; give its exit code and what it said."""
    out, err = process.communicate()
    return Answer(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def ours(place: Place, *arguments: str) -> Answer:
    """Run the command line in this process, as one that has just been started in that copy."""
    # Where temporary files go is remembered for the length of a process.
    with mock.patch.object(tempfile, "tempdir", None):
        return place.repo.cli(*arguments)
