"""Write an index of a few files without git, for the fast path; the format is that of gitformat-index(5)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_NAME = 0xFFF


def small_index(entries: Mapping[bytes, tuple[str, str]]) -> bytes:
    """Return an index of version 2 in which git knows nothing of the files on disk.

    Args:
        entries: octal mode and object id by path; the ids have the length of the repository's.
    """
    width = len(next(iter(entries.values()))[1]) // 2
    rows = []
    for path, (mode, oid) in sorted(entries.items()):
        # Times, device, inode; mode; owner, size; id; length of the name.
        row = b"".join(
            [
                bytes(24),
                int(mode, 8).to_bytes(4, "big"),
                bytes(12),
                bytes.fromhex(oid),
                min(len(path), _MOST_NAME).to_bytes(2, "big"),
                path,
            ]
        )
        rows.append(row + bytes(8 - len(row) % 8))
    content = b"".join([b"DIRC", (2).to_bytes(4, "big"), len(rows).to_bytes(4, "big"), *rows])
    return content + _digest(content, width)


def _digest(content: bytes, width: int) -> bytes:
    if width == 32:
        from patchgate.storage.digest import sha256

        return sha256(content).digest()
    try:
        # hashlib takes 3 ms to import; some builds have nothing else.
        from _sha1 import sha1
    except ImportError:
        from hashlib import sha1
    digest: bytes = sha1(content, usedforsecurity=False).digest()
    return digest
