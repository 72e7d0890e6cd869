"""The versions of contracts: which texts are versions, and which of two is higher.

Numbers between dots count, missing ones are 0 (`1.2` is `1.2.0`); what follows the numbers is a pre-release,
which lies below its release; `+build` is ignored. Source of the order: Semantic Versioning 2.0.0, 11.
"""

from __future__ import annotations

import re

from patchgate.policy.json_places import JsonDocument, read_json

VERSION = (
    r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,7}"
    r"(?:[-.]?[A-Za-z][0-9A-Za-z.-]{0,60}|-[0-9A-Za-z][0-9A-Za-z.-]{0,60})?"
    r"(?:\+[0-9A-Za-z][0-9A-Za-z.-]{0,60})?"
)

_Part = tuple[int, int, str]
_Order = tuple[tuple[int, ...], bool, tuple[_Part, ...]]


def version_of(raw: bytes) -> str | None:
    """Find the version that a contract states, even where the rest of it is wrong; None where it is none."""
    read = read_json(raw)
    if not isinstance(read, JsonDocument) or not isinstance(read.value, dict):
        return None
    version = read.value.get("version")
    return version if isinstance(version, str) and is_version(version) else None


def is_version(text: str) -> bool:
    """Tell whether a text is a version."""
    return re.fullmatch(VERSION, text) is not None


def is_higher(version: str, than: str) -> bool:
    """Tell whether a version is higher than another.

    Raises:
        ValueError: one of them is no version.
    """
    return _order(version) > _order(than)


def _order(text: str) -> _Order:
    if not is_version(text):
        raise ValueError("this is no version")
    plain = text.partition("+")[0]
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", plain)
    numbers = release[0] if release else ""
    later = plain[len(numbers) :]
    # 1.2 is 1.2.0: trailing zeros do not count.
    kept = tuple(int(part) for part in re.sub(r"(?:\.0+)+$", "", numbers).split("."))
    parts = tuple(_part(piece) for piece in re.findall(r"[0-9]+|[A-Za-z]+", later))
    return kept, not later, parts


def _part(piece: str) -> _Part:
    """Numbers come before words, as in Semantic Versioning."""
    return (0, int(piece), "") if piece.isdecimal() else (1, 0, piece)
