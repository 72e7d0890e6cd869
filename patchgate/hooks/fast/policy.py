"""The compiled policies of the fast path: kept for the commits to come.

Decides which are kept, and how many. What a compiled policy holds is decided in `hooks.fast.suspicion`, what
it is bound to in `hooks.fast.files`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate import __version__
from patchgate.hooks.fast.files import (
    is_policy,
    is_policy_current,
    place_of,
    sealed_policy,
    stamp,
    tool,
)
from patchgate.storage.replace import write_atomically

if TYPE_CHECKING:
    from patchgate.policy.policy import Policy

MOST_KEPT = 32


def current(common_dir: str, key: str) -> bool:
    """Tell whether the policy is kept, whole, by this very patchgate."""
    return is_policy_current(common_dir, key)


def keep(common_dir: str, key: str, policy: Policy) -> bool:
    """Keep a policy compiled; false where nothing can be recognised under it, and none is kept then.

    The copy is there already: its folder is that of the policies.

    Raises:
        OSError: as the system gave it.
        ValueError: it cannot be written down.
    """
    from patchgate.hooks.fast.suspicion import suspicion_of

    place = Path(place_of(common_dir, __version__, key))
    suspicion = suspicion_of(policy)
    if suspicion is None or not is_policy(key):
        place.unlink(missing_ok=True)
        return False
    held = {field.name: getattr(suspicion, field.name) for field in fields(suspicion)}
    write_atomically(place, sealed_policy({**held, "tool": tool(), "stamp": stamp()}), mode=0o600)
    _make_room(place.parent)
    return True


def _make_room(folder: Path) -> None:
    """Drop the oldest, so that the folder never grows; another hook may be doing the same."""
    kept = [entry for entry in os.scandir(folder) if is_policy(entry.name)]
    for entry in sorted(kept, key=lambda each: each.stat().st_mtime_ns)[:-MOST_KEPT]:
        with suppress(OSError):
            os.unlink(entry.path)
