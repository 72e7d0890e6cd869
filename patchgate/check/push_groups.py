"""The refs of a push that one policy judges together, and which commits a policy has judged already."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence, Set
from types import MappingProxyType

from patchgate.check.protected_refs import RefRules
from patchgate.check.refs import show_ref
from patchgate.errors import UndecidedError
from patchgate.git.commit_lists import Commit
from patchgate.git.pushes import NOTES
from patchgate.git.quoting import first_of
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import Key
from patchgate.report.verdict import ChangeVerdict, Verdict
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, field, replace

_POLICY_FILES = frozenset({CONFIG_FILE.raw, PYPROJECT_FILE.raw})
_ABSENT: Key = (None, None)


@dataclass(frozen=True, slots=True)
class PushGroup:
    """The refs, each with its commit, that one policy judges; `place` None: each commit's parent's.

    `fallback` is whose policy judges then where no parent has one. `key` is the policy's, `signers` what
    names its signers. `branches` are the commits that the refs have, a new one that of the default branch.
    `is_notes`: the refs are notes, which the built-in rules judge alone.
    """

    place: str | None
    key: Key | None
    signers: str | None
    fallback: str | None
    is_notes: bool
    refs: list[tuple[str, str]] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The full names of the refs."""
        return [ref for ref, _ in self.refs]


_NAMED = 3
SECONDS_AGAIN = 5.0
"""How long the commits of a push may be judged again, for one protected branch after the other."""
TIMES_FIRST = 2
"""How many times as long as for the first branch it may take in any case: a long history is not an error."""


class RepeatedTooLongError(UndecidedError):
    """To judge commits again took too long."""


class RepeatLimit:
    """The time limit for judging commits again: a merge is compared with each branch that gets it.

    What is judged for the first time is limited by the push alone, as it grows with that.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._first = 0.0
        self._again = 0.0

    def watched(self, verdicts: Iterator[ChangeVerdict]) -> Iterator[ChangeVerdict]:
        """Pass on verdicts on commits.

        Raises:
            RepeatedTooLongError: to judge commits again took too long by now.
        """
        before = time.monotonic()
        for verdict in verdicts:
            taken = time.monotonic() - before
            commit = verdict.source.commit or ""
            if commit in self._seen:
                self._again += taken
            else:
                self._first += taken
                self._seen.add(commit)
            if self._again > SECONDS_AGAIN + TIMES_FIRST * self._first:
                raise RepeatedTooLongError(
                    "the same commits go to so many protected branches that it takes too long to judge them "
                    "for each",
                    "push fewer branches at once",
                )
            yield verdict
            before = time.monotonic()


class JudgedAlike:
    """Remembers under which policy each commit was judged, so that none is judged twice under one."""

    def __init__(self, terms: RefRules, graph: Mapping[str, Commit]) -> None:
        self._terms = terms
        self._graph = graph
        self._judged: dict[str, list[PushGroup]] = {}
        self._refs: dict[tuple[str, int], set[str]] = {}
        self._keys: dict[str, Key] = {}

    def add(self, changes: Sequence[ChangeVerdict], group: PushGroup) -> None:
        """Remember the changes that a group's policy has judged."""
        for change in changes:
            commit = self._graph[change.source.commit or ""]
            if group.place is not None and change.owned:
                # An approval may name one ref: each ref has a verdict of its own.
                continue
            self._judged.setdefault(commit.oid, []).append(group)
            touched = any(file.path.raw in _POLICY_FILES for file in change.change.files)
            if len(commit.parents) == 1 and not touched:
                # So a long range asks git for few keys: those after merges and changes of the policy.
                self._keys[commit.oid] = self._key(commit.parents[0])

    def has(self, commit: Commit, group: PushGroup) -> bool:
        """Return whether the policy of a group has judged a commit; then its verdict counts for the group."""
        judged = self._judged.get(commit.oid, ())
        is_merge = len(commit.parents) > 1
        if group.place is None:
            before = self._before(commit, group)
            # What a merge brings was compared there with what a branch has.
            alike = [each for each in judged if each.key == before and not (is_merge and each.place)]
        else:
            # Only what a merge brings depends on what the branch has.
            alike = [
                each
                for each in judged
                if (each.key, each.signers) == (group.key, group.signers)
                and not (is_merge and each.branches != group.branches)
            ]
        for each in alike[:1]:
            self._refs.setdefault((commit.oid, id(each)), set(each.names)).update(group.names)
        return bool(alike)

    def refs_of(self, commit: str, group: PushGroup) -> set[str]:
        """Return the refs for which the verdict of a group on a commit counts."""
        return self._refs.get((commit, id(group)), set(group.names))

    def _before(self, commit: Commit, group: PushGroup) -> Key:
        """Name the policy before a commit: of the first parent, of a merged one, or the fallback."""
        keys = (self._key(parent) for parent in commit.parents)
        default = _ABSENT if group.fallback is None else self._key(group.fallback)
        return next((key for key in keys if key != _ABSENT), default)

    def _key(self, oid: str) -> Key:
        if oid not in self._keys:
            self._keys[oid] = self._terms.key_of(oid)
        return self._keys[oid]


def notes_on_policies(
    group: PushGroup,
    terms: RefRules,
    changes: Sequence[ChangeVerdict],
    digests: Mapping[str, Set[str]] = MappingProxyType({}),
) -> Iterator[str]:
    """Say which policy judged where a user may expect another.

    Args:
        digests: the policies under which commits of each ref were cleared.
    """
    by_ref: dict[str, list[ChangeVerdict]] = {ref: [] for ref in digests}
    for change in changes:
        by_ref.setdefault(change.source.ref or "", []).append(change)
    name = terms.destination.name
    if group.place is None:
        default = terms.default_policy
        if default is not None and not terms.destination.judges_all:
            profile = terms.asked.profile or Profile.COMMIT
            others = [
                ref
                for ref, judged in by_ref.items()
                if _differ(ref, judged, default)
                or (not ref.startswith(NOTES) and digests.get(ref, set()) - {default.digest(profile)})
            ]
            if others:
                yield (
                    f"{_named(others)}: judged by the policy before each commit; the default branch of "
                    f"{name} has another"
                )
    elif terms.asked.policy_from is None:
        tips = dict(group.refs)
        for ref, judged in by_ref.items():
            is_clean = all(change.verdict is Verdict.ACCEPTED for change in judged)
            is_same = is_clean and terms.key_of(tips[ref]) == group.key
            if terms.is_protected(ref) and not is_same:
                yield (
                    f"{show_ref(ref)} is protected: judged by the policy of {group.place[:SHORT_OID]}, "
                    f"which {name} has"
                )


def _differ(ref: str, changes: Sequence[ChangeVerdict], policy: Policy) -> bool:
    """Return whether a commit was judged by another policy than this; notes do not count."""
    if ref.startswith(NOTES):
        return False
    return any(change.policy.digest != policy.digest(Profile(change.profile)) for change in changes)


def _named(refs: Sequence[str]) -> str:
    return first_of(refs, _NAMED, show_ref)


def under(change: ChangeVerdict, ref: str, place: str | None) -> ChangeVerdict:
    """Add to a verdict the ref that brings its commit, and a short name of the policy's commit."""
    source = replace(change.source, ref=ref)
    policy = change.policy
    if place is not None and len(place) >= 40 and policy.origin.startswith(place):
        policy = replace(policy, origin=place[:SHORT_OID] + policy.origin[len(place) :])
    return replace(change, source=source, policy=policy)
