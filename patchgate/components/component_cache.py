"""Cached facts about contracts and components, so that reading all of them is cheap.

An entry is keyed by everything that it follows from, as object ids, so it is never wrong, only missing, and
then computed again. One sealed file for contracts, one for components. A commit that touches a component does
not load pydantic. Also handles a contract that is not a regular file or is too large.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from patchgate.components.baseline_file import Hashes
from patchgate.components.contract_facts import (
    ContractFacts,
    ContractMistake,
    facts_from_json,
    facts_to_json,
)
from patchgate.git.file_history import FileCommit
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.policy.component import Component
from patchgate.policy.sealed_file import SealedCache
from patchgate.values import dataclass

if TYPE_CHECKING:
    from patchgate.git.objects import Objects
    from patchgate.git.repository import Repository
    from patchgate.git.tree_view import TreeView

MOST_ENTRIES = 4000
_MOST_COMPONENTS = 5000


class FactsCache(SealedCache):
    """The facts of the contracts of one repository."""

    PLACE = "patchgate/contracts/facts"
    FORM = "patchgate.contracts/2"
    MOST_BYTES = 4 << 20

    def __init__(self, common_dir: str, *, is_writable: bool = True, is_trusted: bool = True) -> None:
        super().__init__(common_dir, is_writable=is_writable, is_trusted=is_trusted)
        self._made: dict[str, object] = {}
        self._new: dict[str, Any] = {}

    @classmethod
    def of(cls, repository: Repository) -> Self:
        """Open the cache of a repository; a push that changes many components reads each contract once."""
        made = super().of(repository)
        made._made = repository.contract_facts
        return made

    def facts(self, oid: str, read: Callable[[], ContractFacts]) -> ContractFacts:
        """Return the facts of the contract with this blob id.

        Args:
            oid: the full id; equal ids are equal bytes.
            read: reads that contract; called only if it is not cached.
        """
        made = self._made.get(oid)
        if not isinstance(made, ContractFacts):
            made = self._made[oid] = self._find(oid) or self._read(oid, read)
        return made

    @cached_property
    def _kept(self) -> dict[str, Any]:
        return self._load()

    def _find(self, oid: str) -> ContractFacts | None:
        found = self._kept.get(oid)
        try:
            return None if found is None else facts_from_json(found)
        except (KeyError, TypeError):
            # Written by another build of the same version.
            return None

    def _read(self, oid: str, read: Callable[[], ContractFacts]) -> ContractFacts:
        facts = read()
        self._new[oid] = facts_to_json(facts)
        self._is_changed = True
        return facts

    def _body(self) -> bytes:
        """Write the newest entries that fit; an older contract is read again."""
        entries = {**self._kept, **self._new}
        most = self.MOST_BYTES - 100
        pieces: list[str] = []
        for oid in list(reversed(entries))[:MOST_ENTRIES]:
            piece = f"{json.dumps(oid)}:{json.dumps(entries[oid], separators=(',', ':'))}"
            most -= len(piece) + 1
            if most < 0:
                break
            pieces.append(piece)
        return ("{" + ",".join(reversed(pieces)) + "}").encode("ascii")


def facts_at(view: TreeView, path: RepoPath, cache: FactsCache) -> ContractFacts | None:
    """Return the facts of the contract at a path of a tree; None if there is no regular file.

    Raises:
        UndecidedError: an object is missing.
    """
    entry = view.entry(path.raw)
    if entry is None or not entry.is_file:
        return None
    oid = entry.oid
    return cache.facts(oid, lambda: _facts_of(view.objects, oid))


def _facts_of(objects: Objects, oid: str) -> ContractFacts:
    from patchgate.policy.strict_json import too_large

    fault = too_large(objects.sizes([oid])[oid])
    if fault is not None:
        mistake = ContractMistake("contract-invalid", fault.message, "", fault.line, fault.hint)
        return ContractFacts(False, mistakes=(mistake,))
    # It loads pydantic.
    from patchgate.components.contract_reading import facts_of

    return facts_of(objects.read(oid))


@dataclass(frozen=True, slots=True)
class Equal:
    """Cached facts about a component whose files equal its baseline.

    `hashes` are of contract, tests and implementation; `dependencies` are the components that its contract
    names, sorted; `unknown` are names there that match no component.
    """

    hashes: Hashes
    dependencies: tuple[str, ...]
    unknown: tuple[str, ...] = ()


class ComponentCache(SealedCache):
    """Cached facts about the components of one repository."""

    PLACE = "patchgate/contracts/standing"
    FORM = "patchgate.component-cache/2"
    MOST_BYTES = 8 << 20

    def __init__(self, common_dir: str, *, is_writable: bool = True, is_trusted: bool = True) -> None:
        super().__init__(common_dir, is_writable=is_writable, is_trusted=is_trusted)
        kept = self._load()
        self._equal: dict[str, Any] = kept.get("equal", {})
        self._digests: dict[str, str] = kept.get("digests", {})
        self._touches: dict[str, Any] = kept.get("touches", {})
        self._used: set[str] = set()

    def equal(self, key: str) -> Equal | None:
        """Find a component that was equal to its baseline; None if it must be compared."""
        kept = self._equal.get(key)
        if kept is None:
            return None
        self._used.add(key)
        contract, tests, implementation = kept[0]
        return Equal(Hashes(contract, tests, implementation), tuple(kept[1]), tuple(kept[2]))

    def keep_equal(self, key: str, equal: Equal) -> None:
        """Cache a component that is equal to its baseline."""
        self._equal[key] = [
            list(equal.hashes.named().values()),
            list(equal.dependencies),
            list(equal.unknown),
        ]
        self._note(key)

    def digest(self, key: str) -> str | None:
        """Find the cached digest of a key."""
        self._used.add(key)
        return self._digests.get(key)

    def keep_digest(self, key: str, digest: str) -> None:
        """Cache the digest of a key."""
        self._digests[key] = digest
        self._note(key)

    def touches(self, tip: str, wanted: Mapping[bytes, str]) -> dict[bytes, FileCommit] | None:
        """Find the cached last commits of some files in the history of a tip; None if not cached."""
        kept = self._touches.get(tip)
        if kept is None or kept[0] != _digest_of(wanted):
            return None
        self._used.add(tip)
        return {
            path.encode("latin-1"): FileCommit(commit, seconds, False) for path, commit, seconds in kept[1]
        }

    def keep_touches(
        self, tip: str, wanted: Mapping[bytes, str], touches: Mapping[bytes, FileCommit]
    ) -> None:
        """Cache what a walk found, unless a shallow history ended it: more may be fetched later."""
        if any(touch.is_cut_off for touch in touches.values()) or len(touches) < len(wanted):
            return
        listed = [[path.decode("latin-1"), each.commit, each.seconds] for path, each in touches.items()]
        self._touches = {tip: [_digest_of(wanted), listed]}
        self._note(tip)

    def _body(self) -> bytes:
        kept = {
            "equal": self._newest(self._equal),
            "digests": self._newest(self._digests),
            "touches": self._touches,
        }
        return json.dumps(kept, separators=(",", ":")).encode("ascii")

    def _note(self, key: str) -> None:
        self._used.add(key)
        self._is_changed = True

    def _newest(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        """Choose the entries to keep: if there are too many, unused ones are dropped first."""
        used = {key: value for key, value in kept.items() if key in self._used}
        others = [key for key in kept if key not in self._used]
        room = max(0, _MOST_COMPONENTS - len(used))
        return {key: kept[key] for key in others[max(0, len(others) - room) :]} | used


def key_of(*parts: str | Sequence[object]) -> str:
    """Make a cache key from some parts, each a text or a list of plain JSON."""
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode("ascii")).hexdigest()


def key_of_declaration(component: Component) -> list[object]:
    """Write the part of a declaration that decides which files are a component's, as plain JSON."""
    settings = component.settings
    return [component.id, settings.contract, list(settings.tests), list(settings.implementation)]


def key_of_entries(paths: Sequence[bytes], entries: Sequence[Entry | None]) -> list[object]:
    """Write the entries at some paths as plain JSON."""
    return [
        [path.decode("latin-1"), entry and entry.mode, entry and entry.oid]
        for path, entry in zip(paths, entries, strict=True)
    ]


def _digest_of(wanted: Mapping[bytes, str]) -> str:
    text = b"".join(b"%s\0%s\0" % (path, oid.encode("ascii")) for path, oid in sorted(wanted.items()))
    return hashlib.sha256(text).hexdigest()
