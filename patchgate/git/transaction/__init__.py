"""Write files of a working tree, and its index, completely or not at all.

`apply_writes` has the order of steps, `preflight` checks the files and plans, `journal` records the plan, and
`workspace` changes the files while git is locked out. `rollback` undoes the writes, or cleans up after them.
`recovery` does both for a process that was killed; `repository.has_pending_transactions` is its cheap test.
"""

from __future__ import annotations

from patchgate.git.transaction.apply_writes import WrittenFiles, write_files
from patchgate.git.transaction.entries import FileContent, Write
from patchgate.git.transaction.preflight import (
    ConcurrentChangeError,
    DirtyWorkspaceError,
    WriteFailedError,
)
from patchgate.git.transaction.recovery import (
    PendingTransaction,
    RecoveredTransaction,
    pending_transactions,
    recover,
)

__all__ = [
    "ConcurrentChangeError",
    "DirtyWorkspaceError",
    "FileContent",
    "PendingTransaction",
    "RecoveredTransaction",
    "Write",
    "WriteFailedError",
    "WrittenFiles",
    "pending_transactions",
    "recover",
    "write_files",
]
