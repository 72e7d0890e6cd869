"""The folder whose hooks git runs here, and whether it is ours to write to.

Decides which folder that is, by asking git with the caller's own config, and refuses one that other
repositories share unless that was asked for. What is put there is decided elsewhere.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.hooks_in_force import Surroundings
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.storage.lock import hold

_KEY = "core.hooksPath"
_PATIENCE_SECONDS = 10.0
_SHARED = frozenset({"global", "system"})


@dataclass(frozen=True, slots=True)
class HooksFolder:
    """Where git looks for hooks: `path` is absolute, `top` the folder in which hooks run.

    `scope` is that of core.hooksPath, empty where it is not set.
    """

    path: Path
    top: str
    scope: str = ""

    @property
    def is_shared(self) -> bool:
        """Tell whether the config of a person or a machine names it, for every repository."""
        return self.scope in _SHARED

    @property
    def name(self) -> str:
        """The path, safe to print; from the top of the working tree where it lies inside."""
        inner = _is_inside(str(self.path), self.top)
        return printable(os.path.relpath(self.path, self.top) if inner else str(self.path))


def hooks_folder(repository: Repository, environ: Mapping[str, str]) -> HooksFolder:
    """Ask git where it looks for hooks, here and now.

    Raises:
        UndecidedError: git does not say.
    """
    around = Surroundings(repository, environ)
    top = _top(repository)
    place = [f"--git-dir={repository.git_dir}"]
    if repository.work_tree is not None:
        place.append(f"--work-tree={repository.work_tree}")
    asked = around.ask(place, top, "rev-parse", "--git-path", "hooks")
    if asked.code != 0:
        raise UndecidedError("git does not say where its hooks are", "run git rev-parse --git-path hooks")
    # A relative core.hooksPath counts from where hooks run; an empty one makes git look in the root folder.
    folder = os.path.normpath(os.path.join(top, os.fsdecode(asked.out.removesuffix(b"\n")) or "/"))
    named = around.ask(place, top, "config", "--show-scope", "-z", "--get-all", _KEY, answers=(0, 1))
    scopes = named.out.split(b"\0")
    return HooksFolder(Path(folder), top, scopes[-3].decode("ascii") if len(scopes) > 2 else "")


def own_folder(repository: Repository) -> HooksFolder:
    """Name the folder where git looks if no config says otherwise."""
    return HooksFolder(Path(repository.common_dir, "hooks"), _top(repository))


def require_ours(repository: Repository, folder: HooksFolder, *, is_global: bool) -> None:
    """Refuse a folder into which nothing may be put unasked.

    Args:
        is_global: whether a folder that every repository shares was asked for.

    Raises:
        UsageError: it is shared and was not asked for, or the other way round, or it is no folder.
    """
    own = printable(shlex.quote(str(own_folder(repository).path)))
    if folder.scope == "command":
        raise UsageError(
            f"{_KEY} comes from -c or the environment of this command, and no later one would find the hooks",
            f"leave it out, or write it down: git config {_KEY} DIR",
        )
    if folder.is_shared and not is_global:
        raise UsageError(
            f"{_KEY} is set in the {folder.scope} config: hooks in {folder.name} run in every repository",
            f"add --global to put ours there, or let this one have its own: git config {_KEY} {own}",
        )
    if is_global and not folder.is_shared:
        raise UsageError(
            f"no global {_KEY} is in force here, so there is no folder that every repository shares",
            f"leave --global out, or first git config --global {_KEY} DIR",
        )
    if folder.path.exists() and not folder.path.is_dir():
        scope = f"--{folder.scope} " if folder.scope else ""
        raise UsageError(
            f"git looks for hooks in {folder.name}, which is no folder, so it runs none",
            f"git config {scope}--unset-all {_KEY}",
        )


@contextmanager
def lock_folder(repository: Repository, folder: HooksFolder) -> Iterator[None]:
    """Let one at a time change a folder; one that several repositories share has its lock inside."""
    place = Path(repository.common_dir, "patchgate", "install.lock")
    if folder.is_shared:
        place = folder.path / ".patchgate.lock"
    try:
        with hold(place, timeout_seconds=_PATIENCE_SECONDS):
            yield
    except OSError as error:
        raise UndecidedError(
            f"{printable(str(place))} could not be locked: {error.strerror}", "mend that, and run this again"
        ) from error


def folder_notes(repository: Repository, folder: HooksFolder) -> tuple[str, ...]:
    """Say what somebody should know of a folder before hooks are put there."""
    if folder.is_shared:
        return (f"{folder.name} is named by your {folder.scope} config: these hooks run in every repository",)
    real = os.path.realpath(folder.path)
    if _is_inside(real, os.path.realpath(repository.common_dir)):
        return ()
    top = repository.work_tree
    if top is None or not _is_inside(real, os.path.realpath(top)):
        return (f"{folder.name} lies outside this repository: the hooks run wherever {_KEY} names it",)
    found = []
    inner = os.path.relpath(folder.path / "pre-commit", top)
    asked = ("check-ignore", "--quiet", "--", inner)
    if repository.git(*asked, in_work_tree=True, answers=ANY_CODE).code == 1:
        found.append(f"{folder.name} is not ignored: do not commit its hooks, they name a program of yours")
    if os.path.isdir(os.path.join(repository.common_dir, "worktrees")):
        found.append(f"{folder.name} belongs to this worktree alone: install in the other worktrees too")
    return tuple(found)


def _top(repository: Repository) -> str:
    return repository.work_tree or repository.git_dir


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
