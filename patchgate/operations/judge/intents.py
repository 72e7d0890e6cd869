"""Intents and commits: which intents bind what is committed in a worktree, and what is said of it.

Decides which intents count here (active ones whose time is not over; a holder that is gone changes nothing
until then), which of the commits of an update are made under them, which of several binds, and what of a
change is not held against it: files that were so before the declaration, or that the branch had so already.
The scope is a circumstance: no part of a verdict's id. What is allowed is decided in `gates.scope`.

A worktree without a marker has no intent: that is one look at the disk, and nothing is imported for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from patchgate.declared.policy import Policy, Profile
from patchgate.errors import UndecidedError
from patchgate.verdict.verdict import ChangeVerdict, Finding, GateOutcome, Outcome

if TYPE_CHECKING:
    from patchgate.change.model import FileChange
    from patchgate.change.path import RepoPath
    from patchgate.declared.intent import Intent, Moment
    from patchgate.git.novelty import Update
    from patchgate.git.objects import Objects
    from patchgate.git.repository import Repository

MARKER = "patchgate-intents"
"""As in `ledger.intents`, which is not imported to look for it."""
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
    """Name the files of a change that were just so in the working tree before the intent was declared."""
    return frozenset(
        file.path
        for file in files
        if file.path in intent.dirty and intent.dirty[file.path] == (file.new.oid if file.new else None)
    )


def with_scope(
    verdict: ChangeVerdict,
    policy: Policy,
    profile: Profile,
    here: Here,
    controls: Container[RepoPath] = (),
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
    return _hold(verdict, policy, profile, here, controls, copied=copied, beside=beside)[0]


@dataclass(slots=True)
class Making:
    """The commits of one update of a branch that are made in this worktree under its intents.

    `ids` are those commits, each with what its trailers name; `replayed` are those of them whose very change
    the branch had already. `bound` gets, for each intent, the commits that it binds, as they are judged.
    """

    here: Here
    update: Update
    ids: Mapping[str, tuple[str, ...]]
    replayed: frozenset[str] = frozenset()
    bound: dict[str, list[str]] = field(default_factory=dict)
    _old_tree: str | None = None

    def hold(
        self,
        verdict: ChangeVerdict,
        policy: Policy,
        profile: Profile,
        controls: Container[RepoPath],
        objects: Objects,
    ) -> ChangeVerdict:
        """Hold a commit that is made here against the intent that binds it."""
        commit = verdict.source.commit or ""
        had = self._had(verdict, objects)
        # Of one that is made anew from another it was told then.
        ids = None if commit in self.replayed else self.ids[commit]
        held, intent = _hold(verdict, policy, profile, self.here, controls, had=had, ids=ids)
        if intent is not None:
            self.bound.setdefault(intent.id, []).append(commit)
        return held

    def bind_all(self, repository: Repository) -> None:
        """Find out which intent binds each commit, without judging any.

        Raises:
            UndecidedError: git failed, or an object is missing.
        """
        from patchgate.declared.intent import binding
        from patchgate.git.intent_commits import changes_of, with_ids

        for commit, change in changes_of(repository, with_ids(repository, [*self.ids])):
            intent = binding(self.here.active, tuple(file.path for file in change.files))
            if intent is not None:
                self.bound.setdefault(intent.id, []).append(commit.oid)

    def _had(self, verdict: ChangeVerdict, objects: Objects) -> frozenset[RepoPath]:
        """Name the files of a commit that the branch has just so already, as when the commit is amended."""
        if verdict.source.commit in self.replayed:
            return frozenset(file.path for file in verdict.change.files)
        old = self.update.old
        if old is None or old == verdict.source.base_commit:
            return frozenset()
        if self._old_tree is None:
            header = objects.header(old + "^{tree}")
            self._old_tree = objects.empty_tree if header is None else header.oid
        tree = self._old_tree
        return frozenset(
            file.path for file in verdict.change.files if objects.entry(tree, file.path.raw) == file.new
        )


def _hold(
    verdict: ChangeVerdict,
    policy: Policy,
    profile: Profile,
    here: Here,
    controls: Container[RepoPath],
    *,
    copied: Sequence[RepoPath] = (),
    had: frozenset[RepoPath] = frozenset(),
    ids: Sequence[str] | None = None,
    beside: Sequence[Finding] = (),
) -> tuple[ChangeVerdict, Intent | None]:
    from patchgate.declared.intent import binding
    from patchgate.gates.scope import GATE, check_scope, examine, trailer

    if here.fault is not None:
        error = here.fault
        reason = error.message if error.hint is None else f"{error.message}; {error.hint}"
        return _joined(verdict, (GateOutcome(GATE, Outcome.UNDECIDED, reason),), ()), None
    touched = tuple(
        dict.fromkeys([*(file.path for file in verdict.change.files if file.path not in had), *copied])
    )
    intent = binding(here.active, touched)
    dirt: frozenset[RepoPath] = frozenset()

    def findings() -> Iterator[Finding]:
        if intent is not None:
            yield from examine(intent, check_scope(intent.scope, touched, controls, dirt))
            yield from () if ids is None else trailer(intent, ids)
        yield from beside

    if intent is not None:
        dirt = unchanged_dirt(intent, verdict.change.files)
    outcome, found = _judged(verdict, policy, profile, findings)
    if intent is not None and dirt and outcome.outcome is Outcome.PASS:
        outcome = replace(outcome, reason=_external(intent, sorted(dirt)))
    return _joined(verdict, (outcome,), found), intent


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


def made_under(
    repository: Repository,
    here: Here | None,
    update: Update,
    fresh: Sequence[str],
    *,
    settled: Sequence[str] = (),
    arriving: Sequence[str] = (),
) -> Making | None:
    """Find the commits of an update that are made in this worktree under its intents; None: there are none.

    A commit that replaces one with the very same change (a rebase) is the intent's if that one was, and is
    not held against it once more.

    Args:
        fresh: the commits of the update that nobody has answered for yet.
        settled: the tips that were there when the hooks were installed.
        arriving: tips of remotes that no remote-tracking ref has yet.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if here is None or not here.binds or not fresh:
        return None
    from patchgate.git.intent_commits import made_here, replays, with_ids

    own = made_here(repository, update, settled, arriving)
    made = [oid for oid in fresh if oid in own]
    if not made:
        return None
    replaced = replays(repository, update, made)
    if replaced and here.fault is None:
        names = {intent.id for intent in here.active}
        mine = {
            each.oid for each in with_ids(repository, [*replaced.values()]) if not names.isdisjoint(each.ids)
        }
        mine.update(*(made_by(repository, name) for name in names))
        made = [oid for oid in made if oid not in replaced or replaced[oid] in mine]
    ids = {each.oid: each.ids for each in with_ids(repository, made)}
    return Making(here, update, ids, frozenset(replaced)) if ids else None


def made_by(repository: Repository, name: str) -> frozenset[str]:
    """Name the commits that the ledger saw made in their worktree while an intent was active there.

    Args:
        name: the intent's id.
    """
    from patchgate.ledger.ledger import Ledger

    found: set[str] = set()
    for event in Ledger(repository.common_dir).mentions({"made"}, name):
        commits = event.about.get("commits")
        if event.about.get("intent") == name and isinstance(commits, Sequence):
            found.update(each for each in commits if isinstance(each, str) and not isinstance(commits, str))
    return frozenset(found)


def controls_of(objects: Objects, before: str, after: str, paths: Iterable[RepoPath]) -> frozenset[RepoPath]:
    """Name those of some paths that are control files, between two trees that can be read.

    Raises:
        UndecidedError: an object is missing.
    """
    from patchgate.operations.judge.cases import Rules, is_control
    from patchgate.operations.judge.policies import Found, Policies

    policies = Policies(objects)
    base, last = policies.at(policies.key(before)), policies.at(policies.key(after))
    named = policies.names_patchgate(before)
    rules = Rules(Found(), last, place="", hooks_named=named, base=base)
    return frozenset(path for path in paths if is_control(path, rules))
