"""`git patchgate apply`, `agent reply`: what an agent proposes; also `attempts` and `recover`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import (
    confirm,
    directory_of,
    document_options,
    in_repository,
    open_here,
    open_to_write,
    refuse_agents,
    report_options,
    require_terminal,
    with_config_warnings,
)
from patchgate.cli.output import (
    Progress,
    cache_folder,
    read_input,
    show,
    warn,
    write,
    write_error,
    write_lines,
)
from patchgate.errors import UsageError

if TYPE_CHECKING:
    from patchgate.patches.check_reply import ReplyVerdict


@click.command("apply")
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
def apply_command(
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
    here = directory_of(context)
    raw = read_input(file or edits or "-", here)
    repository = open_to_write(context)
    from patchgate.apply.apply import apply
    from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
    from patchgate.check.policy_lookup import trusted_options

    request = ApplyRequest(
        raw,
        trusted_options(repository),
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
    with Progress(quiet=quiet) as progress:
        place = ApplyEnvironment(os.environ, cache_folder(), progress.report)
        report = apply(repository, request, place)
    show(with_config_warnings(report, repository, form), form, color, verbose=verbose, quiet=quiet)
    return report.verdict.exit_code


@click.group("agent")
def agent_command() -> None:
    """Hold what an agent answers against what it may ask for."""


@agent_command.command("reply")
@click.argument("file", required=False, metavar="FILE")
@click.option("--describe", is_flag=True, help="Print the actions and their parameters, for a prompt.")
@click.option("--base", metavar="REV", help="Lay the patch of a repair on REV, merge the result.")
@document_options
def judge_reply(
    context: click.Context,
    file: str | None,
    describe: bool,
    base: str | None,
    form: str,
) -> int:
    """Judge the raw reply in FILE (- is standard input), and the patch in it; nothing is applied.

    Exits 0 where the reply holds and the gate accepts what it proposes, 1 where either refuses.
    """
    if describe:
        if file is not None or base is not None:
            raise UsageError("--describe takes neither FILE nor --base", "leave them out")
        _describe_actions(form)
        return 0
    if file is None:
        raise UsageError("no reply is named", "name a file, or - for standard input; or --describe")
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


_form_option = click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")


@click.group("attempts")
def attempts_command() -> None:
    """Show what apply tried, and where its evidence lies."""


@attempts_command.command("list")
@click.option("-n", "--max-count", "most", metavar="N", type=click.IntRange(0), help="Show the last N only.")
@document_options
def list_attempts(context: click.Context, most: int | None, form: str) -> int:
    """List the attempts, the newest first: id, time, what became of it, the rules that refused it.

    interrupted: it was killed before its verdict was on record; running: it goes on.
    """
    repository = open_here(context)
    from patchgate.apply.attempt_list import list_attempts, list_text

    found = list_attempts(repository)[:most]
    if form == "json":
        from patchgate.apply.attempt_list import list_json

        write(list_json(found))
        return 0
    if not found and most is None:
        write_error("there is no attempt: nothing was applied in this repository")
    write_lines(list_text(found))
    return 0


@attempts_command.command("show")
@click.argument("attempt", metavar="ID")
@document_options
def show_attempt(context: click.Context, attempt: str, form: str) -> int:
    """Show one attempt: its verdict, rules, files and chain, its evidence, the ends of its logs.

    ID is an attempt's id, or a beginning that only one has.
    """
    repository = open_here(context)
    from patchgate.apply.attempt_list import list_attempts, resolve_attempt, show_text

    found = resolve_attempt(list_attempts(repository), attempt)
    if form == "json":
        from patchgate.apply.attempt_list import show_json

        write(show_json(repository, found))
    else:
        write_lines(show_text(repository, found))
    return 0


@attempts_command.command("prune")
@click.option("--keep", metavar="N", type=click.IntRange(0), help="Keep the evidence of the last N (100).")
@click.option("--older-than", "age", metavar="AGE", help="Remove what is older, like 30d, 12h or 2w.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@in_repository
def prune_attempts(context: click.Context, keep: int | None, age: str | None, dry_run: bool) -> int:
    """Remove the evidence of old attempts. The ledger keeps its events; a --run-dir is never touched."""
    if keep is not None and age is not None:
        raise UsageError("prune takes --keep or --older-than, not both", "leave one of them out")
    repository = (open_here if dry_run else open_to_write)(context)
    from patchgate.apply.attempt_list import prune, render_pruned, seconds_of

    older_than = None if age is None else seconds_of(age)
    pruned = prune(repository, keep=keep, older_than=older_than, now=time.time(), dry_run=dry_run)
    warn(pruned.warnings)
    write_lines([*pruned.removed, render_pruned(pruned, dry_run=dry_run)])
    return 0


@attempts_command.command("reset")
@click.argument("attempt", required=False, metavar="[ID]")
@click.option("--reason", metavar="TEXT", help="Why another try will go better; others read it.")
@in_repository
def reset_attempts(context: click.Context, attempt: str | None, reason: str | None) -> int:
    """Let the retries of a chain begin again, with a reason that stays on record. For people only.

    ID is any attempt of the chain; without it, the chain of the attempt that was refused last.
    """
    from patchgate.check.message import check_reason

    example = 'say what is different now: --reason "the plan now names the file to change"'
    reason = check_reason(reason or "", "a reset", example)
    refuse_agents("a reset")
    require_terminal("a reset needs a person at a terminal", "run it in a terminal")
    repository = open_to_write(context)
    from patchgate.apply.retries import chain_to_reset, refused_in, reset
    from patchgate.approvals.approvals import who_approves
    from patchgate.report.wording import count, safe

    chain = chain_to_reset(repository, attempt)
    by = who_approves(repository, os.environ)
    refused = refused_in(repository, chain)
    write_error(f"chain {chain}: {count(len(refused), 'refusal')}")
    for each in refused:
        write_error(f"  {each.attempt} {safe(each.at, 40)}: {safe(', '.join(each.rules))}")
    write_error(f"reason: {safe(reason)}")
    write_error(f"by: {by}")
    if not confirm("Let its retries begin again?"):
        write_error("nothing was reset: the answer was not yes")
        return 1
    warning = reset(repository, chain, reason, by)
    if warning:
        write_error(f"warning: {warning}")
    last = refused[-1].attempt
    write(f"the retries of {chain} begin again: git patchgate apply - --retry-of {last}\n")
    return 0


@click.command("recover")
@click.option(
    "--keep",
    is_flag=True,
    help="Leave files that were changed since as they are, keep what stood there before, undo the rest.",
)
@in_repository
def recover_command(context: click.Context, keep: bool) -> int:
    """Finish or undo what an apply has left that was killed, and remove what it used.

    An apply that had not landed is undone: every file is as it was. One that had landed is finished. A file
    that was changed since is never overwritten: then nothing is done, and every file is named.
    """
    repository = open_here(context)
    from patchgate.apply.recovery import recover_pending

    finished = recover_pending(repository, keep=keep)
    warn(finished.warnings)
    write_lines(finished.lines or ("nothing was left to recover",))
    return 0
