"""The entry of a coding agent's hook: input, time limit, output. Does not import click.

Whatever goes wrong is answered with a refusal in one line, unless the installer chose `--fail-open`.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from types import FrameType

from patchgate.agents.hooks.answers import HookOutput, write_answer, write_failure
from patchgate.agents.hooks.hook_input import EVENTS, MOST_INPUT, HookEvent, HookInputError, read_event
from patchgate.agents.settings.clients import SECONDS
from patchgate.errors import PatchgateError, UsageError

_GRACE = 0.5
_CHUNK = 1 << 20
_MOST_SECONDS = 600.0


class HookTimeout(BaseException):
    """The time of the answer is up; no handler of errors may take it for one."""


class _Watchdog:
    """Ends an answer that takes too long: by an exception, and where that is not enough, at once."""

    def __init__(self, protocol: str, seconds: float, fail_open: bool) -> None:
        self._protocol, self._seconds, self._fail_open = protocol, seconds, fail_open
        self.event: HookEvent | None = None
        self._rang = False

    def start(self) -> None:
        """Start the time, in a process group of our own, which can be ended as a whole."""
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self._seconds, _GRACE)

    def stop(self) -> None:
        """Stop the time: what follows is short."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if not self._rang:
            self._rang = True
            raise HookTimeout
        done = self.answer()
        _write(done)
        os._exit(done.code)

    def answer(self) -> HookOutput:
        """Write that the time is up, and end the children: the agent waits for all who can write to it."""
        if os.getpgid(0) == os.getpid():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.killpg(0, signal.SIGTERM)
        said = f"no answer within {self._seconds:g} s; ask a maintainer, who can raise --seconds"
        return write_failure(self._protocol, self.event, said, fail_open=self._fail_open)


def run_agent_hook(arguments: Sequence[str], directory: str | None = None) -> int:
    """Answer the event on standard input; return the exit code.

    Args:
        arguments: `--protocol NAME`, and if they are chosen `--fail-open` and `--seconds N`.
        directory: where the agent works if it does not say so; None for where the process runs.

    Raises:
        UsageError: the arguments are wrong.
    """
    protocol, seconds, fail_open = _read_arguments(arguments)
    watchdog = _Watchdog(protocol, seconds, fail_open)
    done = HookOutput()
    try:
        watchdog.start()
        try:
            done = _answer(watchdog, protocol, directory)
        except PatchgateError as error:
            done = write_failure(protocol, watchdog.event, error.sentence, fail_open=fail_open)
        except Exception as error:  # noqa: BLE001 - an internal error must be a refusal with one sentence
            from patchgate.cli.output import internal_error

            sentence = internal_error(error, ("agent", "hook")).sentence
            done = write_failure(protocol, watchdog.event, sentence, fail_open=fail_open)
    except HookTimeout:
        done = watchdog.answer()
    watchdog.stop()
    _write(done)
    return done.code


def _answer(watchdog: _Watchdog, protocol: str, directory: str | None) -> HookOutput:
    if directory is None:
        try:
            directory = os.getcwd()
        except FileNotFoundError:
            # It was removed; an agent that works elsewhere says so.
            directory = "/"
    watchdog.event = event = read_event(protocol, _read())
    from patchgate.agents.hooks.events import answer_event

    return write_answer(protocol, event, answer_event(event, directory, os.environ))


def _read_arguments(arguments: Sequence[str]) -> tuple[str, float, bool]:
    protocol, seconds, fail_open = "", SECONDS, False
    words = iter(arguments)
    for word in words:
        if word == "--fail-open":
            fail_open = True
        elif word == "--protocol":
            protocol = next(words, "")
        elif word == "--seconds":
            try:
                seconds = float(next(words, ""))
            except ValueError:
                seconds = 0.0
        else:
            raise UsageError("agent hook takes --protocol, --seconds and --fail-open", "remove the rest")
    if protocol not in EVENTS:
        raise UsageError("agent hook needs a protocol", f"--protocol with one of: {', '.join(EVENTS)}")
    if not 0 < seconds <= _MOST_SECONDS:
        raise UsageError("--seconds must be a number of seconds", f"more than 0, at most {_MOST_SECONDS:g}")
    return protocol, seconds, fail_open


def _read() -> bytes:
    """Read standard input to its end, but keep no more than is read at all: the agent must not block."""
    kept: list[bytes] = []
    size = 0
    try:
        while piece := os.read(0, _CHUNK):
            if size <= MOST_INPUT:
                kept.append(piece)
            size += len(piece)
    except OSError as error:
        raise HookInputError("the input of the hook cannot be read") from error
    return b"".join(kept)


def _write(done: HookOutput) -> None:
    for descriptor, text in ((1, done.out), (2, done.err)):
        raw = text.encode("utf-8", "backslashreplace")
        try:
            while raw:
                raw = raw[os.write(descriptor, raw) :]
        except OSError:
            continue
