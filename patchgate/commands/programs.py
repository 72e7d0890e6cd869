"""The program of a command: its environment, where it is found, what identifies it.

Imports only what is quick, for the fast path needs it as well. `environment` prepares and checks what all
programs of a policy share.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from patchgate.policy.command_settings import CommandSettings

NO_TREE = os.path.join(os.sep, "nowhere", "tree")
"""Stands for a scratch tree that contains no folder of PATH, so that none is left out."""
_SCRUBBED = ("GIT_", "PATCHGATE_")
_LEAST_ROOM = 4096


def command_environment(
    environ: Mapping[str, str], own: Mapping[str, str], place: str, folder: str | None = None
) -> dict[str, str]:
    """Make the environment of one program.

    Args:
        environ: that of `prepare_environment`; variables of git and patchgate are left out.
        own: the variables of its table in the config. A PATH among them replaces the other one.
        place: the scratch tree, an absolute path.
        folder: the working directory; None: the scratch tree.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(_SCRUBBED)}
    kept |= decoded(own)
    # An empty PATH would mean the working directory.
    kept["PATH"] = os.pathsep.join(_safe_folders(kept.get("PATH", ""), place)) or os.defpath
    kept.pop("OLDPWD", None)
    kept["PWD"] = folder or place
    above = os.path.dirname(place)
    # git takes a list here, and cannot express a folder whose name contains the separator.
    if os.pathsep not in above:
        kept["GIT_CEILING_DIRECTORIES"] = above
    return kept


def decoded(variables: Mapping[str, str]) -> dict[str, str]:
    """Turn variables of the config into those of a process."""
    # The config is UTF-8 in every locale.
    return {os.fsdecode(name.encode()): os.fsdecode(value.encode()) for name, value in variables.items()}


def _safe_folders(path: str, place: str) -> list[str]:
    """Keep the entries of PATH where a patch cannot put a program: absolute, and outside the tree."""
    inside = os.path.join(os.path.realpath(place), "")
    return [
        entry
        for entry in path.split(os.pathsep)
        if os.path.isabs(entry) and not os.path.join(os.path.realpath(entry), "").startswith(inside)
    ]


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """Find a program on the PATH of an environment."""
    return find_in(environment.get("PATH", "").split(os.pathsep), name)


def find_in(folders: Iterable[str], name: str) -> str | None:
    """Find a program in some folders."""
    return next(
        (file for folder in folders if folder and is_program(file := os.path.join(folder, name))), None
    )


def is_program(file: str) -> bool:
    """Whether a file can be started."""
    return os.path.isfile(file) and os.access(file, os.X_OK)


def locate_program(
    settings: CommandSettings, environment: Mapping[str, str]
) -> tuple[str | None, tuple[str, ...]]:
    """Find the program of a command, and list the missing tools.

    The program is listed only if no tool is missing. A program with a `/` is not searched on PATH.
    """
    missing = tuple(tool for tool in settings.required_tools if find_program(tool, environment) is None)
    program = settings.command[0]
    file = program if "/" in program else find_program(os.fsdecode(program.encode()), environment)
    return file, missing or (() if file is not None else (program,))


def tool_identity(
    settings: CommandSettings, environ: Mapping[str, str], place: str | None = None
) -> str | None:
    """Identify the programs that an analysis or a command runs; another version gives another text.

    For the program and each of `required_tools`: where it was found, its real path, size and time. A program
    of the tree (`./x`) is identified by the tree. The modules that a program loads (`python -m x`) are not
    included: `required_tools` can name a program that is installed with them.

    Args:
        settings: what the config says of it.
        environ: the caller's environment.
        place: the scratch tree, whose own programs do not count; None if there is none yet.

    Returns:
        None if one of them is missing.
    """
    # If there is no tree yet, no folder of PATH can be in it.
    return identity_in(settings, command_environment(environ, settings.env, place or NO_TREE))


def identity_in(settings: CommandSettings, environment: Mapping[str, str]) -> str | None:
    """Identify the programs of a command in its own environment, as `tool_identity` does."""
    program, missing = locate_program(settings, environment)
    if missing or program is None:
        return None
    tools = [find_program(tool, environment) for tool in settings.required_tools]
    files = []
    for file in (program, *filter(None, tools)):
        real = os.path.realpath(file)
        try:
            state = os.stat(real) if os.path.isabs(file) else None
        except OSError:
            return None
        files.append(f"{file} {real} {state.st_size} {state.st_mtime_ns}" if state is not None else file)
    return "\n".join(files)


def working_folder(settings: CommandSettings, place: str) -> str:
    """Return the folder of a scratch tree in which a command runs; it is made if the tree lacks it.

    Raises:
        UndecidedError: it cannot be made, or a symlink leads out of the tree.
    """
    if not settings.root:
        return place
    folder = os.path.join(place, os.fsdecode(settings.root.encode()))
    inside = os.path.join(os.path.realpath(place), "")
    try:
        if os.path.realpath(folder).startswith(inside):
            os.makedirs(folder, exist_ok=True)
            return folder
        reason = "it leads out of the tree"
    except OSError as error:
        reason = error.strerror or str(error)
    # Imported here: they take 8 ms, and are for an error.
    from patchgate.errors import UndecidedError
    from patchgate.git.quoting import printable

    raise UndecidedError(
        f"a command cannot run in its root {printable(settings.root, 200)}: {reason}",
        "name a folder of the repository as `root`",
    )


def argument_room(environment: Mapping[str, str]) -> int:
    """Return how many bytes the arguments of a command may take: half of the limit, less the environment."""
    taken = sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 10 for name, value in environment.items())
    return max(_LEAST_ROOM, os.sysconf("SC_ARG_MAX") // 2 - taken)
