"""The folders above many paths, each visited once.

A path of 4,096 bytes has up to 2,047 folders above it. A loop over all folders of all paths would handle
thousands of bytes for each byte of the input, so every question about folders goes through this module: the
cost grows with the number of different folders, and their names together have a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath

MAX_FOLDER_BYTES = 64 << 20
"""How many bytes the names of all folders may have together. 100,000 usual folders have 6 MB."""

_Value = TypeVar("_Value")


class Descent(Generic[_Value]):
    """Computes a value for each folder from the value of the folder above it.

    Args:
        root: the value of the repository's root, whose name is empty.
        step: gives the value of a folder, from the value of the one above and the folder's path.
    """

    __slots__ = ("_bytes", "_step", "known")

    def __init__(self, root: _Value, step: Callable[[_Value, bytes], _Value]) -> None:
        self.known: dict[bytes, _Value] = {b"": root}
        self._step = step
        self._bytes = 0

    def at(self, folder: bytes) -> _Value:
        """Compute the value of a folder; what was computed before is not computed again.

        Raises:
            UndecidedError: the names of all folders have more than `MAX_FOLDER_BYTES`.
        """
        new: list[bytes] = []
        while folder not in self.known:
            self._bytes += len(folder)
            if self._bytes > MAX_FOLDER_BYTES:
                raise UndecidedError(
                    f"the folders above the changed files have names of more than {MAX_FOLDER_BYTES:,} bytes",
                    "nest folders less deep, or change fewer files at once",
                )
            new.append(folder)
            folder = folder.rpartition(b"/")[0]
        value = self.known[folder]
        while new:
            folder = new.pop()
            value = self.known[folder] = self._step(value, folder)
        return value


def folders_above(paths: Iterable[RepoPath]) -> set[bytes]:
    """List the folders above some paths; the root (empty) is one of them, unless there is no path.

    Raises:
        UndecidedError: their names have more than `MAX_FOLDER_BYTES`.
    """
    descent: Descent[None] = Descent(None, lambda above, folder: None)
    is_empty = True
    for path in paths:
        is_empty = False
        descent.at(path.parent)
    return set() if is_empty else set(descent.known)
