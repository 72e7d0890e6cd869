"""What the texts of `[components.ID]` and `[baselines]` may be.

Decides the ids, paths, patterns and test commands that the config takes. What they mean for a path is told in
`component`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from patchgate.git.path import fold, is_git_alias
from patchgate.git.quoting import printable
from patchgate.policy.command import argument_with, command_with
from patchgate.policy.texts import TextError, check_prefix

if TYPE_CHECKING:
    from patchgate.policy.config_tables import ComponentTable

TESTS = "{tests}"
_LIKE = "name a file like contracts/shaping/interface.json"
# Up to the first dot, as Windows has it: https://learn.microsoft.com/windows/win32/fileio/naming-a-file
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)
COMPONENT_ID = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?"


def check_id(text: str) -> str:
    """Give the id of a component back; its baseline is named for it.

    Raises:
        ValueError: it is no such id.
    """
    if _RESERVED.fullmatch(text):
        raise TextError(
            f"`{text}` cannot name a component: Windows has no file of that name, and a baseline has it",
            "give it another id",
        )
    if not re.fullmatch(COMPONENT_ID, text):
        raise TextError(
            f"`{printable(text, 80)}` cannot name a component",
            "an id has up to 64 of A-Z, a-z, 0-9, -, _ and ., begins with a letter or digit, ends in no .",
        )
    return text


def check_contract(text: str) -> str:
    """Give the path of a contract back.

    Raises:
        ValueError: it is no plain path from the root, or lies where no contract can.
    """
    check_prefix(text)
    parts = text.split("/")
    if text.endswith("/") or "." in parts:
        raise TextError("this names a folder", _LIKE)
    if any(is_git_alias(part.encode("utf-8", "surrogateescape")) for part in parts):
        raise TextError("no contract lies in `.git`, which no commit can hold", _LIKE)
    if fold(parts[0].encode("utf-8", "surrogateescape")) == ".patchgate":
        raise TextError("no contract lies in `.patchgate`, where baselines are kept", _LIKE)
    return text


def check_root(text: str) -> str:
    """Give a folder back in which modules begin.

    Raises:
        ValueError: it is no path from the root.
    """
    check_prefix(text)
    if ":" in text:
        raise TextError("PYTHONPATH cannot hold a folder with a colon", "name another folder")
    return text


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


def check_components(tables: dict[str, ComponentTable]) -> dict[str, ComponentTable]:
    """Give the components back.

    Raises:
        ValueError: two baselines would share a file on some system, or somebody is his own ancestor.
    """
    folded: dict[str, str] = {}
    for name in tables:
        other = folded.setdefault(name.lower(), name)
        if other != name:
            raise TextError(f"`{other}` and `{name}` differ in case alone", "give one of them another id")
    parents = {name: table.parent for name, table in tables.items()}
    _refuse_circle(parents)
    return tables


def _refuse_circle(parents: Mapping[str, str | None]) -> None:
    """Walk up from each id, and stop where one was walked before: that way leads to no circle."""
    walked: set[str] = set()
    for name in parents:
        line: dict[str, None] = {}
        above: str | None = name
        while above is not None and above not in walked and above not in line:
            line[above] = None
            above = parents.get(above)
        if above is not None and above in line:
            way = list(line)
            circle = way[way.index(above) :]
            # It begins with the one that is declared first.
            place = circle.index(next(each for each in parents if each in circle))
            shown = " -> ".join([*circle[place:], *circle[:place], circle[place]])
            raise TextError(f"the parents go in a circle: {shown}", "take one of them out")
        walked.update(line)
