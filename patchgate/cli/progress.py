"""Progress on standard error: which command runs, and for how long; how many commits are judged."""

from __future__ import annotations

import contextlib
import os
import sys

from patchgate.cli.output import complain

# To the line's beginning, and what stands there is erased (ECMA-48, EL).
_ERASE = "\r\x1b[K"
_SELDOM = 30.0
"""Seconds between two lines about one command, where a line cannot be written over."""


class Progress:
    """Tells, from the second second on, which command runs: in one line of a terminal, elsewhere at times."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._told: dict[str, float] = {}

    def tell(self, what: str, seconds: float) -> None:
        """Say that a command has run, or is waited for (`waiting …`), for so many seconds."""
        if self._quiet:
            return
        doing = what if what.startswith("waiting ") else f"running {what}"
        text = f"{doing} for {seconds:.0f} s …"
        if self._is_terminal:
            self._told[what] = seconds
            self._write(f"{_ERASE}{text}\r")
        elif seconds - self._told.get(what, -_SELDOM) >= _SELDOM:
            self._told[what] = seconds
            complain(text)

    def count(self, done: int, total: int) -> None:
        """Say how many commits are judged; only on a terminal, where the line is written over."""
        if self._is_terminal and not self._quiet:
            self._told["commits"] = done
            self._write(f"{_ERASE}{done:,} of {total:,} commits judged …\r")

    def end(self) -> None:
        """Leave no line behind on a terminal."""
        if self._is_terminal and self._told:
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(text, end="", file=sys.stderr, flush=True)
