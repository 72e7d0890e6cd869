"""`git patchgate analyze`: what do the analyses of the policy tell of a tree?"""

from __future__ import annotations

import os
import time

import click

from patchgate.cli.options import cache_folder, directory_option, open_here
from patchgate.cli.output import complain, write
from patchgate.cli.progress import Progress
from patchgate.errors import UsageError


@click.command("analyze", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--tree",
    "what",
    metavar="REV|staged|worktree",
    help="What is analysed; the staged tree where nothing is said.",
)
@click.option("--staged", "--cached", is_flag=True, help="Analyse the staged tree; this is the default.")
@click.option("--worktree", is_flag=True, help="Analyse the working tree, untracked files included.")
@click.option("--check-stable", is_flag=True, help="Run each analysis twice, and tell which say two things.")
@click.option("--format", "form", type=click.Choice(["full", "text", "json", "sarif"]), default="full")
@click.option("-q", "--quiet", is_flag=True, help="Tell no progress.")
@directory_option
@click.pass_context
def command(
    context: click.Context,
    what: str | None,
    staged: bool,
    worktree: bool,
    check_stable: bool,
    form: str,
    quiet: bool,
    directory: str | None,
) -> int:
    """Run the analyses of the policy of HEAD.

    Each runs in a scratch tree, and what it tells of a tree is kept: the same is never run twice. Exit code
    0 with findings and without; 3 where an analysis could not be evaluated.
    """
    if sum((what is not None, staged, worktree)) > 1:
        raise UsageError("--tree, --staged and --worktree exclude each other", "name one of them")
    what = what or ("worktree" if worktree else "staged")
    repository = open_here(context, directory)
    from patchgate.verify.analyses import Around
    from patchgate.verify.analyze import analyze

    progress = Progress(quiet=quiet)
    try:
        around = Around(os.environ, cache_folder(os.environ), progress.tell, time.time())
        done = analyze(repository, what, around, check_stable=check_stable)
    finally:
        progress.end()
    if form in {"json", "sarif"}:
        from patchgate.verify.analysis_document import render_json, render_sarif

        write(render_json(done) if form == "json" else render_sarif(done))
    else:
        from patchgate.verify.analysis_document import text, warnings

        for warning in warnings(done):
            complain(f"warning: {warning}")
        write(text(done))
    return done.exit_code
