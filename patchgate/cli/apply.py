"""`git patchgate apply`: the door for an agent's patch."""

from __future__ import annotations

import os

import click

from patchgate.cli.options import (
    cache_folder,
    directory_of,
    open_to_write,
    report_options,
    with_doubts,
)
from patchgate.cli.output import read_input, show
from patchgate.cli.progress import Progress
from patchgate.errors import UsageError


@click.command("apply", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", required=False)
@click.option("--edits", metavar="FILE", help="Apply structured edits (JSON) instead of a patch.")
@click.option("--dry-run", is_flag=True, help="Judge and try it, and write nothing to the working tree.")
@click.option("--index", is_flag=True, help="Stage the result too; the index must hold the files as on disk.")
@click.option(
    "--base",
    metavar="REV",
    help="The patch was made for REV, which HEAD contains: lay it there, merge the result.",
)
@click.option(
    "--only", "only", metavar="PATH", multiple=True, help="Take from the patch what is at or below PATH."
)
@click.option("--retry-of", metavar="ATTEMPT", help="This is the next try of a refused attempt.")
@click.option(
    "--if-applied",
    type=click.Choice(["error", "ok"]),
    default="error",
    help="ok: exit 0 where the patch was applied before and is still there.",
)
@click.option("--run-dir", metavar="DIR", help="Keep this attempt's evidence in DIR.")
@click.option("--keep-scratch", is_flag=True, help="Keep the scratch tree, and name it.")
@report_options
@click.pass_context
def command(
    context: click.Context,
    file: str | None,
    edits: str | None,
    dry_run: bool,
    index: bool,
    base: str | None,
    only: tuple[str, ...],
    retry_of: str | None,
    if_applied: str,
    run_dir: str | None,
    keep_scratch: bool,
    directory: str | None,
    form: str,
    color: str,
    verbose: bool,
    quiet: bool,
) -> int:
    """Apply a patch: judged, tried by the policy's commands in a scratch tree, written whole or not at all.

    FILE is a unified diff as git writes it; - is standard input. Each attempt leaves its evidence, and its
    id; after a refusal the whole mended patch comes again with --retry-of.
    """
    if (file is None) == (edits is None):
        raise UsageError("apply takes one patch", "name a file, - for standard input, or --edits FILE")
    if edits is not None and only:
        raise UsageError("--only narrows a patch, and edits name one file", "leave it out")
    here = directory_of(context, directory)
    raw = read_input(file or edits or "-", here)
    repository = open_to_write(context, directory)
    from patchgate.apply.apply import apply
    from patchgate.apply.recording import Place, Request
    from patchgate.check.terms import trusted

    request = Request(
        raw,
        trusted(repository),
        kind="edits" if edits is not None else "patch",
        base=base,
        only=only,
        retry_of=retry_of,
        run_dir=None if run_dir is None else os.path.join(here, run_dir),
        is_dry_run=dry_run,
        with_index=index,
        is_fine_if_applied=if_applied == "ok",
        keeps_scratch=keep_scratch,
    )
    progress = Progress(quiet=quiet)
    try:
        place = Place(os.environ, cache_folder(os.environ), progress.tell)
        report = apply(repository, request, place)
    finally:
        progress.end()
    show(with_doubts(report, repository, form), form, color, verbose=verbose, quiet=quiet)
    return report.verdict.exit_code
