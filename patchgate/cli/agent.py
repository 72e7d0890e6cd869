"""`git patchgate agent`: what is for agents and the people who run them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import directory_of, document_options, open_here
from patchgate.cli.output import read_input, show, write
from patchgate.errors import UsageError

if TYPE_CHECKING:
    from patchgate.patches.check_reply import ReplyVerdict


@click.group("agent")
def agent_command() -> None:
    """For agents: check their replies."""


@agent_command.command("reply")
@click.argument("file", required=False, metavar="FILE")
@click.option("--describe", is_flag=True, help="Print the actions and their parameters, for a prompt.")
@click.option("--base", metavar="REV", help="Apply the patch of a repair to REV, then merge.")
@document_options
def judge_reply(
    context: click.Context,
    file: str | None,
    describe: bool,
    base: str | None,
    form: str,
) -> int:
    """Check an agent's reply and the patch in it.

    FILE is the raw reply; - is standard input. Nothing is applied. Exits with 0 if the reply follows the
    protocol and its patch is accepted, with 1 if not.
    """
    if describe:
        if file is not None or base is not None:
            raise UsageError("--describe takes neither FILE nor --base", "remove them")
        _describe_actions(form)
        return 0
    if file is None:
        raise UsageError(
            "agent reply needs a reply", "give a file, or - for standard input; or use --describe"
        )
    from patchgate.patches.check_reply import check_reply

    raw = read_input(file, directory_of(context))
    judged = check_reply(raw, lambda: open_here(context), base=base, now=time.time())
    if form == "json":
        import json

        from patchgate.patches.check_reply import reply_document

        write(json.dumps(reply_document(judged)) + "\n")
    else:
        _print_reply(judged)
    return judged.verdict.exit_code


def _describe_actions(form: str) -> None:
    from patchgate.patches.reply_actions import describe, table

    if form == "json":
        import json

        write(json.dumps(table(), indent=2) + "\n")
    else:
        write(describe())


def _print_reply(judged: ReplyVerdict) -> None:
    """Print the findings of the protocol, or the report on the proposed change; the verdict comes last."""
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
            write("note: nothing was applied; git patchgate apply does that\n")
        show(judged.report, "full", "auto", verbose=False, quiet=False)
