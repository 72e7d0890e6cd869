"""Run one command of the policy in a scratch tree and log its output.

Decides how a command is started (program, arguments, environment, log), how it ended, which outcomes refuse a
patch or leave it undecided, and which lines of its output are shown. Does not make the tree, choose the
commands, or read the environment.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import Any

from patchgate.commands.programs import argument_room, command_environment, locate_program, working_folder
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable, without_escapes
from patchgate.policy.command_files import FILES, batches, expand, needs_files
from patchgate.policy.command_settings import CommandKind, CommandSettings
from patchgate.process.command import ProcessResult, StartFault, run_command
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, Fixer, Json
from patchgate.values import dataclass, replace

_MAX_LINES = 40
_MAX_LINE = 400
_NOTED = 40
_MAX_SHOWN = 300
_AGAIN = "apply the same patch again"
_PYTEST = frozenset({"pytest", "py.test"})


class CommandStatus(StrEnum):
    """How a command ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_STARTED = "not-started"
    TIMED_OUT = "timed-out"
    NOTHING_TO_DO = "nothing-to-do"


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """How one command ended.

    `exit_code` is negative for a signal, None if there is none. `reason` says in one sentence why it was not
    started, was stopped, or had nothing to do; `hint` is the next step. `tail` are the last lines of its
    output, `shown` is its argument list, both safe for a terminal. `log` is the name of its log file, None if
    nothing was started; `dropped` counts the bytes of output that are not in it. `warnings` are other
    problems. `missing` are the programs that were not found.
    """

    name: str
    kind: CommandKind
    status: CommandStatus
    exit_code: int | None = None
    reason: str | None = None
    hint: str | None = None
    tail: tuple[str, ...] = ()
    seconds: float = 0.0
    log: str | None = None
    dropped: int = 0
    shown: str = ""
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def has_passed(self) -> bool:
        """Whether the next command may run."""
        return self.status in {CommandStatus.PASSED, CommandStatus.NOTHING_TO_DO}


def tail_lines(tail: bytes, is_cut: bool, mask: Callable[[bytes], bytes] | None = None) -> tuple[str, ...]:
    """Make the end of a command's output safe to show: at most 40 lines, without colours.

    Of a line that was overwritten (CR) the last text is shown. If the beginning was cut, the first line is
    left out unless it is the only one. The text is masked again, because escapes may have split a secret.
    """
    plain = without_escapes(tail)
    lines = (mask(plain) if mask else plain).rstrip(b"\r\n\t ").split(b"\n")
    if is_cut and len(lines) > 1:
        del lines[0]
    shown = [printable(line.rstrip(b"\r").rpartition(b"\r")[2], _MAX_LINE) for line in lines[-_MAX_LINES:]]
    return tuple(shown) if any(shown) else ()


def show_command(argv: Sequence[bytes | str], mask: Callable[[bytes], bytes] | None = None) -> str:
    """Write an argument list as one shell command on one line, cut if it is long.

    Each word is masked first: quoting and cutting can split a secret.
    """
    words = (word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape") for word in argv)
    texts = ((mask(word) if mask else word).decode("utf-8", "surrogateescape") for word in words)
    shown = " ".join(map(shlex.quote, texts))
    if mask is not None:
        # An option and its value are separate words.
        shown = mask(shown.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
    return printable(shown, _MAX_SHOWN)


def command_finding(outcome: CommandOutcome) -> Finding | None:
    """Return the finding for a command that did not pass; None if it passed."""
    if outcome.has_passed:
        return None
    failed = "build-failed" if outcome.kind == "test" else "lint-failed"
    whole = f" (full output: logs/{outcome.log} of the evidence)" if outcome.log else ""
    to_fix = f"fix what the command reports{whole}, then send the whole patch again"
    rule, fixer, hint = {
        CommandStatus.NOT_STARTED: ("command-not-started", Fixer.ENVIRONMENT, None),
        CommandStatus.TIMED_OUT: ("command-timed-out", Fixer.PERSON, None),
    }.get(outcome.status, (failed, Fixer.AGENT, to_fix))
    details: dict[str, Json] = {
        "command": outcome.name,
        "argv": outcome.shown,
        "exit_code": outcome.exit_code,
        "tail": list(outcome.tail),
        "seconds": round(outcome.seconds, 1),
        "log": outcome.log,
    }
    return Finding(
        rule,
        Level.ERROR,
        f"command `{outcome.name}` {_describe_end(outcome)}",
        hint=outcome.hint or hint,
        who_can_fix=fixer,
        details=details,
        notes=outcome.tail[-_NOTED:],
    )


def _describe_end(outcome: CommandOutcome) -> str:
    if outcome.reason is not None:
        return outcome.reason
    code = outcome.exit_code or 0
    return f"ended with exit code {code}" if code >= 0 else f"was killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """Return the name of a signal, or its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run(
    name: str,
    settings: CommandSettings,
    *,
    place: str,
    files: Sequence[RepoPath],
    environ: Mapping[str, str],
    log_path: str,
    mask: Callable[[bytes], bytes] | None = None,
    clean: Callable[[bytes], bytes] | None = None,
    tick: Callable[[float], None] | None = None,
    report: str | None = None,
) -> CommandOutcome:
    """Run a command to its end and return the outcome.

    Args:
        name: its name in the config.
        settings: what the config says of it.
        place: the scratch tree, an absolute path.
        files: the files for `{files}` (`policy.command.matching_files`), relative to the scratch tree. If
            they do not fit into one argument list, the command runs several times.
        environ: the caller's environment.
        log_path: a file that does not exist yet; it is created only if the command has something to do.
        mask: masks secrets in whole lines of output before they are logged or shown, and in its arguments.
        clean: is then applied to the lines for the log.
        tick: called about once a second with the seconds since the start.
        report: where pytest must write its JUnit report, if the command runs pytest.

    Raises:
        UndecidedError: the log cannot be created, or the scratch tree is missing.
    """
    outcome = CommandOutcome(
        name, settings.kind, CommandStatus.PASSED, shown=show_command(settings.command, mask)
    )
    if needs_files(settings) and not files:
        reason = f"had nothing to check: no file for {FILES}"
        return replace(outcome, status=CommandStatus.NOTHING_TO_DO, reason=reason)
    outcome = replace(outcome, shown=show_command(expand(settings, files), mask))
    folder = working_folder(settings, place)
    environment = command_environment(environ, settings.env, place, folder)
    if report is not None and runs_pytest(settings.command):
        environment |= report_options(environment, report)
    file, missing = locate_program(settings, environment)
    if missing:
        return replace(_not_started(outcome, *describe_missing(missing)), missing=missing)
    with new_file(log_path, "the log ", _AGAIN) as log:
        options: dict[str, Any] = {"cwd": folder, "env": environment, "executable": file, "log": log}
        start = partial(run_command, mask=mask, clean=clean, tick=tick, **options)
        parts = batches(settings, files, argument_room(environment))
        ended = run_parts(settings, [expand(settings, part) for part in parts], start)
    if ended.fault is not None:
        os.unlink(log_path)
        return _not_started(outcome, *_start_fault(ended, ended.fault, settings))
    return _ended(outcome, ended, settings, os.path.basename(log_path), mask)


def run_parts(
    settings: CommandSettings, lists: Sequence[Sequence[bytes]], start: Callable[..., ProcessResult]
) -> ProcessResult:
    """Run a command once for each argument list, all of them within its time limit; return how it ended."""
    ended: ProcessResult | None = None
    for argv in lists:
        one = start(argv, seconds=settings.timeout - (ended.seconds if ended else 0.0))
        ended = one if ended is None else ended.followed_by(one)
        if ended.fault is not None or ended.timed_out:
            break
    assert ended is not None
    return ended


def _not_started(outcome: CommandOutcome, reason: str, hint: str | None) -> CommandOutcome:
    return replace(outcome, status=CommandStatus.NOT_STARTED, reason=f"was not started: {reason}", hint=hint)


def describe_missing(missing: Sequence[str]) -> tuple[str, str]:
    """Return which programs are missing, and the next step."""
    tools = ", ".join(printable(tool, 60) for tool in missing)
    return (
        f"{tools} {'was' if len(missing) < 2 else 'were'} not found",
        f"install {tools}, or put it on PATH; only absolute folders outside the scratch tree count",
    )


@contextmanager
def new_file(path: str, what: str, again: str) -> Iterator[int]:
    """Create a file and keep it open for writing.

    Args:
        what: text before its path in an error.
        again: the next step once its folder is writable.

    Raises:
        UndecidedError: it could not be created.
    """
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UndecidedError(
            f"{what}{printable(os.fsencode(path))} could not be created: {error.strerror or error}",
            f"make its folder writable, then {again}",
        ) from error
    try:
        yield number
    finally:
        os.close(number)


def _start_fault(ended: ProcessResult, fault: StartFault, settings: CommandSettings) -> tuple[str, str]:
    """Return why the system did not start a command, and the next step."""
    program = printable(settings.command[0], 120)
    is_in_tree = "/" in program and not program.startswith("/")
    if fault is StartFault.NOT_FOUND and is_in_tree and settings.scope == "files":
        return (
            f"{program} is not among the changed files, or the interpreter in its first line does not exist",
            'use scope = "tree" to run the command in the whole tree',
        )
    if fault is StartFault.TOO_LONG:
        return (
            "its argument list, including the files, is too long for the system",
            f"remove {FILES} from the command, or send a patch with fewer files",
        )
    return describe_start_fault(ended, program, _AGAIN)


def describe_start_fault(ended: ProcessResult, program: str, again: str) -> tuple[str, str]:
    """Return why the system did not start a program, and the next step.

    Args:
        ended: the result of the start.
        program: its name, safe to show.
        again: the next step once it is fixed.
    """
    if ended.fault is StartFault.NOT_FOUND:
        return (
            f"{program} was not found, or the interpreter in its first line does not exist",
            "install it, or fix the command in the policy",
        )
    if ended.fault is StartFault.NOT_EXECUTABLE:
        return f"{program} is not executable", "set its executable bit, or write its interpreter before it"
    if ended.fault is StartFault.NOT_A_PROGRAM:
        return (
            f"{program} is not a program",
            "add a first line like #!/bin/sh, or write its interpreter before it",
        )
    return f"the system refused: {ended.reason}", f"fix the cause, then {again}"


def _ended(
    outcome: CommandOutcome,
    ended: ProcessResult,
    settings: CommandSettings,
    log: str,
    mask: Callable[[bytes], bytes] | None,
) -> CommandOutcome:
    status, reason, hint = CommandStatus.PASSED, None, None
    if ended.timed_out:
        status = CommandStatus.TIMED_OUT
        reason = f"took longer than {settings.timeout:g} s and was stopped"
    elif ended.code != 0:
        status = CommandStatus.FAILED
        if ended.code in {126, 127}:
            hint = (
                f"exit code {ended.code} usually means that a program was not found or is not executable: "
                "check the output first, then the environment"
            )
    warnings = []
    if ended.log_fault is not None:
        warnings.append(f"the log of `{outcome.name}` is incomplete: {printable(ended.log_fault)}")
    if ended.survivors:
        warnings.append(f"`{outcome.name}` left {ended.survivors} processes that could not be stopped")
    return replace(
        outcome,
        status=status,
        exit_code=ended.code,
        reason=reason,
        hint=hint,
        tail=tail_lines(ended.tail, ended.has_more_than_tail, mask),
        seconds=ended.seconds,
        log=log,
        dropped=ended.dropped,
        warnings=tuple(warnings),
    )


def runs_pytest(command: Sequence[str]) -> bool:
    """Return whether pytest is among the words of a command."""
    return any(word.rpartition("/")[2] in _PYTEST for word in command)


def report_options(environ: Mapping[str, str], report: str) -> dict[str, str]:
    """Return the variable that makes pytest write its report to a file; the caller's options stay."""
    options = [*filter(None, [environ.get("PYTEST_ADDOPTS")]), f"--junitxml={shlex.quote(report)}"]
    return {"PYTEST_ADDOPTS": " ".join(options)}
