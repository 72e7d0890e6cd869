"""`git patchgate commands`: run the commands of the policy by hand and in CI, list them, allow them here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from patchgate.cli.commands_import import import_command
from patchgate.cli.options import (
    confirm,
    in_repository,
    open_here,
    refuse_agents,
    report_options,
    require_terminal,
    with_config_warnings,
)
from patchgate.cli.output import show, write_error, write_lines
from patchgate.cli.progress import Progress, command_options
from patchgate.errors import UsageError
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.check.change_commands import StagedAnswers
    from patchgate.commands.command_answer import CommandAnswer
    from patchgate.git.repository import Repository
    from patchgate.policy.policy import Policy
    from patchgate.report.verdict import Report


@click.group("commands")
def commands_command() -> None:
    """Run the linters, formatters and tests of the policy; list them, and allow them on this machine."""


@commands_command.command("run")
@click.argument("words", nargs=-1, metavar="[NAME...] [A..B]")
@click.option("--staged", "--cached", is_flag=True, help="Run on the staged change (the default).")
@click.option("--all", "everything", is_flag=True, help="Run on every tracked file.")
@report_options
def run_command(
    context: click.Context,
    words: tuple[str, ...],
    staged: bool,
    everything: bool,
    form: str,
    color: str,
    verbose: bool,
    quiet: bool,
) -> int:
    """Run commands of the policy on what will be committed, or on a range.

    Without a name: those of a commit; with --all or A..B all of them. They run in a scratch tree, as at a
    commit, and what they accepted is remembered. The policy is that of HEAD, or of A. Nothing asks whether
    they are trusted: running them is your decision.
    """
    ranges = [word for word in words if ".." in word]
    if len(ranges) > 1 or bool(ranges) + staged + everything > 1:
        raise UsageError("--staged, --all and A..B cannot be combined", "use one of them")
    repository = open_here(context)
    names = tuple(word for word in words if ".." not in word)
    found = _run(repository, names, next(iter(ranges), None), everything=everything, quiet=quiet)
    if form in {"full", "text"} and not quiet:
        write_lines(map(_summary, found.answers))
    report = _report(repository, found)
    if report.verdict != "accepted" or form not in {"full", "text", "concise"}:
        show(with_config_warnings(report, repository, form), form, color, verbose=verbose, quiet=quiet)
    elif not found.answers and not quiet:
        write_error("no command of the policy is for this change")
    return report.verdict.exit_code


def _run(
    repository: Repository, names: tuple[str, ...], named: str | None, *, everything: bool, quiet: bool
) -> StagedAnswers:
    from patchgate.check.command_changes import run_by_hand

    with Progress(quiet=quiet) as progress:
        options = replace(command_options(progress, names=names or None), needs_trust=False)
        found = run_by_hand(repository, options, named, everything=everything)
    _require_known(names, found.policy)
    return found


def _require_known(names: tuple[str, ...], policy: Policy) -> None:
    for name in names:
        if name not in policy.config.commands:
            from patchgate.git.quoting import printable

            raise UsageError(
                f"the policy has no command {printable(name, 60)}", "git patchgate commands list"
            )


def _report(repository: Repository, found: StagedAnswers) -> Report:
    """Write the answers as a report, which has all formats."""
    from patchgate.check.change_commands import with_answers
    from patchgate.check.judging_policy import reference
    from patchgate.git.model import Source
    from patchgate.policy.policy import Profile
    from patchgate.report.verdict import ChangeVerdict, GateOutcome, Outcome, Report

    verdict = ChangeVerdict(
        change=found.change,
        source=Source("staged", base_commit=found.commit),
        profile=Profile.COMMIT.value,
        policy=reference(found.policy, "HEAD", Profile.COMMIT),
        gates=(GateOutcome("commands", Outcome.PASS),),
        findings=(),
    )
    return Report((with_answers(verdict, found.answers),), repository.limits)


def _summary(answer: CommandAnswer) -> str:
    """Write one line about a command: what it answered, for how many files, how long it took."""
    from patchgate.report.wording import count

    words = {"failed": "failed", "unknown": "gave no answer", "not-run": "was not run", "passed": "passed"}
    files = f" ({count(answer.files, 'file')})" if answer.files else ""
    took = ", remembered" if answer.is_remembered else f", {answer.seconds:.2f} s" if answer.seconds else ""
    old = f"; {count(answer.old, 'finding')} from before" if answer.old else ""
    return f"{answer.name}: {words[answer.answer.value]}{files}{took}{old}"


@commands_command.command("list")
@in_repository
def list_command(context: click.Context) -> int:
    """List the commands of the policy of HEAD: when each runs, on which files, and if it may run here."""
    repository = open_here(context)
    from patchgate.check.command_changes import list_commands

    lines = list_commands(repository)
    write_lines(lines)
    if not lines:
        write_error("the policy of HEAD has no commands")
    return 0


@commands_command.command("trust")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@in_repository
def trust_command(context: click.Context, names: tuple[str, ...]) -> int:
    """Allow commands of the policy of HEAD on this machine, at a commit and at a push.

    Shows what differs from the policy of the trusted ref, and asks. What was allowed is stored in git's own
    folder; a command whose definition changes must be allowed again. Commands of the trusted ref need it not.
    """
    refuse_agents("trusting a command")
    repository = open_here(context)
    from patchgate.check.command_changes import untrusted_commands
    from patchgate.commands.trusted_commands import allow

    place, wanted = untrusted_commands(repository, names)
    if not wanted:
        write_error("every command of the policy may run here already")
        return 0
    require_terminal("trusting a command needs a terminal, to ask you", "run it in a terminal")
    for name, (_, difference) in wanted.items():
        write_error(f"command {name}, compared with {place}:")
        for line in difference:
            write_error(f"  {line}")
    if not confirm(f"Run {'this command' if len(wanted) == 1 else 'these commands'} at your commits?"):
        write_error("nothing was allowed: you did not answer yes")
        return 1
    allow(repository.common_dir, [text for text, _ in wanted.values()])
    write_lines([f"allowed on this machine: {', '.join(wanted)}"])
    return 0


commands_command.add_command(import_command)
