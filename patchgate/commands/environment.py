"""What a command of the user's sees: its variables, and which program a bare name is.

Decides what of the caller's environment is handed on. Reads no environment itself: it comes in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_SCRUBBED = ("GIT_", "PATCHGATE_")


def command_environment(environ: Mapping[str, str], own: Mapping[str, str], place: str) -> dict[str, str]:
    """Make the environment of a command.

    Args:
        environ: the caller's; git's variables and ours are left out.
        own: what the config adds.
        place: the scratch tree, an absolute path: the working directory.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(_SCRUBBED)}
    # The config is UTF-8, whatever the locale says.
    kept |= {os.fsdecode(name.encode()): os.fsdecode(value.encode()) for name, value in own.items()}
    # An empty PATH would mean the working directory.
    kept["PATH"] = os.pathsep.join(_folders(kept.get("PATH", ""), place)) or os.defpath
    kept.pop("OLDPWD", None)
    kept["PWD"] = place
    above = os.path.dirname(place)
    # git takes a list here, and has no way to write a folder whose name holds the separator.
    if os.pathsep not in above:
        kept["GIT_CEILING_DIRECTORIES"] = above
    return kept


def _folders(path: str, place: str) -> list[str]:
    """Choose the entries of PATH that a patch cannot put a program into: absolute, and outside the tree."""
    inside = os.path.join(os.path.realpath(place), "")
    return [
        entry
        for entry in path.split(os.pathsep)
        if os.path.isabs(entry) and not os.path.join(os.path.realpath(entry), "").startswith(inside)
    ]


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """Find the file that a bare name stands for in an environment of `command_environment`."""
    for folder in environment["PATH"].split(os.pathsep):
        file = os.path.join(folder, name)
        if folder and os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    return None
