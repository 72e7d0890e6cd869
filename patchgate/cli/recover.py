"""`git patchgate recover`: finish or undo what a killed apply has left."""

from __future__ import annotations

import click

from patchgate.cli.options import directory_option, open_here
from patchgate.cli.output import complain, write


@click.command("recover", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--keep",
    is_flag=True,
    help="Leave files that were changed since as they are, keep what stood there before, undo the rest.",
)
@directory_option
@click.pass_context
def command(context: click.Context, keep: bool, directory: str | None) -> int:
    """Finish or undo what an apply has left that was killed, and remove what it used.

    An apply that had not landed is undone: every file is as it was. One that had landed is finished. A file
    that was changed since is never overwritten: then nothing is done, and every file is named.
    """
    repository = open_here(context, directory)
    from patchgate.apply.left import finish_left

    finished = finish_left(repository, keep=keep)
    for warning in finished.warnings:
        complain(f"warning: {warning}")
    write("".join(f"{line}\n" for line in finished.lines or ("nothing was left to recover",)))
    return 0
