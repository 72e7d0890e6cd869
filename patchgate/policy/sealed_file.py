"""Keep what was computed in a file, so that it counts only as it was written and only for who wrote it.

Decides the form of such a file: a seal over the body, bound to what it is and to the versions of tool and
rules. What is damaged, foreign, too large or missing is nothing; what cannot be written is not kept. Whoever
can write below the git common directory can also remove the hooks, so the seal is no door.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Self

from patchgate import __version__
from patchgate.git.repository import Repository
from patchgate.report.rules import RULES_VERSION


@dataclass(frozen=True, slots=True)
class SealedFile:
    """One file of a cache; `form` names what is in it, `most_bytes` is how long it may be."""

    path: str
    form: str
    most_bytes: int

    def load(self) -> dict[str, Any]:
        """Give what was kept; nothing where that does not count."""
        try:
            with open(self.path, "rb") as stream:
                kept = stream.read(self.most_bytes + 1)
        except OSError:
            return {}
        seal, _, body = kept.partition(b"\n")
        if len(kept) > self.most_bytes or seal != self._seal(body):
            return {}
        loaded: dict[str, Any] = json.loads(body)
        return loaded

    def store(self, body: bytes) -> None:
        """Replace what was kept by a JSON object, whole or not at all."""
        from pathlib import Path

        from patchgate.storage.atomic_write import write_atomically

        content = self._seal(body) + b"\n" + body
        if len(content) > self.most_bytes:
            return
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            write_atomically(Path(self.path), content, mode=0o600)
        except OSError:
            return

    def _seal(self, body: bytes) -> bytes:
        about = f"{self.form}\n{__version__}\n{RULES_VERSION}\n".encode()
        return hashlib.sha256(about + body).hexdigest().encode("ascii")


def drop_oldest(folder: str, most: int) -> None:
    """Remove the oldest files of a folder of sealed files, where there are more than `most`."""
    with suppress(OSError):
        entries = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: max(0, len(entries) - most)]:
            os.unlink(entry.path)


class SealedCache(ABC):
    """What was computed for one repository, in one sealed file; leaving it (`with`) writes what is new.

    A class of it says where below the git common directory the file lies, and its form and length.
    """

    PLACE: ClassVar[str]
    FORM: ClassVar[str]
    MOST_BYTES: ClassVar[int]

    def __init__(self, common_dir: str, *, is_writable: bool = True) -> None:
        self._file = SealedFile(os.path.join(common_dir, self.PLACE), self.FORM, self.MOST_BYTES)
        self._is_writable = is_writable
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

    def close(self) -> None:
        """Write what is new, once, whole or not at all; what cannot be written is forgotten."""
        if self._is_changed and self._is_writable:
            self._is_changed = False
            self._file.store(self._body())

    @abstractmethod
    def _body(self) -> bytes:
        """Write what is to be kept as a JSON object."""
