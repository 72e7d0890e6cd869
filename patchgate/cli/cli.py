"""The commands: which there are, and what becomes of arguments that none can read."""

from __future__ import annotations

import importlib
import io

import click

from patchgate import __version__
from patchgate.cli.output import asks_for_json, report_error, write_error
from patchgate.errors import UsageError
from patchgate.git.quoting import printable

# Name, the module that has it as `NAME_command`, what it does. Shown in this order.
COMMANDS = (
    ("init", "install", "Look at the repository, write patchgate.toml, rehearse on the last commits."),
    ("check", "check", "Judge a change: the staged one, REV, A..B, --worktree or --all."),
    ("apply", "apply", "Judge a patch, try it, and apply it whole or not at all."),
    ("approve", "approve", "Grant one exception, with a reason."),
    ("intent", "intent", "Declare what a piece of work will touch; show, renew, clear it."),
    ("analyze", "verify", "Run the analyses of the policy on a tree: clean, findings, or no answer."),
    ("verify", "verify", "Compare the analyses of two trees: did it get worse, and was it me?"),
    ("claim", "claim", "Hold a verifier's verdict against the files: does a placeholder remain?"),
    ("component", "component", "Show components, validate their contracts, make tests of them."),
    ("baseline", "component", "Record what the tests of a component passed on, see what drifted."),
    ("explain", "explain", "Say what a rule means, or which line decides about a path."),
    ("doctor", "doctor", "Tell whether the gate really runs here, in every worktree."),
    ("install", "install", "Install the hooks; what is there runs before them."),
    ("log", "log", "Show the ledger: refusals, exceptions, what was skipped and why."),
    ("uninstall", "install", "Take the hooks out; what was there before is there again."),
    ("hook", "install", "What the installed hooks call."),
    ("recover", "apply", "Finish or undo what a killed apply has left."),
    ("attempts", "apply", "What was tried: list, show, prune, reset."),
    ("agent", "apply", "Hold an agent's reply against the reply protocol."),
    ("policy", "explain", "Show the policy in force, and where each key comes from."),
    ("selftest", "explain", "Raise every rule from its built-in case."),
    ("schema", "explain", "Print the JSON Schema of the config or of an output."),
)
_CLOSING = (
    "check: may this land? verify: did it get worse? claim: is the reviewer right?\n\n"
    "Exit codes: 0 accepted, 1 rejected, 2 wrong arguments, 3 undecided."
)


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of the table."""
        return [name for name, _, _ in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        for name, module, _ in COMMANDS:
            if name == cmd_name:
                loaded = getattr(importlib.import_module(f"patchgate.cli.{module}"), f"{name}_command")
                assert isinstance(loaded, click.Command)
                return loaded
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args and args[0] not in self.list_commands(ctx):
            import difflib

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            meant = f" Did you mean '{close[0]}'?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without loading anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, _, about in COMMANDS])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_CLOSING)
@click.option("-C", "directory", metavar="DIR", help="Run as if started in DIR.")
@click.version_option(__version__, "-V", "--version", message="patchgate %(version)s")
@click.pass_context
def cli(context: click.Context, directory: str | None) -> None:
    """Judge what git will really do, before it lands."""
    context.obj = directory


def call(arguments: list[str]) -> int:
    """Run one command and give its exit code.

    Raises:
        PatchgateError: it could not do what was asked.
        KeyboardInterrupt: somebody interrupted it.
    """
    try:
        result = cli.main(arguments, prog_name="git patchgate", standalone_mode=False)
    except click.UsageError as error:
        return _fail_arguments(error, arguments)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except SystemExit:
        # click ends so when nobody reads its help or version to the end; reports are written by `write`.
        return 0
    return result if isinstance(result, int) else 0


def _fail_arguments(error: click.UsageError, arguments: list[str]) -> int:
    """Tell that click could not read the arguments; they may be names of files, so they are escaped."""
    if asks_for_json(arguments):
        hint = "git patchgate -h lists commands and options"
        return report_error(UsageError(printable(error.format_message()), hint), arguments)
    output = io.StringIO()
    error.show(output)
    for line in output.getvalue().splitlines():
        # What git calls itself it answers `--help` for by a man page.
        write_error(printable(line.replace(" --help'", " -h'")))
    return error.exit_code
