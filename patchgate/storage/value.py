"""A plain value: equal, hashed and shown by what its slots hold, and never changed after it was made.

Decides only that. It stands in for a frozen dataclass in the modules that recording one event loads: the
import of `dataclasses` costs more than the record (8 ms, for it loads `inspect`). Its fields are `Final`, so
that mypy refuses a change; nothing does at run time.
"""

from __future__ import annotations


class Value:
    """The base of a class that names its fields in `__slots__`."""

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
