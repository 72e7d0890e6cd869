"""`git patchgate init`, `install`, `uninstall`, `hook`: the first policy, and the hooks in their place."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import directory_of, in_repository, open_to_write
from patchgate.cli.output import warn, write
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import first_of, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchgate.git.repository import Repository
    from patchgate.hooks.install import Installed
    from patchgate.policy.policy import Policy

_REHEARSED = 200
_MOST_LISTS = 10


@click.command("init")
@click.option("--yes", is_flag=True, help="Take the defaults, ask nothing.")
@click.option("--show", "only_show", is_flag=True, help="Say what is there already; write nothing.")
@in_repository
def init_command(context: click.Context, yes: bool, only_show: bool) -> None:
    """Write a first patchgate.toml, rehearse it on the last 200 commits, install the hooks.

    Nothing is overwritten: where there is a policy already, that one is rehearsed; a hook that is there runs
    before ours. With CI=true in the environment no hooks are installed.
    """
    repository = open_to_write(context)
    from patchgate.check.effective_policy import effective_policy
    from patchgate.check.policy_lookup import CheckOptions
    from patchgate.git.quoting import printable
    from patchgate.hooks.first_policy import exception_lists, existing_policy_file, write_first_policy

    force = effective_policy(repository, CheckOptions())
    policy = force.policy
    there = printable(force.place) if policy.file else existing_policy_file(repository)
    if only_show:
        _show_state(repository, there)
        return
    adds_submodules = False
    if not yes:
        _require_yes("Write patchgate.toml and install the hooks?" if there is None else "Install the hooks?")
        if there is None:
            adds_submodules = click.confirm("May commits add submodules?", default=False, err=True)
    if policy.file:
        write(f"there is a policy already ({there}); nothing was written\n")
    elif there is not None:
        write(f"{there} is there already, not committed; nothing was written ({force.place} judge)\n")
    else:
        lists = exception_lists(repository)
        policy = write_first_policy(repository, lists, adds_submodules=adds_submodules)
        write("wrote patchgate.toml; commit it by itself: git add patchgate.toml && git commit\n")
    _report_suppression_files(exception_lists(repository), policy)
    _rehearse(repository, policy)
    _install_hooks(repository)


def _report_suppression_files(lists: Sequence[str], policy: Policy) -> None:
    """Say which lists of exceptions the policy names, and which it does not."""
    from patchgate.git.quoting import printable

    known = policy.config.verify.baselines
    for is_named, said in ((True, "in [verify] baselines"), (False, "could be in [verify] baselines")):
        found = [name for name in lists if (name in known) is is_named]
        if found:
            write(f"lists of exceptions {said}: {first_of(found, _MOST_LISTS, printable)}\n")


def _require_yes(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("init asks before it writes, and there is nobody to ask", "add --yes")
    if not click.confirm(question, default=True, err=True):
        raise click.Abort


def _show_state(repository: Repository, policy: str | None) -> None:
    """Say what init would find: where the policy is, which hooks are in."""
    from patchgate.git.active_hooks import LOCAL_EVENTS
    from patchgate.git.hook_files import read_hook
    from patchgate.hooks.hooks_folder import find_hooks_folder

    folder = find_hooks_folder(repository, os.environ)
    ours = [name for name in LOCAL_EVENTS if read_hook(str(folder.path / name)).is_ours]
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


def _install_hooks(repository: Repository) -> None:
    from patchgate.hooks.install import install_hooks

    if is_ci(os.environ):
        write(f"{NOTHING_IN_CI}\n")
    elif repository.work_tree is None:
        write("no hooks were installed; on a server: git patchgate install --server\n")
    else:
        report_installed(install_hooks(repository, os.environ, find_program()))


@click.command("hook")
@click.argument("name", metavar="NAME")
@click.argument("arguments", nargs=-1, metavar="[ARGS]")
@in_repository
def hook_command(context: click.Context, name: str, arguments: tuple[str, ...]) -> int:
    """Judge at one of git's hooks. The installed hooks call this; people call check."""
    from patchgate.cli.hooks import run_hook

    return run_hook(name, arguments, directory_of(context))


@click.command("uninstall")
@click.option("--global", "everywhere", is_flag=True, help="Also out of a global core.hooksPath.")
@in_repository
def uninstall_command(context: click.Context, everywhere: bool) -> None:
    """Take the hooks out; what was there before is there again.

    Reads no policy. What the ledger and the receipts hold stays in the git directory.
    """
    repository = open_to_write(context)
    from patchgate.hooks.install import record_uninstall, uninstall_hooks

    done = uninstall_hooks(repository, os.environ, is_global=everywhere)
    if not done.folders:
        write("there was no hook of patchgate here\n")
    for folder, removed in done.folders:
        write(f"taken out of {folder.name}: {', '.join(hook.name for hook in removed)}\n")
        restored = [hook.name for hook in removed if hook.is_restored]
        if restored:
            write(f"  there again, as it was: {', '.join(restored)}\n")
        for hook in removed:
            for note in hook.notes:
                write(f"  {hook.name}: {note}\n")
    if done.trust_ref is not None:
        write(f"the policy of {printable(done.trust_ref)} is not trusted above others any more\n")
    warn(record_uninstall(repository, done))


_PROGRAM = "git-patchgate"


@click.command("install")
@click.option("--server", is_flag=True, help="pre-receive, in a bare repository.")
@click.option("--global", "everywhere", is_flag=True, help="Into the folder of a global core.hooksPath.")
@click.option(
    "--trust-ref", metavar="REF", help="Judge by the policy of REF from now on, as refs/remotes/origin/main."
)
@in_repository
def install_command(context: click.Context, server: bool, everywhere: bool, trust_ref: str | None) -> None:
    """Put the hooks where git looks for them; a hook that is there runs before ours.

    Installing again changes nothing, or brings the hooks up to date. With CI=true in the environment nothing
    is installed.
    """
    if is_ci(os.environ):
        write(f"{NOTHING_IN_CI}\n")
        return
    repository = open_to_write(context)
    from patchgate.hooks.install import install_hooks

    done = install_hooks(
        repository,
        os.environ,
        find_program(),
        is_server=server,
        is_global=everywhere,
        trust_ref=trust_ref,
    )
    report_installed(done)


NOTHING_IN_CI = "CI=true: no hooks were installed; let the build run git patchgate check"


def is_ci(environ: Mapping[str, str]) -> bool:
    """Tell whether a build runs this: its checkout makes no commits that a hook could judge."""
    return environ.get("CI", "").lower() in {"true", "1"}


def report_installed(done: Installed) -> None:
    """Say which hooks are where, and what there is to know about them."""
    if done.changed:
        write(f"installed in {done.folder.name}: {', '.join(done.changed)}\n")
    else:
        new = "what makes a clean commit fast was made anew" if done.has_copy else "nothing was changed"
        write(f"the hooks are in {done.folder.name} already; {new}\n")
    for hook in done.hooks:
        for note in hook.notes:
            write(f"  {hook.name}: {note}\n")
    if done.trust_ref is not None:
        write(f"the policy of {printable(done.trust_ref)} judges here from now on\n")
    for note in done.notes:
        write(f"note: {note}\n")
    warn(done.warnings)


def find_program() -> str:
    """Find the git-patchgate that runs this, for hooks may be started where PATH has none.

    Raises:
        UndecidedError: it is nowhere.
    """
    folders = (os.path.dirname(os.path.abspath(sys.argv[0])), os.path.dirname(sys.executable))
    for folder in folders:
        place = os.path.join(folder, _PROGRAM)
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    found = shutil.which(_PROGRAM)
    if found is None:
        raise UndecidedError(
            f"{_PROGRAM} is not beside this patchgate, nor on PATH", "install patchgate again"
        )
    return os.path.abspath(found)
