"""`git patchgate verify`: did it get worse, and was it me?"""

from __future__ import annotations

import os
import sys
import time

import click

from patchgate.cli.options import cache_folder, directory_option, open_here
from patchgate.cli.output import wants_color, write
from patchgate.cli.progress import Progress

_TEXTS = frozenset({"full", "text"})


@click.command("verify", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("revision", required=False, metavar="[REV]")
@click.option(
    "--intent", metavar="ID", help="Hold it against this intent; otherwise against this worktree's."
)
@click.option("--base", metavar="REV", help="Compare with REV, without any intent.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress, and nothing for what is accepted.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.option("--format", "form", type=click.Choice(["full", "text", "json", "sarif"]), default="full")
@directory_option
@click.pass_context
def command(
    context: click.Context,
    revision: str | None,
    intent: str | None,
    base: str | None,
    quiet: bool,
    color: str,
    form: str,
    directory: str | None,
) -> int:
    """Compare the analyses of two trees, and tell whose regression it is.

    What is staged, or REV, against the tree that the intent of this worktree began on. Without an intent:
    against --base, or else against HEAD (REV: its first parent).
    """
    repository = open_here(context, directory)
    from patchgate.verify.analyses import Around
    from patchgate.verify.intent import Asked
    from patchgate.verify.verify import verify

    progress = Progress(quiet=quiet)
    try:
        around = Around(os.environ, cache_folder(os.environ), progress.tell, time.time())
        found = verify(repository, Asked(revision, intent, base), around)
    finally:
        progress.end()
    if not (quiet and form in _TEXTS and found.status.verdict == "accepted"):
        if form == "json":
            from patchgate.verify.document import render as as_json

            write(as_json(found))
        elif form == "sarif":
            from patchgate.verify.sarif import render as as_sarif

            write(as_sarif(found))
        else:
            from patchgate.verify.verification_text import render as as_text

            write(as_text(found, color=wants_color(color, os.environ, sys.stdout.isatty())))
    return found.status.verdict.exit_code
