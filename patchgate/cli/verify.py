"""`git patchgate analyze` and `verify`: run the analyses on a tree, or compare two trees by them."""

from __future__ import annotations

import click

from patchgate.cli.options import in_repository, open_here
from patchgate.cli.output import wants_color, warn, write
from patchgate.cli.progress import Progress, analysis_environment
from patchgate.errors import UsageError


@click.command("analyze")
@click.option(
    "--tree",
    "what",
    metavar="REV|staged|worktree",
    help="The tree to analyse (default: staged).",
)
@click.option("--staged", "--cached", is_flag=True, help="Analyse the staged tree (the default).")
@click.option("--worktree", is_flag=True, help="Analyse the working tree, untracked files included.")
@click.option(
    "--check-stable", is_flag=True, help="Run each analysis twice, and report those whose output differs."
)
@click.option("--format", "form", type=click.Choice(["full", "text", "json", "sarif"]), default="full")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@in_repository
def analyze_command(
    context: click.Context,
    what: str | None,
    staged: bool,
    worktree: bool,
    check_stable: bool,
    form: str,
    quiet: bool,
) -> int:
    """Run the analyses of the policy on a tree.

    The policy is that of HEAD. Each analysis runs in a scratch tree, and its result is cached. Exits with 0,
    with or without findings, and with 3 if an analysis could not be evaluated.
    """
    if sum((what is not None, staged, worktree)) > 1:
        raise UsageError("--tree, --staged and --worktree cannot be combined", "use one of them")
    what = what or ("worktree" if worktree else "staged")
    repository = open_here(context)
    from patchgate.verify.analysis_output import (
        analysis_json,
        analysis_sarif,
        analysis_text,
        analysis_warnings,
    )
    from patchgate.verify.analyze import analyze

    with Progress(quiet=quiet) as progress:
        done = analyze(repository, what, analysis_environment(progress), check_stable=check_stable)
    if form in {"json", "sarif"}:
        write(analysis_json(done) if form == "json" else analysis_sarif(done))
    else:
        warn(analysis_warnings(done))
        write(analysis_text(done))
    return done.exit_code


_TEXTS = frozenset({"full", "text"})


@click.command("verify")
@click.argument("revision", required=False, metavar="[REV]")
@click.option(
    "--intent", metavar="ID", help="Compare with the start of this intent (default: of this worktree's)."
)
@click.option("--base", metavar="REV", help="Compare with REV, and use no intent.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress, and nothing if accepted.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.option("--format", "form", type=click.Choice(["full", "text", "json", "sarif"]), default="full")
@in_repository
def verify_command(
    context: click.Context,
    revision: str | None,
    intent: str | None,
    base: str | None,
    quiet: bool,
    color: str,
    form: str,
) -> int:
    """Compare the analyses of two trees: did quality drop, and did this change cause it?

    Compares the staged tree, or REV, with the tree on which the intent of this worktree began. Without an
    intent: with --base, or else with HEAD (for REV: with its first parent).
    """
    repository = open_here(context)
    from patchgate.verify.analyze import VerifyOptions
    from patchgate.verify.verify import verify

    with Progress(quiet=quiet) as progress:
        found = verify(repository, VerifyOptions(revision, intent, base), analysis_environment(progress))
    if not (quiet and form in _TEXTS and found.status.verdict == "accepted"):
        if form == "json":
            from patchgate.verify.verification_json import render as as_json

            write(as_json(found))
        elif form == "sarif":
            from patchgate.verify.verification_sarif import render as as_sarif

            write(as_sarif(found))
        else:
            from patchgate.verify.verification_text import render as as_text

            write(as_text(found, color=wants_color(color)))
    return found.status.verdict.exit_code
