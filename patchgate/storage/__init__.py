"""Storage: lock, append, replace atomically and flush. See `docs/decisions/storage.md`.

Belongs here: the few calls that change a disk, each a numbered step that a test can make fail. Does not: what
the bytes mean, git, texts of verdicts. An `OSError` is passed on: only the caller knows what it costs.
`UndecidedError` is for what is found here: a lock that is held, a damaged chain, a record that is too large.
"""

from __future__ import annotations


class Value:
    """The base of a plain value: compared, hashed and printed by the fields in its `__slots__`.

    It replaces a frozen dataclass in the modules that record an event: importing `dataclasses` costs
    more than the record (8 ms: it loads `inspect`). The fields are `Final`, so that mypy refuses a change.
    """

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)
