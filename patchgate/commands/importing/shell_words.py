"""Read a command line that another manager gives to a shell, with its placeholders for files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from patchgate.values import dataclass

# What a shell would do something with, outside quotes.
_SHELL = re.compile(r"[|&;<>`$()*?~#\n]|(?<!\S)\w+=")
_FILES = '"$@"'


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The words of a command, without the files, and whether they follow."""

    words: tuple[str, ...]
    takes_files: bool


def read_command_line(text: str, placeholders: Mapping[str, bool]) -> CommandLine | None:
    """Split a command line; what needs a shell becomes `sh -c`.

    Args:
        text: the command line.
        placeholders: what it may contain for the names of files, and whether that means the changed ones.

    Returns:
        None: it is empty or not closed, or it asks for other files.
    """
    found = [each for each in placeholders if each in text]
    if any(not placeholders[each] for each in found) or "\0" in text or not text.strip():
        return None
    plain = text.strip()
    for each in found:
        # A shell joins a quoted placeholder into one word; the names are words of their own here.
        plain = plain.replace(f'"{each}"', each).replace(f"'{each}'", each).replace(each, _FILES)
    try:
        words = shlex.split(plain)
    except ValueError:
        return None
    outside = plain.replace(_FILES, "")
    is_last = bool(found) and plain.endswith(f" {_FILES}") and plain.count(_FILES) == 1
    if not _SHELL.search(_without_quotes(outside)) and "{" not in outside:
        if not found:
            return CommandLine(tuple(words), takes_files=False)
        if is_last:
            return CommandLine(tuple(words[:-1]), takes_files=True)
    if "{" in _without_quotes(outside).replace("${", ""):
        return None
    return CommandLine(("sh", "-c", plain, "sh") if found else ("sh", "-c", plain), takes_files=bool(found))


def _without_quotes(text: str) -> str:
    return re.sub(r"'[^']*'|\"(?:[^\"\\$`]|\\.)*\"", "", text)
