"""Intents and commits: which intents bind what is committed in a worktree, and what is said of it.

Decides which intents count here (active ones whose time is not over; a holder that is gone changes nothing
until then), which of several binds, and that files which were so before its declaration are not held against
an intent, nor choose it. The scope is a circumstance: no part of a verdict's id. What is allowed is decided
in `gates.scope`; which commits are made under an intent in `made_commits`.

A worktree without a marker has no intent: that is one look at the disk, and nothing is imported for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchgate.declared.policy import Policy, Profile
from patchgate.errors import UndecidedError
from patchgate.verdict.verdict import ChangeVerdict, Finding, GateOutcome, Outcome

if TYPE_CHECKING:
    from patchgate.change.model import FileChange
    from patchgate.change.path import RepoPath
    from patchgate.declared.intent import Intent, Moment
    from patchgate.git.repository import Repository

MARKER = "patchgate-intents"
"""As in `ledger.intent_marker`, which is not imported to look for it."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Here:
    """The intents of one worktree at a moment; `fault` says why they cannot be told."""

    now: Moment
    active: tuple[Intent, ...] = ()
    queued: tuple[Intent, ...] = ()
    over: tuple[Intent, ...] = ()
    fault: UndecidedError | None = None

    @property
    def binds(self) -> bool:
        """Tell whether what is committed here is held against an intent, or may have to be."""
        return bool(self.active) or self.fault is not None


def active_here(repository: Repository, now: Moment | None = None) -> Here | None:
    """Find the intents of this worktree; None where it has none, as its marker says.

    Args:
        now: the time; None: this moment.
    """
    if not os.path.lexists(os.path.join(repository.git_dir, MARKER)):
        return None
    from patchgate.declared.intent import State
    from patchgate.ledger.intents import Intents, present

    now = now or present()
    try:
        found = Intents(repository.common_dir).of(repository.git_dir)
    except UndecidedError as error:
        return Here(now, fault=error)
    queued = tuple(each for each in found if each.state is State.QUEUED)
    rest = [each for each in found if each.state is not State.QUEUED]
    over = tuple(each for each in rest if each.is_over(now))
    return Here(now, tuple(each for each in rest if each not in over), queued, over)


def touch(repository: Repository, here: Here | None) -> None:
    """Renew the leases of the active intents of this worktree: something was just done under them."""
    if here is None or not here.active or repository.is_receiving:
        return
    from patchgate.ledger.intents import Intents

    intents = Intents(repository.common_dir)
    for intent in here.active:
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


def binding_of(
    intents: tuple[Intent, ...], files: Sequence[FileChange], copied: Iterable[RepoPath] = ()
) -> Intent | None:
    """Choose the intent of a worktree that binds a change: the newest that allows it all, or else the newest.

    What was just so before an intent was declared, that one need not allow.

    Args:
        intents: active ones of one worktree.
        files: what counts as touched.
        copied: the sources of copies, which do too.
    """
    from patchgate.declared.intent import binding

    def touched(intent: Intent) -> set[RepoPath]:
        return {*(file.path for file in files), *copied} - unchanged_dirt(intent, files)

    return binding(intents, touched)


def with_scope(
    verdict: ChangeVerdict,
    policy: Policy,
    profile: Profile,
    here: Here,
    controls: Set[RepoPath] = frozenset(),
    *,
    copied: Sequence[RepoPath] = (),
) -> ChangeVerdict:
    """Hold a pending change against the intents of this worktree, and tell of those that bind nothing.

    Args:
        controls: the control files of the change.
        copied: the sources of copies, which count as touched.
    """
    from patchgate.gates.scope import expired, queued

    beside = [*(expired(each, here.now) for each in here.over), *(queued(each) for each in here.queued)]
    intent = binding_of(here.active, verdict.change.files, copied)
    files = verdict.change.files
    return held(verdict, policy, profile, here, intent, files, controls, copied=copied, beside=beside)


def held(
    verdict: ChangeVerdict,
    policy: Policy,
    profile: Profile,
    here: Here,
    intent: Intent | None,
    files: Sequence[FileChange],
    controls: Set[RepoPath],
    *,
    copied: Sequence[RepoPath] = (),
    ids: Sequence[str] | None = None,
    beside: Sequence[Finding] = (),
) -> ChangeVerdict:
    """Hold a change against the intent that binds it, as a circumstance of its verdict.

    Args:
        files: what the change touches.
        controls: the control files among them.
        copied: the sources of copies, which count as touched.
        ids: what the message's trailers name; None: nothing is asked of them.
        beside: what else is said of the intents of this worktree.
    """
    from patchgate.gates.scope import GATE, check_scope, examine, trailer

    if here.fault is not None:
        error = here.fault
        reason = error.message if error.hint is None else f"{error.message}; {error.hint}"
        return _joined(verdict, (GateOutcome(GATE, Outcome.UNDECIDED, reason),), ())
    touched = tuple(dict.fromkeys([*(file.path for file in files), *copied]))
    dirt = unchanged_dirt(intent, files) if intent is not None else frozenset()

    def findings() -> Iterator[Finding]:
        if intent is not None:
            yield from examine(intent, check_scope(intent.scope, touched, controls, dirt))
            yield from () if ids is None else trailer(intent, ids)
        yield from beside

    outcome, found = _judged(verdict, policy, profile, findings)
    if intent is not None and dirt and outcome.outcome is Outcome.PASS:
        outcome = replace(outcome, reason=_external(intent, sorted(dirt)))
    return _joined(verdict, (outcome,), found)


def _judged(
    verdict: ChangeVerdict, policy: Policy, profile: Profile, findings: Callable[[], Iterable[Finding]]
) -> tuple[GateOutcome, tuple[Finding, ...]]:
    from patchgate.gates.case import Case
    from patchgate.gates.gate import Gate, judge
    from patchgate.gates.scope import GATE

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
