"""The command: `git patchgate`, and `patchgate`, which is the same.

Decides which commands there are, and what becomes of an error: one sentence, the next step, an exit code.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from types import FrameType

import click

from patchgate import __version__
from patchgate.errors import PatchgateError
from patchgate.surfaces.output import complain, fail, fail_arguments

# Name, the module that holds it, what it does. Shown in this order.
COMMANDS = (
    ("init", "init", "Look at the repository, write patchgate.toml, rehearse on the last commits."),
    ("check", "check", "Judge a change: the staged one, REV, A..B, --worktree or --all."),
    ("approve", "approve", "Grant one exception, with a reason."),
    ("explain", "explain", "Say what a rule means, or which line decides about a path."),
    ("doctor", "doctor", "Tell whether the gate really runs here, in every worktree."),
    ("install", "install", "Install the hooks; what is there runs before them."),
    ("log", "log", "Show the ledger: refusals, exceptions, what was skipped and why."),
    ("uninstall", "uninstall", "Take the hooks out; what was there before is there again."),
    ("hook", "hook", "What the installed hooks call."),
    ("policy", "policy", "Show the policy in force, and where each key comes from."),
    ("selftest", "selftest", "Raise every rule from its built-in case."),
    ("schema", "schema", "Print the JSON Schema of the config or of an output."),
)
_CLOSING = "check: may this land? Exit codes: 0 accepted, 1 rejected, 2 wrong arguments, 3 undecided."


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of the table."""
        return [name for name, _, _ in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        for name, module, _ in COMMANDS:
            if name == cmd_name:
                loaded = importlib.import_module(f"patchgate.surfaces.{module}").command
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


class _Ended(BaseException):
    """A signal asked this process to end."""


def _end(number: int, frame: FrameType | None) -> None:
    raise _Ended


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # One command, one process: nothing lives long enough to be worth the collector's walks (13 % of a range).
    gc.disable()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    # Whoever closed them does not want to read; but no other file may take their numbers.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        # A terminal in the C locale cannot show every name; it must not make us crash.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    code = _run(sys.argv[1:])
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        os.close(1)
    # Nothing is left to do; the interpreter's own tidying costs 5 ms.
    os._exit(code)


def _run(arguments: list[str]) -> int:
    try:
        result = cli.main(arguments, prog_name="git patchgate", standalone_mode=False)
    except PatchgateError as error:
        return fail(error, arguments)
    except click.UsageError as error:
        return fail_arguments(error, arguments)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted")
        return 130
    except _Ended:
        complain("ended by a signal")
        return 143
    except SystemExit:
        # click ends so when nobody reads its help or version to the end; reports are written by `write`.
        return 0
    except OSError as error:
        return fail(PatchgateError(f"the system refused: {error.strerror or error}"), arguments)
    except Exception as error:  # noqa: BLE001 - a crash of ours must be a refusal with one sentence
        kind = type(error).__name__
        return fail(PatchgateError(f"patchgate itself failed ({kind})", "please report it"), arguments)
    return result if isinstance(result, int) else 0
