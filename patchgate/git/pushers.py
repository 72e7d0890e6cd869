"""Who pushes into a repository: one of its own worktrees, or somebody else.

Decides by the processes above a hook: git starts `git receive-pack` below `git push` where the URL is a
folder. So a push from another machine, or through a daemon or ssh, has no such process above it. Where one
has, but the folder in which it works cannot be read, it counts as the repository's own. Whoever starts the
two apart is not found: a process is a witness and no proof.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.progress import PS_ENVIRONMENT, about_process, command_named, options_of
from patchgate.git.repository import Repository, open_repository
from patchgate.process import run

_FOREBEARS = 32
_PUSHES = frozenset({"push", "send-pack"})
_TELLING = frozenset({"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"})


def pusher_of(repository: Repository, process: int) -> Repository | None:
    """Open the repository as the worktree has it that pushes into it; None where another one pushes.

    Args:
        repository: what is pushed into; given back where nobody can tell which worktree pushes.
        process: the process that runs the hook.
    """
    for _ in range(_FOREBEARS):
        above, arguments = about_process(process)
        if not arguments:
            return repository
        if command_named(arguments) in _PUSHES:
            return _opened(repository, process, arguments)
        if above <= 1:
            return None
        process = above
    return repository


def _opened(repository: Repository, process: int, arguments: Sequence[str]) -> Repository | None:
    folder = directory_of(process)
    if folder is None:
        return repository
    environment = {name: value for name, value in repository.environment.items() if name not in _TELLING}
    environment |= _environment_of(process)
    for option, name in (("--git-dir", "GIT_DIR"), ("--work-tree", "GIT_WORK_TREE")):
        if option in (given := options_of(arguments)):
            environment[name] = given[option]
    try:
        pusher = open_repository(environment, folder)
        is_same = os.path.samefile(pusher.common_dir, repository.common_dir)
    except (PatchgateError, OSError):
        return repository
    return pusher if is_same else None


def _environment_of(process: int) -> dict[str, str]:
    """Read the variables with which a process was told of a repository; none without /proc."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            pairs = [os.fsdecode(each).partition("=") for each in file.read().split(b"\0")]
    except OSError:
        return {}
    return {name: value for name, _, value in pairs if name in _TELLING}


def directory_of(process: int) -> str | None:
    """Find the folder in which a process works: by /proc, else by `lsof`; None where neither tells."""
    try:
        return os.readlink(f"/proc/{process}/cwd")
    except OSError:
        return directory_by_lsof(process)


def directory_by_lsof(process: int) -> str | None:
    """Ask `lsof` for the folder in which a process works; None where it does not tell."""
    try:
        done = run(["lsof", "-a", "-p", str(process), "-d", "cwd", "-F", "n"], cwd=None, env=PS_ENVIRONMENT)
    except UndecidedError:
        return None
    named = [line[1:] for line in done.out.split(b"\n") if line.startswith(b"n/")]
    return os.fsdecode(named[0]) if len(named) == 1 else None
