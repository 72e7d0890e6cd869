"""`git patchgate install`: the hooks, where git looks for them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from patchgate.cli.options import directory_option, open_to_write
from patchgate.cli.output import complain, write
from patchgate.errors import UndecidedError
from patchgate.git.quoting import printable

if TYPE_CHECKING:
    from patchgate.hooks.install import Installed

_PROGRAM = "git-patchgate"


@click.command("install", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--server", is_flag=True, help="pre-receive, in a bare repository.")
@click.option("--global", "everywhere", is_flag=True, help="Into the folder of a global core.hooksPath.")
@click.option(
    "--trust-ref", metavar="REF", help="Judge by the policy of REF from now on, as refs/remotes/origin/main."
)
@directory_option
@click.pass_context
def command(
    context: click.Context, server: bool, everywhere: bool, trust_ref: str | None, directory: str | None
) -> None:
    """Put the hooks where git looks for them; a hook that is there runs before ours.

    Installing again changes nothing, or brings the hooks up to date. With CI=true in the environment nothing
    is installed.
    """
    if is_ci(os.environ):
        write(f"{NOTHING_IN_CI}\n")
        return
    repository = open_to_write(context, directory)
    from patchgate.hooks.install import install_hooks

    done = install_hooks(
        repository,
        os.environ,
        find_program(),
        is_server=server,
        is_global=everywhere,
        trust_ref=trust_ref,
    )
    tell(done)


NOTHING_IN_CI = "CI=true: no hooks were installed; let the build run git patchgate check"


def is_ci(environ: Mapping[str, str]) -> bool:
    """Tell whether a build runs this: its checkout makes no commits that a hook could judge."""
    return environ.get("CI", "").lower() in {"true", "1"}


def tell(done: Installed) -> None:
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
    for warning in done.warnings:
        complain(f"warning: {warning}")


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
