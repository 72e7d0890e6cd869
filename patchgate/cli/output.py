"""Output that all commands share: reports, colours, progress, errors. Does not import click.

An internal error is reported in one sentence, which names the file with its traceback.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from patchgate.errors import (
    ConfigError,
    PatchgateError,
    UndecidedError,
    UsageError,
    ended_attempt,
    name_attempt,
)
from patchgate.git.quoting import printable, without_log_commands

if TYPE_CHECKING:
    from patchgate.report.verdict import Report

# Name, the module of `report` that writes it, its function there.
FORMATS = (
    ("full", "text", "full"),
    ("concise", "text", "concise"),
    ("json", "json", "render"),
    ("sarif", "sarif", "render"),
    ("github", "ci_formats", "github"),
    ("gitlab", "ci_formats", "gitlab"),
    ("junit", "ci_formats", "junit"),
    ("markdown", "markdown", "render"),
    ("agent", "agent_text", "render"),
)

WITH_EACH_CHANGE = frozenset({"json", "junit"})
"""The formats that list every change, also one about which there is nothing to say."""


def wants_color(choice: str) -> bool:
    """Decide whether to use colours: by the option, NO_COLOR, FORCE_COLOR, then the terminal.

    Sources: no-color.org, force-color.org, terminfo's `dumb`.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


MOST_INPUT = 256 << 20


def read_input(name: str, directory: str = "", most: int = MOST_INPUT) -> bytes:
    """Read a file, or standard input for `-`: at most one byte more than allowed.

    Args:
        directory: the folder that a relative name starts from.
        most: the allowed number of bytes.

    Raises:
        UsageError: the file is missing or unreadable.
    """
    try:
        if name == "-":
            return sys.stdin.buffer.read(most + 1)
        with open(os.path.join(directory, name), "rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UsageError(
            f"{printable(name)} cannot be read: {error.strerror}", "give a file, or - for standard input"
        ) from error


def write(text: str) -> bool:
    """Write to standard output; names that it cannot show are escaped.

    Returns:
        Whether it is still read: if the reader closed the pipe, the rest is dropped.

    Raises:
        UndecidedError: it could not be written (a full disk).
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes the rest of the buffer at exit, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    except OSError as error:
        message = f"the output could not be written: {error.strerror}"
        raise UndecidedError(message, "free disk space, or write it elsewhere") from error
    return True


def write_lines(lines: Iterable[str]) -> bool:
    """Write lines to standard output, as `write` does."""
    return write("".join(f"{line}\n" for line in lines))


def write_error(line: str) -> None:
    """Write a line to standard error; errors of writing are ignored."""
    with contextlib.suppress(OSError):
        print(without_log_commands(line), file=sys.stderr, flush=True)


def warn(warnings: Iterable[str]) -> None:
    """Write warnings to standard error."""
    for warning in warnings:
        # Imported only where there is one: uninstall must work when the rest is broken.
        from patchgate.report.wording import safe

        write_error(f"warning: {safe(warning)}")


_MOST_DOUBTS = 10


def report_config_warnings(doubts: Sequence[str], notes: Sequence[str] = ()) -> None:
    """Report the warnings and the notes about the config, one per line, at most ten of each."""
    warn(doubts[:_MOST_DOUBTS])
    for note in notes[:_MOST_DOUBTS]:
        write_error(f"note: {note}")
    if len(doubts) > _MOST_DOUBTS:
        write_error(f"warning: {len(doubts) - _MOST_DOUBTS} more warnings about the policies that were read")


def show(report: Report, form: str, color: str, *, verbose: bool, quiet: bool) -> None:
    """Print a report in a format, and where the traceback of a crashed gate is."""
    report_failed_gates(report)
    form = "full" if form == "text" else form
    if quiet and report.verdict == "accepted" and form in {"full", "concise"}:
        return
    options = {"color": wants_color(color), "verbose": verbose} if form == "full" else {}
    write(render(report, form, **options))


def render(report: Report, form: str, **options: bool) -> str:
    """Write a report in one of `FORMATS`; `options` are those of that format's function."""
    module, function = next((module, function) for name, module, function in FORMATS if name == form)
    return str(getattr(import_module(f"patchgate.report.{module}"), function)(report, **options))


def report_failed_gates(report: Report) -> None:
    """Report for each gate that crashed which file has the traceback."""
    for change in report.changes:
        for outcome in (*change.gates, *change.context_gates):
            if outcome.trace:
                kept = save_traceback(outcome.trace, sys.argv[1:])
                write_error(
                    f"warning: the gate {outcome.gate} crashed; " + (kept or "its traceback was not saved")
                )


def report_error(error: PatchgateError, arguments: list[str]) -> int:
    """Report an error on standard error, or as a JSON document with `--format json`."""
    if asks_for_json(arguments):
        from patchgate.report.json import error_document

        with contextlib.suppress(UndecidedError):
            write(error_document(error))
            return error.exit_code
    if isinstance(error, ConfigError):
        for mistake in error.mistakes:
            key = f" {mistake.key}:" if mistake.key else ""
            write_error(f"error: {mistake.location}:{key} {mistake.message}")
            if mistake.hint:
                write_error(f"help: {mistake.hint}")
    else:
        write_error(f"error: {error.message}")
        if error.hint:
            write_error(f"help: {error.hint}")
    if (ended := ended_attempt(error)) is not None:
        from patchgate.report.verdict import Attempt
        from patchgate.report.wording import attempt_line

        attempt = Attempt(
            id=ended.id,
            dir=ended.dir,
            applied=False,
            fallback_reason=error.kind,
            temp_path=ended.temp_path,
        )
        write_error(attempt_line(attempt))
    if error.exit_code == 3:
        write_error("undecided: no verdict was reached")
    return error.exit_code


def asks_for_json(arguments: list[str]) -> bool:
    """Whether the arguments contain `--format json`."""
    return "--format=json" in arguments or any(
        pair == ("--format", "json") for pair in itertools.pairwise(arguments)
    )


def cache_folder() -> str:
    """Return the cache folder (XDG Base Directory); a temporary one if there is no home."""
    import tempfile

    home = os.environ.get("HOME", "")
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(home, ".cache") if os.path.isabs(home) else ""
    return os.path.join(cache or tempfile.gettempdir(), "patchgate" if cache else f"patchgate-{os.getuid()}")


DEBUG = "PATCHGATE_DEBUG"
_MOST_LINE = 1000


def internal_error(error: Exception, arguments: Sequence[str]) -> PatchgateError:
    """Save the traceback of an internal error, and return the error to report.

    `PATCHGATE_DEBUG=1` prints the traceback too.

    Args:
        arguments: the command line; its `-C` names the repository.
    """
    import traceback

    kept = save_traceback("".join(traceback.format_exception(error)), arguments)
    said = f"patchgate itself failed ({type(error).__name__})"
    if isinstance(error, OSError):
        said = f"the system refused: {printable(error.strerror or str(error))}"
    made = PatchgateError(f"{said}; {kept}", "please report it with that file")
    if kept is None:
        made = PatchgateError(said, f"please report it; {DEBUG}=1 prints the traceback")
    name_attempt(made, ended_attempt(error))
    return made


def save_traceback(trace: str, arguments: Sequence[str]) -> str | None:
    """Save a traceback, and print it under `PATCHGATE_DEBUG=1`; return where it is, None if not saved."""
    from patchgate.ledger.traces import write_trace

    if os.environ.get(DEBUG) == "1":
        for line in trace.splitlines():
            write_error(printable(line, _MOST_LINE))
    kept = write_trace(_common_dir(arguments), trace, os.environ)
    return None if kept is None else f"the traceback is in {printable(kept)}"


def _common_dir(arguments: Sequence[str]) -> str | None:
    """Find git's common directory; None if that fails too."""
    from patchgate.git.repository import open_repository

    named = [value for option, value in itertools.pairwise(arguments) if option == "-C"]
    try:
        return open_repository(os.environ, os.path.abspath(os.path.join(os.curdir, *named))).common_dir
    except Exception:  # noqa: BLE001 - what failed may fail again; the first error is reported
        return None
