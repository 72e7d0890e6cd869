"""The record of adjudications: the fields of an `adjudicated` event, and how its parts are joined.

Decides the format, also for paths that are not UTF-8, and how an incomplete event is read. Callers decide
what follows from earlier adjudications.
"""

from __future__ import annotations

import hashlib
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from typing import Any, get_type_hints

from patchgate.git.path import RepoPath
from patchgate.ledger.ledger import Event
from patchgate.report.json import path_member
from patchgate.storage.record import Json, canonical_event
from patchgate.values import dataclass, field, fields, replace

KIND = "adjudicated"
_COUNTS = ("candidate_source_counts", "skipped_counts")


def read_path(value: Mapping[str, Json]) -> RepoPath:
    """Read the path that `path_member` wrote under `path`.

    Raises:
        ValueError: there is no valid path.
    """
    path, exact = value.get("path"), value.get("path_b64")
    if not isinstance(path, str) or not isinstance(exact, str | None):
        raise ValueError("a file has no path")
    try:
        raw = path.encode("utf-8") if exact is None else a2b_base64(exact, strict_mode=True)
    except ValueError as error:
        raise ValueError("the bytes of a path are not base64") from error
    return RepoPath.from_git(raw)


def part_number(event: Event) -> tuple[int, int] | None:
    """Return the number of this part of an event, and of how many; None where that is not two numbers."""
    part = event.about.get("part", [1, 1])
    if isinstance(part, list) and len(part) == 2 and all(type(each) is int for each in part):
        return part[0], part[1]
    return None


@dataclass(frozen=True, slots=True)
class AdjudicationRecord:
    """One adjudication: the claim, the outcome, and what was scanned.

    Fields that the answer has too have the same names. `reason_code` is that of the claim;
    `contradiction_detected_no_downgrade`: nothing was found, and the claim was kept because too little was
    read. `samples` are `path:line`. `changed_files` are those of a passed verdict.
    """

    at: str = ""
    outcome: str = ""
    subject: str | None = None
    reason_code: str | None = None
    is_placeholder_claim: bool = False
    contradiction_marker_found: bool = False
    corroborated: bool | None = None
    contradiction_detected: bool = False
    contradiction_detected_no_downgrade: bool = False
    cap_exhausted: bool = False
    coverage_sufficient: bool | None = None
    coverage_insufficient_reason: str | None = None
    guard_enabled: bool = True
    strict_coverage: bool = True
    strict_outcome: str | None = None
    strict_insufficient_reason: str | None = None
    read_from: str | None = None
    scan_mode: str | None = None
    scanned_file_count: int = 0
    scanned_total_bytes: int = 0
    matched_file_count: int = 0
    places_total: int = 0
    candidate_source_counts: Mapping[str, int] = field(default_factory=dict)
    skipped_counts: Mapping[str, int] = field(default_factory=dict)
    skipped_samples: tuple[Mapping[str, str], ...] = ()
    samples: tuple[str, ...] = ()
    changed_files: tuple[RepoPath, ...] = ()

    def about(self) -> dict[str, Json]:
        """Write the fields of the event; `id` joins its parts where one record is too short."""
        about: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        del about["at"]
        about["samples"] = [*self.samples]
        about["skipped_samples"] = [dict(each) for each in self.skipped_samples]
        for name in _COUNTS:
            about[name] = dict(about[name])
        about["changed_files"] = [path_member("path", path) for path in self.changed_files]
        about["id"] = hashlib.sha256(canonical_event(about)).hexdigest()[:16]
        return about


def read_adjudications(found: Iterable[Event]) -> list[AdjudicationRecord]:
    """Read the adjudications from events, oldest first; parts are joined, also where some are missing.

    Only the types of the values are checked: whoever can write `.git` can write an event.
    """
    read: list[AdjudicationRecord] = []
    begun: dict[object, tuple[int, int]] = {}
    for event in found:
        if event.kind != KIND:
            continue
        here = _read(event)
        # An event without a part number is whole.
        number, of = part_number(event) or (1, 1)
        place = (event.at, event.about.get("id")) if isinstance(event.about.get("id"), str) else None
        index, last = begun.get(place, (0, of))
        if place is not None and number > 1 and last < number:
            read[index] = _joined(read[index], here)
        else:
            index = len(read)
            read.append(here)
        begun[place] = (index, number)
    return read


def _joined(one: AdjudicationRecord, more: AdjudicationRecord) -> AdjudicationRecord:
    skipped = (*one.skipped_samples, *more.skipped_samples)
    return replace(
        one,
        samples=tuple(dict.fromkeys((*one.samples, *more.samples))),
        skipped_samples=tuple({tuple(sorted(each.items())): each for each in skipped}.values()),
        changed_files=tuple(dict.fromkeys((*one.changed_files, *more.changed_files))),
    )


# The type of each plain field; a value of another type is ignored.
_PLAIN: Mapping[str, type] = {
    name: kind
    for name, hint in get_type_hints(AdjudicationRecord).items()
    for kind in (str, bool, int)
    if hint in (kind, kind | None) and name != "at"
}


def _read(event: Event) -> AdjudicationRecord:
    about = event.about
    known: dict[str, Any] = {
        name: about[name] for name, kind in _PLAIN.items() if type(about.get(name)) is kind
    }
    samples = tuple(each for each in _list(about, "samples") if isinstance(each, str))
    paths = (_path(each) for each in _list(about, "changed_files"))
    files = tuple(path for path in paths if path is not None)
    known |= {name: _numbers(about.get(name)) for name in _COUNTS}
    known["skipped_samples"] = tuple(
        {name: text for name, text in each.items() if isinstance(text, str)}
        for each in _list(about, "skipped_samples")
        if isinstance(each, Mapping)
    )
    return AdjudicationRecord(event.at, **known, samples=samples, changed_files=files)


def _numbers(value: Json | None) -> dict[str, int]:
    """Read numbers by name; other values are skipped."""
    named = value.items() if isinstance(value, Mapping) else ()
    return {name: number for name, number in named if type(number) is int}


def _list(about: Mapping[str, Json], key: str) -> list[Any]:
    value = about.get(key)
    return value if isinstance(value, list) else []


def _path(value: Any) -> RepoPath | None:
    """Read a path; None if no file can have it."""
    try:
        path = read_path(value) if isinstance(value, Mapping) else None
    except ValueError:
        return None
    return path if path is not None and path.raw and b"\0" not in path.raw else None
