"""`git patchgate baseline capture`: record a component's files, if its tests pass on them."""

from __future__ import annotations

import os
import time

import click

from patchgate.cli.options import cache_folder, directory_option, open_to_write
from patchgate.cli.output import complain, write
from patchgate.cli.progress import Progress


@click.command("capture", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--worktree", is_flag=True, help="Record the working tree instead of the index.")
@click.option(
    "--reverify",
    is_flag=True,
    help="Run the tests of an unchanged component again, and record that they passed.",
)
@click.option(
    "--commit-note", is_flag=True, help="With --reverify: keep it in refs/notes/patchgate-verified too."
)
@click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")
@click.option("-q", "--quiet", is_flag=True, help="Tell no progress.")
@directory_option
@click.pass_context
def capture_command(
    context: click.Context,
    ids: tuple[str, ...],
    worktree: bool,
    reverify: bool,
    commit_note: bool,
    form: str,
    quiet: bool,
    directory: str | None,
) -> int:
    """Record components whose tests pass.

    What is recorded is exactly what the tests ran on: a scratch tree of the index. If the tests of any
    component fail, are empty or cannot be run, nothing is written. The baselines are files to commit, alone
    or with what they record.
    """
    repository = open_to_write(context, directory)
    from patchgate.components.capture import capture
    from patchgate.components.capture_run import Request, Surroundings
    from patchgate.components.capture_telling import document, text

    request = Request(ids, worktree, reverify, commit_note)
    progress = Progress(quiet=quiet)
    try:
        around = Surroundings(os.environ, cache_folder(os.environ), time.time(), progress.tell)
        done = capture(repository, request, around)
    finally:
        progress.end()
    if form == "json":
        write(document(done))
    else:
        for warning in done.warnings:
            complain(f"warning: {warning}")
        write("".join(f"{line}\n" for line in text(done)))
    return done.exit_code
