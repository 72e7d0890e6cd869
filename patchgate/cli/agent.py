"""`git patchgate agent reply`: an agent's raw reply, held against the reply protocol."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import directory_of, directory_option, open_here
from patchgate.cli.output import read_input, show, write
from patchgate.errors import UsageError

if TYPE_CHECKING:
    from patchgate.patches.replies import JudgedReply


@click.group("agent", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Hold what an agent answers against what it may ask for."""


@command.command("reply", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", required=False, metavar="FILE")
@click.option("--describe", is_flag=True, help="Print the actions and their parameters, for a prompt.")
@click.option("--base", metavar="REV", help="Lay the patch of a repair on REV, merge the result.")
@click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")
@directory_option
@click.pass_context
def reply(
    context: click.Context,
    file: str | None,
    describe: bool,
    base: str | None,
    form: str,
    directory: str | None,
) -> int:
    """Judge the raw reply in FILE (- is standard input), and the patch in it; nothing is applied.

    Exits 0 where the reply holds and the gate accepts what it proposes, 1 where either refuses.
    """
    if describe:
        if file is not None or base is not None:
            raise UsageError("--describe takes neither FILE nor --base", "leave them out")
        _describe(form)
        return 0
    if file is None:
        raise UsageError("no reply is named", "name a file, or - for standard input; or --describe")
    from patchgate.patches.replies import check_reply

    raw = read_input(file, directory_of(context, directory))
    judged = check_reply(raw, lambda: open_here(context, directory), base=base, now=time.time())
    if form == "json":
        import json

        from patchgate.patches.replies import reply_document

        write(json.dumps(reply_document(judged)) + "\n")
    else:
        _tell(judged)
    return judged.verdict.exit_code


def _describe(form: str) -> None:
    from patchgate.patches.reply import describe, table

    if form == "json":
        import json

        write(json.dumps(table(), indent=2) + "\n")
    else:
        write(describe())


def _tell(judged: JudgedReply) -> None:
    """Write the findings of the protocol, or the report on what is proposed; the verdict comes last."""
    from patchgate.report import wording

    for note in judged.reading.notes:
        write(f"note: {wording.safe(note)}\n")
    for finding in judged.refusals:
        write(f"{finding.level.value}[{finding.rule}]: {wording.safe(finding.message)}\n")
        write(f"help: {wording.safe(wording.hint_of(finding) or '')}\n\n")
    if judged.refusals:
        write(f"rejected: {wording.count_levels(judged.refusals)} in the reply\n")
    elif judged.report is None:
        write(f"accepted: {judged.reading.action}\n")
    else:
        if judged.report.verdict == "accepted":
            write("note: nothing is applied; git patchgate apply does that\n")
        show(judged.report, "full", "auto", verbose=False, quiet=False)
