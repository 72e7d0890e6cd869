"""Change what is stored of the intents: record, marker, file, in an order that survives any kill.

Decides that order alone. The record comes first: an intent without one is none that was declared, while a
record without an intent says no more than that somebody was about to. Then the marker, so that no hook passes
the work by; then what an earlier hook left is dropped; then the file. Out it goes the other way round. An
intent of another repository (this one was moved or copied) is never written where that one lies.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from patchgate.check.pending import drop_pending
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.intents.intent import Intent, Moment
from patchgate.intents.intents import KIND, Intents, Recorded
from patchgate.intents.marker import git_dirs, mark, marked, unmark
from patchgate.intents.reservations import is_foreign
from patchgate.intents.states import control_entries
from patchgate.ledger.ledger import Ledger
from patchgate.report.json_paths import path_list, place_member
from patchgate.storage.record import Json

_MOST_ID = 60
_Result = TypeVar("_Result")


class Store:
    """The intents of a repository and the ledger beside them, to be changed at one moment."""

    def __init__(self, repository: Repository, now: Moment) -> None:
        self.repository = repository
        self.now = now
        self.intents = Intents(repository.common_dir)
        self._ledger = Ledger(repository.common_dir, clock=lambda: now.wall)

    @cached_property
    def controls(self) -> tuple[RepoPath, ...]:
        """The control files of the repository, which every intent forbids."""
        return control_entries(self.repository)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the intents.

        Raises:
            UndecidedError: somebody else holds them.
        """
        with ExitStack() as held:
            _attempt(lambda: held.enter_context(self.intents.lock()))
            # What a killed one has left; where the marker is damaged, who needs it says so.
            with suppress(OSError, UndecidedError):
                self.intents.tidy(self.repository.git_dir)
            yield

    def put(self, intent: Intent, action: Recorded) -> list[str]:
        """Store an intent and record what was done; give what to warn of.

        Args:
            intent: as it is from now on.
            action: what is done with it.

        Raises:
            UndecidedError: it could not be recorded or written; nothing of it counts then.
        """
        if is_foreign(intent, self.repository):
            raise UndecidedError(*moved(intent))
        warnings = self._record(action, intent.id, intent)
        was_marked = intent.id in marked(intent.git_dir)
        _attempt(lambda: mark(intent.git_dir, intent.id))
        # What a hook has let pass, in whichever worktree, was not compared with this intent.
        for git_dir in git_dirs(self.repository.common_dir):
            drop_pending(replace(self.repository, git_dir=git_dir))
        try:
            _attempt(lambda: self.intents.write(intent))
        except UndecidedError:
            if not was_marked:
                with suppress(OSError):
                    unmark(intent.git_dir, intent.id)
            raise
        self._unmark(intent.id, intent.git_dir)
        return warnings

    def capture(self, intent: Intent, before: str) -> list[str]:
        """Keep the digest of the before-report with an intent, the first time; give what to warn of.

        One that somebody else changed or ended meanwhile is left as it is.

        Raises:
            UndecidedError: it could not be recorded or written.
        """
        with self.lock():
            fresh = self.intents.get(intent.id)
            if fresh is None or fresh.before is not None or fresh.digest != intent.digest:
                return []
            captured = replace(fresh, before=before)
            warnings = self._record(Recorded.CAPTURED, intent.id, captured)
            _attempt(lambda: self.intents.write(captured))
            return warnings

    def take_out(self, name: str, intent: Intent | None) -> list[str]:
        """Remove an intent (None: it cannot be read), and record it; give what to warn of.

        Raises:
            UndecidedError: it could not be recorded or removed.
        """
        warnings = self._record(Recorded.CLEARED, name, intent)
        _attempt(lambda: self.intents.remove(name))
        self._unmark(name)
        return warnings

    def _unmark(self, name: str, keep: str | None = None) -> None:
        """Take an id out of every marker (of what cannot be read nobody knows the worktree) but one."""
        for git_dir in git_dirs(self.repository.common_dir):
            # A marker that is damaged is told where it is needed.
            with suppress(OSError, UndecidedError):
                if keep is None or os.path.realpath(git_dir) != os.path.realpath(keep):
                    unmark(git_dir, name)

    def _record(self, action: Recorded, name: str, intent: Intent | None) -> list[str]:
        """Record what is about to be done.

        Raises:
            UndecidedError: it is not on record.
        """
        about: dict[str, Json] = {"action": action.value, "id": name, "digest": None}
        if intent is not None:
            about |= _about(intent)
        told = self._ledger.record(KIND, about)
        if told is None:
            return []
        if not any(event.about == about for event in self._ledger.mentions({KIND}, name)):
            raise UndecidedError(told, "make room, or mend the mode of that file, then try again")
        return [told]


def existing(intents: Intents, name: str) -> Intent:
    """Find the intent of an id, in whichever worktree it was declared.

    Raises:
        UsageError: there is none.
        UndecidedError: it cannot be read.
    """
    intent = intents.get(name)
    if intent is None:
        raise UsageError(
            f"there is no intent {printable(name, _MOST_ID)}", "git patchgate intent list shows all of them"
        )
    return intent


def moved(intent: Intent) -> tuple[str, str]:
    """Say of a foreign intent what it is, and the next step."""
    hint = (
        f"git patchgate intent recover {intent.id} takes it into this worktree, git patchgate intent clear "
    )
    return f"this repository was moved or copied since {intent.id} was declared", f"{hint}{intent.id} ends it"


def _about(intent: Intent) -> dict[str, Json]:
    scope, holder = intent.scope, intent.holder
    return {
        "digest": intent.digest,
        "state": intent.state.value,
        "reason": intent.reason,
        **place_member("work_tree", intent.work_tree),
        "base": intent.base,
        **path_list("allowed", scope.allowed),
        **path_list("related", scope.related),
        **path_list("forbidden", scope.forbidden),
        "ttl": intent.ttl,
        "lease": intent.lease,
        "holder": None if holder is None else holder.pid,
        "before": intent.before,
    }


def _attempt(call: Callable[[], _Result]) -> _Result:
    """Make one call; what the system refuses is told with the next step.

    Raises:
        UndecidedError: the system refused.
    """
    try:
        return call()
    except OSError as error:
        place = error.filename
        is_folder = (
            error.errno in {errno.EISDIR, errno.EPERM} and isinstance(place, str) and os.path.isdir(place)
        )
        where = "" if place is None else f" {os.fspath(place)!r}"
        raise UndecidedError(
            f"the intents cannot be changed:{where} {error.strerror or error}",
            "remove that folder"
            if is_folder
            else "make room, or mend the mode of the folder patchgate in the git directory",
        ) from error
