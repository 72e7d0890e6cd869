"""How an intent stands at one moment: active, queued, expired or dead, held by whom, until when.

Decides those words, for lists of all forms. What each means for a commit, a verify or another declaration,
they decide themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from patchgate.declared.intent import Intent, Moment, State
from patchgate.git.repository import Repository
from patchgate.ledger.intents import is_live, is_running
from patchgate.operations.judge.reservations import is_foreign, is_gone


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
    """

    intent: Intent
    standing: Standing
    until: float
    seconds_left: float
    is_held: bool
    is_here: bool
    is_gone: bool
    is_foreign: bool


def told_of(intent: Intent, now: Moment, repository: Repository) -> Told:
    """Say how an intent stands, seen from a worktree, while it is stored."""
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
    return Told(intent, standing, now.wall + left, left, held, here, gone, foreign)
