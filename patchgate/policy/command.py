"""A command of the user's: what its texts may be, in which order commands run, what `{files}` stands for.

Decides the names, arguments, timeouts and variables that `[commands.NAME]` takes, and the argument list that
comes of a command and the files of a change. Does not run anything, nor look for a program (`commands`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from patchgate.git.quoting import printable
from patchgate.policy.texts import TextError

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.git.path import RepoPath
    from patchgate.policy.settings import CommandSettings

FILES = "{files}"
NAME = "[a-z0-9][a-z0-9_-]{0,40}"
TIMEOUT = "[0-9]{1,6}(?:\\.[0-9]{1,3})?[smh]"
MAX_SECONDS = 24 * 3600
_UNITS = {"s": 1, "m": 60, "h": 3600}
# A tool may take what begins so for an option, a file of arguments (ruff, javac) or an order (vim).
_SPECIAL = (b"-", b"@", b"+")


def check_name(text: str) -> str:
    """Give the name of a command back; it also names its log.

    Raises:
        ValueError: it is no such name.
    """
    if not re.fullmatch(NAME, text):
        raise TextError(
            f"`{printable(text, 60)}` cannot name a command",
            "a name has up to 41 of a-z, 0-9, - and _, and begins with a letter or digit",
        )
    return text


def check_words(value: object) -> object:
    """Refuse a command that is one string: no shell takes it apart.

    Raises:
        ValueError: it is a string.
    """
    if isinstance(value, str):
        raise TextError(
            "a command is a list of arguments, and no shell takes a string apart",
            'write each argument by itself, like ["ruff", "check", "--no-fix", "{files}"]',
        )
    return value


def argument_with(text: str, placeholder: str) -> str:
    """Give one argument of a command back.

    Args:
        placeholder: the one that this command knows.

    Raises:
        ValueError: the system or the placeholder does not allow it.
    """
    without_nul(text)
    if text == placeholder:
        return text
    if placeholder in text:
        raise TextError(
            f"`{placeholder}` stands within a longer argument",
            f'write it as an argument of its own: "{placeholder}"',
        )
    if re.fullmatch(r"\{[A-Za-z_]*\}", text) and text != "{}":
        raise TextError(
            f"unknown placeholder `{printable(text, 60)}`",
            f"did you mean `{placeholder}`? there is no other",
        )
    return text


def command_with(words: tuple[str, ...], placeholder: str, like: str) -> tuple[str, ...]:
    """Give the arguments of a command back.

    Args:
        placeholder: the one that this command knows.
        like: a command that is right, for the hint.

    Raises:
        ValueError: they name no program, or the placeholder twice.
    """
    if not words or words[0] in {"", placeholder}:
        raise TextError("a command begins with its program", f"like {like}")
    if words.count(placeholder) > 1:
        raise TextError(f"`{placeholder}` may stand only once in a command", "take the others out")
    return words


def check_argument(text: str) -> str:
    """Give one argument of a command on files back.

    Raises:
        ValueError: the system or the placeholder does not allow it.
    """
    return argument_with(text, FILES)


def check_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Give the arguments of a command on files back.

    Raises:
        ValueError: they name no program, or the files twice.
    """
    return command_with(words, FILES, '["ruff", "check", "--no-fix", "{files}"]')


def check_timeout(value: float | str) -> float | str:
    """Give a timeout back as it is written.

    Raises:
        ValueError: it cannot be read, or is no time between 0 and 24 hours.
    """
    if isinstance(value, str) and not re.fullmatch(TIMEOUT, value):
        raise TextError(
            f'"{printable(value, 40)}" is not a time', 'write it as seconds, or like "90s", "5m" or "1h"'
        )
    # So written that what is not a number is refused too.
    if not 0 < seconds(value) <= MAX_SECONDS:
        raise TextError("a timeout is more than 0 and at most 24 hours", 'write it like "90s", "5m" or "1h"')
    return value


def seconds(value: float | str) -> float:
    """Read a timeout that was checked, in seconds."""
    return float(value[:-1]) * _UNITS[value[-1]] if isinstance(value, str) else float(value)


def check_variable(text: str) -> str:
    """Give the name of a variable back.

    Raises:
        ValueError: the system does not allow it, or it is git's.
    """
    without_nul(text)
    if not text or "=" in text:
        raise TextError("the name of a variable is not empty and has no `=`", "name the variable alone")
    if text.startswith("GIT_"):
        raise TextError(
            "git's variables are not handed to a command",
            "take it out, or let the command be a script that sets it",
        )
    return text


def check_value(text: str) -> str:
    """Give the value of a variable back.

    Raises:
        ValueError: the system does not allow it.
    """
    return without_nul(text)


def check_tool(text: str) -> str:
    """Give the name of a program back that is looked up on PATH.

    Raises:
        ValueError: no such lookup could find it.
    """
    without_nul(text)
    if not text or "/" in text:
        raise TextError("a tool is the bare name of a program on PATH", 'write it like "ruff"')
    return text


def without_nul(text: str) -> str:
    """Give a text back that is handed to the system.

    Raises:
        ValueError: it holds a NUL.
    """
    if "\0" in text:
        raise TextError("the system takes no NUL here", "take it out")
    return text


def in_order(commands: Mapping[str, CommandSettings]) -> list[tuple[str, CommandSettings]]:
    """List commands as they run: all lint commands, then all tests, each as they stand in the config."""
    return sorted(commands.items(), key=lambda named: named[1].kind != "lint")


def files_of(changes: Iterable[FileChange]) -> tuple[RepoPath, ...]:
    """Choose the files that a command is asked to look at: added or changed, and regular afterwards.

    What is deleted is not there any more; a symlink could lead a tool that writes out of the scratch tree; a
    gitlink is a folder of another repository.
    """
    return tuple(file.path for file in changes if file.new is not None and file.new.is_file)


def needs_files(settings: CommandSettings) -> bool:
    """Tell whether a command names the files that it looks at, so that without any it has nothing to do."""
    return FILES in settings.command


def expand(settings: CommandSettings, files: Iterable[RepoPath]) -> list[bytes]:
    """Make the argument list of a command, `{files}` replaced by the paths in the order of their bytes.

    A path that a tool could take for something else, since it begins with `-`, `@` or `+`, gets `./` before
    it.
    """
    paths = [b"./" + raw if raw.startswith(_SPECIAL) else raw for raw in sorted(path.raw for path in files)]
    words: list[bytes] = []
    for word in settings.command:
        words += paths if word == FILES else [word.encode()]
    return words
