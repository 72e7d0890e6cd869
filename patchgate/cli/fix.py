"""`git patchgate fix`: apply what formatters and `fix` commands propose for the staged change."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import in_repository, open_to_write
from patchgate.cli.output import cache_folder, show, write, write_error
from patchgate.git.quoting import first_of, neutral, printable

if TYPE_CHECKING:
    from patchgate.apply.fixes.fix import FixResult
    from patchgate.apply.fixes.plan_fix import LeftFile

_SHOWN = 20


@click.command("fix")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--dry-run", is_flag=True, help="Print the fix as a patch, and write nothing.")
@in_repository
def fix_command(context: click.Context, names: tuple[str, ...], dry_run: bool) -> int:
    """Fix the staged files, in the index and in the working tree.

    Runs the formatters and `fix` commands of the policy, or those that you name, on what is staged, in a
    scratch tree. Unstaged edits stay: a working file gets each hunk that does not meet them. As with
    `commands run`, nothing asks whether the commands are trusted.
    """
    repository = open_to_write(context)
    from patchgate.apply.fixes.fix import FixOptions, fix_staged
    from patchgate.apply.fixes.run_fixes import FixEnvironment
    from patchgate.check.policy_lookup import trusted_options

    environment = FixEnvironment(os.environ, cache_folder())
    asked = trusted_options(repository)
    result = fix_staged(repository, FixOptions(environment, names, is_dry=dry_run, asked=asked))
    for note in result.notes:
        write_error(f"note: {printable(note, 300)}")
    if result.report is not None:
        show(result.report, "full", "auto", verbose=False, quiet=False)
        write_error("the fix was refused by the gates, so nothing was changed")
        return result.report.verdict.exit_code
    if dry_run:
        _write_patch(result.patch)
    for line in _lines(result, is_dry=dry_run):
        write_error(line)
    return 0


def _write_patch(patch: bytes) -> None:
    """Write the patch byte for byte; on a terminal without what that would obey."""
    if sys.stdout.isatty():
        write(neutral(patch).decode("utf-8", "backslashreplace"))
        return
    sys.stdout.flush()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(patch)
        sys.stdout.flush()


def _lines(result: FixResult, *, is_dry: bool) -> Iterator[str]:
    if not result.paths:
        yield "there is nothing to fix in what is staged"
        return
    done = "would be fixed" if is_dry else "fixed"
    names = first_of(result.paths, _SHOWN, lambda path: path.quoted)
    yield f"{done} by {printable(', '.join(result.by), 200)}: {names}"
    yield from map(_left, result.left)


def _left(left: LeftFile) -> str:
    if left.why:
        return f"{left.path.quoted}: the fix is staged; the working file is unchanged, because {left.why}"
    lines = first_of(left.lines, _SHOWN, str)
    return f"{left.path.quoted}:{lines}: the fix is staged; the working file keeps your unstaged edits there"
