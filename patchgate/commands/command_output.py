"""The output of a command: its own lines with paths as in the repository, and its whole log in a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from patchgate.commands.command_answer import MOST_LINES
from patchgate.commands.command_trial import CommandTrial
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable

_MOST_READ = 1 << 20
_MOST_LINE = 400
_MOST_FILES = 500


def save_log(folder: str, name: str, parts: Sequence[str]) -> str | None:
    """Save the logs of a command's processes as one file, which replaces that of its last run.

    Returns:
        The file; None if there is nothing in it, or it cannot be written.
    """
    file = os.path.join(folder, f"{name}.log")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        length = 0
        with open(os.open(file, flags, 0o600), "wb") as log:
            for part in parts:
                if os.path.exists(part):
                    with open(part, "rb") as stream:
                        while data := stream.read(_MOST_READ):
                            length += log.write(data)
    except OSError:
        return None
    return file if length else None


def read_lines(trial: CommandTrial, mask: Callable[[bytes], bytes]) -> tuple[tuple[str, ...], int]:
    """Return the lines of a command's output to show, and how many more there are.

    The first ones; of a test the last ones, where its summary is.
    """
    raw = b"".join(_read(part[2]) for part in trial.parts)
    settings = trial.plan.settings
    shorten = path_shortener(trial.place, settings.root, trial.plan.files)
    lines = [
        line
        for each in mask(raw).replace(b"\r\n", b"\n").rstrip().split(b"\n")
        if (line := printable(shorten(each.rpartition(b"\r")[2].rstrip()), _MOST_LINE)) or each
    ]
    if not any(line.strip() for line in lines):
        return (), 0
    shown = lines[-MOST_LINES:] if settings.kind == "test" else lines[:MOST_LINES]
    return tuple(shown), len(lines) - len(shown)


def _read(file: str) -> bytes:
    try:
        with open(file, "rb") as stream:
            return stream.read(_MOST_READ)
    except OSError:
        return b""


def path_shortener(place: str, root: str, files: Sequence[RepoPath]) -> Callable[[bytes], bytes]:
    """Return a function that writes the paths in a line as the repository has them.

    Args:
        place: the scratch tree, which the line may name.
        root: the folder in which the tool ran, to which its paths are relative.
        files: the files that it got.
    """
    prefixes = sorted({os.fsencode(each) for each in (place, os.path.realpath(place))}, key=len, reverse=True)
    below = f"{root}/".encode() if root else b""
    names = [path.raw[len(below) :] for path in files[:_MOST_FILES]]
    pattern = None
    if names:
        listed = b"|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        pattern = re.compile(rb"(?<![\w./-])(?:\./)?(" + listed + rb")(?![\w/-])")

    def shorten(line: bytes) -> bytes:
        for prefix in prefixes:
            line = line.replace(prefix + b"/", b"").replace(prefix, b".")
        return line if pattern is None else pattern.sub(lambda found: below + found[1], line)

    return shorten
