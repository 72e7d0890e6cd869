"""Find the operation in progress (a rebase, a merge), the command that runs now, and who pushes.

An operation shows in the files of the git directory (`wt-status.c` reads the same). A single revert, reset or
switch leaves none: the arguments of a process above the hook show it, and a push from a worktree of this
repository. Somebody's own `git receive-pack` is not found: the answer is evidence, not proof.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum

from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.repository import Repository, open_repository
from patchgate.process.child import run

_FOREBEARS = 5
PS_ENVIRONMENT = {"LC_ALL": "C", "PATH": f"{os.defpath}:/usr/sbin:/sbin"}
"""The environment of a program that lists processes."""
_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})


class Operation(StrEnum):
    """An operation that is not finished."""

    REBASE = "rebase"
    AM = "am"
    CHERRY_PICK = "cherry-pick"
    REVERT = "revert"
    MERGE = "merge"


def operation_in_progress(repository: Repository) -> Operation | None:
    """Return the operation in progress; the outermost if they are nested."""

    def there(*names: str) -> bool:
        return os.path.exists(os.path.join(repository.git_dir, *names))

    if there("rebase-apply", "applying"):
        return Operation.AM
    if there("rebase-merge") or there("rebase-apply"):
        return Operation.REBASE
    if there("CHERRY_PICK_HEAD"):
        return Operation.CHERRY_PICK
    if there("REVERT_HEAD"):
        return Operation.REVERT
    if there("MERGE_HEAD"):
        return Operation.MERGE
    return _sequenced(repository)


def _sequenced(repository: Repository) -> Operation | None:
    """Read whether a sequence continues with picks or reverts."""
    try:
        with open(os.path.join(repository.git_dir, "sequencer", "todo"), "rb") as file:
            first = file.readline(64).split(b" ")[0]
    except OSError:
        return None
    return Operation.REVERT if first == b"revert" else Operation.CHERRY_PICK


def is_past_aborting(repository: Repository) -> bool:
    """Return whether a rebase by patches is at its last step, where git can no longer abort it.

    There `git rebase --abort` ends with "could not read '.git/rebase-apply/head-name'" (measured, 2.39.5).
    """
    folder = os.path.join(repository.git_dir, "rebase-apply")
    return os.path.isdir(folder) and not os.path.exists(os.path.join(folder, "head-name"))


def is_replaying(repository: Repository) -> bool:
    """Return whether commits are being replayed: the index may then have parts of several commits."""
    return operation_in_progress(repository) in {Operation.REBASE, Operation.AM}


def running_command(process: int) -> str:
    """Return the git command of a process or its nearest parents; empty if none is known."""
    for _ in range(_FOREBEARS):
        above, arguments = parent_and_arguments(process)
        if named := command_named(arguments):
            return named
        if above <= 1:
            return ""
        process = above
    return ""


def parent_and_arguments(process: int) -> tuple[int, list[str]]:
    """Read a process's parent and arguments: exactly from /proc, otherwise from `ps`, which separates them
    by blanks.
    """
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            arguments = [os.fsdecode(each) for each in file.read().split(b"\0")]
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name in brackets may contain brackets and blanks; state and parent follow the last bracket.
            return int(file.read().rpartition(b")")[2].split()[1]), arguments
    except (OSError, IndexError, ValueError):
        pass
    asked = ["ps", "-o", "ppid=", "-o", "args=", "-p", str(process)]
    try:
        done = run(asked, cwd=None, env=PS_ENVIRONMENT)
    except UndecidedError:
        return 0, []
    above, *words = done.out.decode("utf-8", "replace").split() or ["0"]
    return int(above) if above.isdigit() else 0, words


def command_named(words: Sequence[str]) -> str:
    """Find git's command in a process's arguments: `git -C x revert HEAD` is `revert`."""
    name = os.path.basename(words[0]) if words else ""
    if name.startswith("git-"):
        return name.removeprefix("git-")
    if name != "git":
        return ""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in _VALUED else 1
    return words[index] if index < len(words) else ""


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Read the options before git's command in a process's arguments, each with its last value."""
    found: dict[str, str] = {}
    index = 1
    while index < len(words) and words[index].startswith("-"):
        name, is_joined, value = words[index].partition("=")
        if name in _VALUED and not is_joined and index + 1 < len(words):
            index += 1
            value = words[index]
        found[name] = value
        index += 1
    return found


_PUSHING_FOREBEARS = 32
_PUSHES = frozenset({"push", "send-pack"})
_TELLING = frozenset({"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"})


def pusher_of(repository: Repository, process: int) -> Repository | None:
    """Open the repository from the worktree that pushes into it; None if another repository pushes.

    Args:
        repository: the repository that receives the push; returned if the pushing worktree is unknown.
        process: the process that runs the hook.
    """
    for _ in range(_PUSHING_FOREBEARS):
        above, arguments = parent_and_arguments(process)
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
    """Read the variables by which a process was given a repository; none without /proc."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            pairs = [os.fsdecode(each).partition("=") for each in file.read().split(b"\0")]
    except OSError:
        return {}
    return {name: value for name, _, value in pairs if name in _TELLING}


def directory_of(process: int) -> str | None:
    """Find the folder in which a process works: by /proc, otherwise by `lsof`; None if both fail."""
    try:
        return os.readlink(f"/proc/{process}/cwd")
    except OSError:
        return directory_by_lsof(process)


def directory_by_lsof(process: int) -> str | None:
    """Ask `lsof` for the folder in which a process works; None if it prints none."""
    try:
        done = run(["lsof", "-a", "-p", str(process), "-d", "cwd", "-F", "n"], cwd=None, env=PS_ENVIRONMENT)
    except UndecidedError:
        return None
    named = [line[1:] for line in done.out.split(b"\n") if line.startswith(b"n/")]
    return os.fsdecode(named[0]) if len(named) == 1 else None
