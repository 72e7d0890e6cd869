"""The transaction: files of a working tree, and its index, are written whole or not at all.

`landing` tells the order of steps; `journal` what is written down before; `survey` looks at what is there,
`site` changes it and shuts git out meanwhile; `rollback` is the way back, or tidies what is in force;
`recovery` is what a later process does. Public: `land`, `recover`, `left` and the values and errors below.
Whether a killed one has left anything, `repository.is_any_left` tells without loading this.
"""

from __future__ import annotations

from patchgate.git.transaction.apply_writes import Landing, land
from patchgate.git.transaction.entries import Content, Write
from patchgate.git.transaction.preflight import (
    ConcurrentChangeError,
    DirtyWorkspaceError,
    WriteFailedError,
)
from patchgate.git.transaction.recovery import Left, Recovered, left, recover

__all__ = [
    "ConcurrentChangeError",
    "Content",
    "DirtyWorkspaceError",
    "Landing",
    "Left",
    "Recovered",
    "Write",
    "WriteFailedError",
    "land",
    "left",
    "recover",
]
