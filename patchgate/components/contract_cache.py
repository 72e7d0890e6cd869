"""What the contracts of a tree say, remembered by blob oid: a commit near a component loads no pydantic.

Decides what becomes of a contract that is no regular file, or too large to be read. One sealed file under the
git common directory for all contracts, read once and replaced once; what it has not is read anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from patchgate.components.contract_facts import (
    ContractFacts,
    ContractMistake,
    facts_from_json,
    facts_to_json,
)
from patchgate.git.path import RepoPath
from patchgate.policy.sealed_file import SealedFile

if TYPE_CHECKING:
    from patchgate.git.objects import Objects
    from patchgate.git.repository import Repository
    from patchgate.git.tree_view import TreeView

MOST_BYTES = 4 << 20
MOST_ENTRIES = 4000


class FactsCache:
    """The facts of the contracts of one repository; leaving it (`with`) or `close` writes what is new."""

    def __init__(self, common_dir: str, *, is_writable: bool = True) -> None:
        self._is_writable = is_writable
        path = os.path.join(common_dir, "patchgate", "contracts", "facts")
        self._file = SealedFile(path, "patchgate.contracts/2", MOST_BYTES)
        self._kept: dict[str, Any] | None = None
        self._made: dict[str, ContractFacts] = {}
        self._new: dict[str, Any] = {}

    @classmethod
    def of(cls, repository: Repository) -> Self:
        """Open that of a repository; while a push is received, nothing is written."""
        return cls(repository.common_dir, is_writable=not repository.is_receiving)

    def __enter__(self) -> Self:
        """Begin; nothing is read before it is asked for."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep what is new."""
        self.close()

    def facts(self, oid: str, read: Callable[[], ContractFacts]) -> ContractFacts:
        """Give the facts of the contract with this blob id.

        Args:
            oid: the full id; equal ids are equal bytes.
            read: reads that contract; called only where nothing is kept.
        """
        if oid not in self._made:
            self._made[oid] = self._find(oid) or self._read(oid, read)
        return self._made[oid]

    def close(self) -> None:
        """Write what is new, whole or not at all; what cannot be written is forgotten."""
        if not self._new or not self._is_writable:
            return
        # The newest last, and the oldest are dropped: a contract that is asked for again is read again.
        entries = {**self._load(), **self._new}
        self._new = {}
        self._file.store(_body(entries))

    def _find(self, oid: str) -> ContractFacts | None:
        found = self._load().get(oid)
        try:
            return None if found is None else facts_from_json(found)
        except (KeyError, TypeError):
            # Another build of the same version wrote it.
            return None

    def _read(self, oid: str, read: Callable[[], ContractFacts]) -> ContractFacts:
        facts = read()
        self._new[oid] = facts_to_json(facts)
        return facts

    def _load(self) -> dict[str, Any]:
        if self._kept is None:
            self._kept = self._file.load()
        return self._kept


def facts_at(view: TreeView, path: RepoPath, cache: FactsCache) -> ContractFacts | None:
    """Give the facts of the contract at a path of a tree; None where no regular file is.

    Raises:
        UndecidedError: an object is missing.
    """
    entry = view.entry(path.raw)
    if entry is None or not entry.is_file:
        return None
    oid = entry.oid
    return cache.facts(oid, lambda: _facts_of(view.objects, oid))


def _facts_of(objects: Objects, oid: str) -> ContractFacts:
    from patchgate.policy.json_places import too_large

    fault = too_large(objects.sizes([oid])[oid])
    if fault is not None:
        mistake = ContractMistake("contract-invalid", fault.message, "", fault.line, fault.hint)
        return ContractFacts(False, mistakes=(mistake,))
    # It loads pydantic.
    from patchgate.components.contract_reading import facts_of

    return facts_of(objects.read(oid))


def _body(entries: dict[str, Any]) -> bytes:
    """Write the newest entries, as many as there is room for."""
    most = MOST_BYTES - 100
    pieces: list[str] = []
    for oid in list(reversed(entries))[:MOST_ENTRIES]:
        piece = f"{json.dumps(oid)}:{json.dumps(entries[oid], separators=(',', ':'))}"
        most -= len(piece) + 1
        if most < 0:
            break
        pieces.append(piece)
    return ("{" + ",".join(reversed(pieces)) + "}").encode("ascii")
