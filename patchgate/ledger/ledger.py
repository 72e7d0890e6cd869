"""The ledger: `events.jsonl`, append-only, one JSON object a line, each with the hash of the one before.

Decides where the file is, what becomes of an event that cannot be recorded, and what reading it gives. How a
line gets onto the disk whole is `storage.chain`'s; what an event holds is `event`'s. Beside it is
`events.jsonl.head`, which says where the last event ended (`storage.head`).
"""

from __future__ import annotations

import os
import time

from patchgate.errors import UndecidedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from patchgate.ledger.event import Event
    from patchgate.storage.chain import Problem
    from patchgate.storage.head import Comparison
    from patchgate.storage.record import Json

PATIENCE_SECONDS = 3.0
"""How long a hook waits for other writers; an append of theirs takes milliseconds."""


class Ledger:
    """The permanent record of one repository, shared by its worktrees.

    Args:
        common_dir: git's common directory; nothing is made in it before the first event.
        clock: seconds since the epoch.
        patience_seconds: how long the first event waits for a lock that is held.
    """

    def __init__(
        self,
        common_dir: str,
        *,
        clock: Callable[[], float] = time.time,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._path = os.path.join(common_dir, "patchgate", "events.jsonl")
        self._clock = clock
        self._patience = patience_seconds

    @property
    def path(self) -> Path:
        """The file."""
        from pathlib import Path

        return Path(self._path)

    def size(self) -> int:
        """Give its size in bytes, 0 where it cannot be seen."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0

    def record(self, kind: str, about: Mapping[str, Json]) -> str | None:
        """Add one event, on the disk when this returns; None, or one sentence to warn with.

        It never raises for what the system or another process does: the verdict stays what it is. A secret
        that somebody wrote into the `reason` is masked.

        Raises:
            ValueError: `kind` or `about` is not what an event may hold, which is the caller's fault.
        """
        from patchgate.ledger.event import written_forms
        from patchgate.storage import chain

        aside: list[Path] = []
        try:
            for event in written_forms(kind, _without_secrets(about), self._clock()):
                chain.append(
                    self._path,
                    event,
                    timeout_seconds=self._patience,
                    on_torn=aside.append,
                    with_head=True,
                )
        except OSError as error:
            return f"the ledger has no record of this: {self._path!r}: {error.strerror or error}"
        except UndecidedError as error:
            # Whoever holds the lock so long is stuck; the next event of this command does not wait for it.
            self._patience = 0.0
            return f"the ledger has no record of this: {error.message}" + (
                f"; {error.hint}" if error.hint else ""
            )
        return _told(aside)

    def require_writable(self) -> str | None:
        """Make sure that an event could be recorded now: all that recording one does, but the writing.

        For who must not begin what could not be recorded. None, or one sentence to warn with.

        Raises:
            UndecidedError: it could not; says why, and the next step.
        """
        from patchgate.storage import chain

        aside: list[Path] = []
        try:
            chain.require_appendable(self._path, timeout_seconds=self._patience, on_torn=aside.append)
        except OSError as error:
            raise UndecidedError(
                f"the ledger {self._path!r} cannot be written, nothing was done: {error.strerror or error}",
                "make room, or mend the mode of that file and its folder",
            ) from error
        return _told(aside)

    def events(self) -> Iterator[Event]:
        """Yield the events, oldest first, each checked against the chain; a torn last line is left out.

        Raises:
            UndecidedError: a line is damaged; the events before it have been yielded.
            OSError: the file cannot be read.
        """
        from patchgate.ledger.event import Event
        from patchgate.storage import chain

        for record in chain.read(self._path):
            yield Event.from_record(record.event, record.hash)

    def lines(self) -> Iterator[Event | Problem]:
        """Yield an event, or what is wrong, for each line, oldest first; damage does not end it.

        Raises:
            OSError: the file cannot be read.
        """
        from patchgate.ledger.event import Event
        from patchgate.storage import chain

        for found in chain.scan(self._path):
            yield found if isinstance(found, chain.Problem) else Event.from_record(found.event, found.hash)

    def mentions(
        self, kinds: Collection[str], holding: str = "", *, since: float | None = None, strict: bool = False
    ) -> Iterator[Event]:
        """Yield the events of some kinds, oldest first, without the chain being checked; damage is left out.

        For a question that is asked at every commit: the canonical form has one way to write a kind, so most
        lines are passed by unread (100,000 events: 40 ms instead of 1.8 s). With `holding`, so are those in
        which this text (plain ASCII that JSON does not escape) is not found, and with `since`, in seconds
        since the epoch, those that say an earlier time.

        Raises:
            UndecidedError: with `strict` only: there is a ledger, and it cannot be read.
        """
        try:
            with open(self._path, "rb") as file:
                content = file.read()
        except OSError as error:
            if strict and not isinstance(error, FileNotFoundError):
                raise UndecidedError(
                    f"the ledger {self._path!r} cannot be read: {error.strerror or error}",
                    "mend the mode of that file and its folder",
                ) from error
            return
        import contextlib

        from patchgate.ledger.event import Event
        from patchgate.storage.record import parse_line

        marks = [f'"kind":"{kind}"'.encode("ascii") for kind in kinds]
        sought = holding.encode("utf-8", "replace")
        if not sought and len(marks) == 1:
            (sought,) = marks
        if not sought and not any(mark in content for mark in marks):
            return
        is_early = _early(since)
        for line in _lines_with(content, sought):
            if is_early(line) or not any(mark in line for mark in marks):
                continue
            with contextlib.suppress(ValueError):
                found = parse_line(line)
                event = Event.from_record(found.event, found.hash)
                if event.kind in kinds:
                    yield event

    def verify(self) -> list[Problem]:
        """List what is wrong, line by line; empty for a ledger that is whole, or that does not exist.

        Raises:
            UndecidedError: something looked wrong, and a writer kept the lock so that it stays unconfirmed.
            OSError: the file cannot be read.
        """
        from patchgate.storage import chain

        return chain.verify(self._path)

    def compare_head(self) -> Comparison:
        """Compare the ledger with `events.jsonl.head`: whether events are missing at its end.

        Raises:
            OSError: one of the two cannot be read.
        """
        from patchgate.storage import head

        return head.compare(self._path)


def _lines_with(content: bytes, sought: bytes) -> Iterator[bytes]:
    """Yield the lines that hold a text, without cutting the others out of the content."""
    if not sought:
        yield from content.split(b"\n")
        return
    position = content.find(sought)
    while position >= 0:
        end = content.find(b"\n", position)
        end = len(content) if end < 0 else end
        yield content[content.rfind(b"\n", 0, position) + 1 : end]
        position = content.find(sought, end)


def _early(since: float | None) -> Callable[[bytes], bool]:
    """Make what tells whether a line says a time before another one; what is no time is not before it."""
    if since is None:
        return lambda line: False
    import re

    limit = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since)).encode("ascii")
    day = rb"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    moment = re.compile(day + rb"T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}Z")
    key = b'"at":"'

    def is_early(line: bytes) -> bool:
        start = line.find(key) + len(key)
        said = line[start : line.find(b'"', start)]
        # An object within the event might say a time too: then the line is read.
        return said < limit and moment.fullmatch(said) is not None and line.find(key, start) < 0

    return is_early


def _without_secrets(about: Mapping[str, Json]) -> Mapping[str, Json]:
    reason = about.get("reason")
    if not isinstance(reason, str):
        return about
    from patchgate.ledger.masking import Masks

    return {**about, "reason": Masks().text(reason)}


def _told(aside: list[Path]) -> str | None:
    """Say that torn lines were set aside; None where there were none."""
    if not aside:
        return None
    names = ", ".join(path.name for path in aside)
    return f"the last line of the ledger was cut short by a crash and is set aside in {names}"
