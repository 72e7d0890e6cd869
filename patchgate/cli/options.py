"""Options that commands share, opening the repository, and asking for confirmation."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from patchgate.cli.output import FORMATS, report_config_warnings, warn
from patchgate.errors import UsageError
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.git.repository import Repository
    from patchgate.questions.question import Question
    from patchgate.report.verdict import Report


def refuse_agents(what: str) -> None:
    """Refuse to run for a coding agent.

    Raises:
        UsageError: the environment has the variable of one.
    """
    from patchgate.check.profiles import MARKERS

    for name, agent in MARKERS.items():
        if os.environ.get(name):
            raise UsageError(
                f"{what} is for maintainers, but {name} is set: {agent} runs this",
                "run it in your own terminal",
            )


def require_terminal(message: str, hint: str) -> None:
    """Require a terminal.

    Raises:
        UsageError: standard input or standard error is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(message, hint)


def confirm(question: str) -> bool:
    """Ask on standard error; no answer means no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def ask_person(question: Question, offered: str | None) -> str:
    """Ask a question on standard error, until there is an answer that it takes.

    Raises:
        Abort: the person gave up.
    """
    from patchgate.git.quoting import printable
    from patchgate.questions.question import InvalidAnswerError

    choices = f" [{printable(question.choices, 200)}]" if question.choices else ""
    shown = "" if offered is None else f" [{printable(offered)}]"
    text = printable(question.text) + choices + shown
    while True:
        said = click.prompt(text, default=offered, show_default=False, type=str, err=True)
        try:
            return question.read(said)
        except InvalidAnswerError as error:
            click.echo(printable(str(error)), err=True)


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., object])
InContext = Callable[Concatenate[click.Context, Parameters], Result]
_DIRECTORY = "patchgate.directory"


def _remember(context: click.Context, option: click.Parameter, value: str | None) -> None:
    context.meta[_DIRECTORY] = value


_directory = click.option(
    "-C",
    "directory",
    metavar="DIR",
    help="Run as if started in DIR.",
    callback=_remember,
    expose_value=False,
)


def in_repository(command: InContext[Parameters, Result]) -> Callable[Parameters, Result]:
    """Give a command its context and the option `-C DIR`."""
    return _directory(click.pass_context(command))


def document_options(command: InContext[Parameters, Result]) -> Callable[Parameters, Result]:
    """Give a command its context and the options of commands that print text or JSON."""
    add = click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")
    return add(in_repository(command))


def report_options(command: InContext[Parameters, Result]) -> Callable[Parameters, Result]:
    """Give a command its context and the options of commands that print a report."""
    made = click.pass_context(command)
    for add in (
        click.option("-q", "--quiet", is_flag=True, help="Print nothing if accepted."),
        click.option("-v", "--verbose", is_flag=True, help="Show ids, gates and budgets too."),
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto"),
        click.option(
            "--format",
            "form",
            type=click.Choice([*(name for name, _, _ in FORMATS), "text"]),
            default="full",
            help="The output format.",
        ),
        _directory,
    ):
        made = add(made)
    return made


INPUTS = ("diff", "envelope", "search-replace", "edits", "files", "auto")


def proposal_options(command: Command) -> Command:
    """Give a command that takes a patch the options that say how it is read; `reading_of` returns them."""
    named = click.option(
        "--input",
        "input_name",
        type=click.Choice(INPUTS),
        callback=_remember_reading,
        expose_value=False,
        help="The format of the patch, if the policy allows it: *** Begin Patch (envelope), SEARCH/REPLACE "
        "blocks, old_string and new_string (edits), whole new files, or whichever it is in (auto).",
    )
    repairs = click.option(
        "--repair/--no-repair",
        "repair",
        default=None,
        callback=_remember_reading,
        expose_value=False,
        help="Repair mechanical faults of the patch first: fences, headers, counts; never content.",
    )
    return named(repairs(command))


def _remember_reading(context: click.Context, option: click.Parameter, value: str | bool | None) -> None:
    context.meta[f"patchgate.{option.name}"] = value


def reading_of(context: click.Context, patch: str | None) -> tuple[str, bool | None]:
    """Return the kind of proposal that the options mean (`edits` without a patch), and `--repair`.

    Args:
        patch: the file of the patch; None if it was not given.

    Raises:
        UsageError: they do not fit together.
    """
    name, repair = context.meta["patchgate.input_name"], context.meta["patchgate.repair"]
    if patch is None and (name is not None or repair is not None):
        option = "--input" if name is not None else "--repair"
        raise UsageError(f"{option} needs a patch", f"remove {option}")
    if repair and name not in {None, "diff", "auto"}:
        raise UsageError("--repair is for unified diffs", "remove --repair")
    if patch is None:
        return "edits", None
    return {None: "patch", "diff": "patch", "edits": "string-edits"}.get(name, name), repair


def open_here(context: click.Context) -> Repository:
    """Open the repository that the options and the environment name.

    Reports the config warnings of the policies that were read when the command ends.

    Raises:
        PatchgateError: there is none, or git refuses to open it.
    """
    from patchgate.git.repository import open_repository

    repository = open_repository(os.environ, directory_of(context))
    context.call_on_close(lambda: report_config_warnings(repository.config_warnings, repository.config_notes))
    return repository


def with_config_warnings(report: Report, repository: Repository, form: str) -> Report:
    """Add the config warnings to a JSON document; the other formats have them on standard error."""
    return (
        replace(report, warnings=(*report.warnings, *repository.config_warnings))
        if form == "json"
        else report
    )


def open_to_write(context: click.Context) -> Repository:
    """Open the repository for a command that writes, after recovering from a killed apply.

    Raises:
        PatchgateError: as for `open_here`, or the recovery failed.
    """
    from patchgate.apply.recovery import recover_pending

    repository = open_here(context)
    finished = recover_pending(repository)
    warn((*finished.lines, *finished.warnings))
    return repository


def directory_of(context: click.Context) -> str:
    """Return the directory to run in: `-C DIR` before the command, then the one after it."""
    return os.path.abspath(os.path.join(*_named_directories(context)) or os.curdir)


def names_directory(context: click.Context) -> bool:
    """Whether `-C` was given."""
    return any(_named_directories(context))


def _named_directories(context: click.Context) -> tuple[str, str]:
    return context.find_root().obj or "", context.meta.get(_DIRECTORY) or ""
