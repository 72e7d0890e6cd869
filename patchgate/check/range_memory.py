"""Remember that a range, or what a push brings, was accepted without a finding, for the next check here.

Only that is remembered, and only where nothing but objects and options has decided: what is named in the key.
It is a file below the git common directory, which whoever can write there can forge: a server, CI and
`--policy-from` never read it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence

from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.commit_lists import Commit
from patchgate.git.repository import Repository
from patchgate.policy.sealed_file import SealedFile, drop_oldest
from patchgate.report.verdict import ChangeVerdict, ClearedCommits, Verdict
from patchgate.values import dataclass, field

_LEAST = 64
"""Fewer commits are judged as fast as they are looked up."""
_MOST_FILES = 16
_MOST_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is remembered of accepted commits; `digests` are those of `BulkCheck`."""

    cleared: ClearedCommits
    digests: Mapping[str, frozenset[str]] = field(default_factory=dict)


class RangeMemory:
    """What is remembered under one key: commits and options, of which each can decide about a verdict."""

    def __init__(self, repository: Repository, asked: CheckOptions, words: Iterable[str]) -> None:
        is_usable = asked.remembers and repository.trusts_caches and not repository.is_receiving
        self._is_usable = is_usable and not repository.shallow and asked.scoped_commits is None
        self._repository = repository
        profile = asked.profile.value if asked.profile is not None else None
        firsts = sorted(asked.firsts or ())
        options = [asked.policy_from, profile, asked.fallback, asked.since, firsts, sorted(asked.branches)]
        digest = hashlib.sha256(json.dumps(options).encode("ascii"))
        for word in words:
            digest.update(word.encode("utf-8", "surrogateescape") + b"\0")
        self._folder = os.path.join(repository.common_dir, "patchgate", "ranges")
        self._name = digest.hexdigest()
        self._has_roots = False

    @property
    def _file(self) -> SealedFile:
        path = os.path.join(self._folder, self._name)
        return SealedFile(path, f"patchgate.range/1 {self._name}", _MOST_BYTES)

    def load(self) -> Remembered | None:
        """Return what is remembered; None if the commits must be judged."""
        kept = self._file.load() if self._is_usable else None
        if not kept:
            return None
        cleared = ClearedCommits(number=kept["number"], n_paths=kept["paths"], budget_ms=kept["budget_ms"])
        digests = {ref: frozenset(each) for ref, each in kept["digests"].items()}
        return Remembered(cleared, digests)

    def look_at(self, commits: Iterable[Commit]) -> None:
        """Look at the commits that are judged: of a root the refs of the moment decide."""
        self._has_roots = self._has_roots or not all(commit.parents for commit in commits)

    def store(
        self,
        changes: Sequence[ChangeVerdict],
        cleared: ClearedCommits | None,
        digests: Mapping[str, Iterable[str]],
    ) -> None:
        """Remember commits, if nothing was said about any, and about their policies.

        Args:
            changes: the verdicts on those that were not cleared.
            digests: the digests of the policies that judged the commits of each ref.
        """
        cleared = cleared or ClearedCommits(0)
        number = cleared.number + len(changes)
        is_silent = all(map(_is_silent, changes)) and not self._repository.config_warnings
        if number < _LEAST or self._has_roots or not (is_silent and self._is_usable):
            return
        paths, budgets = set(cleared.paths), {cleared.budget_ms}
        judged_by = {ref: set(each) for ref, each in digests.items()}
        for change in changes:
            moved = set(change.change.renames.values())
            paths.update(file.path.raw for file in change.change.files if file.path not in moved)
            budgets.add(change.policy.budget_ms)
            judged_by.setdefault(change.source.ref or "", set()).add(change.policy.digest)
        kept = {
            "number": number,
            "paths": len(paths),
            "budget_ms": min((each for each in budgets if each is not None), default=None),
            "digests": {ref: sorted(each) for ref, each in judged_by.items()},
        }
        self._file.store(json.dumps(kept).encode("ascii"))
        drop_oldest(self._folder, _MOST_FILES)


def _is_silent(change: ChangeVerdict) -> bool:
    """Return whether a change is a person's, accepted, without a finding, and asks for no approval."""
    is_plain = not (change.findings or change.owned or change.lands_on or change.profile_reason)
    return is_plain and change.verdict is Verdict.ACCEPTED
