"""Which intents have files now, in all worktrees, so that others wait or are warned.

Decides that an intent has its files while it is active and somebody holds it, and nothing once its worktree
is gone: not there, made anew under its name, or of another repository, for this one was moved or copied. What
follows for a declaration, a commit or a file, others decide.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.intents.intent import Intent, Moment, State
from patchgate.intents.intents import Intents, is_live
from patchgate.intents.marker import marked

_MOST_PLACE = 1 << 16


def is_foreign(intent: Intent, repository: Repository) -> bool:
    """Tell whether the worktree of an intent is none of this repository, which was moved or copied since."""
    if intent.git_dir in {repository.git_dir, repository.common_dir}:
        return False
    home, place = os.path.realpath(repository.common_dir), os.path.realpath(intent.git_dir)
    return place != home and os.path.dirname(place) != os.path.join(home, "worktrees")


def is_gone(intent: Intent, repository: Repository) -> bool:
    """Tell whether the worktree of an intent is none of this repository, or was made anew under its name."""
    if is_foreign(intent, repository):
        return True
    try:
        return intent.id not in marked(intent.git_dir) or _is_deleted(intent.git_dir)
    except UndecidedError:
        return False


def _is_deleted(git_dir: str) -> bool:
    """Tell whether the folder of a linked worktree was deleted; of one that is locked it may come back.

    Source: gitrepository-layout, `worktrees/<id>/gitdir` and `worktrees/<id>/locked`.
    """
    try:
        with open(os.path.join(git_dir, "gitdir"), "rb") as file:
            place = os.fsdecode(file.read(_MOST_PLACE).removesuffix(b"\n"))
    except OSError:
        # The main worktree has no such file.
        return False
    return not (
        os.path.lexists(os.path.join(git_dir, place)) or os.path.lexists(os.path.join(git_dir, "locked"))
    )


def has_files(intent: Intent, repository: Repository, now: Moment) -> bool:
    """Tell whether an intent has the files that it declared, so that nobody else gets them."""
    return intent.state is State.ACTIVE and is_live(intent, now) and not is_gone(intent, repository)


def holders(repository: Repository, now: Moment) -> tuple[Intent, ...]:
    """Give the intents of all worktrees that have their files now.

    Raises:
        UndecidedError: one of them cannot be read.
    """
    return tuple(each for each in Intents(repository.common_dir).all() if has_files(each, repository, now))


def who_has(path: RepoPath, intents: Iterable[Intent], *, but: str = "") -> Intent | None:
    """Find the intent that has a file; None where none but the one of the id `but` does."""
    return next((each for each in intents if each.id != but and each.scope.covers(path)), None)
