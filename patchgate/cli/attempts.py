"""`git patchgate attempts`: what was tried, with its evidence; and what a person does about it."""

from __future__ import annotations

import os
import time

import click

from patchgate.cli.options import directory_option, open_here, open_to_write
from patchgate.cli.output import complain, write
from patchgate.cli.person import is_meant, refuse_agents, require_person
from patchgate.errors import UsageError

_HELP = {"help_option_names": ["-h", "--help"]}
_form_option = click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")


@click.group("attempts", context_settings=_HELP)
def command() -> None:
    """Show what apply tried, and where its evidence lies."""


@command.command("list", context_settings=_HELP)
@click.option("-n", "--max-count", "most", metavar="N", type=click.IntRange(0), help="Show the last N only.")
@_form_option
@directory_option
@click.pass_context
def list_attempts(context: click.Context, most: int | None, form: str, directory: str | None) -> int:
    """List the attempts, the newest first: id, time, what became of it, the rules that refused it.

    interrupted: it was killed before its verdict was on record; running: it goes on.
    """
    repository = open_here(context, directory)
    from patchgate.apply.attempt_list import attempts, list_text

    found = attempts(repository)[:most]
    if form == "json":
        from patchgate.apply.attempts_document import list_json

        write(list_json(found))
        return 0
    if not found and most is None:
        complain("there is no attempt: nothing was applied in this repository")
    _write_lines(list_text(found))
    return 0


@command.command("show", context_settings=_HELP)
@click.argument("attempt", metavar="ID")
@_form_option
@directory_option
@click.pass_context
def show_attempt(context: click.Context, attempt: str, form: str, directory: str | None) -> int:
    """Show one attempt: its verdict, rules, files and chain, its evidence, the ends of its logs.

    ID is an attempt's id, or a beginning that only one has.
    """
    repository = open_here(context, directory)
    from patchgate.apply.attempt_list import attempts, named, show_text

    found = named(attempts(repository), attempt)
    if form == "json":
        from patchgate.apply.attempts_document import show_json

        write(show_json(repository, found))
    else:
        _write_lines(show_text(repository, found))
    return 0


@command.command("prune", context_settings=_HELP)
@click.option("--keep", metavar="N", type=click.IntRange(0), help="Keep the evidence of the last N (100).")
@click.option("--older-than", "age", metavar="AGE", help="Remove what is older, like 30d, 12h or 2w.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@directory_option
@click.pass_context
def prune_attempts(
    context: click.Context, keep: int | None, age: str | None, dry_run: bool, directory: str | None
) -> int:
    """Remove the evidence of old attempts. The ledger keeps its events; a --run-dir is never touched."""
    if keep is not None and age is not None:
        raise UsageError("prune takes --keep or --older-than, not both", "leave one of them out")
    repository = (open_here if dry_run else open_to_write)(context, directory)
    from patchgate.apply.prune import prune, said, seconds_of

    older_than = None if age is None else seconds_of(age)
    pruned = prune(repository, keep=keep, older_than=older_than, now=time.time(), dry_run=dry_run)
    for warning in pruned.warnings:
        complain(f"warning: {warning}")
    _write_lines([*pruned.removed, said(pruned, dry_run=dry_run)])
    return 0


@command.command("reset", context_settings=_HELP)
@click.argument("attempt", required=False, metavar="[ID]")
@click.option("--reason", metavar="TEXT", help="Why another try will go better; others read it.")
@directory_option
@click.pass_context
def reset_attempts(
    context: click.Context, attempt: str | None, reason: str | None, directory: str | None
) -> int:
    """Let the retries of a chain begin again, with a reason that stays on record. For people only.

    ID is any attempt of the chain; without it, the chain of the attempt that was refused last.
    """
    from patchgate.check.message import check_reason

    example = 'say what is different now: --reason "the plan now names the file to change"'
    reason = check_reason(reason or "", "a reset", example)
    refuse_agents("a reset")
    require_person("a reset needs a person at a terminal", "run it in a terminal")
    repository = open_to_write(context, directory)
    from patchgate.apply.prune import chain_to_reset, refused_in, reset
    from patchgate.approvals.approvals import who_approves
    from patchgate.report.wording import count, safe

    chain = chain_to_reset(repository, attempt)
    by = who_approves(repository, os.environ)
    refused = refused_in(repository, chain)
    complain(f"chain {chain}: {count(len(refused), 'refusal')}")
    for each in refused:
        complain(f"  {each.attempt} {safe(each.at, 40)}: {safe(', '.join(each.rules))}")
    complain(f"reason: {safe(reason)}")
    complain(f"by: {by}")
    if not is_meant("Let its retries begin again?"):
        complain("nothing was reset: the answer was not yes")
        return 1
    warning = reset(repository, chain, reason, by)
    if warning:
        complain(f"warning: {warning}")
    last = refused[-1].attempt
    write(f"the retries of {chain} begin again: git patchgate apply - --retry-of {last}\n")
    return 0


def _write_lines(lines: list[str]) -> None:
    write("".join(f"{line}\n" for line in lines))
