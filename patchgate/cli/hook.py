"""`git patchgate hook NAME`: what the installed hooks call, for who types it with options."""

from __future__ import annotations

import click

from patchgate.cli.hooks import answer
from patchgate.cli.options import directory_of, directory_option


@click.command("hook", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", metavar="NAME")
@click.argument("arguments", nargs=-1, metavar="[ARGS]")
@directory_option
@click.pass_context
def command(context: click.Context, name: str, arguments: tuple[str, ...], directory: str | None) -> int:
    """Judge at one of git's hooks. The installed hooks call this; people call check."""
    return answer(name, arguments, directory_of(context, directory))
