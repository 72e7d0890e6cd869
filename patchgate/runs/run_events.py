"""The events of one run as a file, to be merged into the ledger of another clone.

It has the form of the ledger: a record in each line, with the hash of the one before. The first names the
repository, the run and the number of events. Each event keeps what it was where it was recorded (`origin`):
its hash there, and its causes, the events of the run that nothing followed there yet. Same hash, same event.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

from patchgate.components.policy_tree import index_tree
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import head_commit, root_commits
from patchgate.ledger.ledger import ORIGIN, Event, Ledger
from patchgate.ledger.timestamps import parse_timestamp
from patchgate.policy.validators import COMPONENT_ID
from patchgate.runs.run_record import ID
from patchgate.runs.run_state import KIND, RunAction, RunState, add_event
from patchgate.storage.hash_chain import ChainProblem, scan_file
from patchgate.storage.record import START, Json, Record, canonical_event, hash_of, line_of
from patchgate.values import dataclass

SCHEMA = "patchgate.run-events/1"
ATTEMPTED = "attempted"
MOST_BYTES = 32 << 20
_HASH = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_PRINTED = frozenset({"reason", "hint", "signature", "tail"})
_VERSION = "use the same version of patchgate here and there"
_AGAIN = "write it again: git patchgate run show RUN --format events"


@dataclass(frozen=True, slots=True)
class RepositoryName:
    """What names a repository in all its clones: `[governance] id`, and its root commits.

    A shallow clone does not know the roots.
    """

    id: str | None
    roots: tuple[str, ...]

    def plain(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {"id": self.id, "roots": list(self.roots)}

    def is_same(self, other: RepositoryName) -> bool:
        """Return whether both name one repository: by their ids where both have one, else by their roots."""
        if self.id is not None and other.id is not None:
            return self.id == other.id
        return bool(set(self.roots) & set(other.roots))


@dataclass(frozen=True, slots=True)
class OriginalEvent:
    """An event as it was recorded first: `hash` and `previous` are those of its record there.

    `causes` are the hashes of the events of its run that came directly before it. `is_merged`: whether it
    came from another ledger.
    """

    event: Mapping[str, Json]
    hash: str
    previous: str
    causes: tuple[str, ...]
    is_merged: bool = False

    @property
    def at(self) -> str:
        """When it was recorded."""
        return str(self.event.get("at"))

    def plain(self) -> dict[str, Json]:
        """Return the event with its origin, as another ledger records it."""
        origin = {"cause": list(self.causes), "hash": self.hash, "previous": self.previous}
        return {**self.event, ORIGIN: origin}


@dataclass(frozen=True, slots=True)
class RunEvents:
    """The events of one run, each after its causes, and the repository where they come from."""

    repository: RepositoryName
    run: str
    events: tuple[OriginalEvent, ...]


def name_of(repository: Repository) -> RepositoryName:
    """Return what names this repository.

    Raises:
        UsageError: nothing does: it is shallow and has no `[governance] id`, or has no commit.
        ConfigError: the policy of the index cannot be used.
        UndecidedError: something cannot be read.
    """
    with Objects(repository) as objects:
        policy = index_tree(repository, objects).policy
        commit = head_commit(objects)
    roots = () if commit is None else tuple(root_commits(repository, commit))
    name = RepositoryName(policy.config.governance.id, roots)
    if name.id is None and not roots:
        what = "it has no commit" if commit is None else "this clone is shallow"
        raise UsageError(
            f"nothing names this repository in other clones: {what}, and the policy has no `[governance] id`",
            "git fetch --unshallow, or add `id` under [governance], as git patchgate init does",
        )
    return name


def events_of(repository: Repository, run: str) -> list[OriginalEvent]:
    """Return the events of a run in this ledger, with those of its attempts; damaged lines are left out.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    ledger = Ledger(repository.common_dir)
    try:
        lines = [line for line in ledger.records() if isinstance(line, Record)]
    except OSError as error:
        raise UndecidedError(
            f"the ledger {printable(str(ledger.path))} cannot be read: {error.strerror or error}",
            "correct the permissions of that file and its folder",
        ) from error
    return list(_with_causes(line for line in lines if is_of_run(line.event, run)))


def is_of_run(event: Mapping[str, Json], run: str) -> bool:
    """Return whether an event is one of a run, or of an attempt that a work of it made."""
    name = event.get("run")
    if event.get("kind") == KIND:
        return name == run
    return event.get("kind") == ATTEMPTED and isinstance(name, str) and name.startswith(f"{run}/")


def _with_causes(records: Iterable[Record]) -> Iterator[OriginalEvent]:
    """Find the causes: what was recorded here has all that came before, what was merged its own."""
    heads: set[str] = set()
    for record in records:
        found = read_original(record.event)
        if found is None:
            found = OriginalEvent(record.event, record.hash, record.previous, tuple(sorted(heads)))
        heads = heads.difference(found.causes) | {found.hash}
        yield found


def read_original(written: Mapping[str, Json]) -> OriginalEvent | None:
    """Read an event that has an origin; None if it has none.

    Raises:
        ValueError: the origin is none, or another event has that hash.
    """
    if ORIGIN not in written:
        return None
    origin = written[ORIGIN]
    if not isinstance(origin, Mapping) or set(origin) != {"cause", "hash", "previous"}:
        raise ValueError("has an origin that cannot be read")
    digest, previous, causes = str(origin["hash"]), str(origin["previous"]), origin["cause"]
    is_list = isinstance(causes, Sequence) and not isinstance(causes, str)
    named = [str(each) for each in causes] if is_list and isinstance(causes, Sequence) else [""]
    if not all(_HASH.fullmatch(each) for each in (digest, previous, *named)):
        raise ValueError("has an origin that cannot be read")
    event = {key: value for key, value in written.items() if key != ORIGIN}
    if digest != hash_of(canonical_event(event), previous):
        raise ValueError("is not the event whose hash it has")
    return OriginalEvent(event, digest, previous, tuple(named), is_merged=True)


def events_text(repository: Repository, state: RunState) -> str:
    """Write the events of a run as a file.

    Raises:
        UsageError: nothing names this repository.
        UndecidedError: an event is damaged, or the ledger cannot be read.
    """
    try:
        events = events_of(repository, state.id)
    except ValueError as error:
        raise UndecidedError(
            f"an event of the run {state.id} {error}", "git patchgate log --verify"
        ) from error
    if state.warnings:
        raise UndecidedError(
            f"the run {state.id} is damaged: {state.warnings[0]}", f"git patchgate run show {state.id}"
        )
    header: dict[str, Json] = {
        "schema": SCHEMA,
        "repository": name_of(repository).plain(),
        "run": state.id,
        "events": len(events),
    }
    previous, lines = START, []
    for each in (header, *(event.plain() for event in events)):
        previous, line = line_of(canonical_event(each), previous)
        lines.append(line.decode("ascii"))
    return "".join(lines)


def read_run_events(name: str, directory: str) -> RunEvents:
    """Read a file of events, and check each line of it.

    Args:
        name: the file.
        directory: the folder that a relative name starts from.

    Raises:
        UsageError: it cannot be read, is no such file, or was changed; names the line.
    """
    shown = printable(name)
    with os.fdopen(_open(os.path.join(directory, name), shown), "rb") as file:
        lines = []
        for found in scan_file(file):
            if isinstance(found, ChainProblem):
                message = "was cut short" if found.torn else found.message
                raise UsageError(f"{shown}: line {found.line} {message}", _AGAIN)
            lines.append(found.event)
    if not lines:
        raise UsageError(f"{shown} is empty", _AGAIN)
    try:
        repository, run, number = _read_header(lines[0])
    except ValueError as error:
        raise UsageError(f"{shown}: line 1 {error}", _AGAIN) from error
    if len(lines) - 1 != number:
        raise UsageError(f"{shown} has {len(lines) - 1} of its {number} events", _AGAIN)
    return RunEvents(repository, run, tuple(_read_events(shown, run, lines[1:])))


def _open(place: str, shown: str) -> int:
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(f"{shown} cannot be read: {why}", "name a file of events") from error
    found = os.fstat(descriptor)
    wrong = None
    if not stat.S_ISREG(found.st_mode):
        wrong = "is not a regular file"
    elif found.st_size > MOST_BYTES:
        wrong = f"has {found.st_size:,} bytes, and the events of a run have at most {MOST_BYTES:,}"
    if wrong is not None:
        os.close(descriptor)
        raise UsageError(f"{shown} {wrong}", "name a file of events")
    return descriptor


def _read_header(event: Mapping[str, Json]) -> tuple[RepositoryName, str, int]:
    """Read the first line: the repository, the run, and the number of events.

    Raises:
        ValueError: it is something else.
    """
    schema = event.get("schema")
    if schema != SCHEMA:
        raise ValueError(f"does not begin the events of a run ({SCHEMA})")
    place, run, number = event.get("repository"), event.get("run"), event.get("events")
    if not isinstance(place, Mapping) or not isinstance(run, str) or ID.fullmatch(run) is None:
        raise ValueError("does not name a repository and a run")
    name, roots = place.get("id"), place.get("roots")
    is_named = name is None or isinstance(name, str)
    if not is_named or not isinstance(roots, Sequence) or isinstance(roots, str) or type(number) is not int:
        raise ValueError("does not name a repository and a number of events")
    return RepositoryName(None if name is None else str(name), tuple(map(str, roots))), run, number


def _read_events(shown: str, run: str, lines: Sequence[Mapping[str, Json]]) -> Iterator[OriginalEvent]:
    """Read the events, and check that a run can have them in this order."""
    state = RunState(run)
    seen: set[str] = set()
    for number, written in enumerate(lines, 2):
        try:
            event = _read_event(run, written, seen)
        except ValueError as error:
            raise UsageError(f"{shown}: line {number} {error}", _AGAIN) from error
        if event.event["kind"] == KIND:
            _require_usable(shown, number, state, event)
        seen.add(event.hash)
        yield event


def _read_event(run: str, written: Mapping[str, Json], seen: set[str]) -> OriginalEvent:
    event = read_original(written)
    if event is None:
        raise ValueError("has no origin")
    if not is_of_run(event.event, run):
        raise ValueError(f"is not an event of the run {run}")
    if event.hash in seen:
        raise ValueError("has an event that an earlier line has")
    if not seen.issuperset(event.causes):
        raise ValueError("comes before an event that it needs")
    if parse_timestamp(event.at) is None:
        raise ValueError("has no time")
    if not isinstance(event.event.get("version"), str):
        raise ValueError("has no version")
    if _misleads(event.event):
        raise ValueError("has an event inside an event")
    if event.event["kind"] == KIND:
        _check_names(event.event)
    return event


def _check_names(event: Mapping[str, Json]) -> None:
    """Check the components of an event, and its text but for what tools printed, which may be any bytes.

    Raises:
        ValueError: a component cannot have that id, or text is not Unicode.
    """
    try:
        text = {key: value for key, value in event.items() if key not in _PRINTED}
        json.dumps(text, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("has text that is not Unicode") from None
    planned, component = event.get("phases"), event.get("component")
    names = [*(planned if isinstance(planned, Mapping) else ()), *([] if component is None else [component])]
    if not all(re.fullmatch(COMPONENT_ID, str(name)) for name in names):
        raise ValueError("names a component that no policy can declare")


def _require_usable(shown: str, number: int, state: RunState, event: OriginalEvent) -> None:
    action = event.event.get("action")
    if action not in set(RunAction):
        raise UsageError(f"{shown}: line {number} has an action that is not known here", _VERSION)
    about = {key: value for key, value in event.event.items() if key not in {"kind", "at", "version"}}
    if state.starts == 0 and action != RunAction.STARTED:
        raise UsageError(f"{shown}: line {number} comes before the start of the run", _AGAIN)
    add_event(state, Event(KIND, about, at=event.at))
    if state.warnings:
        cause = printable(state.warnings[0].rpartition("cannot be used: ")[2], 200)
        raise UsageError(f"{shown}: line {number} cannot be used: {cause}", _AGAIN)


def _misleads(event: Mapping[str, Json]) -> bool:
    """Return whether a nested object looks like an event: readers search the ledger for these keys."""
    waiting: list[Json] = list(event.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            is_text = any(isinstance(value.get(key), str) for key in ("action", "kind", "run"))
            if is_text or isinstance(value.get("phases"), Mapping):
                return True
            waiting += value.values()
        elif isinstance(value, Sequence) and not isinstance(value, str):
            waiting += value
    return False
