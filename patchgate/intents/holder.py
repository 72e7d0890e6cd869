"""Who holds an intent: the process that called us, however git stands in between.

Decides which process that is. Whether it still runs, the ledger's wing tells.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from patchgate.errors import PatchgateError, UsageError
from patchgate.git.quoting import printable
from patchgate.intents.intent import Holder
from patchgate.intents.intents import host
from patchgate.process import run
from patchgate.storage.owner import Owner, parent_of

OWNER_VARIABLE = "PATCHGATE_OWNER"
_MOST_ANCESTORS = 64


def holder_of(environ: Mapping[str, str]) -> Holder | None:
    """Name the process that owns what is declared now: that of PATCHGATE_OWNER, else the nearest caller.

    `git patchgate` has git for a parent, which ends with us: the first ancestor that is no git counts. None
    where the system shows none (a parent in another pid namespace); the lease alone counts then.

    Raises:
        UsageError: PATCHGATE_OWNER names no process that runs.
    """
    named = environ.get(OWNER_VARIABLE, "")
    if named:
        owner = Owner.of(int(named)) if named.isascii() and named.isdigit() and len(named) < 11 else None
        if owner is None:
            raise UsageError(
                f"{OWNER_VARIABLE} is {printable(named, 40)}, and no such process runs",
                f"name the process that does the work, or unset {OWNER_VARIABLE}",
            )
    else:
        owner = Owner.of(_caller(environ))
    return None if owner is None else Holder(host(), owner.pid, owner.boot_id, owner.started)


def _caller(environ: Mapping[str, str]) -> int:
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        above = parent_of(pid) or _asked(pid, environ)
        if above is None or above[1] != "git":
            return pid
        pid = above[0]
    return pid


def _asked(pid: int, environ: Mapping[str, str]) -> tuple[int, str] | None:
    """Ask `ps` (POSIX) for a process's parent and program, where there is no /proc."""
    try:
        done = run(["ps", "-o", "ppid=,comm=", "-p", str(pid)], cwd=None, env=dict(environ))
    except PatchgateError:
        return None
    parent, _, name = done.out.decode("utf-8", "replace").strip().partition(" ")
    return (int(parent), os.path.basename(name.strip())) if parent.isdigit() else None
