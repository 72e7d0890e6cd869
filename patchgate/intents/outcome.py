"""Who calls a verb about intents, and what it gives: done or refused, with which intent, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from patchgate.git.path import RepoPath
from patchgate.intents.intent import Intent, Moment
from patchgate.intents.states import Told


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and when: the environment, and the time by the wall and since the boot."""

    environ: Mapping[str, str]
    now: Moment


class Action(StrEnum):
    """What was done; `refused` is a no, after which those that waited may have begun, and nothing else."""

    DECLARED = "declared"
    QUEUED = "queued"
    RENEWED = "renewed"
    CLEARED = "cleared"
    RECOVERED = "recovered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Conflict:
    """An intent that stands in the way, and the entries of the other one by which it does."""

    told: Told
    entries: tuple[RepoPath, ...]

    @property
    def intent(self) -> Intent:
        """The one that stands in the way."""
        return self.told.intent


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a verb did, with which intent (as it is now; the cleared one as it was, None: it was damaged).

    `reason` and `hint` tell why it was refused, and the next step. `promoted` are those that own their files
    from now on. All sentences are safe to print.
    """

    action: Action
    told: Told | None
    conflicts: tuple[Conflict, ...] = ()
    promoted: tuple[Intent, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str | None = None
    hint: str | None = None

    @property
    def intent(self) -> Intent | None:
        """The one with which it was done."""
        return None if self.told is None else self.told.intent

    @property
    def exit_code(self) -> int:
        """0 where it was done, 1 where it was refused."""
        return 1 if self.action is Action.REFUSED else 0
