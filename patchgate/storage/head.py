"""The head file of a chain: where its last record ended, so that a chain that was cut is noticed.

`<name>.head` has one line for each record: `<bytes of the chain> <hash>`; the last whole line counts. A line
is written under the chain's lock, after its record was flushed, and is not flushed itself. So the file never
names a record that is not on the disk: after a kill, a full disk or a power cut it names an earlier record,
or none. A file that contradicts its chain is never changed by an append: what was cut stays visible.

Whoever can write both files can rewrite both; no file beside a chain prevents that.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from patchgate.storage.filesystem import open_exclusive, open_existing, write_all
from patchgate.storage.record import MAX_LINE, parse_line
from patchgate.storage.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from patchgate.storage.steps import Steps

_SUFFIX = ".head"
_MODE = 0o644
_LAST_LOOK = 4096
MAX_SIZE = 64 * 1024
"""A longer head file is replaced by its last line: once in about 700 records."""

_LINE = re.compile(rb"\n([1-9][0-9]{0,18}) (sha256:[0-9a-f]{64})(?=\n)")

NO_HEAD, AT_END, BEFORE_END, CONTRADICTED = "none", "last", "earlier", "contradicted"
"""The states of a head file: it names no record, the last one, an earlier one, one that is not there."""


class Head(Value):
    """The record that a head file names: the size of the chain after it, and its hash."""

    __slots__ = ("hash", "size")

    def __init__(self, size: int, digest: str) -> None:
        self.size: Final = size
        self.hash: Final = digest


class Comparison(Value):
    """A head file against its chain: the state, the head if any, the bytes of the chain, records after it."""

    __slots__ = ("behind", "head", "size", "state")

    def __init__(self, state: str, head: Head | None, size: int, behind: int = 0) -> None:
        self.state: Final = state
        self.head: Final = head
        self.size: Final = size
        self.behind: Final = behind


def path_of(chain: str) -> str:
    """Name the head file of a chain."""
    return chain + _SUFFIX


def read(chain: str) -> Head | None:
    """Read the head file: its last whole line; None where there is none.

    Raises:
        OSError: the file exists and cannot be read.
    """
    try:
        descriptor = os.open(path_of(chain), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _last(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def compare(chain: str) -> Comparison:
    """Compare a head file with its chain; needs no lock, because the head is read first and never leads.

    Raises:
        OSError: one of the two cannot be read.
    """
    head = read(chain)
    try:
        descriptor = os.open(chain, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return Comparison(NO_HEAD if head is None else CONTRADICTED, head, 0)
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if head is None:
            return Comparison(NO_HEAD, None, size)
        if not _names_a_record(descriptor, head, size):
            return Comparison(CONTRADICTED, head, size)
        file.seek(head.size)
        behind = sum(block.count(b"\n") for block in iter(lambda: file.read(MAX_LINE), b""))
        return Comparison(BEFORE_END if behind else AT_END, head, size, behind)


def advance(chain: str, descriptor: int, before: tuple[int, str], after: Head, faults: Steps) -> None:
    """Name the record that was just flushed, unless the file contradicts the chain before it.

    An error changes nothing for the record: the file then names an earlier one.

    Args:
        chain: the path of the chain.
        descriptor: the chain, open.
        before: its size and its last hash before the record.
        after: the same with the record.
        faults: numbered fault points.
    """
    line = b"%d %b\n" % (after.size, after.hash.encode("ascii"))
    with suppress(OSError):
        opened = _open(path_of(chain), faults)
        try:
            length = os.fstat(opened).st_size
            head = _last(opened, length)
            is_last = head is None or before == (head.size, head.hash)
            if head is not None and not is_last and not _names_a_record(descriptor, head, before[0]):
                return
            # A line that a crash cut short is ended first.
            is_cut = length > 0 and os.pread(opened, 1, length - 1) != b"\n"
            if length < MAX_SIZE:
                write_all(opened, b"\n" + line if is_cut else line, faults)
                return
        finally:
            os.close(opened)
        _shorten(path_of(chain), line, faults)


def _open(path: str, faults: Steps) -> int:
    try:
        return open_existing(path)
    except FileNotFoundError:
        return open_exclusive(path, _MODE, faults)


def _shorten(path: str, line: bytes, faults: Steps) -> None:
    # Loaded here, for this is rare, and an append is made in a hook.
    from pathlib import Path

    from patchgate.storage.replace import write_atomically

    write_atomically(Path(path), line, mode=_MODE, faults=faults)


def _last(descriptor: int, size: int) -> Head | None:
    """Find the last whole line of a head file; a line that a crash spoiled is passed over."""
    start = max(0, size - _LAST_LOOK)
    block = os.pread(descriptor, size - start, start)
    found = _LINE.findall(block if start else b"\n" + block)
    return Head(int(found[-1][0]), found[-1][1].decode("ascii")) if found else None


def _names_a_record(descriptor: int, head: Head, size: int) -> bool:
    """Tell whether the first `size` bytes of a chain hold the record that a head names, where it says."""
    if head.size > size:
        return False
    start = max(0, head.size - MAX_LINE - 1)
    block = os.pread(descriptor, head.size - start, start)
    begin = block.rfind(b"\n", 0, -1)
    if not block.endswith(b"\n") or (begin < 0 < start):
        return False
    try:
        return parse_line(block[begin + 1 : -1]).hash == head.hash
    except ValueError:
        return False
