"""Run one analysis in a scratch tree and read its output.

Decides how a run ended: clean, findings, or not evaluated, with the reason and the next step. A tool that is
missing, takes too long, exits with a code other than 0 or 1, or writes another format is never clean. Does
not make the tree, compare or store anything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchgate.commands.analysis_results import AnalysisOutcome, AnalysisRun
from patchgate.commands.programs import (
    argument_room,
    command_environment,
    locate_program,
    working_folder,
)
from patchgate.commands.runner import (
    describe_missing,
    describe_start_fault,
    new_file,
    signal_name,
    tail_lines,
)
from patchgate.git.quoting import printable
from patchgate.policy.command_files import batches, expand, needs_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.commands.analysis_results import AnalysisResult, Lines, Measurement
    from patchgate.git.path import RepoPath
    from patchgate.process.command import ProcessResult

MAX_OUTPUT = 128 << 20
_LAST_LINES = 3
_MAX_SAID = 300
_AGAIN = "run it again"
_EXPECTED = "check what the command writes to standard output: it must be only what `format` says"


def run_analysis(
    name: str,
    settings: CommandSettings,
    *,
    place: str,
    environ: Mapping[str, str],
    folder: str,
    text_of: Lines,
    files: Sequence[RepoPath] = (),
    mask: Callable[[bytes], bytes] | None = None,
    tick: Callable[[float], None] | None = None,
) -> AnalysisRun:
    """Run an analysis to its end and read its output; `key` and `digest` are left empty.

    Args:
        name: its name in the config.
        settings: what the config says of it.
        place: the scratch tree, an absolute path.
        environ: the caller's environment.
        folder: an empty folder for its output and its log.
        text_of: gives the lines of a file of the tree as it is in git, split at LF; None: no such file.
            A path without such a file is in no finding, and no metric may name it.
        files: the files for `{files}`. If they do not fit into one argument list, it runs several times.
        mask: masks secrets in whole lines of its log before they are stored or shown.
        tick: called about once a second with the seconds since the start.

    Raises:
        UndecidedError: the folder cannot be written, or the scratch tree is missing.
    """
    run = AnalysisRun(analysis=name, key="", digest="", outcome=AnalysisOutcome.NOT_EVALUATED)
    where = working_folder(settings, place)
    environment = command_environment(environ, settings.env, place, where)
    program, missing = locate_program(settings, environment)
    if missing or program is None:
        reason, hint = describe_missing(missing)
        return _not_evaluated(run, f"was not started: {reason}", hint)
    run = replace(run, tool=printable(program))
    if needs_files(settings) and not files:
        return replace(run, outcome=AnalysisOutcome.CLEAN)
    begun = time.monotonic()
    for number, part in enumerate(batches(settings, files, argument_room(environment))):
        left = settings.timeout - (time.monotonic() - begun if number else 0.0)
        ended, output = _run_part(
            expand(settings, part),
            os.path.join(folder, str(number or "")),
            cwd=where,
            env=environment,
            seconds=left,
            executable=program,
            mask=mask,
            tick=tick,
        )
        run = add_output(run, settings, ended, output, place=place, text_of=text_of, mask=mask)
        if run.reason is not None:
            break
    return run


def _run_part(argv: list[bytes], place: str, **options: Any) -> tuple[ProcessResult, str]:
    """Run one process of an analysis; return how it ended, and the file with its output."""
    from patchgate.process.command import run_command

    output = f"{place}output"
    with new_file(output, "", _AGAIN) as out, new_file(f"{place}log", "", _AGAIN) as log:
        return run_command(argv, log=log, output=out, max_output=MAX_OUTPUT, **options), output


def add_output(
    run: AnalysisRun,
    settings: CommandSettings,
    ended: ProcessResult,
    output: str,
    *,
    place: str,
    text_of: Lines,
    mask: Callable[[bytes], bytes] | None = None,
) -> AnalysisRun:
    """Add what one process of an analysis wrote to its run; with a `reason` if it could not be evaluated.

    Args:
        run: the run so far.
        settings: what the config says of the analysis.
        ended: how the process ended.
        output: the file with its standard output.
        place: the scratch tree, an absolute path.
        text_of: gives the lines of a file of the tree.
        mask: masks secrets in whole lines.
    """
    if ended.survivors:
        left = f"`{run.analysis}` left {ended.survivors} processes that could not be stopped"
        run = replace(run, warnings=(*run.warnings, left))
    hindrance = _why_unreadable(ended, settings, mask)
    if hindrance is not None:
        return _not_evaluated(run, *hindrance)
    return _read(run, settings, place, output, text_of, _last_stderr(ended, mask))


def _why_unreadable(
    ended: ProcessResult, settings: CommandSettings, mask: Callable[[bytes], bytes] | None
) -> tuple[str, str] | None:
    """Return why the output cannot be read, and the next step; None if the tool ended normally."""
    if ended.fault is not None:
        reason, hint = describe_start_fault(ended, printable(settings.command[0], 120), _AGAIN)
        return f"was not started: {reason}", hint
    if ended.output_fault is not None:
        reason = f"could not be read: its output could not be saved: {printable(ended.output_fault)}"
        return reason, f"free some space, then {_AGAIN}"
    if ended.has_flooded:
        return (
            f"wrote more than {MAX_OUTPUT >> 20} MiB to standard output and was stopped",
            "limit its folders or its rules",
        )
    if ended.timed_out:
        return (
            f"took longer than {settings.timeout:g} s and was stopped",
            "raise its timeout in the policy, or limit its folders",
        )
    code = ended.code or 0
    if code < 0:
        return (
            f"was killed by {signal_name(-code)}{_last_stderr(ended, mask)}",
            "run the command directly to see why",
        )
    if code > 1:
        return (
            f"ended with exit code {code}{_last_stderr(ended, mask)}",
            "fix the error; if this code means findings, make the command exit with 0 (ruff: --exit-zero)",
        )
    return None


def _read(
    run: AnalysisRun, settings: CommandSettings, place: str, output: str, text_of: Lines, said: str
) -> AnalysisRun:
    # Imported only to read an output: a stored run does not need it.
    from patchgate.commands.json_stream import NotReadError
    from patchgate.commands.metrics_file import read_metrics
    from patchgate.commands.sarif_reader import ToolFailedError, read_sarif

    try:
        with open(output, "rb") as stream:
            if settings.output == "metrics":
                return _added(run, measurements=read_metrics(stream, run.analysis, text_of))
            results, suppressed = read_sarif(stream, run.analysis, place, text_of, settings.root)
    except ToolFailedError as error:
        return _not_evaluated(run, error.message, error.hint or _AGAIN)
    except NotReadError as error:
        reason = f"has no readable output: {error.message}"
        return _not_evaluated(
            run, f"{reason}; standard error{said}" if said else reason, error.hint or _EXPECTED
        )
    return _added(run, results, suppressed)


def _added(
    run: AnalysisRun,
    results: tuple[AnalysisResult, ...] = (),
    suppressed: tuple[AnalysisResult, ...] = (),
    measurements: tuple[Measurement, ...] = (),
) -> AnalysisRun:
    """Add the output of one process to that of those before it."""
    results = (*run.results, *results)
    return replace(
        run,
        outcome=AnalysisOutcome.FINDINGS if results else AnalysisOutcome.CLEAN,
        results=results,
        suppressed=(*run.suppressed, *suppressed),
        measurements=(*run.measurements, *measurements),
    )


def _not_evaluated(run: AnalysisRun, reason: str, hint: str) -> AnalysisRun:
    return replace(run, reason=f"the analysis `{run.analysis}` {reason}", hint=hint)


def _last_stderr(ended: ProcessResult, mask: Callable[[bytes], bytes] | None) -> str:
    """Return the last lines of its standard error, safe to show."""
    lines = tail_lines(ended.tail, ended.has_more_than_tail, mask)
    said = " / ".join(stripped for line in lines[-_LAST_LINES:] if (stripped := line.strip()))
    return f": {said[:_MAX_SAID]}" if said else ""
