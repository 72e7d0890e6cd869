"""`git patchgate apply`, `attempts` and `recover`: a patch is applied whole or not at all; what was tried."""

from __future__ import annotations

import os
import time

import click

from patchgate.cli.options import (
    confirm,
    directory_of,
    document_options,
    in_repository,
    open_here,
    open_to_write,
    proposal_options,
    reading_of,
    refuse_agents,
    report_options,
    require_terminal,
    with_config_warnings,
)
from patchgate.cli.output import cache_folder, read_input, show, warn, write, write_error, write_lines
from patchgate.cli.progress import Progress
from patchgate.errors import UsageError
from patchgate.values import replace


@click.command("apply")
@click.argument("file", required=False)
@click.option("--edits", metavar="FILE", help="Apply structured edits (JSON) instead of a patch.")
@click.option(
    "--dry-run", is_flag=True, help="Check and test the patch, and write nothing to the working tree."
)
@click.option(
    "--index", is_flag=True, help="Stage the result too; index and working tree must agree on the files."
)
@click.option(
    "--base",
    metavar="REV",
    help="Apply the patch to REV, an ancestor of HEAD, and merge the result.",
)
@click.option(
    "--only", "only", metavar="PATH", multiple=True, help="Apply only the changes at or below PATH."
)
@click.option("--retry-of", metavar="ATTEMPT", help="Record this as the next try of a refused attempt.")
@click.option(
    "--if-applied",
    type=click.Choice(["error", "ok"]),
    default="error",
    help="ok: exit with 0 if the patch was applied before and is still there.",
)
@proposal_options
@click.option("--run-dir", metavar="DIR", help="Write the evidence of this attempt to DIR.")
@click.option("--keep-scratch", is_flag=True, help="Keep the scratch tree and print its path.")
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
    """Check a patch, test it in a scratch tree, and apply all of it or nothing.

    FILE is a unified diff as git writes it, or what --input names; - is standard input. The tests are the
    commands of the policy. Each attempt has an id and keeps its evidence. After a refusal, send the whole
    corrected patch again with --retry-of.
    """
    if (file is None) == (edits is None):
        raise UsageError("apply takes one patch", "give a file, - for standard input, or --edits FILE")
    if edits is not None and only:
        raise UsageError("--only needs a patch; edits name one file anyway", "remove --only")
    kind, repair = reading_of(context, file)
    here = directory_of(context)
    raw = read_input(file or edits or "-", here)
    repository = open_to_write(context)
    from patchgate.apply.apply import apply
    from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
    from patchgate.check.policy_lookup import trusted_options

    progress = Progress(quiet=quiet, counts="files")
    request = ApplyRequest(
        raw,
        replace(trusted_options(repository), counted=progress.count),
        kind=kind,
        repair=repair,
        base=base,
        only=only,
        retry_of=retry_of,
        run_dir=None if run_dir is None else os.path.join(here, run_dir),
        is_dry_run=dry_run,
        with_index=index,
        is_fine_if_applied=if_applied == "ok",
        keeps_scratch=keep_scratch,
    )
    with progress:
        place = ApplyEnvironment(os.environ, cache_folder(), progress.report)
        report = apply(repository, request, place)
    show(with_config_warnings(report, repository, form), form, color, verbose=verbose, quiet=quiet)
    return report.verdict.exit_code


_form_option = click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")


@click.group("attempts")
def attempts_command() -> None:
    """Show what apply tried, and where its evidence is."""


@attempts_command.command("list")
@click.option("-n", "--max-count", "most", metavar="N", type=click.IntRange(0), help="Show only the last N.")
@document_options
def list_attempts(context: click.Context, most: int | None, form: str) -> int:
    """List the attempts, newest first.

    Each with its id, its time, its outcome, and the rules that refused it. `interrupted` means that it was
    killed before its verdict was recorded, `running` that it has not ended yet.
    """
    repository = open_here(context)
    from patchgate.apply.attempt_list import list_attempts, list_text

    found = list_attempts(repository)[:most]
    if form == "json":
        from patchgate.apply.attempt_list import list_json

        write(list_json(found))
        return 0
    if not found and most is None:
        write_error("no attempts: apply has not run in this repository")
    write_lines(list_text(found))
    return 0


@attempts_command.command("show")
@click.argument("attempt", metavar="ID")
@document_options
def show_attempt(context: click.Context, attempt: str, form: str) -> int:
    """Show one attempt in full.

    Its verdict, rules, files, chain and evidence, and the ends of its logs. ID is the id of an attempt, or
    the beginning of one.
    """
    repository = open_here(context)
    from patchgate.apply.attempt_list import list_attempts, resolve_attempt, show_text

    found = resolve_attempt(list_attempts(repository), attempt)
    if form == "json":
        from patchgate.apply.attempt_list import show_json

        write(show_json(repository, found))
    else:
        write_lines(show_text(repository, found))
        if found.record is not None and found.record.run is not None:
            from patchgate.runs.provenance import provenance_of_attempt

            write_lines(f"  {line}" for line in provenance_of_attempt(repository, found.record))
    return 0


@attempts_command.command("prune")
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(0),
    help="Keep the evidence of the last N attempts (default 100).",
)
@click.option("--older-than", "age", metavar="AGE", help="Remove evidence older than AGE: 30d, 12h, 2w.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@in_repository
def prune_attempts(context: click.Context, keep: int | None, age: str | None, dry_run: bool) -> int:
    """Remove the evidence of old attempts.

    The ledger keeps its events. A folder given by --run-dir is never touched.
    """
    if keep is not None and age is not None:
        raise UsageError("prune takes --keep or --older-than, not both", "remove one of them")
    repository = (open_here if dry_run else open_to_write)(context)
    from patchgate.apply.attempt_list import prune, render_pruned, seconds_of

    older_than = None if age is None else seconds_of(age)
    pruned = prune(repository, keep=keep, older_than=older_than, now=time.time(), dry_run=dry_run)
    warn(pruned.warnings)
    write_lines([*pruned.removed, render_pruned(pruned, dry_run=dry_run)])
    return 0


@attempts_command.command("reset")
@click.argument("attempt", required=False, metavar="[ID]")
@click.option("--reason", metavar="TEXT", help="Why another try may succeed; it is recorded.")
@in_repository
def reset_attempts(context: click.Context, attempt: str | None, reason: str | None) -> int:
    """Allow more retries of a chain, with a reason.

    Only for maintainers. The reason is recorded. ID is any attempt of the chain; without ID, the chain of
    the last refused attempt.
    """
    from patchgate.check.message_rules import check_reason

    example = 'say what changed: --reason "the plan now names the file to change"'
    reason = check_reason(reason or "", "a reset", example)
    refuse_agents("a reset")
    require_terminal("a reset needs a terminal, to ask you", "run it in a terminal")
    repository = open_to_write(context)
    from patchgate.apply.retries import find_chain_to_reset, list_refusals, reset
    from patchgate.approvals.approvals import who_approves
    from patchgate.report.wording import count, safe

    chain = find_chain_to_reset(repository, attempt)
    by = who_approves(repository, os.environ)
    refused = list_refusals(repository, chain)
    write_error(f"chain {chain}: {count(len(refused), 'refusal')}")
    for each in refused:
        write_error(f"  {each.attempt} {safe(each.at, 40)}: {safe(', '.join(each.rules))}")
    write_error(f"reason: {safe(reason)}")
    write_error(f"by: {by}")
    if not confirm("Allow more retries?"):
        write_error("nothing was reset: you did not answer yes")
        return 1
    warning = reset(repository, chain, reason, by)
    if warning:
        write_error(f"warning: {warning}")
    last = refused[-1].attempt
    write(f"{chain} may be retried again: git patchgate apply - --retry-of {last}\n")
    return 0


@click.command("recover")
@click.option(
    "--keep",
    is_flag=True,
    help="Leave files changed since then alone, keep a copy of what they were, undo the rest.",
)
@in_repository
def recover_command(context: click.Context, keep: bool) -> int:
    """Finish or undo an apply that was killed.

    If it had not written everything yet, every file is restored. If it had, the rest is finished. A file that
    was changed since then is never overwritten: then nothing is done, and each such file is named.
    """
    repository = open_here(context)
    from patchgate.apply.recovery import recover_pending

    finished = recover_pending(repository, keep=keep)
    warn(finished.warnings)
    write_lines(finished.lines or ("nothing to recover",))
    return 0
