"""The texts in which the gate looks for placeholders: which sides of files are read, and what of them.

Decides what can be read. Files above the size that git diffs are not. Of UTF-16 with a defect the rest is
read, which is enough to tell of what is there; no claim is held against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchgate.git.model import Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.repository import BIG_FILE
from patchgate.placeholders.placeholder_matches import text_of

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_AT_ONCE = 200
_AHEAD_BYTES = 4 << 20


def contents(
    objects: Objects, sides: Sequence[tuple[FileChange, Entry | None]]
) -> Iterator[tuple[FileChange, bytes | None]]:
    """Read one side of each file, some ahead in one round trip; None for one above the size of a diff."""
    waiting = [(file, entry.oid) for file, entry in sides if entry is not None and entry.is_file]
    sizes = objects.sizes(oid for _, oid in waiting if oid.strip("0"))
    ahead: dict[str, bytes] = {}
    for at, (file, oid) in enumerate(waiting):
        if sizes.get(oid, BIG_FILE + 1) > BIG_FILE:
            yield file, None
            continue
        if oid not in ahead:
            following = dict.fromkeys(each for _, each in waiting[at : at + _AT_ONCE])
            known = [each for each in following if sizes.get(each, BIG_FILE + 1) <= BIG_FILE]
            ahead = objects.read_some(known, _AHEAD_BYTES) or {oid: objects.read(oid)}
        yield file, ahead[oid]


def starts_as_utf_16(objects: Objects, entry: Entry | None) -> bool:
    """Tell whether a file of any size begins with a byte-order mark of UTF-16."""
    return entry is not None and objects.head(entry.oid, 2) in UTF_16


def readable(content: bytes) -> bytes:
    """Give what can be read of a text, and what no claim is held against: UTF-16 with a defect, bytes of an
    older encoding, whose markers are ASCII all the same.
    """
    text = text_of(content)
    if text is None and content.startswith(UTF_16):
        # The byte-order mark says which of the two it is.
        text = content.decode("utf-16", "replace").replace("\0", " ").encode("utf-8", "replace")
    return content if text is None else text
