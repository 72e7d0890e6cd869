"""Remember which components were found equal to their baselines, so that a look at all of them is cheap.

Decides by what an entry is found: everything that it follows from, which is how the component is declared,
the blob of its baseline, the object ids of the folders in which its files lie. So it is never wrong, only
missing, and then it is computed anew. One sealed file under the git common directory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from patchgate.components.baseline import Hashes
from patchgate.git.model import Entry
from patchgate.git.repository import Repository
from patchgate.git.touched import Touch
from patchgate.policy.component import Component
from patchgate.policy.sealed_file import SealedFile

_MOST_BYTES = 8 << 20
_MOST_ENTRIES = 5_000


@dataclass(frozen=True, slots=True)
class Equal:
    """What is known of a component whose files are those of its baseline.

    `hashes` are those of contract, tests and implementation; `dependencies` the components that its contract
    names, sorted; `unknown` the names there that mean none.
    """

    hashes: Hashes
    dependencies: tuple[str, ...]
    unknown: tuple[str, ...] = ()


class ComponentCache:
    """What was found out about the components of one repository; a context manager that writes once."""

    def __init__(self, common_dir: str, *, is_writable: bool = True) -> None:
        path = os.path.join(common_dir, "patchgate", "contracts", "standing")
        self._file = SealedFile(path, "patchgate.component-cache/2", _MOST_BYTES)
        self._is_writable = is_writable
        kept = self._file.load()
        self._equal: dict[str, Any] = kept.get("equal", {})
        self._digests: dict[str, str] = kept.get("digests", {})
        self._touches: dict[str, Any] = kept.get("touches", {})
        self._used: set[str] = set()
        self._is_changed = False

    @classmethod
    def of(cls, repository: Repository) -> Self:
        """Open that of a repository; while a push is received, nothing is written."""
        return cls(repository.common_dir, is_writable=not repository.is_receiving)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def equal(self, key: str) -> Equal | None:
        """Find a component that was equal to its baseline; None where it must be looked at."""
        kept = self._equal.get(key)
        if kept is None:
            return None
        self._used.add(key)
        contract, tests, implementation = kept[0]
        return Equal(Hashes(contract, tests, implementation), tuple(kept[1]), tuple(kept[2]))

    def keep_equal(self, key: str, equal: Equal) -> None:
        """Keep what was found out about a component that is equal to its baseline."""
        self._equal[key] = [
            list(equal.hashes.named().values()),
            list(equal.dependencies),
            list(equal.unknown),
        ]
        self._note(key)

    def digest(self, key: str) -> str | None:
        """Find the digest of the files that a key stands for."""
        self._used.add(key)
        return self._digests.get(key)

    def keep_digest(self, key: str, digest: str) -> None:
        """Keep the digest of the files that a key stands for."""
        self._digests[key] = digest
        self._note(key)

    def touches(self, tip: str, wanted: Mapping[bytes, str]) -> dict[bytes, Touch] | None:
        """Find which commits of the history of a tip made some files what they are; None: look."""
        kept = self._touches.get(tip)
        if kept is None or kept[0] != _digest_of(wanted):
            return None
        self._used.add(tip)
        return {path.encode("latin-1"): Touch(commit, seconds, False) for path, commit, seconds in kept[1]}

    def keep_touches(self, tip: str, wanted: Mapping[bytes, str], touches: Mapping[bytes, Touch]) -> None:
        """Keep what a walk found; not where a shallow history ended it, for that can be fetched."""
        if any(touch.is_cut_off for touch in touches.values()) or len(touches) < len(wanted):
            return
        listed = [[path.decode("latin-1"), each.commit, each.seconds] for path, each in touches.items()]
        self._touches = {tip: [_digest_of(wanted), listed]}
        self._note(tip)

    def close(self) -> None:
        """Write what is new, once; what was not asked for goes first where there is too much."""
        if not (self._is_changed and self._is_writable):
            return
        kept = {
            "equal": self._newest(self._equal),
            "digests": self._newest(self._digests),
            "touches": self._touches,
        }
        self._is_changed = False
        self._file.store(json.dumps(kept, separators=(",", ":")).encode("ascii"))

    def _note(self, key: str) -> None:
        self._used.add(key)
        self._is_changed = True

    def _newest(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        used = {key: value for key, value in kept.items() if key in self._used}
        others = [key for key in kept if key not in self._used]
        room = max(0, _MOST_ENTRIES - len(used))
        return {key: kept[key] for key in others[max(0, len(others) - room) :]} | used


def key_of(*parts: str | Sequence[object]) -> str:
    """Make the key of what follows from some parts, each a text or a list of plain JSON."""
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode("ascii")).hexdigest()


def key_of_declaration(component: Component) -> list[object]:
    """Write what decides which files are a component's, as plain JSON."""
    settings = component.settings
    return [component.id, settings.contract, list(settings.tests), list(settings.implementation)]


def key_of_entries(paths: Sequence[bytes], entries: Sequence[Entry | None]) -> list[object]:
    """Write what lies at some paths, as plain JSON."""
    return [
        [path.decode("latin-1"), entry and entry.mode, entry and entry.oid]
        for path, entry in zip(paths, entries, strict=True)
    ]


def _digest_of(wanted: Mapping[bytes, str]) -> str:
    text = b"".join(b"%s\0%s\0" % (path, oid.encode("ascii")) for path, oid in sorted(wanted.items()))
    return hashlib.sha256(text).hexdigest()
