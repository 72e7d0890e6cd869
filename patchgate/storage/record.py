"""One record of a chain, and the only bytes that can stand for it.

Decides the canonical form (JSON with sorted keys, ASCII, no spaces) and the hash. A line is a record only if
encoding it again gives the same bytes, so that no byte of a file can change unseen. No files here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.storage.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

MAX_LINE = 1024 * 1024
"""Bytes of one record at most, its LF included."""

START = "sha256:" + "0" * 64
"""What the first record names as the one before it."""

# Python's JSON reader raises RecursionError near a thousand levels, sooner when it is called deep.
_MAX_DEPTH = 64
_KEYS = {"event", "hash", "previous"}


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
        ValueError: JSON does not have such a value (NaN, bytes, a key that is no text), or it is too deep.
    """
    return _canonical(_plain(event, 0))


def line_of(event: bytes, previous: str) -> tuple[str, bytes]:
    """Make the hash and the line (LF included) of the record that puts a canonical event after `previous`.

    Raises:
        UndecidedError: the line would be longer than `MAX_LINE`.
    """
    digest = hash_of(event, previous)
    line = b'{"event":%b,"hash":"%b","previous":"%b"}\n' % (event, digest.encode(), previous.encode())
    if len(line) > MAX_LINE:
        raise UndecidedError(
            f"a record of {len(line)} bytes is longer than the limit of {MAX_LINE}",
            "keep the long part in a file of its own and record the file's digest",
        )
    return digest, line


def parse_line(line: bytes) -> Record:
    """Read one line, without its LF, and check everything that it says about itself.

    Raises:
        ValueError: says in half a sentence what is wrong with the line.
    """
    try:
        value = json.loads(line)
        is_canonical = _canonical(value) == line
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not is_canonical or not isinstance(value, dict) or set(value) != _KEYS:
        raise ValueError("is not a record in canonical form")
    event, digest, previous = value["event"], value["hash"], value["previous"]
    if not isinstance(event, dict) or not isinstance(digest, str) or not isinstance(previous, str):
        raise ValueError("is not a record in canonical form")
    if digest != hash_of(_canonical(event), previous):
        raise ValueError("does not have the hash that it names")
    return Record(digest, previous, event)


def hash_of(event: bytes, previous: str) -> str:
    """Compute a record's hash: SHA-256 of `patchgate.chain/1`, the previous hash, the event, LF between."""
    text = b"patchgate.chain/1\n" + previous.encode("utf-8", "surrogatepass") + b"\n" + event
    return "sha256:" + hashlib.sha256(text).hexdigest()


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _plain(value: Json, depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise ValueError(f"an event is at most {_MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("the keys of an event are text")
        return {key: _plain(each, depth + 1) for key, each in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [_plain(each, depth + 1) for each in value]
    raise ValueError(f"JSON has no {type(value).__name__}")
