"""`git patchgate check`: may this land?"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from patchgate.cli.options import (
    directory_of,
    open_here,
    proposal_options,
    reading_of,
    report_options,
    with_config_warnings,
)
from patchgate.cli.output import WITH_EACH_CHANGE, read_input, show, write
from patchgate.cli.progress import Progress
from patchgate.errors import PatchgateError, UsageError
from patchgate.values import replace

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from patchgate.check.policy_lookup import CheckOptions
    from patchgate.git.repository import Repository
    from patchgate.report.verdict import Report


@click.command("check")
@click.argument("revision", required=False, metavar="[REV | A..B]")
@click.option("--staged", "--cached", is_flag=True, help="Check the staged change (the default).")
@click.option("--worktree", is_flag=True, help="Check the working tree, untracked files included.")
@click.option("--all", "everything", is_flag=True, help="Check every tracked file as if it were new.")
@click.option("--patch", metavar="FILE", help="Check a unified diff; - is standard input.")
@click.option("--edits", metavar="FILE", help="Check structured edits (JSON); - is standard input.")
@proposal_options
@click.option("--base", metavar="REV", help="With --patch or --edits: apply it to REV, then merge.")
@click.option("--policy-from", metavar="REV", help="Use the policy of REV.")
@click.option(
    "--signer",
    "signers",
    multiple=True,
    metavar="KEY|FILE",
    help="With --policy-from or --ci: an SSH key whose approvals count, or a file of them; repeatable.",
)
@click.option("--profile", type=click.Choice(["commit", "agent"]), help="Use the limits of this profile.")
@click.option("--ci", is_flag=True, help="Check what the CI engine builds, against its base branch.")
@click.option(
    "--output-file",
    "outputs",
    metavar="FORMAT=FILE",
    multiple=True,
    help="Write the report in FORMAT to FILE too; can be repeated.",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if the change is rejected.")
@report_options
def check_command(
    context: click.Context,
    revision: str | None,
    staged: bool,
    worktree: bool,
    everything: bool,
    patch: str | None,
    edits: str | None,
    base: str | None,
    policy_from: str | None,
    signers: tuple[str, ...],
    profile: str | None,
    ci: bool,
    outputs: tuple[str, ...],
    exit_zero: bool,
    form: str,
    color: str,
    verbose: bool,
    quiet: bool,
) -> int:
    """Check what git will really record against the policy.

    Without arguments: what `git commit` would commit now. REV is one commit. A..B is a range, whose commits
    are checked one by one.
    """
    is_proposal = patch is not None or edits is not None
    reading = reading_of(context, patch)
    named = [each is not None for each in (revision, policy_from, base, patch, edits)]
    _require_one_source(named, (staged, worktree, everything), ci=ci)
    if signers and policy_from is None and not ci:
        raise UsageError("--signer needs --policy-from or --ci", "name the branch that the change lands on")
    keys, files = _read_signers(signers), _output_files(outputs, directory_of(context))
    repository = _open(context, ci=ci)
    from patchgate.apply.recovery import pending_warnings

    forms = {form, *(name for name, _ in files)}
    asked = _for_forms(_options(repository, policy_from, profile, ci=ci), forms, verbose=verbose)
    summary, final = "", policy_from is not None
    if ci:
        is_default = context.get_parameter_source("form") is ParameterSource.DEFAULT
        chosen = "" if is_default else form
        judged, form, summary = _of_engine(repository, asked, chosen, quiet=quiet)
    elif is_proposal:
        raw = read_input(patch if patch is not None else edits or "-", directory_of(context))
        judged = [(_check_proposal(repository, raw, asked, base, *reading, quiet=quiet), asked)]
    elif revision is not None:
        is_whole = policy_from is not None
        with _explaining_files(revision, directory_of(context)):
            judged = [(check_commits(repository, revision, asked, is_whole=is_whole, quiet=quiet), asked)]
    else:
        asked = asked if final else replace(asked, environ=os.environ)
        judged = [(_check_files(repository, asked, everything=everything, worktree=worktree), asked)]
    if not (is_proposal or everything):
        judged = _approved(repository, judged, keys, signers, is_ci=ci, is_final=final)
    report = _joined([each for each, _ in judged])
    report = replace(report, warnings=(*report.warnings, *pending_warnings(repository)))
    _write_files(report, files, repository, summary)
    show(with_config_warnings(report, repository, form), form, color, verbose=verbose, quiet=quiet)
    return 0 if exit_zero and report.verdict == "rejected" else report.verdict.exit_code


def _open(context: click.Context, *, ci: bool) -> Repository:
    """Open the repository; in CI others may have written its caches, and `git` may be one of the head."""
    if ci:
        from patchgate.cli.ci import require_own_git

        require_own_git(directory_of(context), os.environ)
    return replace(open_here(context), trusts_caches=not ci)


def _options(
    repository: Repository, policy_from: str | None, profile: str | None, *, ci: bool
) -> CheckOptions:
    from patchgate.check.policy_lookup import CheckOptions, resolve_policy_from, trusted_options
    from patchgate.policy.policy import Profile

    if policy_from is not None:
        asked = resolve_policy_from(repository, policy_from)
    else:
        # The engine's base comes before a ref that this clone trusts.
        asked = CheckOptions() if ci else trusted_options(repository)
    return replace(asked, profile=Profile(profile) if profile else None)


def _for_forms(asked: CheckOptions, forms: Set[str], *, verbose: bool) -> CheckOptions:
    """Ask for as much as the reports show."""
    return replace(asked, in_full="json" in forms, in_bulk=not (verbose or forms & WITH_EACH_CHANGE))


def _read_signers(signers: Sequence[str]) -> bytes:
    if not signers:
        return b""
    from patchgate.approvals.signers import read_signers

    return read_signers(signers)


def _output_files(outputs: Sequence[str], directory: str) -> list[tuple[str, str]]:
    """Read the values of `--output-file`."""
    if not outputs:
        return []
    from patchgate.cli.report_files import output_files

    return output_files(outputs, directory)


def _approved(
    repository: Repository,
    judged: Sequence[tuple[Report, CheckOptions]],
    signers: bytes,
    named: Sequence[str],
    *,
    is_ci: bool,
    is_final: bool,
) -> list[tuple[Report, CheckOptions]]:
    """Apply the approvals to each report, as `_with_approvals` does."""
    return [
        (_with_approvals(repository, each, asked, signers, named, is_ci=is_ci, is_final=is_final), asked)
        for each, asked in judged
    ]


def _joined(reports: Sequence[Report]) -> Report:
    """Add to the first report what the others do not accept, or say besides.

    Where the first one refuses, nobody has approved the rules by which the others judge.
    """
    first, *others = reports
    said = [(each.source.commit, each.findings) for each in first.changes]
    refusing = []
    for each in (each for other in others for each in other.changes):
        about = (each.source.commit, each.findings)
        if each.verdict == "undecided" or (each.findings and about not in said):
            said.append(about)
            refusing.append(each)
    warnings = dict.fromkeys(each for report in reports for each in report.warnings)
    approve = first.approve
    if first.verdict == "accepted":
        approve = next((each.approve for each in others if each.approve is not None), None)
    return replace(first, changes=(*first.changes, *refusing), warnings=tuple(warnings), approve=approve)


def _of_engine(
    repository: Repository, asked: CheckOptions, form: str, *, quiet: bool
) -> tuple[list[tuple[Report, CheckOptions]], str, str]:
    """Check what a CI engine builds; return each report with its options, the format, the summary's file.

    Args:
        form: the format that was asked for; empty to choose the engine's.
    """
    from patchgate.check.ci_environment import is_github
    from patchgate.cli.ci import check_ci

    try:
        judged, event = check_ci(repository, asked, os.environ, check_commits, quiet=quiet)
    except PatchgateError as error:
        if is_github(os.environ) and form in {"", "github"}:
            from patchgate.report.ci_formats import github_undecided

            write(github_undecided(error.sentence))
        raise
    if event.takes_commands:
        return judged, form or "github", os.environ.get("GITHUB_STEP_SUMMARY", "")
    return judged, form or "full", ""


def _write_files(
    report: Report, files: Sequence[tuple[str, str]], repository: Repository, summary: str
) -> None:
    """Write the report to the files that were asked for, and to the summary of the job."""
    if files or summary:
        from patchgate.cli.report_files import write_files

        write_files(report, files, repository, summary)


def _require_one_source(named: Sequence[bool], files: Sequence[bool], *, ci: bool) -> None:
    """Require options that fit together.

    Args:
        named: whether REV, --policy-from, --base, --patch and --edits were given.
        files: whether --staged, --worktree and --all were.

    Raises:
        UsageError: they don't.
    """
    is_revision, _, is_based, *is_proposal = named
    if ci and (any(named) or any(files)):
        forms = "REV, --staged, --worktree, --all, --patch, --edits, --base or --policy-from"
        raise UsageError(f"--ci cannot be combined with {forms}", "use --ci alone: it finds base and head")
    if sum((is_revision, *is_proposal, *files)) > 1:
        forms = "REV, --staged, --worktree, --all, --patch and --edits"
        raise UsageError(f"{forms} cannot be combined", "use one of them")
    if is_based and not any(is_proposal):
        raise UsageError("--base needs --patch or --edits", "remove --base")


def _check_proposal(
    repository: Repository,
    raw: bytes,
    asked: CheckOptions,
    base: str | None,
    kind: str,
    repair: bool | None,
    *,
    quiet: bool,
) -> Report:
    """Check a patch or structured edits."""
    from patchgate.patches.check_patch import check_patch

    with Progress(quiet=quiet, counts="files") as progress:
        asked = replace(asked, counted=progress.count)
        return check_patch(repository, raw, asked, base=base, kind=kind, repair=repair, now=time.time())


def _check_files(repository: Repository, asked: CheckOptions, *, everything: bool, worktree: bool) -> Report:
    """Check every tracked file, or what would be committed."""
    if everything:
        from patchgate.check.tracked_files import check_tracked

        return check_tracked(repository, asked)
    from patchgate.check.pending import check_pending

    return check_pending(repository, asked, whole_tree=worktree)


def check_commits(
    repository: Repository,
    revision: str,
    asked: CheckOptions,
    *,
    is_whole: bool,
    quiet: bool,
    is_merged: bool = True,
    is_of_branch: bool = True,
    attributes_from: str | None = None,
) -> Report:
    """Check the commits of a revision or range; with `is_whole` also the range as one change.

    Args:
        is_of_branch: whether a branch gets it; of a tag, as on a server, no component is examined as a whole.
        is_merged: whether a host merges what lacks commits of the branch; a forced push replaces it.
        attributes_from: the revision whose `.gitattributes` a host may follow then, besides both sides'.
    """
    if asked.in_bulk and ".." in revision:
        # 5 ms to import, and one commit needs none of it.
        from patchgate.check.bulk_check import check_range as check
    else:
        from patchgate.check.commits import check_revision as check

    # Whoever can write to a clone that CI keeps can also write what is remembered.
    remembers = not (is_whole or _is_in_ci())
    with Progress(quiet=quiet) as progress:
        counted = progress.count if progress.has_line else None
        report = check(repository, revision, replace(asked, counted=counted, remembers=remembers))
        if asked.in_full:
            from patchgate.check.pending import with_ids_of_commits

            report = with_ids_of_commits(repository, report)
    if is_whole:
        from patchgate.approvals.owned_refs import range_landing
        from patchgate.check.coming_merge import add_coming_merge
        from patchgate.components.cumulative_drift import add_range_findings
        from patchgate.components.push_tips import add_range_tip
        from patchgate.git.merges import TipMerges

        with TipMerges(repository) as merges:
            together = merges if is_merged else None
            if is_of_branch:
                report = add_range_findings(repository, report, revision, asked, together)
                report = add_range_tip(repository, report, revision, asked, together)
            if is_merged:
                report = add_coming_merge(repository, report, revision, asked, merges, attributes_from)
        report = replace(report, lands_on=range_landing(repository, revision, asked))
    return report


def _is_in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


@contextlib.contextmanager
def _explaining_files(name: str, directory: str) -> Iterator[None]:
    """Explain how to check a file, where an unknown revision is the name of one.

    Raises:
        UsageError: the name is that of a file.
    """
    try:
        yield
    except UsageError as error:
        is_unknown = error.message.startswith("unknown revision") and "\0" not in name
        if not (is_unknown and os.path.lexists(os.path.join(directory, name))):
            raise
        from patchgate.git.quoting import in_shell, printable

        shown, word = printable(name), in_shell(name, "PATH")
        if name.endswith((".patch", ".diff")):
            hint = f"git patchgate check --patch {word}"
        else:
            hint = f"git add {word} && git patchgate check, or git patchgate explain --path {word}"
        raise UsageError(f"{shown} is a file, but check takes a commit or a range", hint) from error


def _with_approvals(
    repository: Repository,
    report: Report,
    asked: CheckOptions,
    signers: bytes,
    named: Sequence[str],
    *,
    is_ci: bool,
    is_final: bool,
) -> Report:
    """Apply the approvals that are valid here, and name the command that grants one.

    Args:
        signers: those of --signer, as an allowed_signers file.
        named: the values of --signer.
        is_ci: whether a CI engine's change is judged, which is final too.
        is_final: whether the change is judged as it lands on the branch of `asked`.
    """
    is_final = is_final or is_ci
    if named:
        from patchgate.approvals.signers import require_outside

        require_outside(repository, named)
    is_owned = report.lands_on or any(change.owned for change in report.changes)
    if report.verdict == "accepted" and not is_owned:
        return report
    from patchgate.approvals.apply_approvals import LOCAL, PUSH, approve_command
    from patchgate.approvals.owned_refs import landing_place
    from patchgate.check.hook_decision import ApprovalSources, with_approvals

    # A CI machine may keep its clone, and an unsigned approval there proves nothing.
    place = PUSH if is_ci or _is_in_ci() else LOCAL
    if is_final:
        here = report.lands_on or (landing_place(repository, asked),)
        report = replace(report, changes=tuple(replace(each, lands_on=here) for each in report.changes))
    sources = ApprovalSources(local=place == LOCAL, signers=signers, is_final=is_final)
    report = with_approvals(repository, report, sources)
    profile = None if asked.profile is None else asked.profile.value
    line = approve_command(repository, report, place=place, policy_from=asked.place, profile=profile)
    return replace(report, approve=line)
