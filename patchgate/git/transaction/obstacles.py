"""Why a patch did not land, told apart by what is in the working tree now.

Decides the sentences and the next steps. It does not decide which of them happened.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable, quote_path

_SHOWN = 5
_NEXT = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "raise the limit of a file's size (ulimit -f)",
    errno.EACCES: "make that place writable",
    errno.EPERM: "make that place writable",
    errno.EROFS: "make that file system writable",
}


class ConcurrentChangeError(UndecidedError):
    """Something was changed since it was judged; nothing was written, or all of it was taken back."""

    def __init__(self, paths: Sequence[RepoPath]) -> None:
        names = listed([path.quoted for path in paths])
        super().__init__(
            f"changed since the patch was judged: {names}; nothing was written",
            "look at what changed there, then apply the patch again",
        )
        self.paths = tuple(paths)


class WriteFailedError(UndecidedError):
    """A write failed; everything is as it was, or, while recovering, what was left waits still."""

    def __init__(self, error: OSError, *, recovering: bool = False) -> None:
        then = "run git patchgate recover again" if recovering else "apply the patch again"
        state = "what an interrupted apply left is still there" if recovering else "everything is as it was"
        what = _NEXT.get(error.errno or 0, "put that right")
        super().__init__(f"{said(error)}; {state}", f"{what}, then {then}")


class DirtyWorkspaceError(UndecidedError):
    """The way back is blocked at `places`; `states` tells of each what is where, and the journal stays."""

    def __init__(self, reason: str, places: Sequence[RepoPath], states: Sequence[str] = ()) -> None:
        states = states or [path.quoted for path in places]
        told = f": {listed(states)}" if states else ""
        super().__init__(
            f"{reason}{told}",
            "put these right, then run git patchgate recover; with --keep it leaves such files as they are",
        )
        self.places = tuple(places)
        self.states = tuple(states)


def said(error: OSError) -> str:
    """Say what the system said, and about which file."""
    text = error.strerror or os.strerror(error.errno or 0)
    if error.filename is None:
        return f"a write failed ({printable(text)})"
    name = error.filename if isinstance(error.filename, bytes) else os.fsencode(str(error.filename))
    return f"cannot write {quote_path(name)}: {printable(text)}"


def listed(names: Sequence[str]) -> str:
    """List names in a sentence, the first few of many."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
