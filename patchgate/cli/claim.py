"""`git patchgate claim`: is the reviewer right? What a verifier says is held against the files."""

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
    """`claim stats` is a command of its own; whatever else follows `claim` are the arguments of a claim."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Begin with the command that is meant."""
        place = _place_of_stats(args)
        if place is None:
            return adjudicate_claim.make_context(info_name, args, parent, **extra)
        ordered = [_STATS, *args[:place], *args[place + 1 :]]
        return super().make_context(info_name, ordered, parent, **extra)


def _place_of_stats(args: Sequence[str]) -> int | None:
    """Find `stats` where a file would stand, also behind options; not where it is an option's value."""
    for place, each in enumerate(args):
        if each == _STATS and "--" not in args[:place]:
            parser = adjudicate_claim.make_parser(
                click.Context(adjudicate_claim, help_option_names=["-h", "--help"])
            )
            try:
                named, rest, _ = parser.parse_args([*args[:place]])
            except click.UsageError:
                # An option that waits for its value, or one that there is not.
                continue
            return None if rest or isinstance(named.get("file"), str) else place
    return None


class _AdjudicateCommand(click.Command):
    """Its help lists what else `claim` does."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the command beside it."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(_STATS, "Count what became of claims. (A file of this name is ./stats.)")])


@click.group("claim", cls=_ClaimGroup)
def claim_command() -> None:
    """Hold what a verifier says against the files, and tell how often that went wrong."""


# Without a name: it is what `claim` itself does.
@claim_command.command("", cls=_AdjudicateCommand)
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("--reason", "reason_code", metavar="CODE", help="What the verifier says, instead of FILE.")
@click.option("--deliverable", "deliverables", metavar="FILE", multiple=True, help="What was to be made.")
@click.option("--changed", metavar="FILE", multiple=True, help="A file that this attempt changed.")
@click.option("--prior", metavar="FILE", multiple=True, help="One that an earlier, passed attempt changed.")
@click.option("--evidence", metavar="FILE", multiple=True, help="A text that tells of the work.")
@click.option("--subject", metavar="NAME", help="Which work it is; earlier attempts of it are known by it.")
@click.option("--feedback", metavar="TEXT", help="What the verifier says in words.")
@click.option("--tree", metavar="REV", help="Scan the files of REV; otherwise those of the index.")
@click.option("--worktree", is_flag=True, help="Scan the files of the working tree.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing for a verdict that had passed.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.option(
    "--format",
    "form",
    type=_FORMATS,
    default="full",
    help="json: the verifier's verdict, amended; text is another word for full.",
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
    """Adjudicate a verifier's verdict: does a placeholder remain, as it says?

    FILE holds the verdict as JSON (- is standard input); --reason and --deliverable say the same in options.
    A bounded scan decides. Exit code 1: the verdict stands; 3: contradicted, so inconclusive; 0: it had
    passed.
    """
    _require_one_claim(context, file, given)
    if tree is not None and worktree:
        raise UsageError("--tree and --worktree name two trees", "leave one of them out")
    repository = open_here(context)
    claim = _claim(repository, file, directory_of(context), given)
    from patchgate.placeholders.claims.adjudicate import adjudicate
    from patchgate.placeholders.claims.claim_source import SourceOptions

    found = adjudicate(repository, claim, SourceOptions(tree, worktree), time.time())
    warn(found.warnings)
    _print(found, repository.config_warnings, form, color, quiet=quiet)
    return found.outcome.exit_code


def _require_one_claim(context: click.Context, file: str | None, given: dict[str, Any]) -> None:
    """Take a verdict from a file or from options, not from both.

    Raises:
        UsageError: there is none, or there are two.
    """
    named = [each.opts[0] for each in context.command.params if given.get(str(each.name)) not in {None, ()}]
    if file is not None and named:
        raise UsageError(
            f"a verdict comes from a file or from options, and {named[0]} is given too", "leave it out"
        )
    if file is None and given["reason_code"] is None:
        raise UsageError(
            "there is no verdict to adjudicate",
            "name a file, - for standard input, or say it by --reason CODE --deliverable FILE",
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
    "--since", metavar="WHEN", help="Only from then on: 2026-01-31, 2026-01-31T12:00:00Z, '2 weeks ago'."
)
@click.option("--format", "form", type=_FORMATS, default="full", help="text is another word for full.")
@in_repository
def claim_stats(context: click.Context, since: str | None, form: str) -> int:
    """Count what became of claims, and how often one that was contradicted turned out to be true.

    That is where a placeholder was found later in the same subject. From the ledger of this repository.
    """
    repository = open_here(context)
    from patchgate.ledger.history import describe_problem, require_all
    from patchgate.ledger.timestamps import parse_date
    from patchgate.placeholders.claims.claim_stats import as_json, as_text
    from patchgate.placeholders.claims.claim_stats import claim_stats as counted

    stats = counted(repository, None if since is None else parse_date(since, time.time()))
    if not stats.history.exists and stats.history.comparison.head is None:
        write_error("there is no ledger: nothing has been recorded in this repository")
    write(as_json(stats) if form == "json" else "".join(f"{line}\n" for line in as_text(stats)))
    for problem in stats.history.problems:
        if problem.torn:
            write_error(f"warning: {describe_problem(problem)}; the next event sets it aside")
    require_all(stats.history.problems, stats.history.comparison)
    return 0
