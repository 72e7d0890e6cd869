"""The transaction: files of a working tree, and its index, are written whole or not at all.

`landing` tells the order of steps; `journal` what is written down before; `survey` looks at what is there,
`site` changes it and shuts git out meanwhile; `rollback` is the way back, or tidies what is in force;
`recovery` is what a later process does. Public: `land`, `recover`, `left` and the values and errors below.
Whether a killed one has left anything, `repository.is_any_left` tells without loading this.

Decisions:

* **The journal comes first.** It names every temporary file before it exists, so that nothing is ever removed
  by its name alone. Price: one flush before the first write.
* **Contents change places, and what came out is looked at.** An editor that saved between the last look and
  the exchange gets its file back, and the landing is undone. Price: `renameat2`, and three renames where the
  system has none.
* **Until the commit everything can be undone; the commit is one rename** (journal to `landed`). After it the
  record stays until the ledger has its own, so that no patch lands unrecorded. Price: a later command may
  find a record of what is done, and finishes it.
* **A journal is acted on only in the tree that it was made for**, known by device and inode, and by a `.git`
  that leads to this repository; every name in it is held against the rules for what is written. A moved
  repository is recovered where it is. Price: in a copy the record has to be removed by hand.
"""

from __future__ import annotations

from patchgate.git.transaction.landing import Landing, land
from patchgate.git.transaction.places import Content, Write
from patchgate.git.transaction.recovery import Left, Recovered, left, recover
from patchgate.git.transaction.survey import (
    ConcurrentChangeError,
    DirtyWorkspaceError,
    WriteFailedError,
)

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
