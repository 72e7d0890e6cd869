"""Files of tests that are given to an interpreter, of which it would run the first alone.

Decides which commands those are: an interpreter that runs one script, with `{tests}` right behind it. It
takes every other file as an argument of the first, and a failing test in one would be recorded as passed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence

from patchgate.components.capture_run import Ending, Ran
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.policy.component import Component
from patchgate.policy.component_texts import TESTS

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_INTERPRETERS = _SHELLS | {"node", "python", "ruby", "perl"}
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*\Z")
# Of a shell: what takes no argument, and leaves the next word to be the script.
_OPTIONS = re.compile(r"-[efuvx]+")


def refusal_of_scripts(component: Component, files: Sequence[RepoPath]) -> Ran | None:
    """Refuse a command that would run the first of several files alone; None where it runs them as it likes.

    Args:
        files: what `{tests}` stands for.
    """
    command = component.settings.test_command
    if len(files) < 2 or TESTS not in command:
        return None
    name = os.path.basename(command[0])
    between = command[1 : command.index(TESTS)]
    if name in _SHELLS and all(_OPTIONS.fullmatch(word) for word in between):
        between = ()
    if between or _VERSION.sub("", name) not in _INTERPRETERS:
        return None
    number = len(files) - 1
    others = "other file as an argument" if number == 1 else f"{number} others as arguments"
    reason = f"{name} would run {files[0].quoted} of its tests alone, and take the {others}"
    each = shlex.join(command[: command.index(TESTS)])
    loop = ["sh", "-c", f'for t; do {each} "$t" || exit; done', "tests", TESTS]
    return Ran(Ending.REFUSED, reason, printable(f"let it run each: test_command = {json.dumps(loop)}", 400))
