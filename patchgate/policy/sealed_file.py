"""Cache files with a seal: content that was damaged or written by another version is ignored.

The seal is a digest of the body, the form and the versions of tool and rules. A damaged, foreign, too large
or missing file counts as empty; a file that cannot be written is skipped. The seal is not a security
boundary: whoever can write below the git common directory can also remove the hooks.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from patchgate import RULES_VERSION, __version__
from patchgate.storage.digest import sha256_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, ClassVar, Final, Self

    from patchgate.git.repository import Repository

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class SealedFile:
    """One file of a cache; `form` names its content, `most_bytes` is its size limit."""

    __slots__ = ("form", "most_bytes", "path")

    def __init__(self, path: str, form: str, most_bytes: int) -> None:
        self.path: Final = path
        self.form: Final = form
        self.most_bytes: Final = most_bytes

    def load(self) -> dict[str, Any]:
        """Return the content, a JSON object; an empty one if the seal does not match."""
        # 6 ms to import: the fast path reads lines.
        import json

        body = self.read()
        loaded: dict[str, Any] = {} if body is None else json.loads(body)
        return loaded

    def read(self) -> bytes | None:
        """Return the content; None if the seal does not match."""
        try:
            with open(self.path, "rb", buffering=0) as stream:
                kept = stream.read(self.most_bytes + 1) or b""
        except OSError:
            return None
        seal, _, body = kept.partition(b"\n")
        return body if len(kept) <= self.most_bytes and seal == self._seal(body) else None

    def store(self, body: bytes) -> None:
        """Replace the content; readers see the old one or the new one.

        Nothing is flushed: after a power cut the file counts as empty at worst, by its seal.
        """
        content = self._seal(body) + b"\n" + body
        if len(content) > self.most_bytes:
            return
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            # Of two writers at once, one may write into the file of the other: no seal fits that.
            with open(os.open(self.path + ".new", _NEW, 0o600), "wb") as file:
                file.write(content)
            os.replace(self.path + ".new", self.path)
        except OSError:
            return

    def _seal(self, body: bytes) -> bytes:
        about = f"{self.form}\n{__version__}\n{RULES_VERSION}\n".encode()
        return sha256_text(about + body).encode("ascii")


def drop_oldest(folder: str, most: int) -> None:
    """Remove the oldest files of a folder if there are more than `most`."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: max(0, len(entries) - most)]:
            os.unlink(entry.path)
    except OSError:
        return


class SealedCache(ABC):
    """A cache of one repository in a sealed file; leaving the `with` block writes changes.

    A subclass defines the path below the git common directory, the form and the size limit.
    """

    PLACE: ClassVar[str]
    FORM: ClassVar[str]
    MOST_BYTES: ClassVar[int]

    def __init__(self, common_dir: str, *, is_writable: bool = True, is_trusted: bool = True) -> None:
        self._file = SealedFile(os.path.join(common_dir, self.PLACE), self.FORM, self.MOST_BYTES)
        self._is_trusted = is_trusted
        self._is_writable = is_writable and is_trusted
        self._is_changed = False

    @classmethod
    def of(cls, repository: Repository) -> Self:
        """Open the cache of a repository; while a push is received, nothing is written."""
        return cls(
            repository.common_dir,
            is_writable=not repository.is_receiving,
            is_trusted=repository.trusts_caches,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write changes once, atomically; errors are ignored."""
        if self._is_changed and self._is_writable:
            self._is_changed = False
            self._file.store(self._body())

    def _load(self) -> dict[str, Any]:
        """Return the content; empty if there is none, or it is not to be trusted."""
        return self._file.load() if self._is_trusted else {}

    @abstractmethod
    def _body(self) -> bytes:
        """Return the content as a JSON object."""
