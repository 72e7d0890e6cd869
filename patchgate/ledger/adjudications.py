"""The record of adjudications: what an `adjudicated` event holds, and how its parts become one again.

Decides the form, also that of paths which are no plain text, and what is made of an event that is not whole.
What follows from earlier adjudications, others decide.
"""

from __future__ import annotations

import hashlib
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from patchgate.change.path import RepoPath
from patchgate.durable.record import Json, canonical_event
from patchgate.ledger.event import Event

KIND = "adjudicated"


@dataclass(frozen=True, slots=True)
class Adjudicated:
    """One adjudication: what was claimed, what became of it, what was looked at.

    `reason_code` is that of the claim. `no_downgrade` is a claim that nothing was found for, and that stands
    since too little was looked at; `cap_exhausted` that a cap left a high-priority file unread. `samples` are
    `path:line`. `changed_files` are those of a passed verdict.
    """

    at: str = ""
    outcome: str = ""
    subject: str | None = None
    reason_code: str | None = None
    is_placeholder_claim: bool = False
    marker_found: bool = False
    contradiction_detected: bool = False
    no_downgrade: bool = False
    cap_exhausted: bool = False
    coverage_sufficient: bool | None = None
    coverage_insufficient_reason: str | None = None
    scan_mode: str | None = None
    scanned_file_count: int = 0
    scanned_total_bytes: int = 0
    matched_file_count: int = 0
    samples: tuple[str, ...] = ()
    changed_files: tuple[RepoPath, ...] = ()

    def about(self) -> dict[str, Json]:
        """Write it as an event holds it; `id` holds the parts together where one record is too short."""
        about: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        del about["at"]
        about["samples"] = [*self.samples]
        about["changed_files"] = [_plain(path) for path in self.changed_files]
        about["id"] = hashlib.sha256(canonical_event(about)).hexdigest()[:16]
        return about


def adjudications(found: Iterable[Event]) -> list[Adjudicated]:
    """Read what events tell, oldest first; parts are joined, also where some of them are missing.

    Of what stands in an event only its type is looked at: whoever can write `.git` could have put it there.
    """
    read: list[Adjudicated] = []
    begun: dict[object, tuple[int, int]] = {}
    for event in found:
        if event.kind != KIND:
            continue
        here = _read(event)
        number, of = _part(event)
        place = (event.at, event.about.get("id")) if isinstance(event.about.get("id"), str) else None
        index, last = begun.get(place, (0, of))
        if place is not None and number > 1 and last < number:
            read[index] = _joined(read[index], here)
        else:
            index = len(read)
            read.append(here)
        begun[place] = (index, number)
    return read


def _joined(one: Adjudicated, more: Adjudicated) -> Adjudicated:
    return replace(
        one,
        samples=tuple(dict.fromkeys((*one.samples, *more.samples))),
        changed_files=tuple(dict.fromkeys((*one.changed_files, *more.changed_files))),
    )


def _part(event: Event) -> tuple[int, int]:
    part = event.about.get("part")
    if isinstance(part, list) and len(part) == 2 and all(type(each) is int for each in part):
        return part[0], part[1]
    return 1, 1


def _read(event: Event) -> Adjudicated:
    about = event.about
    known: dict[str, Any] = {"at": event.at}
    for field in fields(Adjudicated):
        value = about.get(field.name)
        if field.type.startswith("tuple") or field.name == "at":
            continue
        if value is not None and type(value).__name__ == field.type.removesuffix(" | None"):
            known[field.name] = value
    samples = tuple(each for each in _list(about, "samples") if isinstance(each, str))
    paths = (_path(each) for each in _list(about, "changed_files"))
    return Adjudicated(**known, samples=samples, changed_files=tuple(path for path in paths if path))


def _list(about: Mapping[str, Json], key: str) -> list[Any]:
    value = about.get(key)
    return value if isinstance(value, list) else []


def _plain(path: RepoPath) -> dict[str, str]:
    value = {"path": path.quoted}
    if not path.is_plain:
        value["path_b64"] = b2a_base64(path.raw, newline=False).decode("ascii")
    return value


def _path(value: Any) -> RepoPath | None:
    """Read a path; None for what is none."""
    if not isinstance(value, Mapping):
        return None
    path, exact = value.get("path"), value.get("path_b64")
    if not isinstance(path, str) or not isinstance(exact, str | None):
        return None
    try:
        raw = path.encode("utf-8") if exact is None else a2b_base64(exact, strict_mode=True)
    except (ValueError, Base64Error):
        return None
    return RepoPath.from_git(raw) if raw and b"\0" not in raw else None
