"""The ledger: `events.jsonl`, append-only, one JSON object a line, each with the hash of the one before.

Decides the kinds of events and their keys, where the file is, and what happens to an event that cannot be
recorded. `storage.hash_chain` writes whole lines to the disk and keeps `events.jsonl.head`, which says where
the last event ended. Callers decide what is recorded.
"""

from __future__ import annotations

import os
import time

from patchgate import __version__
from patchgate.errors import UndecidedError
from patchgate.storage import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Final

    from patchgate.storage.hash_chain import ChainProblem
    from patchgate.storage.record import HeadComparison, Json, Record

EVENT_SCHEMA = "patchgate.event/1"
KINDS: Mapping[str, str] = {
    "refused": "a change was refused, or could not be judged",
    "observed": "a change that would be refused was accepted: mode observe, or a draft ref",
    "skipped": "PATCHGATE_SKIP skipped the hooks, with its reason",
    "unjudged": "commits that no hook checked when they were made, and that would be refused",
    "approved": "a maintainer granted an exception, with a reason",
    "installed": "the hooks were installed",
    "uninstalled": "the hooks were removed",
    "slow": "a hook took longer than [hooks] budget_ms",
    "pushed": "a push was accepted; lists the commits that no hook had checked here",
    "attempted": "apply tried a patch: it was applied, refused, or could not be judged",
    "reset": "a maintainer reset the retries after an attempt, with a reason",
    "recovered": "an interrupted apply was found, and finished or undone",
    "intent": "an intent was declared, promoted, renewed, recovered or cleared, or got its before-report",
    "made": "commits were made in a worktree while an intent was active there",
    "adjudicated": "a verifier's verdict was checked against the files; has subject, outcome and coverage",
    "captured": "the files of a component were recorded as its baseline after its tests passed",
    "verified": "the tests of a component passed again on the files of its baseline",
    "answer": "a question of `init` or of a run was answered; has its source and its confidence",
    "asked": "a client of the MCP server asked for a change: its name, the tool, and the digest",
    "run": "a run was started, resumed, paused, failed or completed, or one of its works began or ended",
}

ORIGIN = "origin"
"""The key that tells of an event of another ledger which record it was there; `run merge` writes it."""
_OWN_KEYS = frozenset({"schema", "hash", "kind", "at", "version", "part", ORIGIN})
# What a record has besides its event: two hashes and the names of the keys.
_BESIDE = 512
_MOST_TEXT = 10_000


class Event(Value):
    """What happened: `about` has the keys of its kind. No value of it is trusted.

    `at` is in UTC, ISO 8601, whole seconds; `version` is that of the patchgate that recorded it; `hash` is
    that of the record in the chain. Each is empty if the record lacks it.
    """

    __slots__ = ("about", "at", "hash", "kind", "version")

    def __init__(
        self, kind: str, about: Mapping[str, Json], at: str = "", version: str = "", digest: str = ""
    ) -> None:
        self.kind: Final = kind
        self.about: Final = about
        self.at: Final = at
        self.version: Final = version
        self.hash: Final = digest

    @classmethod
    def from_record(cls, written: Mapping[str, Json], digest: str) -> Event:
        """Read a record; it may come from a newer patchgate, or from another program."""
        about = dict(written)
        kind, at, version = (_text(about.pop(key, None)) for key in ("kind", "at", "version"))
        return cls(kind, about, at, version, digest)

    def plain(self) -> dict[str, Json]:
        """Return the flat object: `schema`, `hash`, `kind`, `at` and `version`, then the rest."""
        first: dict[str, Json] = {
            "schema": EVENT_SCHEMA,
            "hash": self.hash,
            "kind": self.kind,
            "at": self.at,
            "version": self.version,
        }
        return first | {key: value for key, value in self.about.items() if key not in first}


def written_forms(kind: str, about: Mapping[str, Json], now: float) -> Iterator[dict[str, Json]]:
    """Yield the objects to record for one event: one, or several parts where it is too long for a record.

    The longest list of `about` is split, and `part` says `[1, 3]`; a text that is too long is cut.

    Args:
        kind: one of `KINDS`.
        about: the keys of that kind, of plain JSON.
        now: seconds since the epoch.

    Raises:
        ValueError: the kind is unknown, a key is reserved, or a value is not JSON.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind of event {kind!r}")
    if taken := _OWN_KEYS.intersection(about):
        raise ValueError(f"the keys {sorted(taken)} are reserved for the ledger")
    first: dict[str, Json] = {"kind": kind, "at": iso(now), "version": __version__}
    parts = _split_to_fit(dict(about))
    for number, part in enumerate(parts, 1):
        yield first | part | ({"part": [number, len(parts)]} if len(parts) > 1 else {})


def iso(seconds: float) -> str:
    """Write a time in UTC, in the format of the ledger (ISO 8601)."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _split_to_fit(about: dict[str, Json]) -> list[dict[str, Json]]:
    """Split the longest list until each part fits into one record."""
    from collections.abc import Sequence

    from patchgate.storage.record import MAX_LINE, canonical_event

    if len(canonical_event(about)) <= MAX_LINE - _BESIDE:
        return [about]
    lists = {
        key: value
        for key, value in about.items()
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 1
    }
    if not lists:
        return [{key: _cut(value) for key, value in about.items()}]
    key = max(lists, key=lambda each: len(canonical_event({each: lists[each]})))
    half = len(lists[key]) // 2
    halves: tuple[Sequence[Json], ...] = (lists[key][:half], lists[key][half:])
    return [part for each in halves for part in _split_to_fit(about | {key: each})]


def _cut(value: Json) -> Json:
    return value[:_MOST_TEXT] + "…" if isinstance(value, str) and len(value) > _MOST_TEXT else value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


PATIENCE_SECONDS = 3.0
"""How long a hook waits for other writers; an append takes milliseconds."""


class Ledger:
    """The permanent record of one repository, shared by its worktrees.

    Args:
        common_dir: git's common directory; nothing is created in it before the first event.
        clock: seconds since the epoch.
        patience_seconds: how long the first event waits for the lock.
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
        """Return its size in bytes, 0 where that is unknown."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0

    def record(self, kind: str, about: Mapping[str, Json]) -> str | None:
        """Write one event to the disk; return None, or the text of a warning.

        It never raises for an error of the system or of another process: the verdict does not change. A
        secret in the `reason` is masked.

        Raises:
            ValueError: `kind` or `about` is not valid for an event; a programming error.
        """
        from patchgate.storage import hash_chain

        aside: list[Path] = []
        try:
            for event in written_forms(kind, _without_secrets(about), self._clock()):
                hash_chain.append(
                    self._path, event, timeout_seconds=self._patience, on_torn=aside.append, with_head=True
                )
        except OSError as error:
            return f"this was not recorded in the ledger: {self._path!r}: {error.strerror or error}"
        except UndecidedError as error:
            # The owner of the lock hangs; the next event of this command does not wait for it.
            self._patience = 0.0
            return f"this was not recorded in the ledger: {error.sentence}"
        return _torn_warning(aside)

    def record_all(self, events: Sequence[Mapping[str, Json]]) -> str | None:
        """Write whole events, as `written_forms` makes them, to the disk: all of them or none.

        For events of another ledger, which keep their time. Returns None, or the text of a warning.

        Raises:
            UndecidedError: they could not be written.
        """
        from patchgate.storage import hash_chain

        aside: list[Path] = []
        try:
            hash_chain.append_all(
                self._path, events, timeout_seconds=self._patience, on_torn=aside.append, with_head=True
            )
        except OSError as error:
            raise UndecidedError(
                f"nothing was recorded in the ledger {self._path!r}: {error.strerror or error}",
                "free disk space, or correct the permissions of that file and its folder",
            ) from error
        return _torn_warning(aside)

    def records(self) -> Iterator[Record | ChainProblem]:
        """Yield each line as the file has it, oldest first, or what is wrong with it.

        Raises:
            OSError: the file cannot be read.
        """
        from patchgate.storage import hash_chain

        yield from hash_chain.scan(self._path)

    def require_writable(self) -> str | None:
        """Check that an event can be recorded now: everything that `record` does, without the write.

        For a caller that may not start what it cannot record. Returns None, or the text of a warning.

        Raises:
            UndecidedError: it cannot be recorded; says why, and the next step.
        """
        from patchgate.storage import hash_chain

        aside: list[Path] = []
        try:
            hash_chain.require_appendable(self._path, timeout_seconds=self._patience, on_torn=aside.append)
        except OSError as error:
            raise UndecidedError(
                f"nothing was done: the ledger {self._path!r} cannot be written: {error.strerror or error}",
                "free disk space, or correct the permissions of that file and its folder",
            ) from error
        return _torn_warning(aside)

    def events(self) -> Iterator[Event]:
        """Yield the events, oldest first, each checked against the chain; a torn last line is skipped.

        Raises:
            UndecidedError: a line is damaged; the events before it were yielded.
            OSError: the file cannot be read.
        """
        from patchgate.storage import hash_chain

        for record in hash_chain.read(self._path):
            yield Event.from_record(record.event, record.hash)

    def lines(
        self, kinds: Collection[str] | None = None, containing: str = ""
    ) -> Iterator[Event | ChainProblem]:
        """Yield an event or a problem for each line, oldest first; it goes on after damage.

        With `kinds`, lines of other kinds are not yielded: their bytes are checked, and not what they mean.
        With `containing`, also those without this text (ASCII that JSON does not escape).

        Raises:
            OSError: the file cannot be read.
        """
        from patchgate.storage import hash_chain

        # The canonical form has one way to write a kind.
        marks = [f'"kind":"{kind}"'.encode("ascii") for kind in kinds or ()]
        marks = [containing.encode("ascii")] if containing else marks
        for found in hash_chain.scan(self._path, marks):
            if isinstance(found, hash_chain.ChainProblem):
                yield found
            elif kinds is None or found.event.get("kind") in kinds:
                yield Event.from_record(found.event, found.hash)

    def find_events(
        self,
        kinds: Collection[str],
        containing: str = "",
        *,
        since: float | None = None,
        after: int = 0,
        strict: bool = False,
    ) -> Iterator[Event]:
        """Yield the events of some kinds, oldest first; the chain is not checked, damaged lines are skipped.

        For a question that every commit asks: the canonical form has one way to write a kind, so most lines
        are skipped unread (100,000 events: 40 ms instead of 1.8 s). `containing` also skips lines without
        this text (ASCII that JSON does not escape), `since`, in seconds since the epoch, lines with an
        earlier time, and `after`, an earlier `size`, the lines that were whole then.

        Raises:
            UndecidedError: only with `strict`: the ledger exists and cannot be read.
        """
        content = self.content(strict=strict)
        content = content[content.rfind(b"\n", 0, after) + 1 :] if after else content
        import contextlib

        from patchgate.storage.record import parse_line

        marks = [f'"kind":"{kind}"'.encode("ascii") for kind in kinds]
        sought = containing.encode("utf-8", "replace")
        is_early = _is_before(since)
        lines = _lines_with_any(content, marks)
        if sought or len(marks) == 1:
            lines = _lines_with(content, sought or marks[0])
        for line in lines:
            if is_early(line) or not any(mark in line for mark in marks):
                continue
            with contextlib.suppress(ValueError):
                found = parse_line(line)
                event = Event.from_record(found.event, found.hash)
                if event.kind in kinds:
                    yield event

    def content(self, *, strict: bool = False) -> bytes:
        """Return the bytes of the ledger; none if there is none.

        Raises:
            UndecidedError: only with `strict`: the ledger exists and cannot be read.
        """
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except OSError as error:
            if strict and not isinstance(error, FileNotFoundError):
                raise UndecidedError(
                    f"the ledger {self._path!r} cannot be read: {error.strerror or error}",
                    "correct the permissions of that file and its folder",
                ) from error
            return b""

    def verify(self) -> list[ChainProblem]:
        """List what is wrong, line by line; empty for a ledger that is whole or does not exist.

        Raises:
            UndecidedError: something looks wrong, and a writer kept the lock, so it could not be confirmed.
            OSError: the file cannot be read.
        """
        from patchgate.storage import hash_chain

        return hash_chain.verify(self._path)

    def compare_head(self) -> HeadComparison:
        """Compare the ledger with `events.jsonl.head`, to see whether events are missing at its end.

        Raises:
            OSError: one of the two cannot be read.
        """
        from patchgate.storage.record import compare_head

        return compare_head(self._path)


def _lines_with(content: bytes, sought: bytes) -> Iterator[bytes]:
    """Yield the lines that contain a text, without a copy of the others."""
    position = content.find(sought)
    while position >= 0:
        line, end = _line_at(content, position)
        yield line
        position = content.find(sought, end)


def _lines_with_any(content: bytes, marks: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines that contain one of several texts."""
    import re

    expression = re.compile(b"|".join(map(re.escape, marks)))
    found = expression.search(content)
    while found is not None:
        line, end = _line_at(content, found.start())
        yield line
        found = expression.search(content, end)


def _line_at(content: bytes, position: int) -> tuple[bytes, int]:
    """Return the line around a position, and where it ends."""
    end = content.find(b"\n", position)
    end = len(content) if end < 0 else end
    return content[content.rfind(b"\n", 0, position) + 1 : end], end


def _is_before(since: float | None) -> Callable[[bytes], bool]:
    """Build a function that returns whether a line has an earlier time; False if it has no time."""
    if since is None:
        return lambda line: False
    import re

    limit = iso(since).encode("ascii")
    day = rb"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    moment = re.compile(day + rb"T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}Z")
    key = b'"at":"'

    def is_early(line: bytes) -> bool:
        start = line.find(key) + len(key)
        said = line[start : line.find(b'"', start)]
        # An object inside the event may have a time too: then the line is read.
        return said < limit and moment.fullmatch(said) is not None and line.find(key, start) < 0

    return is_early


def _without_secrets(about: Mapping[str, Json]) -> Mapping[str, Json]:
    reason = about.get("reason")
    if not isinstance(reason, str):
        return about
    from patchgate.ledger.masking import Masks

    return {**about, "reason": Masks().text(reason)}


def _torn_warning(aside: list[Path]) -> str | None:
    """Write the warning about torn lines that were moved to other files; None if there were none."""
    if not aside:
        return None
    names = ", ".join(path.name for path in aside)
    return f"a crash cut the last line of the ledger short; it was moved to {names}"
