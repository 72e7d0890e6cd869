"""How an intent stands at one moment: active, queued, expired or dead, held by whom, until when.

Decides those words, for lists of all forms. What each means for a commit, a verify or another declaration,
they decide themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from patchgate.errors import PatchgateError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.intents.intent import Intent, Moment, State
from patchgate.intents.intents import is_live, is_running
from patchgate.intents.reservations import is_foreign, is_gone
from patchgate.policy.control import CONTROLS_BY_NAME, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.policy.policies import Policies


class Standing(StrEnum):
    """What an intent is now: `expired` by its time, `dead` when nobody holds it and its lease is over."""

    ACTIVE = "active"
    QUEUED = "queued"
    EXPIRED = "expired"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Told:
    """One intent with what is told of it; `until` is when its time is over, in seconds since the epoch.

    `is_gone`: its worktree is not there; `is_foreign`: for this repository was moved or copied since.
    `controls` are the control files, which every intent forbids.
    """

    intent: Intent
    standing: Standing
    until: float
    seconds_left: float
    is_held: bool
    is_here: bool
    is_gone: bool
    is_foreign: bool
    controls: tuple[RepoPath, ...] = ()


def control_entries(repository: Repository) -> tuple[RepoPath, ...]:
    """Name the control files of a repository as entries; of what cannot be read, those by name alone."""
    try:
        with Objects(repository) as objects:
            head = objects.header("HEAD^{tree}")
            tree = objects.empty_tree if head is None else head.oid
            policies = Policies(objects)
            by_content = (
                (PYPROJECT_FILE, policies.at(policies.key(tree)).from_pyproject),
                (PRE_COMMIT_FILE, policies.names_patchgate(tree)),
            )
    except PatchgateError:
        return CONTROLS_BY_NAME
    return (*CONTROLS_BY_NAME, *(path for path, is_control in by_content if is_control))


def told_of(intent: Intent, now: Moment, repository: Repository, controls: tuple[RepoPath, ...]) -> Told:
    """Say how an intent stands, seen from a worktree, while it is stored.

    Args:
        controls: as `control_entries` gives them.
    """
    left = intent.seconds_left(now)
    if left <= 0:
        standing = Standing.EXPIRED
    elif not is_live(intent, now):
        standing = Standing.DEAD
    else:
        standing = Standing.QUEUED if intent.state is State.QUEUED else Standing.ACTIVE
    gone = is_gone(intent, repository)
    here = intent.git_dir == repository.git_dir and not gone
    held, foreign = is_running(intent.holder), is_foreign(intent, repository)
    return Told(intent, standing, now.wall + left, left, held, here, gone, foreign, controls)
