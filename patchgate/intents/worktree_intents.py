"""The intents that bind what is committed in a worktree, and the check of a change against them.

Intents that have not expired bind. A queued one allows only files that no other has. Files that were dirty
before a declaration are not attributed to it. Findings of intents are not part of a verdict's id. Without
any intent, this costs two lookups on the disk and no import.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING

from patchgate.errors import UndecidedError
from patchgate.git.quoting import first_of
from patchgate.policy.policy import Policy, Profile
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.git.objects import Objects
    from patchgate.git.path import RepoPath
    from patchgate.git.repository import Repository
    from patchgate.git.tree_view import TreeView
    from patchgate.intents.intent import Intent, IntentScope, Moment
    from patchgate.policy.component import Component, Components

MARKER = "patchgate-intents"
"""Also in `intents.intent_file`, which is not imported to search for it."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class WorktreeIntents:
    """The intents of one worktree at a moment, and those of other worktrees that have files.

    `over` are expired. `others` have files in other worktrees. `limited` are all that have a budget, expired
    ones too. `fault` is why the intents of this worktree cannot be read, `unreadable` why the others cannot.
    """

    now: Moment
    active: tuple[Intent, ...] = ()
    queued: tuple[Intent, ...] = ()
    over: tuple[Intent, ...] = ()
    others: tuple[Intent, ...] = ()
    limited: tuple[Intent, ...] = ()
    fault: UndecidedError | None = None
    unreadable: UndecidedError | None = None

    @property
    def own(self) -> tuple[Intent, ...]:
        """The intents of this worktree that bind its commits."""
        return (*self.active, *self.queued)

    @property
    def has_any(self) -> bool:
        """Whether this worktree has an intent, expired or not, or may have one."""
        return self.binds or bool(self.over)

    @property
    def counts_lines(self) -> bool:
        """Whether an intent limits the lines that its work adds."""
        return any(each.budget.max_added_lines is not None for each in self.own)

    @property
    def binds(self) -> bool:
        """Whether an intent binds the commits of this worktree, or may."""
        return bool(self.own) or self.fault is not None

    def taker(self, intent: Intent, path: RepoPath) -> Intent | None:
        """Find the intent that has a file of a queued intent."""
        from patchgate.intents.intent import State
        from patchgate.intents.stored_intents import find_owner

        if intent.state is not State.QUEUED:
            return None
        return find_owner(path, (*self.active, *self.others), but=intent.id)

    def choose_binding_intent(
        self, files: Sequence[FileChange], copied: Iterable[RepoPath] = ()
    ) -> Intent | None:
        """Choose the intent that binds a change: the newest that allows all of it, or else the newest.

        Files that were already so when an intent was declared need not be allowed.

        Args:
            files: the touched files.
            copied: the sources of copies, which are touched too.
        """
        if not self.own:
            return None
        from patchgate.intents.intent import choose_binding_intent
        from patchgate.policy.component import BASELINES

        # Baselines belong to the files of their components.
        baselines = {file.path for file in files if file.path.raw.startswith(BASELINES)}

        def touched(intent: Intent) -> set[RepoPath]:
            return {*(file.path for file in files), *copied} - intent.unchanged_dirt(files) - baselines

        def may_touch(intent: Intent, path: RepoPath) -> bool:
            return intent.scope.covers(path) and self.taker(intent, path) is None

        return choose_binding_intent(self.own, touched, may_touch)

    def check(
        self,
        touched: TouchedFiles,
        intent: Intent | None,
        *,
        ids: Sequence[str] | None = None,
        beside: Sequence[Finding] = (),
    ) -> ChangeVerdict:
        """Check a change against the intent that binds it; the result does not change the verdict id.

        Args:
            ids: the ids in the trailers of the message; None: trailers are not checked.
            beside: other findings about the intents of this worktree.
        """
        from patchgate.intents.scope import GATE, check_scope, scope_findings, trailer_findings

        # If the others cannot be read, it is unknown which files a queued intent may touch.
        waits = intent is not None and intent in self.queued
        fault = self.fault or (self.unreadable if waits else None)
        if fault is not None:
            return touched.joined(GateOutcome(GATE, Outcome.UNDECIDED, fault.sentence))
        dirt: frozenset[RepoPath] = intent.unchanged_dirt(touched.files) if intent else frozenset()

        def findings() -> Iterator[Finding]:
            paths = touched.paths
            if intent is not None:
                takers = {path: taker.id for path in paths if (taker := self.taker(intent, path)) is not None}
                along = touched.along(intent)
                check = check_scope(intent.scope, paths, touched.controls, dirt, takers, along)
                yield from scope_findings(intent, check, touched.verdict.source.kind)
                yield from () if ids is None else trailer_findings(intent, ids)
                if intent.budget.written:
                    yield from touched.budget_findings(intent, self.now)
            elif paths:
                yield from self._reserved(touched)
            yield from self._outside(touched, intent)
            yield from beside

        outcome, found = touched.judged(findings)
        if intent is not None and dirt and outcome.outcome is Outcome.PASS:
            outcome = replace(outcome, reason=_external(intent, sorted(dirt)))
        return touched.joined(outcome, found)

    def _outside(self, touched: TouchedFiles, intent: Intent | None) -> Iterator[Finding]:
        """Find files that an agent changes without the intent whose budget they count for."""
        limited = [each for each in self.limited if intent is None or each.id != intent.id]
        if not limited or touched.profile is not Profile.AGENT:
            return
        from patchgate.intents.budget import outside_findings
        from patchgate.intents.stored_intents import find_owner

        found = [(path, who) for path in touched.paths if (who := find_owner(path, limited)) is not None]
        yield from outside_findings(found)

    def _reserved(self, touched: TouchedFiles) -> Iterator[Finding]:
        """Find files that are changed without an intent, but declared by one of another worktree.

        Raises:
            UndecidedError: that is unknown, and would refuse the change.
        """
        from patchgate.intents.scope import reserved_findings, unreadable_finding
        from patchgate.intents.stored_intents import find_owner
        from patchgate.report.rules import Level

        level = touched.policy.level("intent-reserved", touched.profile)
        if level is None:
            return
        if self.unreadable is not None:
            if level is Level.ERROR:
                raise UndecidedError(self.unreadable.sentence)
            yield unreadable_finding(self.unreadable.message)
        found = [(path, who) for path in touched.paths if (who := find_owner(path, self.others)) is not None]
        yield from reserved_findings(found, self.now, _written)


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """A checked change, and the files of it that count as touched by an intent.

    `objects` reads its base; `controls` are the control files among `files`; `copied` are the sources of
    copies, which count as touched too.
    """

    verdict: ChangeVerdict
    policy: Policy
    profile: Profile
    objects: Objects
    files: Sequence[FileChange]
    controls: Set[RepoPath]
    copied: Sequence[RepoPath] = ()

    @property
    def paths(self) -> tuple[RepoPath, ...]:
        """Every touched path, each once."""
        return tuple(dict.fromkeys([*(file.path for file in self.files), *self.copied]))

    def along(self, intent: Intent) -> frozenset[RepoPath]:
        """Find the baselines of the components that an intent works on; most policies have none."""
        if not self.policy.config.components:
            return frozenset()
        from patchgate.git.tree_view import TreeView

        change = self.verdict.change
        view = TreeView(self.objects, change.base, {file.path.raw: file.new for file in change.files})
        return baselines_in_scope(intent.scope, self.policy.components, self.paths, view)

    def budget_findings(self, intent: Intent, now: Moment) -> Iterator[Finding]:
        """Find which limits of an intent the change exceeds, with all that was done before it.

        Raises:
            UndecidedError: the ledger or an object cannot be read.
        """
        from patchgate.intents.budget import added_in, budget_findings, spent_at

        spent = spent_at(self.objects, intent, self.verdict.change.base, now)
        adds = added_in(intent, self.files)
        yield from budget_findings(intent, spent, adds, self.verdict.source.kind)

    def judged(self, findings: Callable[[], Iterable[Finding]]) -> tuple[GateOutcome, tuple[Finding, ...]]:
        """Apply the levels of the policy to findings."""
        from patchgate.check.case import Case
        from patchgate.check.gate import Gate, judge
        from patchgate.intents.scope import GATE

        gate = Gate(GATE, lambda case: findings(), lambda case: True)
        (outcome,), found = judge(Case(self.verdict.change, self.policy, self.profile), (gate,))
        return outcome, found

    def joined(self, outcome: GateOutcome, findings: Sequence[Finding] = ()) -> ChangeVerdict:
        """Add the result of the scope gate to the verdict."""
        return replace(
            self.verdict,
            context_gates=(*self.verdict.context_gates, outcome),
            findings=(*self.verdict.findings, *findings),
        )


class ScopeGate:
    """What the intents of a worktree bind (`check.features.Work`): made once for a command or a hook.

    Reads the intents on first use.

    Args:
        now: the time; None: the time of the first use.
    """

    def __init__(self, repository: Repository, now: Moment | None = None) -> None:
        self._repository = repository
        self._now = now

    @cached_property
    def here(self) -> WorktreeIntents | None:
        """The intents that matter in this worktree, its own and others; None if there are none."""
        repository = self._repository
        is_marked = os.path.lexists(os.path.join(repository.git_dir, MARKER))
        if not (is_marked or _are_stored(repository)):
            return None
        from patchgate.intents.intent import State
        from patchgate.intents.stored_intents import StoredIntents, current_moment, owns_files

        now = self._now or current_moment()
        try:
            found = StoredIntents(repository.common_dir).of(repository.git_dir) if is_marked else ()
        except UndecidedError as error:
            return WorktreeIntents(now, fault=error)
        over = tuple(each for each in found if each.is_over(now))
        active = tuple(each for each in found if each.state is State.ACTIVE and each not in over)
        queued = tuple(each for each in found if each.state is State.QUEUED and each not in over)
        names = {each.id for each in found}
        try:
            every = StoredIntents(repository.common_dir).all()
            having = tuple(each for each in every if owns_files(each, repository, now))
        except UndecidedError as error:
            return WorktreeIntents(now, active, queued, over, unreadable=error)
        others = tuple(each for each in having if each.id not in names)
        limited = tuple(each for each in every if each.budget.written)
        return WorktreeIntents(now, active, queued, over, others, limited)

    @property
    def profile(self) -> Profile:
        """The profile for the commits of this worktree: agent if an intent binds."""
        return Profile.AGENT if self.here is not None and self.here.binds else Profile.COMMIT

    @property
    def counts_lines(self) -> bool:
        """Whether an intent limits the lines that its work adds."""
        return self.here is not None and self.here.counts_lines

    def touch(self) -> None:
        """Record activity of the intents of this worktree, which renews their leases."""
        here = self.here
        if here is None or not here.own or self._repository.is_receiving:
            return
        from patchgate.intents.stored_intents import StoredIntents

        intents = StoredIntents(self._repository.common_dir)
        for intent in here.own:
            intents.touch(intent, here.now)

    def check_scope(
        self,
        verdict: ChangeVerdict,
        policy: Policy,
        profile: Profile,
        objects: Objects,
        controls: Set[RepoPath],
        copied: Sequence[RepoPath] = (),
    ) -> ChangeVerdict:
        """Check a pending change against the intents of this worktree; report expired and queued ones.

        Args:
            objects: reads the base of the change.
            controls: the control files of the change.
            copied: the sources of copies, which count as touched.
        """
        here = self.here
        if here is None:
            return verdict
        from patchgate.intents.scope import expired_finding, queued_finding

        files = verdict.change.files
        beside = [
            *(expired_finding(each, here.now) for each in here.over),
            *(queued_finding(each) for each in here.queued),
        ]
        touched = TouchedFiles(verdict, policy, profile, objects, files, controls, copied)
        return here.check(touched, here.choose_binding_intent(files, copied), beside=beside)


def find_scope_gate(repository: Repository) -> ScopeGate | None:
    """Find the intents of this worktree, and renew their leases; None if there are none."""
    gate = ScopeGate(repository)
    gate.touch()
    return None if gate.here is None else gate


def _are_stored(repository: Repository) -> bool:
    """Whether any worktree has a stored intent; true if that is unknown."""
    try:
        names = os.listdir(os.path.join(repository.common_dir, "patchgate", "intents"))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return any(name.endswith(".json") for name in names)


def baselines_in_scope(
    scope: IntentScope, components: Components, touched: Iterable[RepoPath], view: TreeView
) -> frozenset[RepoPath]:
    """Find the baselines among some paths whose components the work may touch.

    Args:
        scope: what was declared.
        components: those of the policy.
        touched: the touched paths.
        view: the resulting tree.

    Raises:
        UndecidedError: an object is missing.
    """
    from patchgate.policy.component import BASELINES

    # Most changes touch no baseline, and then nothing is read.
    near = components.affected_by(path for path in touched if path.raw.startswith(BASELINES))
    return frozenset(
        path
        for name, paths in near.items()
        for path in paths
        if view.entry(path.raw) is not None and _works_on(scope, components[name], view)
    )


def _works_on(scope: IntentScope, component: Component, view: TreeView) -> bool:
    """Whether a scope allows a file of a component: by name, or one in the tree."""
    from patchgate.intents.intent import can_match_many

    entries = (*scope.allowed, *scope.related)
    if any(component.role(entry) is not None for entry in entries):
        return True
    if not any(can_match_many(entry) for entry in entries):
        return False
    return any(
        component.role(path) is not None and scope.covers(path)
        for folder in component.folders
        for path in view.below(folder)
    )


def _written(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "an impossible time"


def _external(intent: Intent, dirt: Sequence[RepoPath]) -> str:
    """Describe the files that are ignored because they were dirty before the intent."""
    named = first_of(dirt, _NAMED, lambda path: path.quoted)
    return f"not attributed to {intent.id}, since it was dirty before: {named}"
