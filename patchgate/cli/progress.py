"""What long work shows: nothing for half a second, then one line that is gone at the end.

On a terminal the line is overwritten; elsewhere, and under CI, plain lines are written seldom. Commands and
analyses get from here what they need of this process: its environment, the cache folder, and this report.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from patchgate.cli.output import cache_folder, write_error

if TYPE_CHECKING:
    from patchgate.check.change_commands import CommandOptions
    from patchgate.verify.analysis_runner import AnalysisEnvironment

# Go to the start of the line and erase it (ECMA-48, EL).
_ERASE = "\r\x1b[K"
_PATIENCE = 0.5
"""Seconds after which work counts as long."""
_SELDOM = 10.0
"""Seconds between two plain lines."""
_OFTEN = 0.1
"""Seconds between two counts on a terminal."""
# Of commands that run at the same time: after how many seconds without a report one has ended, and how many
# are named in one line.
_FRESH = 1.5
_MOST_SHOWN = 4
_BAR = 20
# The time that is left is a guess; the first ones are bad.
_LEAST_GUESSED = 2.0


def _doing(what: str) -> str:
    return what if what.startswith("waiting ") else f"running {what}"


class Progress:
    """Reports running commands, and how many commits or files are checked.

    Args:
        quiet: reports nothing.
        counts: what is counted.
        clock: gives seconds.
    """

    def __init__(
        self, *, quiet: bool, counts: str = "commits", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._quiet = quiet
        self._counts = counts
        self._clock = clock
        self._begun = clock()
        self._is_terminal = (
            sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
        )
        self._reported: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._first: tuple[float, int] | None = None
        self._counted = self._begun if not self._is_terminal else -_SELDOM

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def report(self, what: str, seconds: float) -> None:
        """Report how many seconds a command has run; `what` may begin with `waiting `."""
        if self._quiet:
            return
        if self._is_terminal:
            self._reported[what] = seconds
            self._seen[what] = self._clock()
            self._write(f"{_ERASE}{self._running()} …\r")
        elif seconds - self._reported.get(what, -_SELDOM) >= _SELDOM:
            self._reported[what] = seconds
            write_error(f"{_doing(what)} for {seconds:.0f} s …")

    def _running(self) -> str:
        """Name what runs at the same time, and for how long: each reports about once a second."""
        now = self._clock()
        fresh = [each for each, at in self._seen.items() if now - at < _FRESH][:_MOST_SHOWN]
        parts = [f"{each} for {self._reported[each]:.0f} s" for each in fresh]
        return _doing(", ".join(parts))

    def count(self, done: int, total: int) -> None:
        """Report how many are checked, and of how many, if that takes long."""
        now = self._clock()
        # What is done before the first count, such as reading the patch, does not go on.
        self._first = self._first or (now, done)
        apart = _OFTEN if self._is_terminal else _SELDOM
        if self._quiet or now - self._begun < _PATIENCE or now - self._counted < apart:
            return
        self._counted = now
        since, before = self._first
        spent, more = now - since, done - before
        text = f"{done:,} of {total:,} {self._counts} checked"
        if more > 0 and done < total and spent >= _LEAST_GUESSED:
            text += f", about {spent / more * (total - done):.0f} s left"
        if self._is_terminal:
            self._reported[self._counts] = done
            self._write(f"{_ERASE}{_bar(done, total)} {text} …\r")
        else:
            write_error(f"{text} …")

    @property
    def has_line(self) -> bool:
        """Whether counts are shown often: on a terminal, where a line can be overwritten."""
        return self._is_terminal and not self._quiet

    def end(self) -> None:
        """Erase the line on a terminal."""
        if self._is_terminal and self._reported:
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(text, end="", file=sys.stderr, flush=True)


def _bar(done: int, total: int) -> str:
    full = _BAR * done // max(total, 1)
    is_plain = not (sys.stderr.encoding or "").lower().startswith("utf")
    return ("#" if is_plain else "━") * full + ("." if is_plain else "─") * (_BAR - full)


def analysis_environment(progress: Progress) -> AnalysisEnvironment:
    """Return what analyses need from this process: environment, cache, progress, time."""
    from patchgate.verify.analysis_runner import AnalysisEnvironment

    return AnalysisEnvironment(
        environ=os.environ, cache=cache_folder(), report_progress=progress.report, now=time.time()
    )


def command_options(
    progress: Progress, left_out: Sequence[str] = (), names: Sequence[str] | None = None
) -> CommandOptions:
    """Return how the commands of a policy are run from this process.

    Args:
        left_out: the commands that are skipped.
        names: the only commands to run; None: all.
    """
    from patchgate.check.change_commands import CommandOptions

    return CommandOptions(
        environ=os.environ,
        cache=cache_folder(),
        report_progress=progress.report,
        names=names,
        left_out=left_out,
    )
