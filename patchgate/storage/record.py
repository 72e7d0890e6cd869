"""One record of a chain, its only valid bytes, and the head file that names the last record.

A line is a record only if encoding it again (JSON with sorted keys, ASCII, no spaces) gives the same bytes,
so no byte of a file can change without notice. The head file shows that a chain was truncated. Whoever can
write both files can rewrite both; a file next to the chain cannot prevent that.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from patchgate.errors import UndecidedError
from patchgate.storage import Value
from patchgate.storage.filesystem import open_exclusive, open_existing, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, TypeAlias

    from patchgate.storage.filesystem import FaultPoints


Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MAX_LINE = 1024 * 1024
"""Bytes of one record at most, its LF included."""

START = "sha256:" + "0" * 64
"""What the first record names as the one before it."""

# Python's JSON reader raises RecursionError at about a thousand levels, sooner in a deep call.
_MAX_DEPTH = 64
_BEGIN = b'{"event":'
_END = re.compile(rb',"hash":"(sha256:[0-9a-f]{64})","previous":"(sha256:[0-9a-f]{64})"\}')
_END_LENGTH = len(',"hash":"","previous":""}') + 2 * len(START)


class Record(Value):
    """One event, its hash, and the hash of the record before it (`sha256:` and 64 hex digits each)."""

    __slots__ = ("event", "hash", "previous")

    def __init__(self, digest: str, previous: str, event: Mapping[str, Json]) -> None:
        self.hash: Final = digest
        self.previous: Final = previous
        self.event: Final = event


def canonical_event(event: Mapping[str, Json]) -> bytes:
    """Write an event in the canonical form.

    Raises:
        ValueError: JSON has no such value (NaN, bytes, a key that is not text), or it is nested too deep.
    """
    return _canonical(_plain(event, 0))


def line_of(event: bytes, previous: str) -> tuple[str, bytes]:
    """Return the hash and the line (with LF) of the record of a canonical event after `previous`.

    Raises:
        UndecidedError: the line would be longer than `MAX_LINE`.
    """
    digest = hash_of(event, previous)
    line = b'{"event":%b,"hash":"%b","previous":"%b"}\n' % (event, digest.encode(), previous.encode())
    if len(line) > MAX_LINE:
        raise UndecidedError(
            f"a record of {len(line)} bytes is longer than the limit of {MAX_LINE}",
            "put the long part into a file and record the file's digest",
        )
    return digest, line


def parse_line(line: bytes) -> Record:
    """Parse one line, without its LF, and check its form and its hash.

    Raises:
        ValueError: its text says what is wrong with the line.
    """
    parts = _END.fullmatch(line, len(line) - _END_LENGTH) if line.startswith(_BEGIN) else None
    try:
        text = (line if parts is None else line[len(_BEGIN) : -_END_LENGTH]).decode("ascii")
        # `decode` would also look for blanks around it, which no canonical form has.
        event, end = _DECODER.raw_decode(text)
        if end != len(text):
            raise ValueError
        is_canonical = parts is not None and _encode(event) == text
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if parts is None or not is_canonical or not isinstance(event, dict):
        raise ValueError("is not a record in canonical form")
    digest, previous = parts[1].decode("ascii"), parts[2].decode("ascii")
    if digest != hash_of(line[len(_BEGIN) : -_END_LENGTH], previous):
        raise ValueError("does not have the hash that it names")
    return Record(digest, previous, event)


def link_of(line: bytes) -> tuple[str, str]:
    """Return the hash of a line, without its LF, and of the one before it: bytes are checked, not their JSON.

    Raises:
        ValueError: its text says what is wrong with the line.
    """
    parts = _END.fullmatch(line, len(line) - _END_LENGTH) if line.startswith(_BEGIN) else None
    if parts is None:
        raise ValueError("is not a record in canonical form")
    digest, previous = parts[1].decode("ascii"), parts[2].decode("ascii")
    if digest != hash_of(line[len(_BEGIN) : -_END_LENGTH], previous):
        raise ValueError("does not have the hash that it names")
    return digest, previous


def hash_of(event: bytes, previous: str) -> str:
    """Compute a record's hash: SHA-256 of `patchgate.chain/1`, the previous hash, the event, LF between."""
    text = b"patchgate.chain/1\n" + previous.encode("utf-8", "surrogatepass") + b"\n" + event
    return "sha256:" + hashlib.sha256(text).hexdigest()


_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def _encoding() -> Callable[[object], str]:
    """Return what writes parsed JSON in the canonical form, as the encoder does, in half of its time."""
    make: Callable[..., Callable[[object, int], Sequence[str]]] | None = getattr(
        json.encoder, "c_make_encoder", None
    )
    if make is None:
        return _ENCODER.encode
    quote, own = json.encoder.encode_basestring_ascii, _ENCODER
    signs = own.key_separator, own.item_separator
    encode = make(None, own.default, quote, None, *signs, own.sort_keys, own.skipkeys, own.allow_nan)
    return lambda value: "".join(encode(value, 0))


_encode = _encoding()


def _canonical(value: object) -> bytes:
    return _ENCODER.encode(value).encode("ascii")


def _plain(value: Json, depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise ValueError(f"an event is at most {_MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("the keys of an event must be text")
        return {key: _plain(each, depth + 1) for key, each in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [_plain(each, depth + 1) for each in value]
    raise ValueError(f"JSON has no {type(value).__name__}")


_SUFFIX = ".head"
_HEAD_MODE = 0o644
_LAST_LOOK = 4096
MAX_HEAD_SIZE = 64 * 1024
"""A longer head file is replaced by its last line: once in about 700 records."""

_HEAD_LINE = re.compile(rb"\n([1-9][0-9]{0,18}) (sha256:[0-9a-f]{64})(?=\n)")

NO_HEAD, AT_END, BEFORE_END, CONTRADICTED = "none", "last", "earlier", "contradicted"
"""The states of a head file: it names no record, the last one, an earlier one, one that is not there."""


class Head(Value):
    """The record that a head file names: the size of the chain after it, and its hash."""

    __slots__ = ("hash", "size")

    def __init__(self, size: int, digest: str) -> None:
        self.size: Final = size
        self.hash: Final = digest


class HeadComparison(Value):
    """A head file against its chain: the state, the head if any, the bytes of the chain, records after it."""

    __slots__ = ("behind", "head", "size", "state")

    def __init__(self, state: str, head: Head | None, size: int, behind: int = 0) -> None:
        self.state: Final = state
        self.head: Final = head
        self.size: Final = size
        self.behind: Final = behind


def head_path_of(chain: str) -> str:
    """Return the path of a chain's head file."""
    return chain + _SUFFIX


def read_head(chain: str) -> Head | None:
    """Read the head file: its last whole line; None if there is none.

    Raises:
        OSError: the file exists and cannot be read.
    """
    try:
        descriptor = os.open(head_path_of(chain), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _last_head(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def compare_head(chain: str) -> HeadComparison:
    """Compare a head file with its chain; needs no lock, because the head is read first and is never ahead.

    Raises:
        OSError: one of the two cannot be read.
    """
    head = read_head(chain)
    try:
        descriptor = os.open(chain, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return HeadComparison(NO_HEAD if head is None else CONTRADICTED, head, 0)
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if head is None:
            return HeadComparison(NO_HEAD, None, size)
        if not _names_a_record(descriptor, head, size):
            return HeadComparison(CONTRADICTED, head, size)
        file.seek(head.size)
        behind = sum(block.count(b"\n") for block in iter(lambda: file.read(MAX_LINE), b""))
        return HeadComparison(state=BEFORE_END if behind else AT_END, head=head, size=size, behind=behind)


def advance_head(
    chain: str, descriptor: int, before: tuple[int, str], after: Head, faults: FaultPoints
) -> None:
    """Record the last flushed record, unless the file contradicts the chain before it.

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
        opened = _open_head(head_path_of(chain), faults)
        try:
            length = os.fstat(opened).st_size
            head = _last_head(opened, length)
            is_last = head is None or before == (head.size, head.hash)
            if head is not None and not is_last and not _names_a_record(descriptor, head, before[0]):
                return
            # An incomplete line of a crash is ended first.
            is_cut = length > 0 and os.pread(opened, 1, length - 1) != b"\n"
            if length < MAX_HEAD_SIZE:
                write_all(opened, b"\n" + line if is_cut else line, faults)
                return
        finally:
            os.close(opened)
        _shorten(head_path_of(chain), line, faults)


def _open_head(path: str, faults: FaultPoints) -> int:
    try:
        return open_existing(path)
    except FileNotFoundError:
        return open_exclusive(path, _HEAD_MODE, faults)


def _shorten(path: str, line: bytes, faults: FaultPoints) -> None:
    # Imported here, because this is rare, and hooks append.
    from pathlib import Path

    from patchgate.storage.atomic_write import write_atomically

    write_atomically(Path(path), line, mode=_HEAD_MODE, faults=faults)


def _last_head(descriptor: int, size: int) -> Head | None:
    """Find the last whole line of a head file; a line that a crash damaged is skipped."""
    start = max(0, size - _LAST_LOOK)
    block = os.pread(descriptor, size - start, start)
    found = _HEAD_LINE.findall(block if start else b"\n" + block)
    return Head(int(found[-1][0]), found[-1][1].decode("ascii")) if found else None


def _names_a_record(descriptor: int, head: Head, size: int) -> bool:
    """Return whether the first `size` bytes of a chain have the record that a head names, at its position."""
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
