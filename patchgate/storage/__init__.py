"""Storage: the one way to lock, append, replace atomically and flush. See `docs/decisions/storage.md`.

Belongs here: locks between processes, files that are replaced whole, the hash-chained append-only file, the
few calls that change a disk, each a numbered step that a test can make fail. Does not: what the bytes mean,
git, the environment, wording of verdicts. Public: `Value`, `lock.hold`, `replace.write_atomically`,
`replace.unbroken` (signals wait), `chain.append`, `chain.read`, `chain.verify`, `record`, `owner.Owner`,
`temporary.TemporaryFolder`, and, for protocols that are longer than one file, `filesystem` and
`folder.Folder` (the same calls below an open folder, no link followed).

Errors: an `OSError` passes through as the system gave it, for only the caller knows what it costs.
`UndecidedError` is for what this folder itself finds: a held lock, a damaged chain, a record that is too
large.
"""

from __future__ import annotations


class Value:
    """The base of a plain value: equal, hashed and shown by what the fields in its `__slots__` hold.

    It stands in for a frozen dataclass in what recording one event loads: the import of `dataclasses` costs
    more than the record (8 ms: it loads `inspect`). The fields are `Final`, so that mypy refuses a change.
    """

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._held() == other._held()

    def __hash__(self) -> int:
        return hash(self._held())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"

    def _held(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)
