"""Who lands: the works of all runs of a repository one after another, their trials beside each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from patchgate.apply.recovery import recover_pending
from patchgate.git.repository import Repository
from patchgate.runs.phase_task import WorkEnvironment
from patchgate.storage.lock import acquire

LANDING_SECONDS = 3600.0
"""How long to wait while others land: one that was overtaken runs the commands of the policy again."""


@contextmanager
def nobody_else_lands(repository: Repository, environment: WorkEnvironment) -> Iterator[None]:
    """Wait until nobody else lands, and keep others from it.

    Raises:
        UndecidedError: another process has the lock for too long, or it cannot be made.
    """
    began = environment.monotonic()

    def pause(seconds: float) -> None:
        environment.require_wanted()
        environment.report("waiting for another landing", environment.monotonic() - began)
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
