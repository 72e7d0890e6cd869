"""Repeat a step on a folder from memory, where the same step began from the same files before.

Many tests arrange the same repository and install the hooks in it, which costs 100 ms. The first time, the
step runs, and its changes are kept. When a later step in this process begins from the same bytes, with the
same arguments, the changes are written again. With `PATCHGATE_LONG=1` every step runs.

The folder's own name is replaced in files of text. The index is left out of the comparison, for it holds
inodes and times. What else depends on the place of the folder must not be repeated.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Files = Mapping[str, tuple[int, bytes]]
"""Mode and content of all below a folder, by path; a symlink's content is its target, a folder's is empty."""

T = TypeVar("T")
_MOST_FILES = 2000
_MOST_BYTES = 4 << 20
_OWN_NAME = b"\xff<the folder>\xff"
# Git writes the name of a folder into these; anywhere else it could be part of a hash.
_WITH_NAMES = {"config", "HEAD", "FETCH_HEAD", "main", "gitdir", ".git"}


@dataclass(frozen=True)
class _Change:
    files: Files
    removed: tuple[str, ...]
    answer: object


class TooMuchError(Exception):
    """The folder is too large to be kept, or holds what cannot be moved."""


_kept: dict[bytes, _Change] = {}


def repeat(folder: Path, step: tuple[object, ...], run: Callable[[], T]) -> T:
    """Run a step that changes only this folder, or write again what it did before.

    The caller refreshes each index that the step changes.

    Args:
        step: what the step depends on besides the files.
    """
    if os.environ.get("PATCHGATE_LONG"):
        return run()
    try:
        before = _read(folder)
    except (TooMuchError, RecursionError):
        return run()
    key = _key(before, step)
    if (known := _kept.get(key)) is not None:
        _write(folder, known)
        return known.answer  # type: ignore[return-value]
    answer = run()
    try:
        after = _read(folder)
    except (TooMuchError, RecursionError):
        return answer
    changed = {name: file for name, file in after.items() if before.get(name) != file}
    if str(folder) not in repr(answer):
        _kept[key] = _Change(changed, tuple(name for name in before if name not in after), answer)
    return answer


def _read(folder: Path) -> Files:
    """Read all that is below a folder.

    Raises:
        TooMuchError: it cannot be kept.
    """
    found: dict[str, tuple[int, bytes]] = {}
    own_name = os.fsencode(folder)
    size = 0
    for above, folders, names in os.walk(folder):
        for name in (*folders, *names):
            place = os.path.join(above, name)
            mode = os.lstat(place).st_mode
            if stat.S_ISLNK(mode):
                content = os.fsencode(os.readlink(place))
            elif stat.S_ISREG(mode):
                with open(place, "rb", buffering=0) as file:
                    content = file.read()
            elif stat.S_ISDIR(mode):
                content = b""
            else:
                raise TooMuchError
            if own_name in content:
                if name not in _WITH_NAMES or b"\0" in content:
                    raise TooMuchError
                content = content.replace(own_name, _OWN_NAME)
            size += len(content)
            found[os.path.relpath(place, folder)] = mode, content
            if len(found) > _MOST_FILES or size > _MOST_BYTES:
                raise TooMuchError
    return found


def _is_index(name: str, files: Files) -> bool:
    above, last = os.path.split(name)
    return last == "index" and os.path.join(above, "HEAD") in files


def _key(files: Files, step: tuple[object, ...]) -> bytes:
    made = hashlib.sha256(repr(step).encode("utf-8", "surrogateescape"))
    for name, (mode, content) in sorted(files.items()):
        if _is_index(name, files):
            continue
        made.update(f"{name!r} {mode} {len(content)}\0".encode())
        made.update(content)
    return made.digest()


def _write(folder: Path, change: _Change) -> None:
    own_name = os.fsencode(folder)
    for name in sorted(change.removed, reverse=True):
        place = os.path.join(folder, name)
        if os.path.isdir(place) and not os.path.islink(place):
            os.rmdir(place)
        else:
            os.unlink(place)
    for name, (mode, content) in sorted(change.files.items()):
        place = os.path.join(folder, name)
        if stat.S_ISDIR(mode):
            os.makedirs(place, exist_ok=True)
            os.chmod(place, stat.S_IMODE(mode))
            continue
        if os.path.lexists(place):
            os.unlink(place)
        if stat.S_ISLNK(mode):
            os.symlink(content.replace(_OWN_NAME, own_name), place)
            continue
        with open(place, "wb", buffering=0) as file:
            file.write(content.replace(_OWN_NAME, own_name))
        os.chmod(place, stat.S_IMODE(mode))
