"""The version of a contract: its syntax, where it is read, and which of two versions is higher.

The rule `drift-version` (`components.drift`) compares the version with the one that the baseline records.
"""

from __future__ import annotations

import re

VERSION = (
    r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,7}"
    r"(?:[-.]?[A-Za-z][0-9A-Za-z.-]{0,60}|-[0-9A-Za-z][0-9A-Za-z.-]{0,60})?"
    r"(?:\+[0-9A-Za-z][0-9A-Za-z.-]{0,60})?"
)


_Order = tuple[tuple[int, ...], bool, tuple[tuple[int, int, str], ...]]


def version_of(raw: bytes) -> str | None:
    """Return the version in a contract, even if the rest of it is wrong; None if there is no version."""
    # 3 ms to import, and most commits need no version.
    from patchgate.policy.strict_json import JsonDocument, read_json

    read = read_json(raw)
    if not isinstance(read, JsonDocument) or not isinstance(read.value, dict):
        return None
    version = read.value.get("version")
    return version if isinstance(version, str) and is_version(version) else None


def is_version(text: str) -> bool:
    """Return whether a text is a version."""
    return re.fullmatch(VERSION, text) is not None


def is_higher(version: str, than: str) -> bool:
    """Return whether a version is higher than another.

    Raises:
        ValueError: one of them is not a version.
    """
    return _order(version) > _order(than)


def _order(text: str) -> _Order:
    if not is_version(text):
        raise ValueError("this is not a version")
    plain = text.partition("+")[0]
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", plain)
    numbers = release[0] if release else ""
    later = plain[len(numbers) :]
    # 1.2 is 1.2.0: trailing zeros do not count.
    kept = tuple(int(part) for part in re.sub(r"(?:\.0+)+$", "", numbers).split("."))
    # Numbers come before words, as in Semantic Versioning.
    parts = tuple(
        (0, int(piece), "") if piece.isdecimal() else (1, 0, piece)
        for piece in re.findall(r"[0-9]+|[A-Za-z]+", later)
    )
    return kept, not later, parts
