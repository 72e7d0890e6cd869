"""What is asked of a capture, and what it gives: for each component what became of it, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from patchgate.components.baseline import Hashes
from patchgate.components.capture_run import Ran
from patchgate.git.path import RepoPath
from patchgate.policy.component import Component


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be captured, and of what: the index, or the working tree (`from_disk`)."""

    ids: tuple[str, ...]
    from_disk: bool = False
    reverify: bool = False
    with_note: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What comes from outside: environment, folder for caches, the time, whom to tell progress."""

    environ: Mapping[str, str]
    cache: str
    now: float
    tell: Callable[[str, float], None]


class Result(StrEnum):
    """What became of one component."""

    RECORDED = "recorded"
    UNCHANGED = "unchanged"
    VERIFIED = "verified"
    REFUSED = "refused"
    UNDECIDED = "undecided"
    HELD_BACK = "held-back"


@dataclass(frozen=True, slots=True)
class Captured:
    """One component: `reason` is half a sentence after its name; `run` is None where no test was started.

    `mistakes` are the first of its contract, one line each, safe to show. `is_staged` tells whether the index
    has this very baseline, `is_committed` whether `HEAD` has it.
    """

    component: Component
    result: Result
    reason: str
    hint: str | None = None
    run: Ran | None = None
    hashes: Hashes = field(default_factory=Hashes)
    is_staged: bool = False
    is_committed: bool = False
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capture:
    """All components that were asked for, and what to warn of.

    `has_notes` tells whether verifications were kept as notes too. `to_add` are the files that were recorded
    as the working tree has them, and that are not staged so.
    """

    components: tuple[Captured, ...]
    warnings: tuple[str, ...] = ()
    has_notes: bool = False
    to_add: tuple[RepoPath, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where all were captured, 1 where one was refused, 3 where one could not be tried."""
        results = {each.result for each in self.components}
        if Result.REFUSED in results:
            return 1
        return 3 if Result.UNDECIDED in results else 0
