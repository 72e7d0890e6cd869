"""Check the version of a program that a command requires, once for each program file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from patchgate.commands.command_plan import CommandPlan
from patchgate.commands.programs import NO_TREE, command_environment, locate_program
from patchgate.commands.remembered_answers import RememberedAnswers, version_context
from patchgate.errors import PatchgateError
from patchgate.git.quoting import printable

_SECONDS = 20.0
_MOST_OUTPUT = 1 << 16
_NUMBER = re.compile(rb"(?<![\w.])v?([0-9]+(?:\.[0-9]+)+(?:(?:a|b|rc|\.dev|\.post)[0-9]+)?)")


def version_fault(
    plan: CommandPlan, environ: Mapping[str, str], answers: RememberedAnswers
) -> tuple[str, str] | None:
    """Return why the version of a command's program may not run, and the next step; None if it may.

    Args:
        environ: the environment that all programs of the policy share.
    """
    settings = plan.settings
    if settings.version is None:
        return None
    asked = settings.version_command or (settings.command[0], "--version")
    context = version_context(plan.tool, asked, settings.version)
    if answers.known(context, ["ok"]):
        return None
    variables = command_environment(environ, settings.env, NO_TREE, os.sep)
    program, _ = locate_program(settings, variables)
    found = _version(plan, tuple(asked), program, variables)
    if found is None:
        what = f"was not started: {printable(' '.join(asked), 200)} prints no version"
        return what, "set `version_command` to what prints it"
    from patchgate.policy.validators import version_satisfies

    if not version_satisfies(settings.version, found):
        name = printable(settings.command[0], 60)
        return (
            f"was not started: it requires {name} {settings.version}, and this is {printable(found, 40)}",
            f"install {name} {settings.version}",
        )
    answers.keep(context, ["ok"])
    return None


def _version(
    plan: CommandPlan, asked: tuple[str, ...], program: str | None, variables: Mapping[str, str]
) -> str | None:
    from patchgate.process.child import run

    # The same program is asked as runs.
    words = [program or asked[0], *asked[1:]] if asked[0] == plan.settings.command[0] else list(asked)
    try:
        done = run(words, cwd=os.sep, env=variables, seconds=_SECONDS, max_output=_MOST_OUTPUT)
    except PatchgateError:
        return None
    found = _NUMBER.search(done.out) or _NUMBER.search(done.err)
    return None if found is None or done.code != 0 else found[1].decode("ascii")
