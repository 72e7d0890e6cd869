"""Whether commits of this worktree are held to an intent at all: whether the hooks are in force here.

Decides by what lies at the hooks' places, as git would find it; starts none of them. What else is wrong with
hooks, `doctor` tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.errors import PatchgateError
from patchgate.git.hook_files import HookFile, displaced_by
from patchgate.git.hooks_in_force import CONFIG_HOOKS_SINCE, Surroundings, worktree_here
from patchgate.git.repository import Repository

_EVENTS = ("commit-msg", "reference-transaction")
_HAND_ON = frozenset({"pre-commit", "prek"})
_INSTALL = "commits here are not held to it: git patchgate install"


def hooks_missing(repository: Repository, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Warn where a commit of this worktree would pass without its intent: a hook is missing, or does not run.

    Args:
        environ: the caller's: git's config may come from there.
    """
    around = Surroundings(repository, environ)
    try:
        here = worktree_here(around, _EVENTS)
        is_off = bool(here.events_off) and around.version() >= CONFIG_HOOKS_SINCE
    except PatchgateError:
        return (_INSTALL,)
    return () if all(map(_runs, here.files.values())) and not is_off else (_INSTALL,)


def _runs(file: HookFile) -> bool:
    """Tell whether ours runs there; pre-commit and prek run what they moved to NAME.legacy."""
    ours = file if file.is_ours else displaced_by(file)
    if ours is None or not (file.is_executable and ours.is_executable) or ours.is_orphan:
        return False
    return file.is_ours or (file.writer in _HAND_ON and ours.path.endswith(".legacy"))
