"""Changes stored intents in an order that survives any kill; and the queue of intents that wait for files.

First the event in the ledger (an intent without one was never declared), then the marker, so that no hook
misses it, then pending receipts are dropped, then the file is written. Removing goes the other way. Only
active intents block others; the oldest live one in the queue is next.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property

from patchgate.check.pending import drop_pending
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.intents.intent import Intent, Moment, State, overlapping_entries
from patchgate.intents.intent_file import add_to_marker, git_dirs, marked_ids, remove_from_marker
from patchgate.intents.intent_status import Caller, Conflict, IntentInfo, IntentStatus, control_entries
from patchgate.intents.stored_intents import (
    KIND,
    IntentEvent,
    StoredIntents,
    is_alive,
    is_foreign,
    is_gone,
    is_running,
    owns_files,
)
from patchgate.ledger.ledger import Ledger
from patchgate.report.json import path_list, place_member
from patchgate.storage.record import Json
from patchgate.values import replace

_MOST_ID = 60


class IntentQueue:
    """The intents of a repository and its ledger, changed at one moment."""

    def __init__(self, repository: Repository, now: Moment) -> None:
        self.repository = repository
        self.now = now
        self.intents = StoredIntents(repository.common_dir)
        self._ledger = Ledger(repository.common_dir, clock=lambda: now.wall)

    @cached_property
    def controls(self) -> tuple[RepoPath, ...]:
        """The control files of the repository, which every intent forbids."""
        return control_entries(self.repository)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the intents.

        Raises:
            UndecidedError: another process has the lock.
        """
        with ExitStack() as held:
            with _explain_os_errors():
                held.enter_context(self.intents.lock())
            # Removes what a killed process left; a damaged marker is reported where it is needed.
            with suppress(OSError, UndecidedError):
                self.intents.tidy(self.repository.git_dir)
            yield

    def save(self, intent: Intent, action: IntentEvent) -> list[str]:
        """Store an intent and record the event; return warnings.

        Args:
            intent: the new state.
            action: the event.

        Raises:
            UndecidedError: it could not be recorded or written; then nothing changes.
        """
        if is_foreign(intent, self.repository):
            raise UndecidedError(*explain_move(intent))
        warnings = self._record(action, intent.id, intent)
        was_marked = intent.id in marked_ids(intent.git_dir)
        with _explain_os_errors():
            add_to_marker(intent.git_dir, intent.id)
        # What a hook has accepted, in any worktree, was not compared with this intent.
        for git_dir in git_dirs(self.repository.common_dir):
            drop_pending(replace(self.repository, git_dir=git_dir))
        try:
            with _explain_os_errors():
                self.intents.write(intent)
        except UndecidedError:
            if not was_marked:
                with suppress(OSError):
                    remove_from_marker(intent.git_dir, intent.id)
            raise
        self._unmark(intent.id, intent.git_dir)
        return warnings

    def capture(self, intent: Intent, before: str) -> list[str]:
        """Store the digest of the before-report in an intent, the first time; return warnings.

        Does nothing if the intent was changed or ended meanwhile.

        Raises:
            UndecidedError: it could not be recorded or written.
        """
        with self.lock():
            fresh = self.intents.get(intent.id)
            if fresh is None or fresh.before is not None or fresh.digest != intent.digest:
                return []
            captured = replace(fresh, before=before)
            warnings = self._record(IntentEvent.CAPTURED, intent.id, captured)
            with _explain_os_errors():
                self.intents.write(captured)
            return warnings

    def remove(self, name: str, intent: Intent | None) -> list[str]:
        """Remove an intent (None: it cannot be read), and record that; return warnings.

        Raises:
            UndecidedError: it could not be recorded or removed.
        """
        warnings = self._record(IntentEvent.CLEARED, name, intent)
        with _explain_os_errors():
            self.intents.remove(name)
        self._unmark(name)
        return warnings

    def describe(self, intent: Intent) -> IntentInfo:
        """Return an intent with its status, seen from this worktree."""
        now, repository = self.now, self.repository
        left = intent.seconds_left(now)
        if left <= 0:
            status = IntentStatus.EXPIRED
        elif not is_alive(intent, now):
            status = IntentStatus.DEAD
        else:
            status = IntentStatus.QUEUED if intent.state is State.QUEUED else IntentStatus.ACTIVE
        gone = is_gone(intent, repository)
        return IntentInfo(
            intent,
            status,
            until=now.wall + left,
            seconds_left=left,
            is_owner_running=is_running(intent.owner),
            is_in_current_worktree=intent.git_dir == repository.git_dir and not gone,
            is_gone=gone,
            is_foreign=is_foreign(intent, repository),
            controls=self.controls,
            budget=() if gone else self._budget(intent),
        )

    def _budget(self, intent: Intent) -> tuple[str, ...]:
        """Say what is left of the limits of an intent; lines are counted in its own worktree only."""
        if not intent.budget.written:
            return ()
        from patchgate.intents.budget import describe_budget, spent_at

        with Objects(self.repository) as objects:
            is_here = intent.git_dir == self.repository.git_dir
            head = objects.header("HEAD^{tree}") if is_here else None
            tree = intent.tree if head is None else head.oid
            return tuple(describe_budget(intent, spent_at(objects, intent, tree, self.now)))

    def conflicts_of(self, intent: Intent, known: Sequence[Intent]) -> tuple[Conflict, ...]:
        """Return the intents that have a file which an intent allows, with its entries in question."""
        return tuple(
            Conflict(self.describe(each), overlapping_entries(intent.scope, each.scope))
            for each in self._blocking(intent, known)
        )

    def _blocking(self, intent: Intent, known: Sequence[Intent]) -> list[Intent]:
        return [
            each
            for each in known
            if each.id != intent.id
            and owns_files(each, self.repository, self.now)
            and overlapping_entries(intent.scope, each.scope)
        ]

    def is_next(self, intent: Intent, known: Sequence[Intent]) -> bool:
        """Whether a queued intent may become active: it is alive, and nothing blocks it."""
        return (
            intent.state is State.QUEUED
            and is_alive(intent, self.now)
            and not is_gone(intent, self.repository)
            and not self._blocking(intent, known)
        )

    def promote(self) -> tuple[tuple[Intent, ...], list[str]]:
        """Make queued intents active that nothing blocks any more, oldest first; also return warnings.

        Their time starts now; base, dirty files and analyses stay those of the declaration, so that work done
        meanwhile is verified too. An intent that expired, is dead, or lost its worktree waits for a recover.
        """
        promoted: list[Intent] = []
        warnings: list[str] = []
        try:
            known = list(self.intents.all())
        except UndecidedError as error:
            return (), [f"no queued intent could become active: {error.message}"]
        for place, intent in enumerate(known):
            if not self.is_next(intent, known):
                continue
            try:
                active = replace(intent, state=State.ACTIVE, renewed=self.now, seen=self.now)
                warnings += self.save(active, IntentEvent.PROMOTED)
            except PatchgateError as error:
                warnings.append(f"{intent.id} stays in the queue: {error.message}")
                continue
            known[place] = active
            promoted.append(active)
        return tuple(promoted), warnings

    def _unmark(self, name: str, keep: str | None = None) -> None:
        """Remove an id from every marker but one; the worktree of an unreadable intent is unknown."""
        for git_dir in git_dirs(self.repository.common_dir):
            # A damaged marker is reported where it is needed.
            with suppress(OSError, UndecidedError):
                if keep is None or os.path.realpath(git_dir) != os.path.realpath(keep):
                    remove_from_marker(git_dir, name)

    def _record(self, action: IntentEvent, name: str, intent: Intent | None) -> list[str]:
        """Record an event before it happens.

        Raises:
            UndecidedError: it was not recorded.
        """
        about: dict[str, Json] = {"action": action.value, "id": name, "digest": None}
        if intent is not None:
            about |= _about(intent)
        warning = self._ledger.record(KIND, about)
        if warning is None:
            return []
        if not any(event.about == about for event in self._ledger.find_events({KIND}, name)):
            raise UndecidedError(warning, "free disk space, or fix the mode of that file, then try again")
        return [warning]


def require_intent(intents: StoredIntents, name: str) -> Intent:
    """Find the intent of an id, of any worktree.

    Raises:
        UsageError: the id is unknown.
        UndecidedError: it cannot be read.
    """
    intent = intents.get(name)
    if intent is None:
        raise UsageError(
            f"unknown intent {printable(name, _MOST_ID)}", "git patchgate intent list shows all intents"
        )
    return intent


def explain_move(intent: Intent) -> tuple[str, str]:
    """Return an error for an intent whose repository was moved, and the next step."""
    hint = f"git patchgate intent recover {intent.id} moves it to this worktree, git patchgate intent clear "
    return f"this repository was moved or copied since {intent.id} was declared", f"{hint}{intent.id} ends it"


def _about(intent: Intent) -> dict[str, Json]:
    scope, owner = intent.scope, intent.owner
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
        "holder": None if owner is None else owner.pid,
        "before": intent.before,
    }


@contextmanager
def _explain_os_errors() -> Iterator[None]:
    """Turn errors of the system into one sentence with the next step.

    Raises:
        UndecidedError: the system failed.
    """
    try:
        yield
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
            else "free disk space, or fix the mode of the folder patchgate in the git directory",
        ) from error


def promote_waiting(repository: Repository, caller: Caller) -> tuple[tuple[Intent, ...], tuple[str, ...]]:
    """Promote queued intents if one of this worktree may become active; errors are warnings.

    Returns:
        The promoted intents, and warnings.
    """
    queue = IntentQueue(repository, caller.now)
    try:
        found = queue.intents.of(repository.git_dir)
        is_tidy = len(found) == len(marked_ids(repository.git_dir))
    except UndecidedError:
        # The caller reports this when it shows the intents.
        return (), ()
    try:
        waiting = [each for each in found if each.state is State.QUEUED]
        known = queue.intents.all() if waiting else ()
        if is_tidy and not any(queue.is_next(each, known) for each in waiting):
            return (), ()
        # Taking the lock also removes what a kill left in the marker.
        with queue.lock():
            promoted, warnings = queue.promote()
    except UndecidedError as error:
        return (), (f"no queued intent could become active: {error.message}",)
    return promoted, tuple(warnings)
