"""`git patchgate init`: the first policy, what it would have said to the last commits, and the hooks."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import directory_option, open_to_write
from patchgate.cli.output import write
from patchgate.errors import UndecidedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchgate.git.repository import Repository
    from patchgate.policy.policy import Policy

_REHEARSED = 200
_MOST_LISTS = 10


@click.command("init", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--yes", is_flag=True, help="Take the defaults, ask nothing.")
@click.option("--show", "only_show", is_flag=True, help="Say what is there already; write nothing.")
@directory_option
@click.pass_context
def command(context: click.Context, yes: bool, only_show: bool, directory: str | None) -> None:
    """Write a first patchgate.toml, rehearse it on the last 200 commits, install the hooks.

    Nothing is overwritten: where there is a policy already, that one is rehearsed; a hook that is there runs
    before ours. With CI=true in the environment no hooks are installed.
    """
    repository = open_to_write(context, directory)
    from patchgate.check.policy_in_force import policy_in_force
    from patchgate.check.terms import Asked
    from patchgate.git.quoting import printable
    from patchgate.hooks.policy_file import (
        exception_lists,
        existing_policy_file,
        first_policy,
        write_first_policy,
    )

    force = policy_in_force(repository, Asked())
    policy = force.policy
    there = printable(force.place) if policy.file else existing_policy_file(repository)
    if only_show:
        _show(repository, there)
        return
    adds_submodules = False
    if not yes:
        _confirm("Write patchgate.toml and install the hooks?" if there is None else "Install the hooks?")
        if there is None:
            adds_submodules = click.confirm("May commits add submodules?", default=False, err=True)
    if policy.file:
        write(f"there is a policy already ({there}); nothing was written\n")
    elif there is not None:
        write(f"{there} is there already, not committed; nothing was written ({force.place} judge)\n")
    else:
        lists = exception_lists(repository)
        write_first_policy(repository, lists, adds_submodules=adds_submodules)
        policy = first_policy(lists, adds_submodules=adds_submodules)
        write("wrote patchgate.toml; commit it by itself: git add patchgate.toml && git commit\n")
    _tell_lists(exception_lists(repository), policy)
    _rehearse(repository, policy)
    _install(repository)


def _tell_lists(lists: Sequence[str], policy: Policy) -> None:
    """Say which lists of exceptions the policy names, and which it does not."""
    from patchgate.git.quoting import printable

    known = policy.config.verify.baselines
    for is_named, said in ((True, "in [verify] baselines"), (False, "could be in [verify] baselines")):
        found = [name for name in lists if (name in known) is is_named]
        if found:
            more = f" and {len(found) - _MOST_LISTS} more" if len(found) > _MOST_LISTS else ""
            write(f"lists of exceptions {said}: {', '.join(map(printable, found[:_MOST_LISTS]))}{more}\n")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("init asks before it writes, and there is nobody to ask", "add --yes")
    if not click.confirm(question, default=True, err=True):
        raise click.Abort


def _show(repository: Repository, policy: str | None) -> None:
    """Say what init would find: where the policy is, which hooks are in."""
    from patchgate.git.hook_files import look_at
    from patchgate.git.hooks_in_force import LOCAL_EVENTS
    from patchgate.hooks.hooks_folder import hooks_folder

    folder = hooks_folder(repository, os.environ)
    ours = [name for name in LOCAL_EVENTS if look_at(str(folder.path / name)).is_ours]
    write(f"policy: {policy or 'none yet'}\n")
    write(f"hooks of patchgate in {folder.name}: {', '.join(ours) or 'none yet'}\n")


def _rehearse(repository: Repository, policy: Policy) -> None:
    from patchgate.check.commits import rehearse
    from patchgate.git.quoting import printable
    from patchgate.report.wording import count

    try:
        rehearsal = rehearse(repository, policy, _REHEARSED)
    except UndecidedError as error:
        # History that nobody can read keeps no hook from being installed.
        write(f"rehearsal: not possible: {printable(error.message, 500)}\n")
        return
    if not rehearsal.commits:
        write("rehearsal: there are no commits yet\n")
        return
    write(
        f"rehearsal on the last {count(rehearsal.commits, 'commit')}: {rehearsal.refused} would be rejected, "
        f"{rehearsal.undecided} undecided\n"
    )
    for tally in rehearsal.tallies:
        write(
            f"  {tally.rule} ({tally.level.value}): {count(tally.findings, 'finding')} in "
            f"{count(tally.commits, 'commit')}; {printable(tally.remedy)}\n"
        )


def _install(repository: Repository) -> None:
    from patchgate.cli.install import NOTHING_IN_CI, find_program, is_ci, tell
    from patchgate.hooks.install import install_hooks

    if is_ci(os.environ):
        write(f"{NOTHING_IN_CI}\n")
    elif repository.work_tree is None:
        write("no hooks were installed; on a server: git patchgate install --server\n")
    else:
        tell(install_hooks(repository, os.environ, find_program()))
