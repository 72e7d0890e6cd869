"""Take the hooks out: what was there before is there again.

Decides in which folders ours may be, and what else goes with them. Reads no config of ours and imports
nothing that judges, for it has to work when all else is broken.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from patchgate.errors import UsageError
from patchgate.git.hooks_in_force import LOCAL_EVENTS, SERVER_EVENTS
from patchgate.git.repository import Repository
from patchgate.hooks.fast.copy import drop_copy
from patchgate.hooks.hook_places import Removed, take_out
from patchgate.hooks.hooks_folder import HooksFolder, hooks_folder, lock_folder, own_folder
from patchgate.hooks.trusted_ref import drop_every_pending, forget


@dataclass(frozen=True, slots=True)
class Uninstalled:
    """What was taken out, for each folder where something of ours was; and the ref that was trusted."""

    folders: tuple[tuple[HooksFolder, tuple[Removed, ...]], ...]
    trust_ref: str | None = None


def uninstall_hooks(repository: Repository, environ: Mapping[str, str], *, is_global: bool) -> Uninstalled:
    """Take every hook of ours out of the folder in force and out of git's own; what was there comes back.

    Ledger, receipts and what was settled stay.

    Raises:
        UsageError: the only hooks of ours are in a folder that every repository shares, and it was not meant.
        UndecidedError: the system refused, or an install is at work.
    """
    in_force = hooks_folder(repository, environ)
    own = own_folder(repository)
    folders = [own]
    if os.path.realpath(in_force.path) != os.path.realpath(own.path):
        folders.insert(0, in_force)
    found = []
    for folder in folders:
        if folder.is_shared and not is_global:
            continue
        if not folder.path.is_dir():
            continue
        with lock_folder(repository, folder):
            removed = tuple(
                gone
                for name in (*LOCAL_EVENTS, *SERVER_EVENTS)
                if (gone := take_out(folder.path, name)) is not None
            )
        if removed:
            found.append((folder, removed))
    if not found and in_force.is_shared and not is_global:
        raise UsageError(
            f"no hook of patchgate is in this repository; git runs those in {in_force.name}, for all of them",
            "git patchgate uninstall --global",
        )
    drop_every_pending(repository)
    drop_copy(repository.common_dir)
    return Uninstalled(tuple(found), forget(repository))


def record_uninstall(repository: Repository, done: Uninstalled) -> tuple[str, ...]:
    """Write into the ledger that the hooks are gone; return warnings. It comes last: it may be broken."""
    from patchgate.ledger.ledger import Ledger

    ledger = Ledger(repository.common_dir)
    warnings = [
        ledger.record("uninstalled", {"folder": folder.name, "hooks": [hook.name for hook in removed]})
        for folder, removed in done.folders
    ]
    return tuple(warning for warning in warnings if warning)
