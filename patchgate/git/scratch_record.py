"""The record of a temporary folder, which is written before the folder is made.

Imports only what is quick, for the fast path makes scratch trees as well. `temporary_folders` says who
removes them.
"""

from __future__ import annotations

import os
import stat

from patchgate.storage import Value
from patchgate.storage.owner import Owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class FolderRecord(Value):
    """One folder: its absolute path, its owner, its identity (None until made), whether it stays."""

    __slots__ = ("identity", "kept", "owner", "path")

    def __init__(
        self, path: str, owner: Owner, identity: tuple[int, int] | None = None, kept: bool = False
    ) -> None:
        self.path: Final = path
        self.owner: Final = owner
        self.identity: Final = identity
        self.kept: Final = kept

    def to_bytes(self) -> bytes:
        """Write it as one line of JSON."""
        # Of the module json only this is needed, in C; json itself takes 6 ms to import.
        from _json import encode_basestring_ascii as quoted

        owner = quoted(self.owner.to_bytes().decode("ascii"))
        identity = "null" if self.identity is None else str(list(self.identity))
        kept = "true" if self.kept else "false"
        text = f'{{"path": {quoted(self.path)}, "owner": {owner}, "identity": {identity}, "kept": {kept}}}\n'
        return text.encode("ascii")

    @classmethod
    def from_bytes(cls, raw: bytes) -> FolderRecord | None:
        """Read what `to_bytes` wrote; None for anything else."""
        import json

        try:
            plain = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        if not isinstance(plain, dict) or not isinstance(owner := plain.get("owner"), str):
            return None
        path, identity = plain.get("path"), plain.get("identity")
        by = Owner.from_bytes(owner.encode("utf-8", "replace"))
        if by is None or not isinstance(path, str) or not os.path.isabs(path) or "\0" in path:
            return None
        if identity is None:
            return cls(path, by, None, plain.get("kept") is True)
        if isinstance(identity, list) and len(identity) == 2 and all(type(each) is int for each in identity):
            return cls(path, by, (identity[0], identity[1]), plain.get("kept") is True)
        return None


def claim_folder(records: str, parent: str, *, keep: bool = False) -> tuple[str, str]:
    """Make a fresh folder, mode 0700, with its record; return both paths.

    Args:
        records: the folder of the records.
        parent: the cache folder's `touched` or `kept`; created if missing.
        keep: whether it stays.

    Raises:
        OSError: it cannot be made.
    """
    token = os.urandom(8).hex()
    path, file = os.path.join(parent, token), os.path.join(records, f"place-{token}.json")
    owner = Owner.current()
    os.makedirs(parent, 0o700, exist_ok=True)
    _write(file, FolderRecord(path, owner, kept=keep))
    os.mkdir(path, 0o700)
    _write(file, FolderRecord(path, owner, identity_of(path), keep))
    return path, file


def _write(file: str, record: FolderRecord) -> None:
    """Write a record atomically; the temporary file is named like a record, so a sweep finds it."""
    spare = os.path.join(os.path.dirname(file), f"place-{os.urandom(8).hex()}.json")
    descriptor = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as out:
        out.write(record.to_bytes())
    os.rename(spare, file)


def identity_of(path: str) -> tuple[int, int] | None:
    """Identify the folder at a path by device and inode; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None
