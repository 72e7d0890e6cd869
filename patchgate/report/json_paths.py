"""How every JSON document writes a path: as text, and where that is no exact text its bytes beside it.

Decides the keys alone: `path`, and `path_b64` where the path is not UTF-8 or holds control characters; then
`path` is as git quotes it. A list `files` has such a list beside it, `files_b64`, where one of its paths is
such a one; null stands there for the others. In `details` of a finding lists may lie in lists: null stands
there for a whole list too, where all its paths are exact.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import Any

from patchgate.git.path import RepoPath
from patchgate.git.quoting import exact_text, quote_path
from patchgate.report.verdict import Detail, Json

BASE64: dict[str, Any] = {"type": "string", "contentEncoding": "base64"}
"""The schema of the bytes of one path."""
BASE64_LIST: dict[str, Any] = {
    "type": "array",
    "items": {"type": ["string", "null"], "contentEncoding": "base64"},
}
"""The schema of those of a list."""


def path_member(key: str, path: RepoPath | None) -> dict[str, Json]:
    """Write a path of a repository under a key."""
    if path is None:
        return {key: None}
    encoded = _encoded(path.raw)
    return {key: _text(path.raw)} if encoded is None else {key: _text(path.raw), f"{key}_b64": encoded}


def place_member(key: str, place: str | None) -> dict[str, Json]:
    """Write a place of the file system under a key."""
    return path_member(key, None if place is None else RepoPath(place.encode("utf-8", "surrogateescape")))


def path_list(key: str, paths: Sequence[RepoPath]) -> dict[str, Json]:
    """Write paths of a repository under a key, in their order."""
    encoded: list[Json] = [_encoded(path.raw) for path in paths]
    found: dict[str, Json] = {key: [_text(path.raw) for path in paths]}
    return {**found, f"{key}_b64": encoded} if any(encoded) else found


def with_paths(details: Mapping[str, Detail]) -> dict[str, Json]:
    """Write the paths among the details of a finding, wherever they lie; everything else stays."""
    found: dict[str, Json] = {}
    for key, value in details.items():
        found[key], encoded = _written(value)
        if encoded is not None:
            found[f"{key}_b64"] = encoded
    return found


def _written(value: Detail) -> tuple[Json, Json]:
    """Write a detail, and beside it the bytes of its paths; None where all of it is exact."""
    if isinstance(value, RepoPath):
        return _text(value.raw), _encoded(value.raw)
    if isinstance(value, Mapping):
        return with_paths(value), None
    if isinstance(value, Sequence) and not isinstance(value, str):
        both = [_written(item) for item in value]
        beside = [encoded for _, encoded in both]
        return [text for text, _ in both], beside if any(beside) else None
    return value, None


def as_text(path: RepoPath) -> str:
    """Write a path for a format that has no place for its bytes."""
    return _text(path.raw)


def _text(raw: bytes) -> str:
    text = exact_text(raw)
    return quote_path(raw) if text is None else text


def _encoded(raw: bytes) -> str | None:
    return None if exact_text(raw) is not None else b2a_base64(raw, newline=False).decode("ascii")
