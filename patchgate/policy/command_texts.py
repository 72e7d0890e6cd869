"""What the texts of `[commands.NAME]`, `[analyses.NAME]`, `[[thresholds]]` and `[verify]` may be.

Each check gives the text back or raises `TextError` with the next step. What a command is run with is decided
in `command`, what a threshold means in `verify`.
"""

from __future__ import annotations

import math
import re

from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import printable
from patchgate.policy.texts import TextError

FILES = "{files}"
TESTS = "{tests}"
NAME = "[a-z0-9][a-z0-9_-]{0,40}"
TIMEOUT = "[0-9]{1,6}(?:\\.[0-9]{1,3})?[smh]"
MAX_SECONDS = 24 * 3600
_UNITS = {"s": 1, "m": 60, "h": 3600}
FINDINGS, NEW_FINDINGS = "findings", "findings:new"
METRIC = "[A-Za-z_][A-Za-z0-9_.:/-]{0,99}"
_LIKE = '["ruff", "check", "--no-fix", "--output-format", "sarif", "--exit-zero", "."]'


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


def check_test_argument(text: str) -> str:
    """Give one argument of a test command back.

    Raises:
        ValueError: the system or the placeholder does not allow it.
    """
    return argument_with(text, TESTS)


def check_test_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Give the arguments of a test command back.

    Raises:
        ValueError: they name no program, or the tests twice.
    """
    return command_with(words, TESTS, '["python", "-m", "pytest", "{tests}"]')


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


def check_analysis(text: str) -> str:
    """Give the name of an analysis, or of a threshold, back.

    Raises:
        ValueError: it is no such name.
    """
    if not re.fullmatch(NAME, text):
        raise TextError(
            f"`{printable(text, 60)}` is no name",
            "a name has up to 41 of a-z, 0-9, - and _, and begins with a letter or digit",
        )
    return text


def check_analysis_argument(text: str) -> str:
    """Give one argument of an analysis back.

    Raises:
        ValueError: the system does not allow it, or it is a placeholder.
    """
    without_nul(text)
    if re.fullmatch(r"\{[A-Za-z_]+\}", text):
        raise TextError(
            f"unknown placeholder `{printable(text, 60)}`",
            "an analysis looks at the whole tree: name `.`, or the folders",
        )
    return text


def check_analysis_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Give the arguments of an analysis back.

    Raises:
        ValueError: they name no program.
    """
    if not words or not words[0]:
        raise TextError("a command begins with its program", f"like {_LIKE}")
    return words


def check_metric(text: str) -> str:
    """Give what a threshold limits back: `findings`, `findings:new`, or the name of a metric.

    Raises:
        ValueError: it is none of these.
    """
    if not re.fullmatch(METRIC, text) or (text.startswith("findings:") and text != NEW_FINDINGS):
        raise TextError(
            f"`{printable(text, 60)}` is no metric",
            f'write "{NEW_FINDINGS}", "{FINDINGS}", or the name of a metric that an analysis tells',
        )
    return text


def check_most(value: float) -> float:
    """Give the limit of a threshold back.

    Raises:
        ValueError: it is no number that anything can be compared with.
    """
    if not (math.isfinite(value) and value >= 0):
        raise TextError("a limit is a number of 0 or more", "write it like 0, 10 or 2.5")
    return value


def check_baseline_file(text: str) -> str:
    """Give the path of a file back whose growth is suspicious.

    Raises:
        ValueError: it is no plain path of a file from the root.
    """
    if not text or text.endswith("/") or faults(RepoPath(text.encode("utf-8", "surrogateescape"))):
        raise TextError(
            f"`{printable(text, 80)}` is no path of a file from the root", "like ruff-baseline.json"
        )
    return text
