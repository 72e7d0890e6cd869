"""Attestations: when a component's tests last passed on what its baseline records, from notes and ledger.

Damaged lines, other components and future dates are ignored. A note belongs to the blob of the baseline; each
line begins with its time, so `git notes merge -s cat_sort_uniq` puts the newest last. Notes are not signed:
whoever may push them may claim that tests passed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Literal

from patchgate.approvals.approvals import identity
from patchgate.components.staleness import DAY
from patchgate.errors import UndecidedError
from patchgate.git.notes import MOST_BYTES, add_line, notes_at
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.ledger.ledger import Ledger
from patchgate.ledger.timestamps import parse_timestamp
from patchgate.storage.record import Json
from patchgate.values import dataclass

VERIFIED_REF = "refs/notes/patchgate-verified"
KIND = "verified"
CAPTURED = "captured"
SCHEMA = "patchgate.verified/1"
MOST_LINE = 64 << 10

Where = Literal["commit", "note", "ledger"]
_MOST_LINES = 1000
_MOST_BYTES_IN_ALL = 32 << 20
# Of processor time: to find a note takes long if its tree has very many names.
_MOST_SECONDS_IN_ALL = 5.0
_MOST_SECONDS = 1 << 40
_KEYS = {"at", "component", "dependencies", "schema"}
_COUNTS = {"passed", "failed", "errors", "skipped"}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Attestation:
    """The tests of a component passed on what a baseline records.

    `seconds` since the epoch; `dependencies` are the digests of its dependencies at that time, by
    component id. `tests` are counts (passed, failed, errors, skipped); None if none were reported.
    """

    component: str
    baseline_oid: str
    seconds: int
    dependencies: Mapping[str, str]
    where: Where
    tests: Mapping[str, int] | None = None

    def to_line(self) -> bytes:
        """Write it as a line of a note, LF included."""
        plain = {
            "schema": SCHEMA,
            "at": self.seconds,
            "component": self.component,
            "dependencies": dict(self.dependencies),
            **self._results(),
        }
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"

    def about(self) -> dict[str, Json]:
        """Return the keys of the ledger's event; its time is the event's own."""
        return {
            "component": self.component,
            "baseline": self.baseline_oid,
            "dependencies": dict(self.dependencies),
            **self._results(),
        }

    def _results(self) -> dict[str, Json]:
        return {} if self.tests is None else {"tests": dict(self.tests)}


class VerifiedNotes:
    """Finds the newest verification of a baseline in notes.

    Whoever may push notes may push large ones. One of these is for all that a push or a command asks, and
    what is over its limits counts for nothing.

    Args:
        now: seconds since the epoch; what is more than a day later does not count.
        places: commits or full refs of notes; a push may bring them.
    """

    def __init__(self, objects: Objects, now: float, places: Sequence[str] = (VERIFIED_REF,)) -> None:
        self.now = now
        self._objects = objects
        self._places = places
        self._newest: dict[tuple[str, str], Attestation | None] = {}
        self._bytes = _MOST_BYTES_IN_ALL
        self._seconds = _MOST_SECONDS_IN_ALL

    def newest(self, component: str, baseline: str) -> Attestation | None:
        """Find the newest verification of the baseline of a component, by the id of its blob."""
        key = (component, baseline)
        if key not in self._newest:
            began = time.process_time()
            found = (each for each in self._read(component, baseline) if each.seconds <= self.now + DAY)
            self._newest[key] = max(found, key=lambda each: each.seconds, default=None)
            self._seconds -= time.process_time() - began
        return self._newest[key]

    def _read(self, component: str, baseline: str) -> Iterator[Attestation]:
        if self._seconds <= 0:
            return
        for blob in self._blobs(baseline):
            if self._bytes <= 0:
                return
            try:
                note = self._objects.read(blob, MOST_BYTES)
            except UndecidedError:
                # A note that cannot be read does not count.
                continue
            self._bytes -= len(note)
            for line in note.rsplit(b"\n", _MOST_LINES)[-_MOST_LINES:]:
                found = _from_line(line, component, baseline)
                if found is not None:
                    yield found

    def _blobs(self, baseline: str) -> dict[str, None]:
        found: dict[str, None] = {}
        for tree in self._trees:
            with suppress(UndecidedError):
                found.update(dict.fromkeys(notes_at(self._objects, tree, baseline)))
        return found

    @cached_property
    def _trees(self) -> list[str]:
        named = (tree_named(self._objects, place) for place in self._places)
        # Only a commit is a place of notes.
        return list(dict.fromkeys(found[0] for found in named if found is not None and found[1] is not None))


def find_attestations(
    repository: Repository,
    notes: VerifiedNotes,
    baselines: Mapping[str, str],
    kinds: Collection[str] = (KIND,),
) -> dict[str, Attestation]:
    """Find the newest verification of each baseline, in the notes and in the ledger of this machine.

    Args:
        baselines: the blob of each component's baseline, by the component's id.
        kinds: the events of the ledger that count.
    """
    in_notes = (notes.newest(component, oid) for component, oid in baselines.items())
    newest = {found.component: found for found in in_notes if found is not None}
    for found in _in_ledger(repository, baselines, kinds):
        known = newest.get(found.component)
        if found.seconds <= notes.now + DAY and (known is None or found.seconds > known.seconds):
            newest[found.component] = found
    return newest


def _from_line(line: bytes, component: str, oid: str) -> Attestation | None:
    if not line or len(line) > MOST_LINE:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or set(value) - {"tests"} != _KEYS or value["schema"] != SCHEMA:
        return None
    tests = _tests(value.get("tests"))
    if tests is None and "tests" in value:
        return None
    seconds, dependencies = value["at"], _digests(value["dependencies"])
    if type(seconds) is not int or not 0 <= seconds < _MOST_SECONDS or dependencies is None:
        return None
    if value["component"] != component:
        return None
    return Attestation(component, oid, seconds, dependencies, "note", tests)


def _in_ledger(
    repository: Repository, baselines: Mapping[str, str], kinds: Collection[str]
) -> Iterator[Attestation]:
    if not baselines:
        return
    for event in Ledger(repository.common_dir).find_events(kinds):
        component, oid = event.about.get("component"), event.about.get("baseline")
        if not isinstance(component, str) or not isinstance(oid, str) or baselines.get(component) != oid:
            continue
        dependencies, seconds = _digests(event.about.get("dependencies")), parse_timestamp(event.at)
        if dependencies is not None and seconds is not None:
            tests = _tests(event.about.get("tests"))
            yield Attestation(component, oid, seconds, dependencies, "ledger", tests)


def _tests(value: object) -> dict[str, int] | None:
    """Read the counts of a run; None if there are other keys or values."""
    if not isinstance(value, Mapping) or set(value) != _COUNTS:
        return None
    found = {name: number for name, number in value.items() if type(number) is int and number >= 0}
    return found if len(found) == len(_COUNTS) else None


def _digests(value: object) -> dict[str, str] | None:
    if not isinstance(value, Mapping):
        return None
    found = {
        name: digest
        for name, digest in value.items()
        if isinstance(name, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    }
    return found if len(found) == len(value) else None


def record_captures(repository: Repository, made: Sequence[Attestation]) -> tuple[str, ...]:
    """Record in the ledger that tests passed on the captured files; return warnings.

    The baseline contains neither time nor counts, so that branches merge; no verdict needs this record.
    """
    warnings = (_ledger(repository, each).record(CAPTURED, each.about()) for each in made)
    return tuple(each for each in warnings if each is not None)


def _ledger(repository: Repository, made: Attestation) -> Ledger:
    return Ledger(repository.common_dir, clock=lambda: float(made.seconds))


def record_attestations(
    repository: Repository, made: Sequence[Attestation], environ: Mapping[str, str], *, with_note: bool
) -> tuple[str, ...]:
    """Record verifications in the ledger, and with `with_note` also in the notes; return warnings.

    Args:
        made: the new attestations, each with its time.
        environ: the caller's environment: the author of the notes.

    Raises:
        UndecidedError: one could not be recorded; those before it were, and its own note may be.
    """
    warnings: list[str] = []
    for each in made:
        line = each.to_line()
        if len(line) > MOST_LINE:
            raise UndecidedError(
                f"`{each.component}` has too many dependencies to record its verification",
                "remove dependencies from its contract",
            )
        if with_note:
            # First, because it can fail in more ways; then nothing of this one is recorded anywhere.
            message, who = f"Verify {each.component}", identity(environ)
            add_line(repository, VERIFIED_REF, each.baseline_oid, line, message=message, identity=who)
        ledger = _ledger(repository, each)
        warning = ledger.record(KIND, each.about())
        if warning is not None:
            if not any(
                event.about == each.about() for event in ledger.find_events({KIND}, each.baseline_oid)
            ):
                raise UndecidedError(
                    warning, "free disk space, or fix the permissions of that file, then verify again"
                )
            warnings.append(warning)
    return tuple(warnings)
