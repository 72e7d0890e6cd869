"""Who lands: the works of all runs of a repository one after another, their trials beside each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from patchgate.apply.recovery import recover_pending
from patchgate.git.path import RepoPath
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.runs.phase_task import WorkEnvironment
from patchgate.storage.lock import acquire

LANDING_SECONDS = 3600.0
"""How long to wait while others land: one that was overtaken runs the commands of the policy again."""

_SHORT = 1.0


@contextmanager
def nobody_else_lands(repository: Repository, environment: WorkEnvironment) -> Iterator[None]:
    """Wait until nobody else lands, and keep others from it.

    Raises:
        UndecidedError: another process has the lock for too long, or it cannot be made.
    """
    began = environment.monotonic()

    def pause(seconds: float) -> None:
        environment.require_wanted()
        if (waited := environment.monotonic() - began) >= _SHORT:
            environment.report("waiting for another landing", waited)
        environment.pause(seconds)

    place = os.path.join(repository.common_dir, "patchgate", "runs", "landing.lock")
    with acquire(place, timeout_seconds=LANDING_SECONDS, pause=pause):
        yield


@contextmanager
def landing(repository: Repository, environment: WorkEnvironment) -> Iterator[None]:
    """Land alone, after what a killed process left is finished or undone."""
    with nobody_else_lands(repository, environment):
        recover_pending(repository)
        yield


def stage(repository: Repository, environment: WorkEnvironment, path: RepoPath) -> bool:
    """Stage a file that the commit of what has landed needs; return whether git did."""
    named = f":(top,literal){os.fsdecode(path.raw)}"
    with nobody_else_lands(repository, environment):
        done = repository.git("add", "--", named, in_work_tree=True, answers=ANY_CODE)
    return done.code == 0
