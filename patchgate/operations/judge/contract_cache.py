"""Remember what contracts say, by blob oid, so that a commit near a component loads no pydantic (100 ms).

One file under the git common directory for all contracts, read once and replaced once; bound to the versions
of tool and rules and sealed; what is damaged, foreign or missing is read anew. Whoever can write there can
also remove the hooks, so it is no door. A cache that cannot be read or written is none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

from patchgate import __version__
from patchgate.declared.contract_facts import ContractFacts, facts_from_json, facts_to_json
from patchgate.verdict.rules import RULES_VERSION

MOST_BYTES = 4 << 20
MOST_ENTRIES = 4000


class FactsCache:
    """The facts of the contracts of one repository; leaving it (`with`) or `close` writes what is new."""

    def __init__(self, common_dir: str, *, is_writable: bool = True) -> None:
        self._is_writable = is_writable
        self._path = os.path.join(common_dir, "patchgate", "contracts", "facts")
        self._kept: dict[str, Any] | None = None
        self._made: dict[str, ContractFacts] = {}
        self._new: dict[str, Any] = {}

    def __enter__(self) -> FactsCache:
        """Begin; nothing is read before it is asked for."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep what is new."""
        self.close()

    def facts(self, oid: str, read: Callable[[], bytes]) -> ContractFacts:
        """Give the facts of the contract with this blob id.

        Args:
            oid: the full id; equal ids are equal bytes.
            read: gives the bytes; called only where nothing is kept.
        """
        if oid not in self._made:
            self._made[oid] = self._find(oid) or self._read(oid, read)
        return self._made[oid]

    def close(self) -> None:
        """Write what is new, whole or not at all; what cannot be written is forgotten."""
        if not self._new or not self._is_writable:
            return
        from pathlib import Path

        from patchgate.durable.replace import write_atomically

        # The newest last, and the oldest are dropped: a contract that is asked for again is read again.
        entries = {**self._load(), **self._new}
        self._new = {}
        body = _body(entries)
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            write_atomically(Path(self._path), _seal(body) + b"\n" + body, mode=0o600)
        except OSError:
            return

    def _find(self, oid: str) -> ContractFacts | None:
        found = self._load().get(oid)
        try:
            return None if found is None else facts_from_json(found)
        except (KeyError, TypeError):
            # Another build of the same version wrote it.
            return None

    def _read(self, oid: str, read: Callable[[], bytes]) -> ContractFacts:
        from patchgate.declared.contract_reading import facts_of

        facts = facts_of(read())
        self._new[oid] = facts_to_json(facts)
        return facts

    def _load(self) -> dict[str, Any]:
        if self._kept is None:
            self._kept = _entries(self._path)
        return self._kept


def _entries(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as stream:
            kept = stream.read(MOST_BYTES + 1)
    except OSError:
        return {}
    seal, _, body = kept.partition(b"\n")
    if len(kept) > MOST_BYTES or seal != _seal(body):
        return {}
    entries: dict[str, Any] = json.loads(body)
    return entries


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


def _seal(body: bytes) -> bytes:
    about = f"patchgate.contracts/1\n{__version__}\n{RULES_VERSION}\n".encode()
    return hashlib.sha256(about + body).hexdigest().encode("ascii")
