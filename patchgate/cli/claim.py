"""`git patchgate claim`: is the reviewer right? Checks what a verifier claims against the files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from patchgate.cli.options import directory_of, in_repository, open_here
from patchgate.cli.output import read_input, wants_color, warn, write, write_error
from patchgate.errors import UsageError

if TYPE_CHECKING:
    from patchgate.git.repository import Repository
    from patchgate.placeholders.claims.claim import Adjudication, Claim

_FORMATS = click.Choice(["full", "text", "json"])
_STATS = "stats"


class _ClaimGroup(click.Group):
    """`claim stats` is a subcommand; anything else after `claim` is an argument of a claim."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Choose between `claim` and `claim stats`."""
        place = _place_of_stats(args)
        if place is None:
            return adjudicate_claim.make_context(info_name, args, parent, **extra)
        ordered = [_STATS, *args[:place], *args[place + 1 :]]
        return super().make_context(info_name, ordered, parent, **extra)


def _place_of_stats(args: Sequence[str]) -> int | None:
    """Find `stats` in the place of FILE, also after options; not as the value of an option."""
    for place, each in enumerate(args):
        if each == _STATS and "--" not in args[:place]:
            parser = adjudicate_claim.make_parser(
                click.Context(adjudicate_claim, help_option_names=["-h", "--help"])
            )
            try:
                named, rest, _ = parser.parse_args([*args[:place]])
            except click.UsageError:
                # An option that lacks its value, or an unknown one.
                continue
            return None if rest or isinstance(named.get("file"), str) else place
    return None


class _AdjudicateCommand(click.Command):
    """A command whose help also lists `claim stats`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the subcommand."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(_STATS, "Count the outcomes of claims. (For a file of this name: ./stats)")])


@click.group("claim", cls=_ClaimGroup)
def claim_command() -> None:
    """Check what a verifier claims against the files, and count how often that was wrong."""


# Without a name: this is what `claim` without a subcommand does.
@claim_command.command("", cls=_AdjudicateCommand)
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("--reason", "reason_code", metavar="CODE", help="The verdict of the verifier, instead of FILE.")
@click.option(
    "--deliverable",
    "deliverables",
    metavar="FILE",
    multiple=True,
    help="A file that the work had to produce.",
)
@click.option("--changed", metavar="FILE", multiple=True, help="A file that this attempt changed.")
@click.option(
    "--prior", metavar="FILE", multiple=True, help="A file that an earlier attempt changed, and that passed."
)
@click.option("--evidence", metavar="FILE", multiple=True, help="A text that describes the work.")
@click.option("--subject", metavar="NAME", help="The name of the work, the same for all its attempts.")
@click.option("--feedback", metavar="TEXT", help="The words of the verifier.")
@click.option("--tree", metavar="REV", help="Scan the files of REV (default: the index).")
@click.option("--worktree", is_flag=True, help="Scan the files of the working tree.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing if the verdict was a pass.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.option(
    "--format",
    "form",
    type=_FORMATS,
    default="full",
    help="json: the verdict of the verifier, amended. text is the same as full.",
)
@in_repository
def adjudicate_claim(
    context: click.Context,
    /,
    file: str | None,
    tree: str | None,
    worktree: bool,
    quiet: bool,
    color: str,
    form: str,
    **given: Any,
) -> int:
    """Check a reviewer's claim that a placeholder remains.

    FILE is the verdict as JSON (- is standard input); or give it by --reason and --deliverable. A bounded
    scan of the files decides. Exits with 1 if the claim is right, with 3 if the files contradict it, which
    makes it inconclusive, and with 0 if the verdict was a pass.
    """
    _require_one_claim(context, file, given)
    if tree is not None and worktree:
        raise UsageError("--tree and --worktree cannot be combined", "remove one of them")
    repository = open_here(context)
    claim = _claim(repository, file, directory_of(context), given)
    from patchgate.placeholders.claims.adjudicate import adjudicate
    from patchgate.placeholders.claims.claim_source import SourceOptions

    found = adjudicate(repository, claim, SourceOptions(tree, worktree), time.time())
    warn(found.warnings)
    _print(found, repository.config_warnings, form, color, quiet=quiet)
    return found.outcome.exit_code


def _require_one_claim(context: click.Context, file: str | None, given: dict[str, Any]) -> None:
    """Require a verdict, from a file or from options, not from both.

    Raises:
        UsageError: there is none, or there are two.
    """
    named = [each.opts[0] for each in context.command.params if given.get(str(each.name)) not in {None, ()}]
    if file is not None and named:
        raise UsageError(
            f"a verdict comes from a file or from options, not from both: {named[0]}", "remove it"
        )
    if file is None and given["reason_code"] is None:
        raise UsageError(
            "claim needs a verdict",
            "give a file, - for standard input, or --reason CODE --deliverable FILE",
        )


def _claim(repository: Repository, file: str | None, folder: str, given: dict[str, Any]) -> Claim:
    from patchgate.placeholders.claims.claim_reader import MOST_BYTES, claim_of, read_claim

    if file is None:
        named = {name: value for name, value in given.items() if value is not None}
        return claim_of(**named, prefix=repository.prefix)
    return read_claim(read_input(file, folder, MOST_BYTES), file)


def _print(found: Adjudication, doubts: Sequence[str], form: str, color: str, *, quiet: bool) -> None:
    if form == "json":
        from patchgate.placeholders.claims.claim_json import render as as_json

        write(as_json(found, doubts))
    elif not (quiet and found.outcome.exit_code == 0):
        from patchgate.placeholders.claims.claim_wording import render as as_text

        write(as_text(found, color=wants_color(color)))


@claim_command.command(_STATS)
@click.option(
    "--since", metavar="WHEN", help="Count from WHEN on: 2026-01-31, 2026-01-31T12:00:00Z, '2 weeks ago'."
)
@click.option("--format", "form", type=_FORMATS, default="full", help="text is the same as full.")
@in_repository
def claim_stats(context: click.Context, since: str | None, form: str) -> int:
    """Count the outcomes of claims, and how often a contradicted one was true.

    It was true if a placeholder was found later in the same subject. The numbers come from the ledger of this
    repository.
    """
    repository = open_here(context)
    from patchgate.ledger.history import describe_problem, require_all
    from patchgate.ledger.timestamps import parse_date
    from patchgate.placeholders.claims.claim_stats import as_json, as_text
    from patchgate.placeholders.claims.claim_stats import claim_stats as counted

    stats = counted(repository, None if since is None else parse_date(since, time.time()))
    if not stats.history.exists and stats.history.comparison.head is None:
        write_error("the ledger is empty: nothing has been recorded in this repository")
    write(as_json(stats) if form == "json" else "".join(f"{line}\n" for line in as_text(stats)))
    for problem in stats.history.problems:
        if problem.torn:
            write_error(f"warning: {describe_problem(problem)}; the next event moves it aside")
    require_all(stats.history.problems, stats.history.comparison)
    return 0
