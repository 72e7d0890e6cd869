"""Whether a chain is whole, for a command that is asked often and must be quick.

What was found whole is remembered beside the chain, by its length and checksum: then only what came after it
is checked, line by line, by bytes and hashes without their JSON. The checksum shows damage, not an attacker:
whoever can write the chain can write both files, and `hash_chain.verify` reads everything.
"""

from __future__ import annotations

import re
import zlib
from contextlib import suppress

from patchgate.storage.record import START, link_of

_SUFFIX = ".whole"
_MODE = 0o644
_LINE = re.compile(rb"([1-9][0-9]{0,18}) ([0-9]{1,10}) (sha256:[0-9a-f]{64})\n")
_MOST_REMEMBERED = 256
WORTH_REMEMBERING = 256 << 10
"""So many bytes are checked again each time before the file is written."""


def damaged_line(path: str, content: bytes) -> int | None:
    """Return the number of the first damaged line of a chain, from 1; None if it is whole.

    A last line without its end is left out: it may be written now.

    Args:
        path: the chain.
        content: what it contains.
    """
    size, previous = _remembered(path, content)
    end = content.rfind(b"\n") + 1
    if size >= end:
        return None
    at = size
    for line in content[size:end].split(b"\n")[:-1]:
        try:
            digest, before = link_of(line)
        except ValueError:
            return content.count(b"\n", 0, at) + 1
        if before != previous:
            return content.count(b"\n", 0, at) + 1
        previous = digest
        at += len(line) + 1
    if end - size >= WORTH_REMEMBERING:
        _remember(path, content[:end], previous)
    return None


def _remembered(path: str, content: bytes) -> tuple[int, str]:
    """Return the length of the part that was found whole and is unchanged, and the hash of its last line."""
    raw = b""
    with suppress(OSError), open(path + _SUFFIX, "rb") as file:
        raw = file.read(_MOST_REMEMBERED)
    found = _LINE.fullmatch(raw)
    if found is None:
        return 0, START
    size, checksum = int(found[1]), int(found[2])
    if size > len(content) or zlib.crc32(memoryview(content)[:size]) != checksum:
        return 0, START
    return size, found[3].decode("ascii")


def _remember(path: str, whole: bytes, last: str) -> None:
    from pathlib import Path

    from patchgate.storage.atomic_write import write_atomically

    text = b"%d %d %b\n" % (len(whole), zlib.crc32(whole), last.encode("ascii"))
    with suppress(OSError):
        write_atomically(Path(path + _SUFFIX), text, mode=_MODE)
