"""`git patchgate log`: show the ledger, and verify its chain and its end.

The newest event comes first, as in `git log`. Standard output has events only; that there are none, or that a
line is torn, goes to standard error.
"""

from __future__ import annotations

from itertools import islice

import click

from patchgate.cli.options import in_repository, open_here
from patchgate.cli.output import write_error, write_lines
from patchgate.errors import UsageError
from patchgate.ledger.ledger import KINDS

# So that the first events are seen before the last ones are read.
_AT_ONCE = 200


@click.command("log")
@click.option("-n", "--max-count", "most", metavar="N", type=click.IntRange(0), help="Show only the last N.")
@click.option(
    "--kind", "kinds", type=click.Choice(list(KINDS)), multiple=True, help="Show only events of this kind."
)
@click.option("--verify", is_flag=True, help="Verify the chain and its end; exit with 1 at the first fault.")
@click.option("-v", "--verbose", is_flag=True, help="Show all details of each event.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["full", "text", "json"]),
    default="full",
    help="json: one event per line, with full ids.",
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
    """Show what was refused, approved and skipped, one event per line, newest first.

    The hash chain proves the order and content of the events. events.jsonl.head names the last one and so
    shows whether the end was cut off. Neither proves who wrote them: anyone who can write to .git can write
    both again. The push, CI and the server always check again.
    """
    if verify and (most is not None or kinds):
        raise UsageError("--verify checks the whole ledger", "remove -n and --kind")
    repository = open_here(context)
    from patchgate.ledger import history

    is_json = form == "json"
    if verify:
        found = history.check_ledger(repository)
        is_there = found.exists or found.comparison.head is not None
        if not is_there:
            _report_no_ledger()
        if is_json:
            write_lines([found.as_json()])
        elif is_there:
            write_lines(found.as_text())
        return 0 if found.is_intact else 1
    shown = history.history(repository, kinds, most)
    if not shown.exists and shown.comparison.head is None:
        _report_no_ledger()
    events = iter(shown.events)
    while some := list(islice(events, _AT_ONCE)):
        if is_json:
            lines = [history.as_json(event) for event in some]
        elif verbose:
            lines = [line for event in some for line in history.as_text(event)]
        else:
            lines = [history.as_line(event) for event in some]
        if not write_lines(lines):
            break
    for problem in shown.problems:
        if problem.torn:
            write_error(f"warning: {history.describe_problem(problem)}; the next event moves it aside")
    history.require_all(shown.problems, shown.comparison)
    return 0


def _report_no_ledger() -> None:
    write_error("the ledger is empty: nothing has been recorded in this repository")
