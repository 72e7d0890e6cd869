"""`git patchgate commands import`: the config of another hook manager as commands of the policy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import directory_of, in_repository, open_to_write
from patchgate.cli.output import warn, write, write_error
from patchgate.errors import UsageError
from patchgate.git.quoting import printable

if TYPE_CHECKING:
    from patchgate.commands.importing.import_commands import PlannedImport
    from patchgate.git.repository import Repository

_MOST_LISTED = 200


@click.command("import")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--dry-run", is_flag=True, help="Print what would be added, and write nothing.")
@in_repository
def import_command(context: click.Context, files: tuple[str, ...], dry_run: bool) -> None:
    """Add the commands of another hook manager to the policy.

    Reads .pre-commit-config.yaml, lefthook.yml and the config of lint-staged, or the FILEs that you name.
    Lists what cannot be expressed. Installs no tools, and changes nothing but the file of the policy.
    """
    repository = open_to_write(context)
    from patchgate.commands.importing.import_commands import plan_import
    from patchgate.hooks.first_policy import existing_policy_file

    if repository.work_tree is None:
        raise UsageError("a bare repository has no working tree", "run this in a clone")
    names = [_from_root(name, directory_of(context), repository.work_tree) for name in files]
    planned = plan_import(repository.work_tree, existing_policy_file(repository), names)
    if dry_run:
        write(planned.text)
    elif planned.text:
        planned.write()
        write(f"added to {printable(planned.file)}, from {_listed(planned.sources)}:\n")
        for each in planned.commands:
            write(f"  {each.name}: {printable(' '.join(_words(each.keys['command'])), 120)}\n")
    else:
        write("there is nothing to add\n")
    for line in _remarks(planned, repository):
        write_error(line)
    if planned.text and not dry_run:
        write_error(
            f"next: read {planned.file}, commit it alone, and allow its commands on this machine: "
            "git patchgate commands trust"
        )


def _from_root(name: str, directory: str, root: str) -> str:
    """Name a file from the root of the working tree.

    Raises:
        UsageError: it is outside.
    """
    # Its folder is resolved, and the file itself is not: a link is refused later.
    folder, last = os.path.split(os.path.join(directory, name))
    path = os.path.relpath(os.path.join(os.path.realpath(folder), last), os.path.realpath(root))
    if path.startswith(os.pardir):
        raise UsageError(f"{printable(name)} is outside the working tree", "name a file of this repository")
    return path


def _words(value: object) -> list[str]:
    return list(value) if isinstance(value, tuple) else []


def _listed(names: tuple[str, ...]) -> str:
    return printable(", ".join(names), 300)


def _remarks(planned: PlannedImport, repository: Repository) -> Iterator[str]:
    """Say what was left out and why, and what else to know; the tools that are missing are warnings."""
    omissions = planned.draft.omissions
    if omissions:
        yield "left out:"
        yield from (
            f"  {printable(each.what, 100)}: {printable(each.why, 200)}" for each in omissions[:_MOST_LISTED]
        )
    yield from (f"note: {printable(each, 200)}" for each in dict.fromkeys(planned.draft.notes[:_MOST_LISTED]))
    missing = _missing_programs(planned, repository)
    if missing:
        warn([f"not installed here: {printable(', '.join(missing), 300)}; patchgate installs no tools"])


def _missing_programs(planned: PlannedImport, repository: Repository) -> list[str]:
    from patchgate.commands.programs import NO_TREE, command_environment, find_program

    environment = command_environment(os.environ, {}, NO_TREE)
    found = []
    for program in dict.fromkeys(each.program for each in planned.commands):
        place = os.path.join(repository.work_tree or "", program)
        is_there = os.path.isfile(place) if "/" in program else find_program(program, environment)
        found += [] if is_there else [program]
    return found
