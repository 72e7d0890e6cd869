"""What the full tier does for the next commit: it keeps ready what the fast path needs.

Decides when the copy and the compiled policy are made anew, and where: only where a hook of ours runs, for
nobody else would read them. It changes no verdict and stops nothing: what cannot be written costs time alone.

Choice: hooks that many repositories share (a global core.hooksPath) were installed in one of them, so in the
others nothing of the fast path is there. The first commit that is judged in full makes it, after asking git
whether the hook that it runs is ours. Price: two short git children, in that one commit; and in every commit
of a repository whose own script calls patchgate.

The compiled policies of the fast path: kept for the commits to come.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate import __version__
from patchgate.errors import PatchgateError
from patchgate.git.hook_files import displaced_by, look_at
from patchgate.git.repository import Repository
from patchgate.hooks.fast.copy import is_current, put_copy
from patchgate.hooks.fast.files import (
    ACTIVE,
    is_policy,
    is_policy_current,
    key_of,
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


_COSTS_TIME = (OSError, ValueError, PatchgateError)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was made anew: the copy, the policy of HEAD; and a warning where that could not be done."""

    has_copy: bool = False
    has_policy: bool = False
    warning: str | None = None


def renew(repository: Repository, key: str, policy: Policy) -> None:
    """Keep ready what the fast path needs to recognise the next commit under a policy; never raises.

    Called after a verdict, by a hook of git's that is run by git itself.

    Args:
        key: the policy's, from `key_of` of its root folder.
        policy: the one that judges what is committed on that folder.
    """
    common_dir = repository.common_dir
    if repository.is_receiving:
        return
    try:
        if not is_current(common_dir) and not (_is_used(repository) and _is_put(common_dir)):
            return
        if not current(common_dir, key):
            keep(common_dir, key, policy)
    except _COSTS_TIME:
        return


def renew_at_head(repository: Repository) -> None:
    """Do as `renew` for the policy of HEAD, where the caller has not read it; never raises."""
    if repository.is_receiving:
        return
    try:
        found = _at_head(repository)
    except _COSTS_TIME:
        return
    if found is not None:
        renew(repository, *found)


def put_copy_here(repository: Repository) -> Prepared:
    """Make the copy, where it is not what this patchgate makes; twice is like once."""
    if is_current(repository.common_dir):
        return Prepared()
    warning = put_copy(repository.common_dir, sys.executable)
    return Prepared(warning is None, warning=warning)


def prepare(repository: Repository) -> Prepared:
    """Make the copy, and compile the policy of HEAD, where they are not what this patchgate makes."""
    made = put_copy_here(repository)
    if made.warning is not None:
        return made
    try:
        found = _at_head(repository)
        has_policy = found is not None and not current(repository.common_dir, found[0])
        if found is not None and has_policy:
            has_policy = keep(repository.common_dir, *found)
    except (OSError, ValueError):
        return Prepared(made.has_copy, warning="the policy of HEAD could not be compiled for the fast path")
    except PatchgateError as error:
        return Prepared(made.has_copy, warning=error.message)
    return Prepared(made.has_copy, has_policy)


def _is_put(common_dir: str) -> bool:
    return put_copy(common_dir, sys.executable) is None


def _is_used(repository: Repository) -> bool:
    """Tell whether a hook of ours reads this: it did before, or git runs one here."""
    if os.path.lexists(place_of(repository.common_dir, ACTIVE)):
        return True
    from patchgate.hooks.hooks_folder import hooks_folder

    folder = hooks_folder(repository, repository.environment).path
    hook = look_at(os.path.join(folder, "pre-commit"))
    return hook.is_ours or displaced_by(hook) is not None


def _at_head(repository: Repository) -> tuple[str, Policy] | None:
    """Read the policy that judges what is committed on HEAD, and its key; None where none can be used."""
    from patchgate.git.objects import Objects
    from patchgate.policy.policies import Policies, built_in

    with Objects(repository) as objects:
        header = objects.header("HEAD^{tree}")
        if header is None:
            return None
        policies = Policies(objects)
        found = policies.at(policies.key(header.oid))
        if found.fault is not None:
            return None
        return key_of(objects.tree(header.oid)), found.policy or built_in()
