"""Run one command of the policy in a scratch tree, its output into a log.

Decides how a command of the config becomes a child: its program, arguments, environment and log; and in which
words it is told what hindered it. Does not make the tree, nor decide which commands run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from patchgate.commands.environment import command_environment, find_program
from patchgate.commands.junit import report_options, runs_pytest
from patchgate.commands.outcome import CommandOutcome, Status, show_command, tail_lines
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.policy.command import FILES, expand, needs_files
from patchgate.policy.settings import AnalysisSettings, CommandSettings
from patchgate.process.command import Ended, StartFault, run_command


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
    """Run a command to its end; the outcome says whatever becomes of it.

    Args:
        name: its name in the config.
        settings: what the config says of it.
        place: the scratch tree, an absolute path.
        files: what `{files}` stands for (`policy.command.files_of`), relative to the place.
        environ: the caller's environment.
        log_path: a file that does not exist yet; it is made only where the command has something to do.
        mask: what is done to whole lines of output before they are logged or shown, and to its arguments.
        clean: what is then done to what goes into the log, where the log is kept.
        tick: called about once a second with the seconds since the start.
        report: where pytest, if that is what runs, is asked to write its JUnit report.

    Raises:
        UndecidedError: the log cannot be made, or the place is not there.
    """
    outcome = CommandOutcome(name, settings.kind, Status.PASSED, shown=show_command(settings.command, mask))
    if needs_files(settings) and not files:
        reason = f"had nothing to look at: no file for {FILES}"
        return replace(outcome, status=Status.NOTHING_TO_DO, reason=reason)
    argv = expand(settings, files)
    outcome = replace(outcome, shown=show_command(argv, mask))
    environment = command_environment(environ, settings.env, place)
    if report is not None and runs_pytest(settings.command):
        environment |= report_options(environment, report)
    file, missing = located(settings, environment)
    if missing:
        reason, hint = not_found(missing)
        return replace(outcome, status=Status.NOT_STARTED, reason=f"was not started: {reason}", hint=hint)
    log = _make_log(log_path)
    try:
        ended = run_command(
            argv,
            cwd=place,
            env=environment,
            seconds=settings.timeout,
            executable=file,
            log=log,
            mask=mask,
            clean=clean,
            tick=tick,
        )
    finally:
        os.close(log)
    if ended.fault is not None:
        reason, hint = _hindered(ended, ended.fault, settings)
        os.unlink(log_path)
        return replace(outcome, status=Status.NOT_STARTED, reason=f"was not started: {reason}", hint=hint)
    return _ended(outcome, ended, settings, os.path.basename(log_path), mask)


def located(
    settings: CommandSettings | AnalysisSettings, environment: Mapping[str, str]
) -> tuple[str | None, tuple[str, ...]]:
    """Find the file of a command's program, and name what it needs and is not there.

    The program itself is named only where nothing else is missing. One with a `/` is not looked for.
    """
    missing = tuple(tool for tool in settings.required_tools if find_program(tool, environment) is None)
    program = settings.command[0]
    file = program if "/" in program else find_program(os.fsdecode(program.encode()), environment)
    return file, missing or (() if file is not None else (program,))


def not_found(missing: Sequence[str]) -> tuple[str, str]:
    """Say which programs are not there, and the next step."""
    tools = ", ".join(printable(tool, 60) for tool in missing)
    return (
        f"{tools} {'was' if len(missing) < 2 else 'were'} not found",
        f"install {tools}, or put it on PATH; only absolute folders outside the scratch tree count",
    )


def _make_log(path: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UndecidedError(
            f"the log {printable(os.fsencode(path))} could not be made: {reason}",
            "make its folder writable, then apply the same patch again",
        ) from error


def _hindered(ended: Ended, fault: StartFault, settings: CommandSettings) -> tuple[str, str]:
    """Say why the system did not start a command on files, and the next step."""
    program = printable(settings.command[0], 120)
    is_in_tree = "/" in program and not program.startswith("/")
    if fault is StartFault.NOT_FOUND and is_in_tree and settings.scope == "files":
        return (
            f"{program} is not among the touched files, or its first line names no program that is there",
            'with scope = "tree" a command sees the whole tree',
        )
    if fault is StartFault.TOO_LONG:
        return (
            "its argument list, with the files in it, is longer than the system takes",
            f"leave {FILES} out of the command, or send a patch of fewer files",
        )
    return hindered(ended, program, "apply the same patch again")


def hindered(ended: Ended, program: str, again: str) -> tuple[str, str]:
    """Say why the system did not start a program, and the next step.

    Args:
        ended: what came of the start.
        program: its name, safe to show.
        again: what to do when it is mended.
    """
    if ended.fault is StartFault.NOT_FOUND:
        return (
            f"{program} was not found, or its first line names a program that is not there",
            "install it, or mend the command in the policy",
        )
    if ended.fault is StartFault.NOT_EXECUTABLE:
        return f"{program} may not be executed", "set its executable bit, or name its interpreter before it"
    if ended.fault is StartFault.NOT_A_PROGRAM:
        return f"{program} is no program", "give it a first line like #!/bin/sh, or name its interpreter"
    return f"the system refused: {ended.reason}", f"mend what the system names, then {again}"


def _ended(
    outcome: CommandOutcome,
    ended: Ended,
    settings: CommandSettings,
    log: str,
    mask: Callable[[bytes], bytes] | None,
) -> CommandOutcome:
    status, reason, hint = Status.PASSED, None, None
    if ended.timed_out:
        status = Status.TIMED_OUT
        reason = f"took longer than {settings.timeout:g} s and was ended"
    elif ended.code != 0:
        status = Status.FAILED
        if ended.code in {126, 127}:
            hint = (
                f"exit code {ended.code} usually means that a program was not found or may not be executed: "
                "look at the output first, then at the environment"
            )
    warnings = []
    if ended.log_fault is not None:
        warnings.append(f"the log of `{outcome.name}` is not whole: {printable(ended.log_fault)}")
    if ended.survivors:
        warnings.append(f"`{outcome.name}` left {ended.survivors} processes that could not be ended")
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
