"""The stored intents of one repository, shared by its worktrees, and which of them has a file.

<common dir>/patchgate/intents/ID.json   one intent, sealed, replaced whole and flushed
<common dir>/patchgate/intents/ID.seen   its last activity; neither sealed nor flushed, since hooks write it
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum

from patchgate.errors import DamagedIntentError, UndecidedError
from patchgate.git.path import RepoPath
from patchgate.intents.intent import Intent, IntentOwner, Moment, State
from patchgate.intents.intent_file import (
    ID,
    MOST_BYTES,
    DamagedError,
    marked_ids,
    moment_from,
    moment_text,
    parse,
    read_regular_file,
    remove_from_marker,
    serialize,
)
from patchgate.storage.owner import Owner, boot_id
from patchgate.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from patchgate.git.repository import Repository
    from patchgate.ledger.ledger import Ledger


KIND = "intent"
LOCK_SECONDS = 10.0

_FOLDER_MODE = 0o700
_MODE = 0o600


class IntentEvent(StrEnum):
    """The events of an intent in the ledger."""

    DECLARED = "declared"
    PROMOTED = "promoted"
    RENEWED = "renewed"
    RECOVERED = "recovered"
    CAPTURED = "captured"
    CLEARED = "cleared"


# These record a declaration; the newest has the digest of the intent.
_DECLARING = frozenset({IntentEvent.DECLARED, IntentEvent.PROMOTED, IntentEvent.RECOVERED})


def current_moment() -> Moment:
    """Return the time: by the clock, and since the boot if the system counts that."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    boot = boot_id()
    if clock is None or not boot:
        return Moment(time.time())
    return Moment(time.time(), boot, time.clock_gettime(clock))


def host_name() -> str:
    """Return the name of this machine: a pid means nothing on another one, or in another container."""
    return os.uname().nodename


def is_running(owner: IntentOwner | None) -> bool:
    """Whether the process that owns an intent still runs on this machine."""
    if owner is None or owner.host != host_name():
        return False
    return Owner(owner.pid, owner.boot_id, owner.started).is_running()


def is_alive(intent: Intent, now: Moment) -> bool:
    """Whether an intent may not be taken over: it has not expired, and its owner runs or its lease does."""
    return not intent.is_over(now) and (intent.has_lease(now) or is_running(intent.owner))


def declared_digest(ledger: Ledger, name: str) -> str | None:
    """Return the digest of an intent by its newest record in the ledger; None if it has none.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    found = None
    for event in ledger.find_events({KIND}, name, strict=True):
        if event.about.get("id") == name and event.about.get("action") in _DECLARING:
            digest = event.about.get("digest")
            found = digest if isinstance(digest, str) else None
    return found


class StoredIntents:
    """The stored intents of one repository.

    Args:
        common_dir: git's common directory; nothing is created in it before the first intent.
    """

    def __init__(self, common_dir: str) -> None:
        self.folder = os.path.join(common_dir, "patchgate", "intents")
        self._common_dir = common_dir

    def lock(self) -> AbstractContextManager[None]:
        """Lock the intents for a `with` block; read an intent again under the lock before changing it.

        Raises:
            UndecidedError: another process has the lock.
        """
        from patchgate.storage.lock import acquire

        return acquire(os.path.join(self.folder, ".lock"), timeout_seconds=LOCK_SECONDS)

    def all(self) -> tuple[Intent, ...]:
        """Return every intent, oldest first.

        Raises:
            UndecidedError: one of them cannot be read.
        """
        found = [self._read(name) for name in self.names()]
        return _sorted([intent for intent in found if intent is not None])

    def names(self) -> tuple[str, ...]:
        """Return the ids of all stored intents, readable or not.

        Raises:
            UndecidedError: the folder cannot be read.
        """
        try:
            listed = os.listdir(self.folder)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise UndecidedError(
                f"the intents cannot be read: {error.strerror or error}", f"fix the mode of {self.folder!r}"
            ) from error
        stems = [name.removesuffix(".json") for name in listed if name.endswith(".json")]
        return tuple(sorted(stem for stem in stems if ID.fullmatch(stem)))

    def of(self, git_dir: str) -> tuple[Intent, ...]:
        """Return the intents of one worktree, active, queued and expired, oldest first.

        Raises:
            UndecidedError: one of them, or the marker, cannot be read.
        """
        found = [self._read(name) for name in marked_ids(git_dir)]
        return _sorted([intent for intent in found if intent is not None])

    def get(self, name: str) -> Intent | None:
        """Return the intent of an id; None if it is unknown.

        Raises:
            UndecidedError: it cannot be read.
        """
        return self._read(name) if ID.fullmatch(name) else None

    def write(self, intent: Intent) -> None:
        """Store an intent atomically and flushed; call it under the lock, after setting the marker.

        Raises:
            UndecidedError: it is too long, since too many files are dirty.
            OSError: it could not be written; the old one stays.
        """
        from pathlib import Path

        from patchgate.storage.atomic_write import write_atomically

        content = serialize(intent)
        if len(content) > MOST_BYTES:
            raise UndecidedError(
                f"{len(intent.dirty)} files are dirty, more than an intent can store",
                "commit, stash or ignore them first",
            )
        os.makedirs(self.folder, mode=_FOLDER_MODE, exist_ok=True)
        write_atomically(Path(self._place(intent.id)), content, mode=_MODE)
        self._forget(intent.id)

    def remove(self, name: str) -> None:
        """Remove an intent, damaged or not, if it exists; call it under the lock.

        Raises:
            OSError: it could not be removed.
        """
        if not ID.fullmatch(name):
            return
        with suppress(FileNotFoundError):
            os.unlink(self._place(name))
        self._forget(name)

    def tidy(self, git_dir: str) -> None:
        """Remove ids of missing intents from the marker of a worktree; call it under the lock.

        Raises:
            UndecidedError: the marker is damaged.
            OSError: the marker could not be written.
        """
        for name in marked_ids(git_dir):
            if not os.path.lexists(self._place(name)):
                remove_from_marker(git_dir, name)

    def touch(self, intent: Intent, now: Moment) -> None:
        """Record activity of an intent; cheap, and errors are ignored.

        Writes nothing if the last activity is less than a tenth of the lease ago. Writes a separate file,
        so that concurrent changes of the intent are kept. A dead intent stays dead: another may have its
        files by now.
        """
        if not is_alive(intent, now):
            return
        last = self._last_seen(intent)
        since = None if last is None else last.until(now)
        if since is not None and since < intent.lease / 10:
            return
        if not os.path.exists(self._place(intent.id)):
            return
        aside = os.path.join(self.folder, f".{intent.id}.{os.getpid()}.seen")
        with suppress(OSError):
            with open(aside, "wb") as file:
                file.write(moment_text(now))
            os.replace(aside, self._seen(intent.id))

    def _place(self, name: str) -> str:
        return os.path.join(self.folder, f"{name}.json")

    def _seen(self, name: str) -> str:
        return os.path.join(self.folder, f"{name}.seen")

    def _forget(self, name: str) -> None:
        """Remove the file of the last activity, and what a killed hook left."""
        with suppress(OSError):
            for each in os.listdir(self.folder):
                if each == f"{name}.seen" or each.startswith(f".{name}."):
                    with suppress(FileNotFoundError):
                        os.unlink(os.path.join(self.folder, each))

    def _read(self, name: str) -> Intent | None:
        place = self._place(name)
        try:
            intent = parse(read_regular_file(place, MOST_BYTES), name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(place, error.strerror or str(error), name) from error
        except DamagedError as error:
            raise _unreadable(place, str(error), name) from error
        return replace(intent, seen=self._last_seen(intent))

    def _last_seen(self, intent: Intent) -> Moment | None:
        """Find the last activity: that in the intent, or a later one in its `.seen` file."""
        seen = None
        with suppress(OSError):
            seen = moment_from(read_regular_file(self._seen(intent.id), 1024))
        return seen if seen is not None and _is_later(seen, intent.seen) else intent.seen


def _is_later(one: Moment, other: Moment | None) -> bool:
    if other is None:
        return True
    if one.boot_id and one.boot_id == other.boot_id:
        return one.boot >= other.boot
    return one.wall >= other.wall


def _sorted(found: list[Intent]) -> tuple[Intent, ...]:
    return tuple(sorted(found, key=lambda intent: (intent.declared.wall, intent.id)))


def _unreadable(place: str, why: str, name: str) -> DamagedIntentError:
    how = "remove that folder" if os.path.isdir(place) else f"git patchgate intent clear {name} removes it"
    hint = f"{how}; then declare the work again"
    return DamagedIntentError(f"the intent {place!r} cannot be read: {why}", hint, intent=name)


_MOST_PLACE = 1 << 16


def is_foreign(intent: Intent, repository: Repository) -> bool:
    """Whether the worktree of an intent is not of this repository, which was moved or copied since."""
    if intent.git_dir in {repository.git_dir, repository.common_dir}:
        return False
    home, place = os.path.realpath(repository.common_dir), os.path.realpath(intent.git_dir)
    return place != home and os.path.dirname(place) != os.path.join(home, "worktrees")


def is_gone(intent: Intent, repository: Repository) -> bool:
    """Whether the worktree of an intent is not of this repository, was deleted, or was created again."""
    if is_foreign(intent, repository):
        return True
    try:
        return intent.id not in marked_ids(intent.git_dir) or _is_deleted(intent.git_dir)
    except UndecidedError:
        return False


def _is_deleted(git_dir: str) -> bool:
    """Whether the folder of a linked worktree was deleted; that of a locked one may come back.

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


def owns_files(intent: Intent, repository: Repository, now: Moment) -> bool:
    """Whether an intent has its declared files, so that no other gets them."""
    return intent.state is State.ACTIVE and is_alive(intent, now) and not is_gone(intent, repository)


def find_owner(path: RepoPath, intents: Iterable[Intent], *, but: str = "") -> Intent | None:
    """Find the intent that has a file, except the one of the id `but`; None if no other has it."""
    return next((each for each in intents if each.id != but and each.scope.covers(path)), None)
