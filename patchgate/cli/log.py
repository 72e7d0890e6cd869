"""`git patchgate log`: the ledger, whether its chain is whole, and whether its end is missing.

The newest event comes first, in both formats, because that is what `git log` does and what somebody who was
just refused looks for; `-n 1` is the last event. Standard output holds events alone: that there are none, or
that a line is torn, goes to standard error.
"""

from __future__ import annotations

import click

from patchgate.cli.options import in_repository, open_here
from patchgate.cli.output import write_error, write_lines
from patchgate.errors import UsageError
from patchgate.ledger.ledger import KINDS


@click.command("log")
@click.option("-n", "--max-count", "most", metavar="N", type=click.IntRange(0), help="Show the last N only.")
@click.option("--kind", "kinds", type=click.Choice(list(KINDS)), multiple=True, help="Only these events.")
@click.option("--verify", is_flag=True, help="Check the chain and its end; name the first fault, exit 1.")
@click.option("-v", "--verbose", is_flag=True, help="Show all that an event has, below its line.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["full", "text", "json"]),
    default="full",
    help="json: one event a line, with full ids.",
)
@in_repository
def log_command(
    context: click.Context,
    most: int | None,
    kinds: tuple[str, ...],
    verify: bool,
    verbose: bool,
    form: str,
) -> int:
    """Show what was refused, let through, skipped and approved here, a line each, the newest first.

    The chain proves the order and the content of the events that are there. That none was cut off at the end
    shows events.jsonl.head, which names the last. Neither proves who wrote them: whoever can write .git can
    write both anew. The push, CI and the server always judge again.
    """
    if verify and (most is not None or kinds):
        raise UsageError("--verify checks the whole ledger", "leave -n and --kind out")
    repository = open_here(context)
    from patchgate.ledger import history

    is_json = form == "json"
    if verify:
        found = history.check_ledger(repository)
        is_there = found.exists or found.comparison.head is not None
        if not is_there:
            _say_that_there_is_none()
        if is_json:
            write_lines([found.as_json()])
        elif is_there:
            write_lines(found.as_text())
        return 0 if found.is_whole else 1
    shown = history.history(repository, kinds, most)
    if not shown.exists and shown.comparison.head is None:
        _say_that_there_is_none()
    for event in shown.events:
        if is_json:
            write_lines([history.as_json(event)])
        else:
            write_lines(history.as_text(event) if verbose else [history.as_line(event)])
    for problem in shown.problems:
        if problem.torn:
            write_error(f"warning: {history.describe_problem(problem)}; the next event sets it aside")
    history.require_all(shown.problems, shown.comparison)
    return 0


def _say_that_there_is_none() -> None:
    write_error("there is no ledger: nothing has been recorded in this repository")
