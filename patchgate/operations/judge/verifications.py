"""Verifications: when a component's tests last passed on what its baseline records, as notes and ledger say.

Decides the form of a verification in a note of `refs/notes/patchgate-verified` and in the ledger, and that
whatever is not exactly that counts for nothing: damaged lines, other components, dates in the future. Only
reads. It does not decide what is fresh, nor what the newest commit of a baseline says.

A note hangs on the blob of the baseline. A line of it is canonical JSON and begins with its time, so that
`git notes merge -s cat_sort_uniq` joins two notes and the newest line comes last. It is not signed: whoever
may push notes may say that a baseline was verified, as whoever may push commits may touch it.
"""

from __future__ import annotations

import calendar
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from patchgate.durable.record import Json
from patchgate.errors import UndecidedError
from patchgate.gates.staleness import DAY
from patchgate.git.notes import read_notes
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.ledger.ledger import Ledger

VERIFIED_REF = "refs/notes/patchgate-verified"
KIND = "verified"
SCHEMA = "patchgate.verified/1"
MOST_LINE = 64 << 10

Where = Literal["commit", "note", "ledger"]
_MOST_LINES = 1000
_MOST_SECONDS = 1 << 40
_KEYS = {"at", "component", "dependencies", "schema"}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Verification:
    """The tests of a component passed on what a baseline records.

    `seconds` since the epoch; `dependencies` are digests of the components that it depends on, by their id,
    as they were then.
    """

    component: str
    baseline_oid: str
    seconds: int
    dependencies: Mapping[str, str]
    where: Where

    def to_line(self) -> bytes:
        """Write it as a line of a note, LF included."""
        plain = {
            "schema": SCHEMA,
            "at": self.seconds,
            "component": self.component,
            "dependencies": dict(self.dependencies),
        }
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n"

    def about(self) -> dict[str, Json]:
        """Give the keys of the ledger's event; its time is the event's own."""
        return {
            "component": self.component,
            "baseline": self.baseline_oid,
            "dependencies": dict(self.dependencies),
        }


def verifications(
    repository: Repository,
    objects: Objects,
    baselines: Mapping[str, str],
    now: float,
    places: Sequence[str] = (VERIFIED_REF,),
) -> dict[str, Verification]:
    """Find the newest verification of each baseline, in the notes and in the ledger of this machine.

    Args:
        baselines: the blob of each component's baseline, by the component's id.
        now: seconds since the epoch; what is more than a day later does not count.
        places: commits or full refs of notes; a push may bring them.
    """
    newest: dict[str, Verification] = {}
    notes = (found for place in places for found in _in_notes(objects, place, baselines))
    for found in (*notes, *_in_ledger(repository, baselines)):
        known = newest.get(found.component)
        if found.seconds <= now + DAY and (known is None or found.seconds > known.seconds):
            newest[found.component] = found
    return newest


def _in_notes(objects: Objects, place: str, baselines: Mapping[str, str]) -> Iterator[Verification]:
    _, head = (tree_named(objects, place) if baselines else None) or (None, None)
    if head is None:
        return
    for component, oid in baselines.items():
        try:
            notes = list(read_notes(objects, head, oid))
        except UndecidedError:
            # A note that cannot be read makes nothing fresher.
            continue
        for note in notes:
            for line in note.split(b"\n")[-_MOST_LINES:]:
                found = _from_line(line, component, oid)
                if found is not None:
                    yield found


def _from_line(line: bytes, component: str, oid: str) -> Verification | None:
    if not line or len(line) > MOST_LINE:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or set(value) != _KEYS or value["schema"] != SCHEMA:
        return None
    seconds, dependencies = value["at"], _digests(value["dependencies"])
    if type(seconds) is not int or not 0 <= seconds < _MOST_SECONDS or dependencies is None:
        return None
    if value["component"] != component:
        return None
    return Verification(component, oid, seconds, dependencies, "note")


def _in_ledger(repository: Repository, baselines: Mapping[str, str]) -> Iterator[Verification]:
    if not baselines:
        return
    for event in Ledger(repository.common_dir).mentions({KIND}):
        component, oid = event.about.get("component"), event.about.get("baseline")
        if not isinstance(component, str) or not isinstance(oid, str) or baselines.get(component) != oid:
            continue
        dependencies, seconds = _digests(event.about.get("dependencies")), _seconds(event.at)
        if dependencies is not None and seconds is not None:
            yield Verification(component, oid, seconds, dependencies, "ledger")


def _digests(value: object) -> dict[str, str] | None:
    if not isinstance(value, Mapping):
        return None
    found = {
        name: digest
        for name, digest in value.items()
        if isinstance(name, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
    }
    return found if len(found) == len(value) else None


def _seconds(at: str) -> int | None:
    try:
        return calendar.timegm(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return None
