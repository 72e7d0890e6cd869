"""`git patchgate intent`: declare which files a piece of work will touch, and for how long."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import document_options, open_here, open_to_write
from patchgate.cli.output import warn, write, write_error, write_lines
from patchgate.cli.progress import Progress, analysis_environment

if TYPE_CHECKING:
    from patchgate.git.repository import Repository
    from patchgate.intents.intent import Intent
    from patchgate.intents.intent_status import Caller, IntentOutcome


_LIMIT = click.IntRange(1, 1_000_000)


@click.group("intent")
def intent_command() -> None:
    """Declare which files your work will touch; show, renew, clear and recover that."""


@intent_command.command("declare")
@click.option(
    "-m", "--reason", "reason", metavar="TEXT", default="", help="What the work is for; others see it."
)
@click.option(
    "--allow",
    "allowed",
    metavar="PATH",
    multiple=True,
    help="A file, folder or glob that the work may touch.",
)
@click.option(
    "--related", metavar="PATH", multiple=True, help="A file that belongs to them, such as their tests."
)
@click.option(
    "--forbid", "forbidden", metavar="PATH", multiple=True, help="A file that the work must not touch."
)
@click.option("--ttl", metavar="TIME", help="How long the intent is valid, 1m to 24h (default 1h).")
@click.option("--lease", metavar="TIME", help="How long it stays yours without activity (default 5m).")
@click.option("--max-attempts", type=_LIMIT, help="How many attempts of apply the work may take in all.")
@click.option("--max-added-lines", type=_LIMIT, help="How many more lines its files may have in the end.")
@click.option("--max-minutes", type=_LIMIT, help="How long it may take, from now on.")
@click.option("--queue", is_flag=True, help="Wait in the queue if another intent has these files.")
@click.option("--lazy", is_flag=True, help="Run the analyses at the first verify, not now.")
@document_options
def declare_intent(
    context: click.Context,
    reason: str,
    allowed: tuple[str, ...],
    related: tuple[str, ...],
    forbidden: tuple[str, ...],
    ttl: str | None,
    lease: str | None,
    max_attempts: int | None,
    max_added_lines: int | None,
    max_minutes: int | None,
    queue: bool,
    lazy: bool,
    form: str,
) -> int:
    """Declare which files your work will touch.

    Until the intent is cleared or expires, commits of this worktree may touch only these files, and the
    limits of the agent profile apply. Control files are always forbidden. The analyses of the policy run
    now, on the state before your work, so that `verify` can report what got worse. --max-attempts,
    --max-added-lines and --max-minutes limit all attempts and commits of the work together.
    """
    repository = open_to_write(context)
    from patchgate.intents.actions import declare
    from patchgate.intents.declaration import DeclareOptions
    from patchgate.intents.intent import IntentBudget

    caller = _caller()
    request = DeclareOptions(
        reason=reason,
        allowed=allowed,
        related=related,
        forbidden=forbidden,
        ttl=ttl,
        lease=lease,
        queue=queue,
        budget=IntentBudget(max_attempts, max_added_lines, max_minutes),
    )
    outcome = declare(repository, request, caller)
    intent = outcome.intent
    if intent is None or lazy:
        return _print_outcome(outcome, form)
    if form != "json":
        # Reported first, for the analyses may take long.
        _print_outcome(outcome, form)
        warn(_capture_before(repository, intent))
        return outcome.exit_code
    from patchgate.intents.actions import refreshed

    warnings = _capture_before(repository, intent)
    return _print_outcome(refreshed(repository, outcome, warnings, caller), form)


def _capture_before(repository: Repository, intent: Intent) -> tuple[str, ...]:
    """Run the analyses on the tree on which an intent began; return warnings."""
    from patchgate.verify.checked_intent import capture_before_report

    with Progress(quiet=False) as progress:
        return capture_before_report(repository, intent, analysis_environment(progress))


@intent_command.command("show")
@click.argument("name", required=False, metavar="[ID]")
@document_options
def show_intent(context: click.Context, name: str | None, form: str) -> int:
    """Show an intent: its files, when it expires, who owns it.

    Without ID, those of this worktree. A queued one becomes active if nothing blocks it any more.
    """
    repository = open_here(context)
    from patchgate.intents.actions import find_intents
    from patchgate.intents.document import show_text
    from patchgate.intents.queue import promote_waiting

    caller = _caller()
    promoted, warnings = promote_waiting(repository, caller)
    if form != "json":
        for each in promoted:
            write_error(f"{each.id} is active now")
    found = find_intents(repository, name, caller)
    if form != "json" and not found:
        write_error("no intent in this worktree")
    return _print_intents(
        found,
        repository,
        caller,
        form,
        lambda info: [line for each in info for line in show_text(each)],
        warnings,
    )


@intent_command.command("list")
@document_options
def list_intents(context: click.Context, form: str) -> int:
    """List the intents of all worktrees.

    Oldest first, one per line: state, time, owner, files, worktree, reason.
    """
    repository = open_here(context)
    from patchgate.intents.actions import all_intents
    from patchgate.intents.document import list_text

    found, damaged = all_intents(repository)
    if form != "json" and not (found or damaged):
        write_error("no intents")
    warnings = [error.sentence for error in damaged]
    _print_intents(found, repository, _caller(), form, lambda info: list(list_text(info)), warnings)
    return 3 if damaged else 0


@intent_command.command("renew")
@click.argument("name", required=False, metavar="[ID]")
@document_options
def renew_intent(context: click.Context, name: str | None, form: str) -> int:
    """Restart the time of an intent.

    An expired one cannot be renewed; use `recover`.
    """
    from patchgate.intents.actions import renew

    return _print_outcome(renew(open_here(context), name, _caller()), form)


@intent_command.command("clear")
@click.argument("name", required=False, metavar="[ID]")
@document_options
def clear_intent(context: click.Context, name: str | None, form: str) -> int:
    """End an intent.

    The work is done or given up. Intents that wait for its files become active. Without ID, the one of this
    worktree.
    """
    from patchgate.intents.actions import clear

    return _print_outcome(clear(open_here(context), name, _caller()), form)


@intent_command.command("recover")
@click.argument("name", metavar="ID")
@document_options
def recover_intent(context: click.Context, name: str, form: str) -> int:
    """Take over an intent that expired or is dead.

    It is dead if its owner has ended and its lease is over. It becomes active again, with you as owner and a
    new time. It stays in its worktree, or moves to this one if that worktree is gone.
    """
    from patchgate.intents.actions import recover

    return _print_outcome(recover(open_to_write(context), name, _caller()), form)


def _caller() -> Caller:
    from patchgate.intents.intent_status import Caller
    from patchgate.intents.stored_intents import current_moment

    return Caller(os.environ, current_moment())


def _print_outcome(outcome: IntentOutcome, form: str) -> int:
    if form == "json":
        from patchgate.intents.document import outcome_json

        write(outcome_json(outcome))
        return outcome.exit_code
    from patchgate.intents.document import outcome_text

    warn(outcome.warnings)
    lines = outcome_text(outcome)
    if outcome.exit_code:
        for line in lines:
            write_error(line)
        write_error(f"help: {outcome.hint}")
    else:
        write_lines(lines)
    return outcome.exit_code


def _print_intents(
    found: tuple[Intent, ...],
    repository: Repository,
    caller: Caller,
    form: str,
    lines: Callable[..., list[str]],
    warnings: Sequence[str] = (),
) -> int:
    from patchgate.intents.queue import IntentQueue

    queue = IntentQueue(repository, caller.now)
    info = [queue.describe(each) for each in found]
    if form == "json":
        from patchgate.intents.document import list_json

        write(list_json(info, warnings))
    else:
        warn(warnings)
        write_lines(lines(info))
    return 0
