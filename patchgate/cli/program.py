"""The program: `git patchgate`, and `patchgate`, which is the same.

Starts and ends the process, and turns an error into one sentence, the next step and an exit code. `cli` has
the table of commands.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType

from patchgate.cli.output import internal_error, report_error, write_error
from patchgate.errors import PatchgateError, Terminated
from patchgate.exit_codes import INTERRUPTED, TERMINATED, UNDECIDED

_received: list[int] = []
"""Signals received so far; a library may turn what they raise into another error."""


def _end(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def main() -> None:
    """Run the command line and end the process with its exit code."""
    _use_utf8()
    # The process is short-lived: without the collector, checking a range takes 13 % less time.
    gc.disable()
    # An ignored signal (nohup, a background job) stays ignored.
    for number, handler in (
        (signal.SIGTERM, _end),
        (signal.SIGHUP, _end),
        (signal.SIGINT, _end),
    ):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, handler)
    # If they are closed, no other file may get their descriptors.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        # A terminal in the C locale cannot show every name; that must not crash.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        os.close(1)
    # Skips the cleanup of the interpreter, which costs 5 ms.
    os._exit(code)


def _use_utf8() -> None:
    """Start again with UTF-8 for all names where the locale has another encoding.

    Git has bytes. By another encoding it would be asked for another ref or file than it named.
    """
    if sys.getfilesystemencoding() == "utf-8":
        return
    try:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    except OSError:
        write_error("error: the locale has no UTF-8, and Python does not start with it")
        write_error("help: set LC_ALL=C.UTF-8")
        os._exit(UNDECIDED)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; raises nothing."""
    try:
        # A hook runs without click, which costs 25 ms.
        if (
            arguments[:1] == ["hook"]
            and arguments[1:]
            and not any(each.startswith("-") for each in arguments)
        ):
            from patchgate.cli.hooks import run_hook

            return run_hook(arguments[1], arguments[2:], os.getcwd())
        if arguments[:2] == ["agent", "hook"] and not {"-h", "--help", "-C"} & set(arguments):
            from patchgate.cli.agent_hook import run_agent_hook

            return run_agent_hook(arguments[2:])
        from patchgate.cli.cli import call

        return call(arguments)
    except PatchgateError as error:
        return report_error(error, arguments)
    except KeyboardInterrupt:
        return _report_signal(signal.SIGINT)
    except Terminated:
        return _report_signal(signal.SIGTERM)
    except Exception as error:  # noqa: BLE001 - an internal error must be a refusal with one sentence
        if _received and not isinstance(error, OSError):
            return _report_signal(_received[-1])
        return report_error(internal_error(error, arguments), arguments)


def _report_signal(number: int) -> int:
    """Report that a signal ended this process, and return its exit code."""
    write_error("interrupted" if number == signal.SIGINT else "ended by a signal")
    return INTERRUPTED if number == signal.SIGINT else TERMINATED
