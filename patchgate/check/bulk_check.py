"""Clear the boring commits of a range in bulk: those about which no rule of their policy can say anything.

It contains no rules: what it does not recognise is judged one by one, as everything was before. A compiled
policy says what to look for; git's answer is read in blocks. See docs/decisions/ranges.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType

from patchgate.check.boring_changes import BoringChanges, Found
from patchgate.check.commits import CommitHistory, judge_each
from patchgate.check.policy_lookup import CheckOptions
from patchgate.check.range_memory import RangeMemory
from patchgate.git.bulk_diff import BlobFacts, differences
from patchgate.git.commit_lists import (
    Commit,
    NotReached,
    range_arguments,
    range_ends,
    require_parents,
    require_whole,
    stream_commits,
)
from patchgate.git.history import Walk
from patchgate.git.merge_paths import MergeDifference
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.git.tree_chain import TreeChain
from patchgate.policy.compiled_policy import compile_policy
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Profile
from patchgate.policy.tree_policies import FoundPolicy, Key, TreePolicies, built_in
from patchgate.report.verdict import ChangeVerdict, ClearedCommits, Report
from patchgate.values import dataclass, replace

_PROVED_AT_ONCE = 1_024
# Each may differ from a parent in all files.
_MERGES_AT_ONCE = 64
# Git begins anew after a policy that needs more to be read, and where it died.
_MOST_CHILDREN = 50
# On a server and in CI: how many changes may be too large to look at, and one more for so many others.
_MOST_TOO_LARGE, _OTHERS = 4, 64
# As git's raw records have them.
_CONFIG, _PYPROJECT = (b"\0%b\0" % file.raw for file in (CONFIG_FILE, PYPROJECT_FILE))
_POLICY_FILES = frozenset({CONFIG_FILE.raw, PYPROJECT_FILE.raw})
_BY_NAME = ("deny-prefix", "deny-pattern", "deny-suffix", "deny-class", "outside-allow-roots")


def check_range(repository: Repository, revision: str, asked: CheckOptions) -> Report:
    """Judge each commit of a range `A..B`; the report has a verdict on those that are not boring.

    Raises:
        PatchgateError: a revision is unknown, or the history cannot be read.
    """
    with Objects(repository) as objects:
        low, high = range_ends(objects, revision)
        ends = [high, low, *([asked.policy_from] if asked.policy_from else []), *asked.branches]
        is_possible = may_clear(objects, ends)
    asked = replace(asked, since=low)
    bulk = BulkCheck(repository, asked)
    memory = RangeMemory(repository, asked, (low, high))
    is_possible = is_possible and bulk.is_possible
    if is_possible and (known := memory.load()) is not None:
        return Report((), repository.limits, cleared=known.cleared)
    changes: list[ChangeVerdict] = []
    number = 0
    total = 0
    if asked.counted is not None:
        total = int(repository.output("rev-list", "--count", *range_arguments(low, high)))
    beyond = NotReached(repository, [low])
    for commits in map(beyond.of, stream_commits(repository, *range_arguments(low, high))):
        require_parents(repository, commits)
        memory.look_at(commits)
        with Walk(repository, commits) as walk:
            history = CommitHistory(walk, asked)
            rest: Sequence[Commit] = commits
            if is_possible:
                rest = bulk.rest(walk, history, commits, partial(count, asked, number, total))
            counting = count_on(asked, number + len(commits) - len(rest), total)
            changes += judge_each(walk, rest, counting, history)
        number += len(commits)
        count(asked, number, total, 0)
    report = Report(tuple(changes), repository.limits, cleared=bulk.cleared)
    if number:
        if is_possible:
            memory.store(changes, bulk.cleared, {})
        return report
    require_whole(repository, low, high)
    said = f"the range is empty: every commit of {high} is also in {low}"
    return replace(report, warnings=(*report.warnings, said))


def count(asked: CheckOptions, before: int, total: int, number: int) -> None:
    """Report that so many commits are checked, besides those before them."""
    if asked.counted is not None:
        asked.counted(before + number, total)


def count_on(asked: CheckOptions, before: int, total: int) -> CheckOptions:
    """Let so many commits count as checked before those that are judged, and so many as all of them."""
    counted = asked.counted
    if counted is None:
        return asked
    return replace(asked, counted=lambda done, _: counted(before + done, total))


def may_clear(objects: Objects, revisions: Iterable[str]) -> bool:
    """Return whether no policy at these revisions declares a component, whose commits count together."""
    policies = TreePolicies(objects)
    headers = objects.headers([f"{each}^{{tree}}" for each in dict.fromkeys(revisions)])
    found = [policies.at(policies.key(header.oid)) for header in headers if header is not None]
    return not any(map(_has_components, found))


def _has_components(found: FoundPolicy) -> bool:
    return found.fault is not None or (found.policy is not None and bool(found.policy.config.components))


@dataclass(frozen=True, slots=True)
class _Terms:
    """How the commits after those of one key are judged: what to look for, and what a verdict would name.

    `restricts_by_rules_alone` is whether a rule looks for every path that not everybody may change.
    """

    boring: BoringChanges
    file: str
    digest: str
    restricts_by_rules_alone: bool
    budget_ms: int | None


_Candidate = tuple[Commit, Found, _Terms]
"""A commit that looks boring, with how it is judged."""


class BulkCheck:
    """Clears commits of one walk, block after block, each under the policy that judges it.

    `digests` has for each ref of `ref_of` the digests of the policies under which its commits were cleared.
    `is_possible` is false where nothing is cleared.

    Args:
        ref_of: the ref that brings each commit.
    """

    def __init__(
        self, repository: Repository, asked: CheckOptions, ref_of: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.digests: dict[str, set[str]] = {}
        self._repository = repository
        self._asked = asked
        self._ref_of = ref_of
        self._chain = TreeChain(repository.object_format)
        # By the policies of all parents: a merge into a line without one is judged by what it merges.
        self._terms: dict[tuple[Key, ...], _Terms | None] = {}
        self._number = self._n_looked = self._n_too_large = 0
        self._paths: set[bytes] = set()
        self._origins: set[str] = set()
        self._budgets: set[int] = set()
        # An attribute can hide that a file is binary; without that file git goes by the bytes.
        attributes = os.path.join(repository.common_dir, "info", "attributes")
        self.is_possible = not (asked.in_full or os.path.lexists(attributes))

    @property
    def cleared(self) -> ClearedCommits | None:
        """What was cleared so far; None: nothing."""
        if not self._number:
            return None
        budget = min(self._budgets, default=None)
        return ClearedCommits(self._number, frozenset(self._paths), frozenset(self._origins), budget)

    def rest(
        self,
        walk: Walk,
        history: CommitHistory,
        commits: Sequence[Commit],
        looked_at: Callable[[int], None] = lambda number: None,
    ) -> list[Commit]:
        """Clear what can be cleared of some commits of a walk, parents first; return the others, in their
        order.

        Args:
            looked_at: is called now and then with how many were looked at.
        """
        scoped = self._asked.scoped_commits
        ids = scoped.ids if scoped is not None else ()
        possible = [commit for commit in commits if not commit.is_past and commit.oid not in ids]
        chosen = [commit for commit in possible if len(commit.parents) == 1]
        if not (possible and self.is_possible):
            return list(commits)
        self._chain.keeps = len(chosen) < len(possible)
        done: set[str] = set()
        with BlobFacts(self._repository) as blobs:
            for _ in range(_MOST_CHILDREN):
                if not chosen or self._are_too_many_too_large:
                    break
                used = 0
                waiting: list[_Candidate] = []
                asked: list[_Candidate] = []
                for commit, found, terms in self._look(walk, history, chosen):
                    used += 1
                    if found is not None and terms is not None:
                        waiting.append((commit, found, terms))
                    if len(waiting) >= _PROVED_AT_ONCE:
                        # Git answers about these while those before them are proved.
                        blobs.ask([oid for _, each, _ in waiting for oid in each.blobs])
                        done |= self._prove(walk, history, blobs, asked)
                        asked, waiting = waiting, []
                        looked_at(len(commits) - len(chosen) + used)
                blobs.ask([oid for _, each, _ in waiting for oid in each.blobs])
                done |= self._prove(walk, history, blobs, asked)
                done |= self._prove(walk, history, blobs, waiting)
                # Where git died, one commit is left, and the next child begins after it.
                chosen = chosen[max(used, 1) :]
        done |= self._clear_merges(walk, history, [each for each in possible if len(each.parents) == 2])
        return [commit for commit in commits if commit.oid not in done]

    def _clear_merges(self, walk: Walk, history: CommitHistory, merges: Sequence[Commit]) -> set[str]:
        """Clear merges that git makes so alone, of files as a parent has them; return those cleared."""
        clean = [each for each in merges if walk.is_clean_merge(each) and not self._is_agents(history, each)]
        done: set[str] = set()
        for start in range(0, len(clean), _MERGES_AT_ONCE):
            batch = clean[start : start + _MERGES_AT_ONCE]
            differences = walk.differences_of(batch)
            some: list[tuple[Commit, MergeDifference, _Terms]] = []
            for commit in batch:
                difference = differences.get(commit.oid)
                if difference is None or difference.has_links:
                    continue
                terms = self._terms_after(history, commit.parents[0], commit)
                if terms is not None and self._is_plain_merge(history, commit, difference, terms):
                    some.append((commit, difference, terms))
            trees = [trees_of(walk, commit, difference) for commit, difference, _ in some]
            self._chain.learn(walk.objects, dict.fromkeys(oid for each, _ in trees for oid in each))
            for (commit, _, terms), (every, joined) in zip(some, trees, strict=True):
                # What a merge joins has no two names that may be one, and all of it can be read.
                if all(map(self._chain.is_known, every)) and all(
                    map(self._chain.is_free_of_collisions, joined)
                ):
                    done.add(commit.oid)
                    self._count(history, commit, terms, ())
        return done

    def _is_plain_merge(
        self, history: CommitHistory, commit: Commit, difference: MergeDifference, terms: _Terms
    ) -> bool:
        """Return whether a merge joins lines of history with one policy, and changes nothing that is
        restricted on the branch that gets it.
        """
        names = difference.paths
        if names.isdisjoint(_POLICY_FILES):
            history.take_over_key(commit)
        elif len({history.key_of(oid) for oid in (commit.oid, *commit.parents)}) > 1:
            return False
        if self._asked.policy_from is None:
            return True
        return terms.restricts_by_rules_alone and all(map(terms.boring.is_plain, names))

    def _look(
        self, walk: Walk, history: CommitHistory, commits: Sequence[Commit]
    ) -> Iterator[tuple[Commit, Found | None, _Terms | None]]:
        """Look at commits until one needs more to be read than the first that can be cleared."""
        start, first = self._first_possible(history, commits)
        yield from ((commit, None, None) for commit in commits[:start])
        if first is None:
            return
        commits, with_patch = commits[start:], first.boring.needs_patch
        pairs = [f"{walk.tree_of(commit.parents[0])} {commit.tree}" for commit in commits]
        answers = differences(
            self._repository, pairs, walk.objects.empty_tree, walk.without_index, with_patch=with_patch
        )
        for commit, answer in zip(commits, answers, strict=False):
            self._n_looked += 1
            self._n_too_large += answer is None
            if self._are_too_many_too_large:
                return
            terms = self._terms_after(history, commit.parents[0], commit)
            if terms is None or (terms.boring.needs_patch and not with_patch):
                return
            if answer is not None and not (_CONFIG in answer or _PYPROJECT in answer):
                history.take_over_key(commit)
            found = None
            if answer is not None and not self._is_agents(history, commit):
                found = terms.boring.recognise(answer)
            yield commit, found, terms

    @property
    def _are_too_many_too_large(self) -> bool:
        """Whether to leave the rest to the reader of one commit after the other, which has a limit."""
        most = _MOST_TOO_LARGE + self._n_looked // _OTHERS
        return self._repository.has_limits and self._n_too_large > most

    def _first_possible(self, history: CommitHistory, commits: Sequence[Commit]) -> tuple[int, _Terms | None]:
        """Find a commit whose policy lets some be cleared, not always the first: few are tried where there is
        none for long.
        """
        start, step = 0, 1
        while start < len(commits):
            terms = self._terms_after(history, commits[start].parents[0], commits[start])
            if terms is not None:
                return start, terms
            start, step = start + step, 2 * step
        return len(commits), None

    def _terms_after(self, history: CommitHistory, parent: str, commit: Commit) -> _Terms | None:
        """Return how a commit is judged, by the policy of a parent; None where no commit can be cleared."""
        key = history.key_of(parent)
        keys = (key,) if len(commit.parents) == 1 else tuple(map(history.key_of, commit.parents))
        if keys not in self._terms:
            self._terms[keys] = self._terms_for(history, key, commit)
        return self._terms[keys]

    def _is_agents(self, history: CommitHistory, commit: Commit) -> bool:
        """Return whether a commit is an agent's by its trailers."""
        return bool(commit.trailers) and bool(history.profile_of(commit, history.before_of(commit).policy)[1])

    def _terms_for(self, history: CommitHistory, key: Key, commit: Commit) -> _Terms | None:
        before, base = history.before_of(commit), history.policy_at(key)
        if before.fault is not None or _has_components(base) or _has_components(before):
            return None
        if before.is_absent and not base.is_absent:
            # Under `--policy-from` of a revision without a policy each commit is judged by its own.
            return None
        policy, profile = before.policy or built_in(), self._asked.profile or Profile.COMMIT
        if policy.refuses_messages(profile):
            return None
        compiled = compile_policy(policy, profile)
        if compiled is None:
            return None
        boring = BoringChanges.of(compiled, len(self._repository.zero_oid))
        if boring is None:
            return None
        is_strict = all(policy.level(rule, profile) is not None for rule in _BY_NAME)
        return _Terms(
            boring=boring,
            file=policy.file,
            digest=policy.digest(profile),
            restricts_by_rules_alone=is_strict,
            budget_ms=policy.config.hooks.budget_ms,
        )

    def _prove(
        self, walk: Walk, history: CommitHistory, blobs: BlobFacts, asked: Sequence[_Candidate]
    ) -> set[str]:
        """Prove the trees and blobs of commits that look boring; return those that are. Git was asked about
        their blobs.
        """
        done: set[str] = set()
        if not asked:
            return done
        sizes = iter(blobs.answers(sum([len(found.blobs) for _, found, _ in asked])))
        folders = {path.rpartition(b"/")[0] for _, found, _ in asked for path in found.paths}
        self._chain.expect(walk.objects, walk.tree_of(asked[0][0].parents[0]), folders)
        for commit, found, terms in asked:
            facts = [*islice(sizes, len(found.blobs))]
            # First, for the trees of the next commit follow from these.
            if not found.fits(self._chain, walk.objects, walk.tree_of(commit.parents[0]), commit.tree):
                continue
            if all(map(terms.boring.is_allowed_blob, facts)):
                done.add(commit.oid)
                self._count(history, commit, terms, found.paths)
        return done

    def _count(self, history: CommitHistory, commit: Commit, terms: _Terms, paths: Iterable[bytes]) -> None:
        self._number += 1
        self._paths.update(paths)
        if self._ref_of:
            self.digests.setdefault(self._ref_of[commit.oid], set()).add(terms.digest)
        if terms.budget_ms is not None:
            self._budgets.add(terms.budget_ms)
        if len(self._origins) < 2:
            place = history.place_of(commit)
            self._origins.add(f"{place}:{terms.file}" if terms.file else place)


def trees_of(walk: Walk, commit: Commit, difference: MergeDifference) -> tuple[list[bytes], list[bytes]]:
    """List the binary ids of all trees in which a merge and its parents differ, and of those of the merge
    that differ from each.
    """
    roots = [walk.tree_of(parent) for parent in commit.parents]
    folders: list[Sequence[tuple[str | None, str | None]]] = [*difference.folders.values()]
    folders.append([(root, commit.tree) for root in roots if root != commit.tree])
    every = [oid for pairs in folders for pair in pairs for oid in pair if oid is not None]
    joined = [pairs[0][1] for pairs in folders if len(pairs) == len(commit.parents)]
    return (
        [bytes.fromhex(oid) for oid in every],
        [bytes.fromhex(oid) for oid in joined if oid is not None],
    )
