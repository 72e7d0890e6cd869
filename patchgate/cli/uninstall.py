"""`git patchgate uninstall`: what was there before is there again."""

from __future__ import annotations

import os

import click

from patchgate.cli.options import directory_option, open_to_write
from patchgate.cli.output import complain, write
from patchgate.git.quoting import printable


@click.command("uninstall", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--global", "everywhere", is_flag=True, help="Also out of a global core.hooksPath.")
@directory_option
@click.pass_context
def command(context: click.Context, everywhere: bool, directory: str | None) -> None:
    """Take the hooks out; what was there before is there again.

    Reads no policy. What the ledger and the receipts hold stays in the git directory.
    """
    repository = open_to_write(context, directory)
    from patchgate.hooks.uninstall import record_uninstall, uninstall_hooks

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
    for warning in record_uninstall(repository, done):
        complain(f"warning: {warning}")
