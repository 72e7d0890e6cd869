"""The ledger's record of attempts: an `attempted` event for each `apply`; also `reset` and `recovered`.

Foreign, damaged or newer records are left out. A list of files that is too long for one record is split over
several events. If a part is missing, the attempt has neither files nor a patch id, so nothing is concluded
from an incomplete list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.ledger.adjudications import part_number, read_path
from patchgate.ledger.ledger import Event, Ledger
from patchgate.ledger.timestamps import parse_timestamp
from patchgate.report.json import path_member
from patchgate.storage.record import Json, canonical_event
from patchgate.values import dataclass, fields, replace

ATTEMPTED, RESET, RECOVERED = "attempted", "reset", "recovered"
MAX_NOTE = 256 * 1024
"""The maximum bytes of a journal's note; the journal also contains the names of folders."""

ID = re.compile(r"a-[0-9a-f]{4,40}", re.ASCII)
_MODE = re.compile(r"[0-7]{6}", re.ASCII)
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """One path of an attempt's patch: the entry before and after; None for no file."""

    path: RepoPath
    old: Entry | None
    new: Entry | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt, as the ledger records it.

    `chain` is the id of the chain's first attempt, `number` counts from 1 in it. `counts` is whether it is a
    refusal that the retry rule counts. `kind` is patch or edits (`source` in the event). `base`, `after` are
    trees, `policy` is a digest, `stage`, `code` are those of the first error and `rules` those of all.
    `fallback_reason` is why it did not land: a rule, a gate, or the kind of an error; `temp_path` a scratch
    tree that was kept. `dir` is where the evidence was put. `run` is the work of a run that asked for it
    (`RUN/COMPONENT/PHASE`). `at` is the event's own time, empty before it is recorded.
    """

    attempt: str
    chain: str
    retry_of: str | None
    number: int
    verdict: str
    applied: bool
    counts: bool
    dry_run: bool
    kind: str
    patch_sha256: str
    patch_id: str | None = None
    base: str | None = None
    after: str | None = None
    policy: str | None = None
    stage: str | None = None
    code: str | None = None
    rules: tuple[str, ...] = ()
    n_hunks: int | None = None
    added_lines: int | None = None
    removed_lines: int | None = None
    files: tuple[TouchedFile, ...] = ()
    dir: str | None = None
    work_tree: str | None = None
    fallback_reason: str | None = None
    temp_path: str | None = None
    run: str | None = None
    at: str = ""

    def plain(self) -> dict[str, Json]:
        """Return the keys of the event."""
        value: dict[str, Json] = dict(zip(KEYS, (getattr(self, name) for name in _PLAIN), strict=True))
        return value | {"rules": list(self.rules), "files": [_plain_file(file) for file in self.files]}

    def note(self) -> dict[str, Json]:
        """Return the keys of the event for a journal's note, without files and patch id if it is too long."""
        value = self.plain()
        if len(canonical_event(value)) <= MAX_NOTE:
            return value
        return value | {"files": [], "patch_id": None}

    @classmethod
    def from_plain(cls, value: Mapping[str, Json], at: str = "") -> AttemptRecord:
        """Read what `plain` returned; unknown keys are ignored.

        Raises:
            ValueError: it is not a record of an attempt.
        """
        values: dict[str, Json] = {}
        for key, (name, (kind, may_be_none)) in zip(KEYS, _PLAIN.items(), strict=True):
            each = value.get(key)
            if type(each) is not kind and not (each is None and may_be_none):
                raise ValueError(f"{name} has the wrong type")
            values[name] = each
        rules, files = value.get("rules"), value.get("files")
        if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
            raise ValueError("rules are not names")
        if not isinstance(files, list):
            raise ValueError("files are not a list")
        if not all(ID.fullmatch(str(values[name])) for name in ("attempt", "chain")):
            raise ValueError("the id is invalid")
        # mypy cannot follow the table; the loop above has checked each type.
        return cls(**values, rules=tuple(rules), files=tuple(map(_file, files)), at=at)  # type: ignore[arg-type]


# An event already has a `kind`; `source` is the key that other events use for the source of a change.
_KEYS = {"kind": "source"}
_TYPES: Mapping[str, tuple[type, bool]] = {
    "str": (str, False),
    "str | None": (str, True),
    "bool": (bool, False),
    "int": (int, False),
    "int | None": (int, True),
}
# What is written as it is: the type of each, and whether it may be null.
_PLAIN = {
    each.name: _TYPES[str(each.type)]
    for each in fields(AttemptRecord)
    if each.name not in {"rules", "files", "at"}
}


KEYS = tuple(_KEYS.get(name, name) for name in _PLAIN)
"""The keys of an event that are written as they are."""


@dataclass(frozen=True, slots=True)
class ResetRecord:
    """A maintainer reset the retries of a chain."""

    chain: str
    reason: str
    by: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class RecoveredRecord:
    """What became of an interrupted apply: `undone` or `landed`."""

    attempt: str
    outcome: str
    at: str = ""


def record(ledger: Ledger, attempt: AttemptRecord) -> str | None:
    """Add an attempt, flushed to disk on return; None, or a warning."""
    return ledger.record(ATTEMPTED, attempt.plain())


def record_reset(ledger: Ledger, reset: ResetRecord) -> str | None:
    """Add a reset of retries; None, or a warning."""
    return ledger.record(RESET, {"chain": reset.chain, "reason": reset.reason, "by": reset.by})


def record_recovered(ledger: Ledger, recovered: RecoveredRecord) -> str | None:
    """Add what recovery did; None, or a warning."""
    return ledger.record(RECOVERED, {"attempt": recovered.attempt, "outcome": recovered.outcome})


def record_landed(ledger: Ledger, note: Mapping[str, Json]) -> str | None:
    """Record an attempt that was applied but killed before its own record, from its journal's note.

    Returns None, or a warning. A note of something else, or of a recorded attempt, is ignored.
    """
    try:
        landed = AttemptRecord.from_plain(note)
    except ValueError:
        return None
    known = find(ledger, landed.attempt)
    return None if known is not None and known.applied else record(ledger, landed)


def list_events(
    ledger: Ledger, containing: str = "", since: float | None = None
) -> list[AttemptRecord | ResetRecord | RecoveredRecord]:
    """List the events of attempts, oldest first.

    Args:
        containing: only records in lines that contain this text: an id or a digest, nothing that JSON would
            escape. This makes a query of a long ledger cheap.
        since: only records since then, in seconds since the epoch, or without a time.
    """
    found: list[list[Event] | ResetRecord | RecoveredRecord] = []
    begun: dict[Json, list[Event]] = {}
    for event in ledger.find_events({ATTEMPTED, RESET, RECOVERED}, containing, since=since):
        attempt = _text(event.about.get("attempt"))
        if event.kind == ATTEMPTED:
            # Each part is a separate event, so another attempt's event may be between two of them.
            if _part(event)[0] > 1 and attempt in begun:
                begun[attempt].append(event)
            else:
                begun[attempt] = [event]
                found.append(begun[attempt])
        elif event.kind == RESET:
            chain, reason, by = (_text(event.about.get(name)) for name in ("chain", "reason", "by"))
            if ID.fullmatch(chain):
                found.append(ResetRecord(chain, reason, by, at=event.at))
        elif event.kind == RECOVERED and ID.fullmatch(attempt):
            found.append(RecoveredRecord(attempt, _text(event.about.get("outcome")), event.at))
    read = (_joined(each) if isinstance(each, list) else each for each in found)
    return [each for each in read if each is not None]


def records(ledger: Ledger, containing: str = "", since: float | None = None) -> list[AttemptRecord]:
    """List the attempts, oldest first; `containing` and `since` as in `list_events`."""
    return [each for each in list_events(ledger, containing, since) if isinstance(each, AttemptRecord)]


def find(ledger: Ledger, text: str) -> AttemptRecord | None:
    """Find an attempt by its id, or by a unique beginning of one."""
    return pick_record(records(ledger, text) if ID.fullmatch(text) else records(ledger), text)


def pick_record(known: Sequence[AttemptRecord], text: str) -> AttemptRecord | None:
    """Find the attempt with an id, or with a unique beginning of one, in a list."""
    last = {each.attempt: each for each in known}
    if text in last:
        return last[text]
    names = [name for name in last if name.startswith(text)] if len(text) > len("a-") else []
    return last[names[0]] if len(names) == 1 else None


def list_chain_since_reset(ledger: Ledger, chain: str) -> list[AttemptRecord]:
    """List the attempts of a chain since its last reset, oldest first."""
    found: list[AttemptRecord] = []
    for each in list_events(ledger, chain):
        if isinstance(each, ResetRecord) and each.chain == chain:
            found = []
        elif isinstance(each, AttemptRecord) and each.chain == chain:
            found.append(each)
    return found


def age_of(at: str, now: float) -> float:
    """Return how many seconds before `now` a recorded time was; 0 for no time."""
    then = parse_timestamp(at)
    return 0.0 if then is None else now - then


def is_known(ledger: Ledger) -> Callable[[str], bool]:
    """Return a function that tests whether the ledger contains an id, so that no new attempt gets it."""

    def known(name: str) -> bool:
        return any(True for _ in ledger.find_events({ATTEMPTED, RESET, RECOVERED}, f'"{name}"'))

    return known


def events_of(ledger: Ledger, attempt: str) -> list[dict[str, Json]]:
    """Return the ledger's events about one attempt as flat objects, oldest first, for its evidence."""
    return [
        event.plain()
        for event in ledger.find_events({ATTEMPTED, RECOVERED}, f'"{attempt}"')
        if event.about.get("attempt") == attempt
    ]


def _part(event: Event) -> tuple[int, int]:
    return part_number(event) or (0, 0)


def _joined(parts: Sequence[Event]) -> AttemptRecord | None:
    """Join the parts of an event to one record; None if it is not ours."""
    try:
        read = [AttemptRecord.from_plain(event.about, event.at) for event in parts]
    except ValueError:
        return None
    of = _part(parts[0])[1]
    if [_part(event) for event in parts] != [(number, of) for number in range(1, of + 1)]:
        return replace(read[0], files=(), patch_id=None)
    if len(read) == 1 and len(set(read[0].rules)) == len(read[0].rules):
        return read[0]
    # A list of rules is never split in practice; if it was, each part has some of them.
    rules = tuple(dict.fromkeys(rule for each in read for rule in each.rules))
    return replace(read[0], rules=rules, files=tuple(file for each in read for file in each.files))


def _plain_file(file: TouchedFile) -> dict[str, Json]:
    value = path_member("path", file.path)
    for side, entry in (("old", file.old), ("new", file.new)):
        value[f"{side}_mode"] = entry.mode if entry else None
        value[f"{side}_oid"] = entry.oid if entry else None
    return value


def _file(value: Json) -> TouchedFile:
    if not isinstance(value, Mapping):
        raise ValueError("a file is not an object")
    return TouchedFile(read_path(value), *_sides(value))


def _sides(value: Mapping[str, Json]) -> Iterator[Entry | None]:
    for side in ("old", "new"):
        mode, oid = value.get(f"{side}_mode"), value.get(f"{side}_oid")
        if mode is None and oid is None:
            yield None
        elif isinstance(mode, str) and isinstance(oid, str) and _MODE.fullmatch(mode) and _OID.fullmatch(oid):
            yield Entry(mode, oid)
        else:
            raise ValueError("a side of a file has no valid mode and id")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def reset_command(attempt: str) -> str:
    """Write the command by which a maintainer resets the retries of a chain."""
    return f'git patchgate attempts reset {attempt} --reason "..."'
