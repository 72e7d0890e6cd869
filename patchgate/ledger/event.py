"""One thing that happened, as the ledger keeps it: a flat JSON object with `kind`, `at` and `version`.

Decides the kinds, the keys that every event has, and how an event that is too long for one record becomes
several. It does not decide when something is worth recording, nor how it is shown; no files here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from patchgate import __version__
from patchgate.storage.record import MAX_LINE, canonical_event
from patchgate.storage.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from patchgate.storage.record import Json

EVENT_SCHEMA = "patchgate.event/1"
KINDS: Mapping[str, str] = {
    "refused": "a change was refused, or could not be judged",
    "observed": "a change would have been refused, and was let through: mode observe, or a draft ref",
    "skipped": "hooks were skipped by PATCHGATE_SKIP, with its reason",
    "unjudged": "commits that no hook saw when they were made, and that would be refused",
    "approved": "a person granted an exception, with a reason",
    "installed": "the hooks were installed",
    "uninstalled": "the hooks were taken out",
    "slow": "a hook took longer than [hooks] budget_ms",
    "pushed": "a push was let through; names the commits that no hook had judged here",
    "attempted": "apply tried a patch: it was applied, refused, or could not be judged",
    "reset": "a person let the retries after an attempt begin again, with a reason",
    "recovered": "an apply that was cut short was found, and finished or undone",
    "intent": "an intent was declared, promoted, renewed, recovered or cleared, or got its before-report",
    "made": "commits were made in a worktree while an intent was active there",
    "adjudicated": "a verifier's verdict was held against the files; names subject, outcome and coverage",
    "captured": "the files of a component were recorded as its baseline, for its tests passed on them",
    "verified": "the tests of a component passed once more on what its baseline records",
}

_OWN_KEYS = frozenset({"schema", "hash", "kind", "at", "version", "part"})
# What a record holds beside its event: two hashes and the names of the keys.
_MOST_BYTES = MAX_LINE - 512
_MOST_TEXT = 10_000


class Event(Value):
    """What happened: `about` holds the keys of its kind, every value still as foreign as it was recorded.

    `at` is in UTC, ISO 8601, whole seconds; `version` is that of the patchgate that recorded it; `hash` is
    the record's own in the chain. Each is empty where the record does not say it.
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
        """Read what a record holds; it may come from a newer patchgate, or from nobody's."""
        about = {key: value for key, value in written.items() if key not in {"kind", "at", "version"}}
        return cls(
            _text(written.get("kind")),
            about,
            _text(written.get("at")),
            _text(written.get("version")),
            digest,
        )

    def plain(self) -> dict[str, Json]:
        """Give the flat object: `schema`, `hash`, `kind`, `at` and `version`, then the rest."""
        first: dict[str, Json] = {
            "schema": EVENT_SCHEMA,
            "hash": self.hash,
            "kind": self.kind,
            "at": self.at,
            "version": self.version,
        }
        return first | {key: value for key, value in self.about.items() if key not in first}


def written_forms(kind: str, about: Mapping[str, Json], now: float) -> Iterator[dict[str, Json]]:
    """Yield the objects to record for one event: one, or where that is too long for a record its parts.

    The longest list of `about` is shared out, and `part` says `[1, 3]`; a text that alone is too long is cut.

    Args:
        kind: one of `KINDS`.
        about: the keys of that kind, of plain JSON.
        now: seconds since the epoch.

    Raises:
        ValueError: the kind is unknown, a key is not free, or a value is not JSON.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no kind of event {kind!r}")
    if taken := _OWN_KEYS.intersection(about):
        raise ValueError(f"every event has {sorted(taken)} from the ledger")
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    first: dict[str, Json] = {"kind": kind, "at": at, "version": __version__}
    parts = _fitting(dict(about))
    for number, part in enumerate(parts, 1):
        yield first | part | ({"part": [number, len(parts)]} if len(parts) > 1 else {})


def _fitting(about: dict[str, Json]) -> list[dict[str, Json]]:
    """Share out the longest list until each part fits into one record."""
    if len(canonical_event(about)) <= _MOST_BYTES:
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
    return [part for each in halves for part in _fitting(about | {key: each})]


def _cut(value: Json) -> Json:
    return value[:_MOST_TEXT] + "…" if isinstance(value, str) and len(value) > _MOST_TEXT else value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
