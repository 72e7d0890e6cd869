"""What the texts of `[components.ID]` and `[baselines]` may be.

Decides the ids, paths, patterns and test commands that the config takes. What they mean for a path is told in
`component`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from patchgate.change.quoting import printable
from patchgate.declared.command import without_nul
from patchgate.declared.texts import TextError, check_pattern, check_prefix

if TYPE_CHECKING:
    from patchgate.declared.config_tables import ComponentTable

TESTS = "{tests}"
COMPONENT_ID = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-])?"


def check_id(text: str) -> str:
    """Give the id of a component back; its baseline is named for it.

    Raises:
        ValueError: it is no such id.
    """
    if not re.fullmatch(COMPONENT_ID, text):
        raise TextError(
            f"`{printable(text, 80)}` cannot name a component",
            "an id has up to 64 of A-Z, a-z, 0-9, -, _ and ., begins with a letter or digit, ends in no .",
        )
    return text


def check_contract(text: str) -> str:
    """Give the path of a contract back.

    Raises:
        ValueError: it is no plain path from the root.
    """
    check_prefix(text)
    if text.endswith("/") or "." in text.split("/"):
        raise TextError("this names a folder", "name the file, like contracts/shaping/interface.json")
    return text


def check_glob(text: str) -> str:
    """Give a pattern of a component's files back.

    Raises:
        ValueError: it can match nothing, or is not supported.
    """
    return check_pattern(text)


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
    without_nul(text)
    if text == TESTS:
        return text
    if TESTS in text:
        raise TextError(
            f"`{TESTS}` stands within a longer argument", f'write it as an argument of its own: "{TESTS}"'
        )
    if re.fullmatch(r"\{[A-Za-z_]*\}", text) and text != "{}":
        raise TextError(
            f"unknown placeholder `{printable(text, 60)}`", f"did you mean `{TESTS}`? there is no other"
        )
    return text


def check_test_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Give the arguments of a test command back.

    Raises:
        ValueError: they name no program, or the tests twice.
    """
    if not words or words[0] in {"", TESTS}:
        raise TextError("a command begins with its program", 'like ["python", "-m", "pytest", "{tests}"]')
    if words.count(TESTS) > 1:
        raise TextError(f"`{TESTS}` may stand only once in a command", "take the others out")
    return words


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
    for name in parents:
        _refuse_circle(name, parents)
    return tables


def _refuse_circle(name: str, parents: Mapping[str, str | None]) -> None:
    line = [name]
    while (above := parents.get(line[-1])) is not None:
        if above == name:
            circle = " -> ".join([*line, name])
            raise TextError(f"the parents go in a circle: {circle}", "take one of them out")
        if above in line:
            return
        line.append(above)
