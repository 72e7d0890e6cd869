"""Remember which content of a file structured edits were last checked on, for each worktree and path.

Line numbers of an edit that was checked point at other lines once the file has changed. A memory below the
git common directory, of one hour; what is damaged or missing is as if nothing was checked, and where it
cannot be written nothing is remembered. It lets nothing pass: it only refuses edits without an anchor.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass

from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository

KEPT_SECONDS = 3600
_MOST_FILES = 256
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Checked:
    """What was checked last: the digest of the file's content, and that of the edits."""

    content: str
    edits: str

    def is_stale_for(self, now: Checked, *, lands: bool) -> bool:
        """Tell whether the file has changed since; a check may be of other edits, made for what it is now."""
        return self.content != now.content and (lands or self.edits == now.edits)


def last_checked(repository: Repository, path: RepoPath, now: float) -> Checked | None:
    """Find what edits of a file were checked on within the hour; None where nothing is known."""
    try:
        with open(_place(repository, path), "rb") as stream:
            found = json.loads(stream.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("at"), int | float):
        return None
    content, edits = found.get("content"), found.get("edits")
    if now - found["at"] > KEPT_SECONDS or not isinstance(content, str) or not isinstance(edits, str):
        return None
    return Checked(content, edits)


def remember(repository: Repository, path: RepoPath, checked: Checked, now: float) -> None:
    """Keep what edits of a file were checked on."""
    from pathlib import Path

    from patchgate.storage.replace import write_atomically

    place = Path(_place(repository, path))
    body = json.dumps({"at": now, "content": checked.content, "edits": checked.edits}).encode("ascii")
    try:
        os.makedirs(place.parent, mode=0o700, exist_ok=True)
        entries = sorted(os.scandir(place.parent), key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: max(0, len(entries) - _MOST_FILES + 1)]:
            os.unlink(entry.path)
        write_atomically(place, body, mode=0o600)
    except OSError:
        return


def forget(repository: Repository, path: RepoPath) -> None:
    """Drop what is known of a file: a patch of it landed."""
    try:
        os.unlink(_place(repository, path))
    except OSError:
        return


def digest_of(raw: bytes) -> str:
    """Give the digest by which contents and edits are compared."""
    return hashlib.sha256(raw).hexdigest()


def _place(repository: Repository, path: RepoPath) -> str:
    about = os.fsencode(repository.work_tree or "") + b"\0" + path.raw
    return os.path.join(repository.common_dir, "patchgate", "checked-edits", digest_of(about))
