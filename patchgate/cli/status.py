"""`git patchgate status`: one page of where a repository stands."""

from __future__ import annotations

import click

from patchgate.cli.options import document_options, open_here
from patchgate.cli.output import write, write_lines


@click.command("status")
@document_options
def status_command(context: click.Context, form: str) -> int:
    """Show runs, drift, intents and open chains of attempts, and what to do next."""
    repository = open_here(context)
    from patchgate.runs.status import repository_status, status_json, status_text

    status = repository_status(repository)
    if form == "json":
        write(status_json(status))
    else:
        write_lines(status_text(status))
    return 0
