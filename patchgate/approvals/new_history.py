"""The commits that a ref gets, as git lists them for what lands in part."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Iterator, Sequence

from patchgate.git.commit_lists import commits_with_parents
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestors
from patchgate.git.repository import Repository
from patchgate.report.verdict import ProtectedRef

_LITERAL = ":(top,literal)"
# Paths that git is asked for, which it compares with each name of each folder one by one, and their bytes.
_MOST_NAMED = 16
_MOST_BYTES = 64 << 10


class NewHistory:
    """The commits that are new to a ref, each before its ancestors."""

    def __init__(self, repository: Repository, ref: ProtectedRef) -> None:
        had = [] if ref.commit is None else [ref.commit]
        known = [each for each in (ref.base, *ref.other_bases) if each is not None]
        self._repository = repository
        self._tip, self._had = ref.tip or "", [*known, *([] if ref.is_new else had)]
        self._parents = commits_with_parents(repository, self._tip, *_without(self._had))
        # A new branch may get what the default branch has already.
        self._not_fresh = had if ref.is_new and had else self._had
        self._known: list[str] = []
        self._below: dict[str, int] = {}
        self._begins: dict[int, Sequence[str]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._parents)

    def __len__(self) -> int:
        return len(self._parents)

    def parents_of(self, commit: str) -> tuple[str, ...]:
        """Return the parents of one of them."""
        return self._parents.get(commit, ())

    def fresh_at(self, paths: Sequence[RepoPath]) -> Sequence[str]:
        """List those that change any of some paths, and are new to the default branch, too; but no merges.

        All of these commits, where these paths are too many or too long for a command line.
        """
        if not paths:
            return ()
        words = ("rev-list", "--full-history", "--no-merges", self._tip, *_without(self._not_fresh))
        is_short = len(paths) <= _MOST_NAMED and sum(len(path.raw) for path in paths) <= _MOST_BYTES
        named = [_LITERAL + os.fsdecode(path.raw) for path in paths if is_short]
        return self._repository.output(*words, "--", *named).decode("ascii").split()

    def begins_of(self, commit: str) -> Sequence[str]:
        """Return the newest commits at or below a commit that are not new."""
        if commit not in self._parents:
            return [commit]
        if not self._below:
            self._find_below()
        below = self._below[commit]
        if below not in self._begins:
            known = [each for each in self._known if self._below[each] & below]
            several = len(known) > 1
            self._begins[below] = common_ancestors(self._repository, commit, *self._had) if several else known
        return self._begins[below]

    def _find_below(self) -> None:
        """Find the commits that are not new on which each stands: each of them has a bit."""
        bits: dict[str, int] = {}
        for commit, parents in reversed(self._parents.items()):
            for parent in parents:
                if parent not in self._parents:
                    self._below[parent] = bits.setdefault(parent, 1 << len(bits))
            self._below[commit] = functools.reduce(operator.or_, (self._below[each] for each in parents), 0)
        self._known = list(bits)


def _without(commits: Sequence[str]) -> list[str]:
    return [f"^{each}" for each in commits]
