"""Intents and commits: which intents bind what is committed in a worktree, and what is said of it.

Those bind whose time is not over. One that waits allows only what no other has; files that were so before a
declaration are not held against it, nor choose it. A circumstance: no part of a verdict's id. Where there is
no intent at all that is two looks at the disk, and nothing is imported for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchgate.errors import UndecidedError
from patchgate.policy.policy import Policy, Profile
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome

if TYPE_CHECKING:
    from patchgate.git.model import Change, FileChange
    from patchgate.git.objects import Objects
    from patchgate.git.path import RepoPath
    from patchgate.git.repository import Repository
    from patchgate.git.tree_view import TreeView
    from patchgate.intents.intent import Intent, Moment, Scope
    from patchgate.policy.component import Component, Components

MARKER = "patchgate-intents"
"""As in `intents.intent_form`, which is not imported to look for it."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Here:
    """The intents of one worktree at a moment, and those that have files elsewhere.

    `over` are those whose time is over. `others` have files in other worktrees. `fault` says why those of
    this worktree cannot be read, `unread` why the others cannot.
    """

    now: Moment
    active: tuple[Intent, ...] = ()
    queued: tuple[Intent, ...] = ()
    over: tuple[Intent, ...] = ()
    others: tuple[Intent, ...] = ()
    fault: UndecidedError | None = None
    unread: UndecidedError | None = None

    @property
    def own(self) -> tuple[Intent, ...]:
        """Those of this worktree that bind what is committed here."""
        return (*self.active, *self.queued)

    @property
    def has_any(self) -> bool:
        """Tell whether this worktree has an intent, in force or not, or may have one."""
        return self.binds or bool(self.over)

    @property
    def binds(self) -> bool:
        """Tell whether what is committed here is held against an intent, or may have to be."""
        return bool(self.own) or self.fault is not None

    def taker(self, intent: Intent, path: RepoPath) -> Intent | None:
        """Find who has a file that an intent which waits would have, too."""
        from patchgate.intents.intent import State
        from patchgate.intents.intents import who_has

        if intent.state is not State.QUEUED:
            return None
        return who_has(path, (*self.active, *self.others), but=intent.id)


def active_here(repository: Repository, now: Moment | None = None) -> Here | None:
    """Find the intents that matter in this worktree, its own and those of others; None where there is none.

    Args:
        now: the time; None: this moment.
    """
    is_marked = os.path.lexists(os.path.join(repository.git_dir, MARKER))
    if not (is_marked or _are_stored(repository)):
        return None
    from patchgate.intents.intent import State
    from patchgate.intents.intents import Intents, holders, present

    now = now or present()
    try:
        found = Intents(repository.common_dir).of(repository.git_dir) if is_marked else ()
    except UndecidedError as error:
        return Here(now, fault=error)
    over = tuple(each for each in found if each.is_over(now))
    active = tuple(each for each in found if each.state is State.ACTIVE and each not in over)
    queued = tuple(each for each in found if each.state is State.QUEUED and each not in over)
    names = {each.id for each in found}
    try:
        others = tuple(each for each in holders(repository, now) if each.id not in names)
    except UndecidedError as error:
        return Here(now, active, queued, over, unread=error)
    return Here(now, active, queued, over, others)


def _are_stored(repository: Repository) -> bool:
    """Tell whether any intent is stored, of whichever worktree; also where that cannot be seen."""
    try:
        names = os.listdir(os.path.join(repository.common_dir, "patchgate", "intents"))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(name.endswith(".json") for name in names)


def touch(repository: Repository, here: Here | None) -> None:
    """Renew the leases of the intents of this worktree: something was just done under them."""
    if here is None or not here.own or repository.is_receiving:
        return
    from patchgate.intents.intents import Intents

    intents = Intents(repository.common_dir)
    for intent in here.own:
        intents.touch(intent, here.now)


def profile_under(here: Here | None) -> Profile:
    """Say by which profile the commits of this worktree are judged."""
    return Profile.AGENT if here is not None and here.binds else Profile.COMMIT


def unchanged_dirt(intent: Intent, files: Iterable[FileChange]) -> frozenset[RepoPath]:
    """Name the files of a change that were just so before the intent was declared."""
    return frozenset(
        file.path
        for file in files
        if intent.is_as_before(file.path, None if file.new is None else file.new.oid)
    )


def binding_of(here: Here, files: Sequence[FileChange], copied: Iterable[RepoPath] = ()) -> Intent | None:
    """Choose the intent of a worktree that binds a change: the newest that allows it all, or else the newest.

    What was just so before an intent was declared, that one need not allow.

    Args:
        here: the intents of one worktree.
        files: what counts as touched.
        copied: the sources of copies, which do too.
    """
    if not here.own:
        return None
    from patchgate.intents.intent import binding
    from patchgate.policy.component import BASELINES

    # They go with the files of their components.
    baselines = {file.path for file in files if file.path.raw.startswith(BASELINES)}

    def touched(intent: Intent) -> set[RepoPath]:
        return {*(file.path for file in files), *copied} - unchanged_dirt(intent, files) - baselines

    def may_touch(intent: Intent, path: RepoPath) -> bool:
        return intent.scope.covers(path) and here.taker(intent, path) is None

    return binding(here.own, touched, may_touch)


def with_scope(
    verdict: ChangeVerdict,
    policy: Policy,
    profile: Profile,
    here: Here,
    objects: Objects,
    controls: Set[RepoPath] = frozenset(),
    *,
    copied: Sequence[RepoPath] = (),
) -> ChangeVerdict:
    """Hold a pending change against the intents of this worktree, and tell of those that bind nothing.

    Args:
        objects: reads the base of the change.
        controls: the control files of the change.
        copied: the sources of copies, which count as touched.
    """
    from patchgate.intents.scope import expired, queued

    beside = [*(expired(each, here.now) for each in here.over), *(queued(each) for each in here.queued)]
    intent = binding_of(here, verdict.change.files, copied)
    files = verdict.change.files
    return held(
        verdict, policy, profile, here, intent, files, controls, objects, copied=copied, beside=beside
    )


def held(
    verdict: ChangeVerdict,
    policy: Policy,
    profile: Profile,
    here: Here,
    intent: Intent | None,
    files: Sequence[FileChange],
    controls: Set[RepoPath],
    objects: Objects,
    *,
    copied: Sequence[RepoPath] = (),
    ids: Sequence[str] | None = None,
    beside: Sequence[Finding] = (),
) -> ChangeVerdict:
    """Hold a change against the intent that binds it, as a circumstance of its verdict.

    Args:
        files: what the change touches.
        controls: the control files among them.
        objects: reads the base of the change.
        copied: the sources of copies, which count as touched.
        ids: what the message's trailers name; None: nothing is asked of them.
        beside: what else is said of the intents of this worktree.
    """
    from patchgate.intents.scope import GATE, check_scope, examine, trailer

    # Of one that waits nobody knows what is free where the others cannot be read.
    waits = intent is not None and intent in here.queued
    fault = here.fault or (here.unread if waits else None)
    if fault is not None:
        return _joined(verdict, (GateOutcome(GATE, Outcome.UNDECIDED, fault.sentence),), ())
    touched = tuple(dict.fromkeys([*(file.path for file in files), *copied]))
    dirt = unchanged_dirt(intent, files) if intent is not None else frozenset()

    def findings() -> Iterator[Finding]:
        if intent is not None:
            takers = {path: taker.id for path in touched if (taker := here.taker(intent, path)) is not None}
            along = _along(policy, intent, verdict.change, touched, objects)
            check = check_scope(intent.scope, touched, controls, dirt, takers, along)
            yield from examine(intent, check, verdict.source.kind)
            yield from () if ids is None else trailer(intent, ids)
        elif touched:
            yield from _reserved(here, policy, profile, touched)
        yield from beside

    outcome, found = _judged(verdict, policy, profile, findings)
    if intent is not None and dirt and outcome.outcome is Outcome.PASS:
        outcome = replace(outcome, reason=_external(intent, sorted(dirt)))
    return _joined(verdict, (outcome,), found)


def _along(
    policy: Policy, intent: Intent, change: Change, touched: Sequence[RepoPath], objects: Objects
) -> frozenset[RepoPath]:
    """Find the baselines of the components that an intent works on; most policies declare no component."""
    if not policy.config.components:
        return frozenset()
    from patchgate.git.tree_view import TreeView

    view = TreeView(objects, change.base, {file.path.raw: file.new for file in change.files})
    return baselines_in_scope(intent.scope, policy.components, touched, view)


def baselines_in_scope(
    scope: Scope, components: Components, touched: Iterable[RepoPath], view: TreeView
) -> frozenset[RepoPath]:
    """Name the baselines among some paths whose components the work may touch.

    Args:
        scope: what was declared.
        components: those of the policy.
        touched: what the change touches.
        view: the tree that the change leaves.

    Raises:
        UndecidedError: an object is missing.
    """
    from patchgate.policy.component import BASELINES

    # Most changes touch none, and then nothing is read.
    near = components.near(path for path in touched if path.raw.startswith(BASELINES))
    return frozenset(
        path
        for name, paths in near.items()
        for path in paths
        if view.entry(path.raw) is not None and _works_on(scope, components[name], view)
    )


def _works_on(scope: Scope, component: Component, view: TreeView) -> bool:
    """Tell whether a scope allows a file of a component: one that it names, or one that is in the tree."""
    from patchgate.intents.intent import may_be_many

    entries = (*scope.allowed, *scope.related)
    if any(component.role(entry) is not None for entry in entries):
        return True
    if not any(may_be_many(entry) for entry in entries):
        return False
    return any(
        component.role(path) is not None and scope.covers(path)
        for folder in component.folders
        for path in view.below(folder)
    )


def _reserved(here: Here, policy: Policy, profile: Profile, touched: Sequence[RepoPath]) -> Iterator[Finding]:
    """Find what is changed without an intent, and declared by one of another worktree.

    Raises:
        UndecidedError: that cannot be known, and would refuse the change.
    """
    from patchgate.intents.intents import who_has
    from patchgate.intents.scope import reserved, unread
    from patchgate.report.rules import Level

    level = policy.level("intent-reserved", profile)
    if level is None:
        return
    if here.unread is not None:
        if level is Level.ERROR:
            raise UndecidedError(here.unread.sentence)
        yield unread(here.unread.message)
    found = [(path, holder) for path in touched if (holder := who_has(path, here.others)) is not None]
    yield from reserved(found, here.now, _written)


def _written(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "a time that no clock shows"


def _judged(
    verdict: ChangeVerdict, policy: Policy, profile: Profile, findings: Callable[[], Iterable[Finding]]
) -> tuple[GateOutcome, tuple[Finding, ...]]:
    from patchgate.check.case import Case
    from patchgate.check.gate import Gate, judge
    from patchgate.intents.scope import GATE

    gate = Gate(GATE, lambda case: findings(), lambda case: True)
    (outcome,), found = judge(Case(verdict.change, policy, profile), (gate,))
    return outcome, found


def _joined(
    verdict: ChangeVerdict, outcomes: Sequence[GateOutcome], findings: Sequence[Finding]
) -> ChangeVerdict:
    return replace(
        verdict,
        circumstances=(*verdict.circumstances, *outcomes),
        findings=(*verdict.findings, *findings),
    )


def _external(intent: Intent, dirt: Sequence[RepoPath]) -> str:
    """Name what is not blamed on an intent, for it was so before."""
    named = ", ".join(path.quoted for path in dirt[:_NAMED])
    more = f" and {len(dirt) - _NAMED} more" if len(dirt) > _NAMED else ""
    return f"not blamed on {intent.id}, for it was so before: {named}{more}"


@dataclass(frozen=True, slots=True)
class IntentWork:
    """The work that the intents of a worktree declare."""

    here: Here

    @property
    def profile(self) -> Profile:
        """The profile of agents, where an intent binds."""
        return profile_under(self.here)

    def hold(
        self,
        verdict: ChangeVerdict,
        policy: Policy,
        profile: Profile,
        objects: Objects,
        controls: Set[RepoPath],
        copied: Sequence[RepoPath] = (),
    ) -> ChangeVerdict:
        """Check a pending change against the intents, as `with_scope` does."""
        return with_scope(verdict, policy, profile, self.here, objects, controls, copied=copied)


def work_here(repository: Repository) -> IntentWork | None:
    """Find the intents of this worktree, and renew their leases; None where there is none."""
    here = active_here(repository)
    touch(repository, here)
    return None if here is None else IntentWork(here)
