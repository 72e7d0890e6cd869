"""The refs of a push that one policy judges together, and which commits a policy has judged already."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from patchgate.check.protected_refs import RefRules
from patchgate.errors import UndecidedError
from patchgate.git.history import Commit
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import Key
from patchgate.report.verdict import ChangeVerdict
from patchgate.values import dataclass, field

_POLICY_FILES = frozenset({CONFIG_FILE.raw, PYPROJECT_FILE.raw})
_ABSENT: Key = (None, None)


@dataclass(frozen=True, slots=True)
class PushGroup:
    """The refs, each with its commit, that one policy judges; `place` None: each commit's parent's.

    `fallback` is whose policy judges then where no parent has one. `key` is the policy's, `signers` what
    names its signers. `branches` are the commits that the refs have, a new one that of the default branch.
    """

    place: str | None
    key: Key | None
    signers: str | None
    fallback: str | None
    refs: list[tuple[str, str]] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The full names of the refs."""
        return [ref for ref, _ in self.refs]


SECONDS_AGAIN = 5.0
"""How long the commits of a push may be judged again, for one protected branch after the other."""
TIMES_FIRST = 2
"""How many times as long as for the first branch it may take in any case: a long history is not an error."""


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
            UndecidedError: to judge commits again took too long by now.
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
                raise UndecidedError(
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
