"""The program: `git patchgate`, and `patchgate`, which is the same.

Decides how the process starts and ends, and what becomes of an error: one sentence, the next step, an exit
code. Which commands there are is told in `cli`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType

from patchgate.cli.output import internal_error, report_error, write_error
from patchgate.errors import PatchgateError
from patchgate.exit_codes import INTERRUPTED, TERMINATED


class _Terminated(BaseException):
    """A signal asked this process to end."""


_received: list[int] = []
"""The signals that asked this process to end; a library may turn what they raise into an error of its own."""


def _end(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else _Terminated


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # One command, one process: nothing lives long enough to be worth the collector's walks (13 % of a range).
    gc.disable()
    # One that is ignored (nohup, a job in the background) stays so.
    for number, handler in (
        (signal.SIGTERM, _end),
        (signal.SIGHUP, _end),
        (signal.SIGINT, _end),
    ):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, handler)
    # Whoever closed them does not want to read; but no other file may take their numbers.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        # A terminal in the C locale cannot show every name; it must not make us crash.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        os.close(1)
    # Nothing is left to do; the interpreter's own tidying costs 5 ms.
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code, whatever happens."""
    try:
        # What git waits for is answered without click (25 ms), unless options are given.
        if (
            arguments[:1] == ["hook"]
            and arguments[1:]
            and not any(each.startswith("-") for each in arguments)
        ):
            from patchgate.cli.hooks import run_hook

            return run_hook(arguments[1], arguments[2:], os.getcwd())
        from patchgate.cli.cli import call

        return call(arguments)
    except PatchgateError as error:
        return report_error(error, arguments)
    except KeyboardInterrupt:
        return _report_signal(signal.SIGINT)
    except _Terminated:
        return _report_signal(signal.SIGTERM)
    except Exception as error:  # noqa: BLE001 - a crash of ours must be a refusal with one sentence
        if _received and not isinstance(error, OSError):
            return _report_signal(_received[-1])
        return report_error(internal_error(error, arguments), arguments)


def _report_signal(number: int) -> int:
    """Say that a signal ended this process, and give its exit code."""
    write_error("interrupted" if number == signal.SIGINT else "ended by a signal")
    return INTERRUPTED if number == signal.SIGINT else TERMINATED
