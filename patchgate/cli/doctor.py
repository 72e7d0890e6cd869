"""`git patchgate doctor`: do the hooks really run in every worktree? `--fix` installs them again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import document_options, names_directory, open_here
from patchgate.cli.output import write, write_lines
from patchgate.errors import PatchgateError

if TYPE_CHECKING:
    from patchgate.git.active_hooks import Worktree
    from patchgate.git.hook_managers import HookFile
    from patchgate.git.repository import Repository
    from patchgate.hooks.doctor import Diagnosis
    from patchgate.hooks.doctor_hooks import DoctorFinding, HookProbe, WorktreeHooks


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Install hooks again that are missing, stale or cannot run.")
@document_options
def doctor_command(context: click.Context, fix: bool, form: str) -> int:
    """Check that the hooks really run, in every worktree.

    Starts the hook of each event to see that it reaches patchgate, and looks for the programs of the policy.
    Exits with 1 if a hook would not run somewhere, or if a program is missing. Changes nothing without --fix,
    and never core.hooksPath.
    """
    repository = open_here(context)
    from patchgate.hooks.doctor import examine

    elsewhere = names_directory(context)
    diagnosis = examine(repository, os.environ, is_other_directory=elsewhere)
    done: list[str] = []
    if fix and (diagnosis.worktrees_to_install or diagnosis.worktrees_to_renew):
        done = _fix(repository, diagnosis)
        diagnosis = examine(repository, os.environ, is_other_directory=elsewhere)
    if form == "json":
        import json

        from patchgate.hooks.doctor import document

        write(json.dumps(document(diagnosis, done), indent=2) + "\n")
    else:
        write_lines([*done, *_report_lines(diagnosis)])
    return 0 if diagnosis.runs else 1


def _fix(repository: Repository, diagnosis: Diagnosis) -> list[str]:
    """Install the hooks where that is safe, once for each hooks folder; return what was done."""
    from patchgate.cli.install import NOTHING_IN_CI, find_program, is_ci
    from patchgate.hooks.install import install_hooks

    if is_ci(os.environ):
        return [NOTHING_IN_CI]
    lines: list[str] = []
    folders: set[str] = set()
    for worktree in diagnosis.worktrees_to_install:
        if worktree.folder in folders:
            continue
        folders.add(worktree.folder)
        try:
            place = _opened(repository, worktree)
            done = install_hooks(place, os.environ, find_program(), is_server=worktree.is_bare)
        except PatchgateError as error:
            lines.append(f"not fixed: {error.message}" + (f" ({error.hint})" if error.hint else ""))
            continue
        if done.changed:
            lines.append(f"fixed: installed in {done.folder.name}: {', '.join(done.changed)}")
        lines += [f"  {hook.name}: {note}" for hook in done.hooks for note in hook.notes]
        lines += [f"  note: {note}" for note in (*done.notes, *done.warnings)]
    return lines + _renew(repository, diagnosis)


def _renew(repository: Repository, diagnosis: Diagnosis) -> list[str]:
    """Rebuild the cache of the fast path for every worktree; report it once."""
    from patchgate.hooks.fast.renewal import renew_all

    lines: dict[str, None] = {}
    for worktree in diagnosis.worktrees_to_renew:
        try:
            made = renew_all(_opened(repository, worktree))
        except PatchgateError as error:
            lines[f"not fixed: {error.message}"] = None
            continue
        if made.warning:
            lines[f"not fixed: {made.warning}"] = None
        elif made.has_copy or made.has_policy:
            lines["fixed: the cache for fast commits was rebuilt"] = None
    return list(lines)


def _opened(repository: Repository, worktree: Worktree) -> Repository:
    """Open the repository at another worktree, without the variables that name this one."""
    if worktree.git_dir == repository.git_dir:
        return repository
    from patchgate.git.repository import open_repository

    shown = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE")
    environ = {name: value for name, value in os.environ.items() if name not in shown}
    return open_repository(environ, worktree.path)


def _report_lines(diagnosis: Diagnosis) -> list[str]:
    """Write the diagnosis: each worktree, its problems, what fixes them, and where programs are."""
    lines: list[str] = []
    shown: dict[tuple[DoctorFinding, ...], WorktreeHooks] = {}
    for place in diagnosis.worktree_hooks:
        if not (place.hooks or place.findings):
            continue
        lines.append(_headline(place, shown.get(place.findings)))
        if place.findings and place.findings not in shown:
            shown[place.findings] = place
            lines.extend(_finding_lines(place.findings))
    lines.extend(_finding_lines(diagnosis.findings))
    if diagnosis.environment is not None:
        from patchgate.hooks.doctor_environment import environment_lines

        lines.extend(environment_lines(diagnosis.environment))
    return lines


def _headline(place: WorktreeHooks, like: WorktreeHooks | None) -> str:
    from patchgate.report.wording import safe

    where = safe(place.worktree.path)
    if not place.hooks:
        return f"{where}:"
    through = [each.managed.by for each in place.hooks if each.is_through_manager and each.managed]
    through = through if not any(each.file.is_ours for each in place.hooks) else []
    reached = sum(hook.is_reached for hook in place.hooks) + len(through)
    said = f"{where}: {reached} of {len(place.hooks)} hooks reach patchgate"
    said += f" through {' and '.join(dict.fromkeys(through))}" if through else ""
    versions = sorted({str(hook.answer.version) for hook in place.hooks if hook.answer and hook.is_reached})
    said += f" {safe(', '.join(versions), 60)}" if versions else ""
    chained = [(hook.event, first.writer) for hook in place.hooks if (first := _chained(hook))]
    before = ", ".join(f"{event} ({writer})" for event, writer in chained)
    said += f"; run before ours: {before}" if before else ""
    return said + (f"; same as {safe(like.worktree.path)}" if like else "")


def _chained(hook: HookProbe) -> HookFile | None:
    """Return the hook that ours runs first."""
    return hook.previous if hook.file.is_ours and hook.previous and hook.previous.is_executable else None


def _finding_lines(findings: tuple[DoctorFinding, ...]) -> list[str]:
    order = ("error", "warning", "note")
    lines = []
    for finding in sorted(findings, key=lambda each: order.index(each.level)):
        lines.append(f"  {finding.level}: {finding.what}")
        if finding.remedy:
            lines.append(f"    {finding.remedy}")
    return lines
