"""The table of commands, and how wrong arguments are reported."""

from __future__ import annotations

import importlib

import click

from patchgate import __version__
from patchgate.cli.output import report_error, write_error
from patchgate.errors import UsageError
from patchgate.git.quoting import printable

# Name, the module that has it as `NAME_command`, what it does. Shown in this order.
COMMANDS = (
    ("init", "install", "Write a first patchgate.toml, try it on the last commits, install the hooks."),
    ("check", "check", "Check a change: the staged one, REV, A..B, --worktree or --all."),
    ("apply", "apply", "Check a patch, test it, and apply all of it or nothing."),
    ("approve", "approve", "Allow one refused change, with a reason."),
    ("intent", "intent", "Declare which files your work will touch; show, renew and clear that."),
    ("commands", "commands", "Run the linters, formatters and tests of the policy; list and allow them."),
    ("analyze", "verify", "Run the analyses of the policy on a tree."),
    ("verify", "verify", "Compare two trees: did quality drop, and did this change cause it?"),
    ("fix", "fix", "Apply what formatters and fix commands propose for the staged change."),
    ("claim", "claim", "Check a reviewer's claim that a placeholder remains."),
    ("component", "component", "Show components, validate their contracts, generate tests."),
    ("baseline", "component", "Record components whose tests pass; show what changed since."),
    ("run", "run", "Take components through their phases; survives a kill at any moment."),
    ("status", "status", "One page: runs, drift, intents, open attempts, and what comes next."),
    ("explain", "explain", "Explain a rule, or which line of the policy decides about a path."),
    ("doctor", "doctor", "Check that the hooks really run, in every worktree."),
    ("install", "install", "Install the hooks; existing hooks run before them."),
    ("log", "log", "Show what was refused, approved and skipped, and why."),
    ("uninstall", "install", "Remove the hooks and restore what was there before."),
    ("hook", "install", "Called by the installed hooks."),
    ("recover", "apply", "Finish or undo an apply that was killed."),
    ("attempts", "apply", "List, show, prune and reset the attempts of apply."),
    ("agent", "agent", "For agents: hooks in their settings, replies, briefs, and an MCP server."),
    ("policy", "explain", "Show the policy in effect, and where each key comes from."),
    ("selftest", "explain", "Trigger every rule with its built-in case."),
    ("schema", "explain", "Print the JSON Schema of a file or of an output."),
)
_CLOSING = (
    "check: may this land? verify: did quality drop? claim: is the reviewer right?\n\n"
    "Exit codes: 0 accepted, 1 rejected, 2 wrong arguments or config, 3 undecided."
)


class LazyGroup(click.Group):
    """A group that imports the module of a command only when that command is called."""

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
        """Find the command, or suggest a similar one."""
        if args and args[0] not in self.list_commands(ctx):
            import difflib

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            meant = f" Did you mean '{close[0]}'?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, _, about in COMMANDS])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_CLOSING)
@click.option("-C", "directory", metavar="DIR", help="Run as if started in DIR.")
@click.version_option(__version__, "-V", "--version", message="patchgate %(version)s")
@click.pass_context
def cli(context: click.Context, directory: str | None) -> None:
    """Check what git will really record, before it lands."""
    context.obj = directory


_ASKS_FOR_HELP = frozenset({"-h", "--help", "-V", "--version"})


def call(arguments: list[str]) -> int:
    """Run one command and give its exit code.

    Raises:
        PatchgateError: the command failed.
        KeyboardInterrupt: the user interrupted it.
    """
    try:
        # No variable makes click print completions, and exit with 0, in place of a verdict.
        result = cli.main(arguments, prog_name="git patchgate", complete_var="", standalone_mode=False)
    except click.UsageError as error:
        return _fail_arguments(error, arguments)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except SystemExit:
        # click exits like this when the reader of its help or version closes the pipe early.
        return 0 if _ASKS_FOR_HELP.intersection(arguments) else 1
    return result if isinstance(result, int) else 0


def _fail_arguments(error: click.UsageError, arguments: list[str]) -> int:
    """Report arguments that click could not read; they may be file names, so they are escaped."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        write_error(error.format_message())
        return error.exit_code
    message = printable(" ".join(error.format_message().split())).rstrip(".")
    command = error.ctx.command_path if error.ctx is not None else "git patchgate"
    # `git patchgate --help` opens a man page, `-h` prints the help.
    hint = f"{command} -h shows the usage"
    return report_error(UsageError(message[:1].lower() + message[1:], hint), arguments)
