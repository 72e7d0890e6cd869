"""The check: from a repository to a report, for every kind of change.

Decides in which order things are read, and with how much detail: what the policy needs and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchgate.change.model import Entry
from patchgate.declared.control import CONFIG_FILE, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.declared.policy import Policy, Profile
from patchgate.errors import UsageError
from patchgate.git.diff import Detail
from patchgate.git.history import Commit, Walk, commits_of
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.sources import (
    Base,
    Reading,
    is_merging,
    pending_base,
    staged,
    worktree,
)
from patchgate.operations.judge.cases import BUILT_IN, Rules, judge_reading
from patchgate.operations.judge.policies import Found, Key, Policies, built_in
from patchgate.verdict.verdict import ChangeVerdict, Report

_BATCH_FILES = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked about how to judge; None leaves it to the change.

    `policy_from` is a revision whose policy counts, `policy` one that is not in the repository yet.
    """

    policy_from: str | None = None
    profile: Profile | None = None
    policy: Policy | None = None


def check_pending(repository: Repository, asked: Asked, *, whole_tree: bool = False) -> Report:
    """Judge what is staged, or (with `whole_tree`) everything in the working tree.

    Raises:
        PatchgateError: it could not even be read.
    """
    if not (whole_tree or is_merging(repository)):
        with Objects(repository) as objects:
            base = pending_base(repository, objects)
            return _pending(repository, objects, base, asked, None)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        base = pending_base(repository, objects, store)
        return _pending(repository, objects, base, asked, store if whole_tree else None)


def _pending(
    repository: Repository, objects: Objects, base: Base, asked: Asked, store: PrivateStore | None
) -> Report:
    policies = Policies(objects)
    before = asked_policy(objects, policies, asked) or policies.at(policies.key(base.policy_tree))
    profile = asked.profile or Profile.COMMIT
    detail = detail_for([before.policy or built_in()], profile)

    def read(detail: Detail) -> Reading:
        if store is not None:
            return worktree(repository, objects, base, detail, store)
        return staged(repository, objects, base, detail)

    reading = read(detail)
    after = policies.at(_key_after(objects, policies, base.tree, reading))
    needed = detail_for([policy for policy in (before.policy, after.policy) if policy], profile)
    if not detail.covers(needed) or (after.policy is not None and after.policy is not before.policy):
        reading = read(needed)
    rules = Rules(
        before,
        after,
        place=asked.policy_from or "HEAD",
        is_root=base.commit is None,
        hooks_named=policies.names_patchgate(base.policy_tree),
    )
    return Report((judge_reading(reading, rules, profile),), repository.limits)


def _key_after(objects: Objects, policies: Policies, base: str, reading: Reading) -> Key:
    """Name the policy that the change leaves, without the resulting tree being in the repository."""
    root: dict[bytes, Entry | None] = {**objects.tree(base)}
    root.update((file.path.raw, file.new) for file in reading.change.files)
    return policies.key_of(root.get(CONFIG_FILE.raw), root.get(PYPROJECT_FILE.raw))


def asked_policy(objects: Objects, policies: Policies, asked: Asked) -> Found | None:
    """Read the policy of `--policy-from REV`.

    Raises:
        UsageError: there is no such revision.
        ConfigError: its policy cannot be used.
    """
    if asked.policy is not None:
        return Found(asked.policy)
    if asked.policy_from is None:
        return None
    header = objects.header(asked.policy_from + "^{tree}") if _is_name(asked.policy_from) else None
    if header is None:
        raise UsageError("unknown revision for --policy-from", "name a commit, a branch or a tag")
    found = policies.at(policies.key(header.oid))
    if found.fault is not None:
        raise found.fault
    return found


def _is_name(revision: str) -> bool:
    return not revision.startswith("-") and "\n" not in revision and "\0" not in revision


def detail_for(judging: Sequence[Policy], profile: Profile) -> Detail:
    """Say how much has to be read for these policies."""
    contents = [policy.content for policy in judging if policy.content]
    if not contents:
        watch = None
    elif len(contents) == 1:
        watch = contents[0].suspects
    else:

        def watch(lines: Sequence[bytes]) -> list[int]:
            return sorted({index for content in contents for index in content.suspects(lines)})

    return Detail(
        lines=any(policy.needs_lines(profile) for policy in judging),
        sizes=any(policy.needs_sizes(profile) for policy in judging),
        watch=watch,
    )


def check_revision(repository: Repository, revision: str, asked: Asked) -> Report:
    """Judge one commit (`REV`), or every commit of a range (`A..B`) by itself.

    Raises:
        PatchgateError: a revision is unknown, or the history cannot be read.
    """
    with Objects(repository) as objects:
        commits = commits_of(repository, objects, revision)
    return judge_commits(repository, commits, asked)


def judge_commits(repository: Repository, commits: Sequence[Commit], asked: Asked) -> Report:
    """Judge commits, each by itself under the policy of its first parent; parents come first."""
    verdicts: list[ChangeVerdict] = []
    with Walk(repository, commits) as walk:
        history = _History(walk, asked)
        while len(verdicts) < len(commits):
            verdicts.extend(history.judge_from(commits[len(verdicts) :]))
    return Report(tuple(verdicts), repository.limits)


class _History:
    """Judges the commits of a walk, and remembers which policy each of them left behind."""

    def __init__(self, walk: Walk, asked: Asked) -> None:
        self._walk = walk
        self._policies = Policies(walk.objects)
        self._asked = asked_policy(walk.objects, self._policies, asked)
        self._place = asked.policy_from
        self._profile = asked.profile
        self._keys: dict[str, Key] = {}
        self._hooks: dict[str, bool] = {}

    def judge_from(self, commits: Sequence[Commit]) -> Iterator[ChangeVerdict]:
        """Judge on until the policy changes: what has to be read may be more from there on."""
        before = self._before(commits[0])
        profiles = {self._profile_of(commit) for commit in commits}
        policies = [before.policy or built_in()]
        detail = _widest([detail_for(policies, profile) for profile in profiles])
        for commit, reading in self._walk.read(commits, detail):
            is_same = self._before(commit) == before
            after = self._after(commit, reading)
            if not is_same or after != before:
                yield self._judge(commit, self._read_again(commit, after))
                return
            yield self._judge(commit, reading)

    def _read_again(self, commit: Commit, after: Found) -> Reading:
        """Read a commit by itself, in the detail that its own two policies need."""
        profile = self._profile_of(commit)
        policies = [found.policy or built_in() for found in (self._before(commit), after)]
        ((_, reading),) = self._walk.read([commit], detail_for(policies, profile))
        return reading

    def _profile_of(self, commit: Commit) -> Profile:
        return self._profile or (Profile.AGENT if commit.is_agents else Profile.COMMIT)

    def _key_of(self, commit: str) -> Key:
        if commit not in self._keys:
            self._keys[commit] = self._policies.key(self._walk.tree_of(commit))
        return self._keys[commit]

    def _before(self, commit: Commit) -> Found:
        if self._asked is not None:
            return self._asked
        if not commit.parents:
            return Found()
        return self._policies.at(self._key_of(commit.parents[0]))

    def _after(self, commit: Commit, reading: Reading) -> Found:
        touched = any(file.path in _POLICY_FILES for file in reading.change.files)
        if not touched and len(commit.parents) == 1:
            self._keys[commit.oid] = self._key_of(commit.parents[0])
        return self._policies.at(self._key_of(commit.oid))

    def _judge(self, commit: Commit, reading: Reading) -> ChangeVerdict:
        touches_hooks = any(file.path == PRE_COMMIT_FILE for file in reading.change.files)
        rules = Rules(
            self._before(commit),
            self._after(commit, reading),
            place=self._place or (commit.parents[0][:12] if commit.parents else BUILT_IN),
            is_root=not commit.parents,
            hooks_named=touches_hooks and self._policies.names_patchgate(self._walk.base_of(commit)),
        )
        return judge_reading(reading, rules, self._profile_of(commit))


_POLICY_FILES = frozenset({CONFIG_FILE, PYPROJECT_FILE})


def _widest(details: Sequence[Detail]) -> Detail:
    return Detail(
        lines=any(detail.lines for detail in details),
        sizes=any(detail.sizes for detail in details),
        watch=details[0].watch,
    )
