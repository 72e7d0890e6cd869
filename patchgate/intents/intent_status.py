"""The status of an intent at one moment, and the result of an action on one.

Also whether hooks check commits of a worktree against its intents: from the hook files that git would find,
without starting them. `doctor` reports other problems of hooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from patchgate.errors import PatchgateError
from patchgate.git.active_hooks import CONFIG_HOOKS_SINCE, GitEnvironment, current_worktree_hooks
from patchgate.git.hook_managers import HookFile, displaced_hook
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.intents.intent import Intent, Moment
from patchgate.policy.file_kinds import CONTROLS_BY_NAME, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import TreePolicies
from patchgate.values import dataclass

_EVENTS = ("commit-msg", "reference-transaction")
_HAND_ON = frozenset({"pre-commit", "prek"})
_INSTALL = "commits here are not checked against it: git patchgate install"


def hooks_missing(repository: Repository, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Warn if commits of this worktree are not checked: a hook is missing, or does not run.

    Args:
        environ: the environment of the caller, which may contain git's config.
    """
    around = GitEnvironment(repository, environ)
    try:
        here = current_worktree_hooks(around, _EVENTS)
        is_off = bool(here.events_off) and around.version() >= CONFIG_HOOKS_SINCE
    except PatchgateError:
        return (_INSTALL,)
    return () if all(map(_runs, here.files.values())) and not is_off else (_INSTALL,)


def _runs(file: HookFile) -> bool:
    """Whether our hook runs there; pre-commit and prek run what they moved to NAME.legacy."""
    ours = file if file.is_ours else displaced_hook(file)
    if ours is None or not (file.is_executable and ours.is_executable) or ours.is_orphan:
        return False
    return file.is_ours or (file.writer in _HAND_ON and ours.path.endswith(".legacy"))


class IntentStatus(StrEnum):
    """The status of an intent: `expired` by its time, `dead` if its owner has ended and its lease is over."""

    ACTIVE = "active"
    QUEUED = "queued"
    EXPIRED = "expired"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class IntentInfo:
    """One intent with its status; `until` is when it expires, in seconds since the epoch.

    `is_gone`: its worktree is gone; `is_foreign`: since this repository was moved or copied.
    `controls` are the control files, which every intent forbids. `budget` says what is left of each limit.
    """

    intent: Intent
    status: IntentStatus
    until: float
    seconds_left: float
    is_owner_running: bool
    is_in_current_worktree: bool
    is_gone: bool
    is_foreign: bool
    controls: tuple[RepoPath, ...] = ()
    budget: tuple[str, ...] = ()


def control_entries(repository: Repository) -> tuple[RepoPath, ...]:
    """Return the control files of a repository as entries; only those known by name if it is unreadable."""
    try:
        with Objects(repository) as objects:
            head = objects.header("HEAD^{tree}")
            tree = objects.empty_tree if head is None else head.oid
            policies = TreePolicies(objects)
            by_content = (
                (PYPROJECT_FILE, policies.at(policies.key(tree)).from_pyproject),
                (PRE_COMMIT_FILE, policies.names_patchgate(tree)),
            )
    except PatchgateError:
        return CONTROLS_BY_NAME
    return (*CONTROLS_BY_NAME, *(path for path, is_control in by_content if is_control))


@dataclass(frozen=True, slots=True)
class Caller:
    """The environment of the caller, and the time."""

    environ: Mapping[str, str]
    now: Moment


class IntentAction(StrEnum):
    """What was done; `refused` changed nothing, but queued intents may have become active."""

    DECLARED = "declared"
    QUEUED = "queued"
    RENEWED = "renewed"
    CLEARED = "cleared"
    RECOVERED = "recovered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Conflict:
    """An intent that blocks another one, and the entries of the other one in question."""

    info: IntentInfo
    entries: tuple[RepoPath, ...]

    @property
    def intent(self) -> Intent:
        """The blocking intent."""
        return self.info.intent


@dataclass(frozen=True, slots=True)
class IntentOutcome:
    """What an action did, and its intent (as it is now; a cleared one as it was; None: it was damaged).

    `reason` and `hint` say why it was refused, and the next step. `promoted` are intents that became
    active. All sentences are safe to print.
    """

    action: IntentAction
    info: IntentInfo | None
    conflicts: tuple[Conflict, ...] = ()
    promoted: tuple[Intent, ...] = ()
    warnings: tuple[str, ...] = ()
    reason: str | None = None
    hint: str | None = None

    @property
    def intent(self) -> Intent | None:
        """The intent of the action."""
        return None if self.info is None else self.info.intent

    @property
    def exit_code(self) -> int:
        """0 if it was done, 1 if it was refused."""
        return 1 if self.action is IntentAction.REFUSED else 0
