"""`git patchgate baseline`: what was recorded of the components, and how it stands."""

from __future__ import annotations

import time

import click

from patchgate.cli.options import directory_option, open_here
from patchgate.cli.output import write

_HELP = {"help_option_names": ["-h", "--help"]}


class _Group(click.Group):
    """A group whose larger command is imported only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return sorted({*super().list_commands(ctx), "capture"})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name == "capture":
            from patchgate.cli.baseline_capture import capture_command

            return capture_command
        return super().get_command(ctx, cmd_name)


@click.group("baseline", cls=_Group, context_settings=_HELP)
def command() -> None:
    """Record what the tests of a component have passed on, and see what has drifted since."""


@command.command("status", context_settings=_HELP)
@click.option("--format", "form", type=click.Choice(["full", "text", "json"]), default="full")
@directory_option
@click.pass_context
def status(context: click.Context, form: str, directory: str | None) -> int:
    """Show the drift and the age of each component of HEAD. Exit code 1 where something is an error."""
    repository = open_here(context, directory)
    from patchgate.components.baselines import baselines_of_head, text

    found = baselines_of_head(repository, time.time())
    if form == "json":
        from patchgate.components.baselines_document import document

        write(document(found))
    else:
        write("".join(f"{line}\n" for line in text(found)))
    return 1 if found.has_errors else 0
