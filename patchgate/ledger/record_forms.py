"""Forms that records of several kinds share: a path, byte for byte, and which part of an event this is.

Decides how they are written and read. What is made of one that is damaged, each kind decides.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Mapping

from patchgate.git.path import RepoPath
from patchgate.ledger.event import Event
from patchgate.report.json_paths import path_member
from patchgate.storage.record import Json


def plain_path(path: RepoPath) -> dict[str, Json]:
    """Give the keys of a path: its text, and its bytes where that says less than them."""
    return {**path_member("path", path)}


def path_of(value: Mapping[str, Json]) -> RepoPath:
    """Read the keys that `plain_path` gave.

    Raises:
        ValueError: they hold no path.
    """
    path, exact = value.get("path"), value.get("path_b64")
    if not isinstance(path, str) or not isinstance(exact, str | None):
        raise ValueError("a file has no path")
    try:
        raw = path.encode("utf-8") if exact is None else a2b_base64(exact, strict_mode=True)
    except ValueError as error:
        raise ValueError("the bytes of a path are not base64") from error
    return RepoPath.from_git(raw)


def part_of(event: Event) -> tuple[int, int] | None:
    """Tell which part of an event this is, and of how many; None where that is not two numbers."""
    part = event.about.get("part", [1, 1])
    if isinstance(part, list) and len(part) == 2 and all(type(each) is int for each in part):
        return part[0], part[1]
    return None
