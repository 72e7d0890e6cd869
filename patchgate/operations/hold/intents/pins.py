"""What is there when a piece of work begins: the commit, the files that are dirty already, the analyses.

Decides what is remembered of the worktree, so that nothing which was there before is blamed on the work. Who
may begin, and what a later commit makes of it, others decide. Nothing is written to the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchgate.change.model import Change
from patchgate.change.path import RepoPath
from patchgate.declared.analyses import digest_of
from patchgate.git.diff import Detail
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.sources import Base, pending_base, staged, worktree
from patchgate.operations.judge.policies import Policies, usable
from patchgate.operations.judge.terms import asked_policy, trusted


@dataclass(frozen=True, slots=True)
class Pins:
    """What a worktree holds at one moment, as `Intent` has it."""

    base: str | None
    tree: str
    dirty: Mapping[RepoPath, str | None]
    analyses: str


def pins_of(repository: Repository) -> Pins:
    """Look at a worktree.

    A dirty file is remembered as the working tree has it; as it is staged only where the working tree is as
    `HEAD` again.

    Raises:
        ConfigError: the policy of `HEAD` cannot be used.
        UndecidedError: the index holds conflicts, or something cannot be read.
    """
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        # Also while a merge waits: what it brought is in the files then, and was there before.
        base = pending_base(repository, objects)
        dirty = _oids(staged(repository, objects, base, Detail()).change)
        dirty |= _oids(worktree(repository, objects, base, Detail(), store).change)
        return Pins(base.commit, base.tree, dirty, _analyses(repository, objects, base))


def _oids(change: Change) -> dict[RepoPath, str | None]:
    return {file.path: None if file.new is None else file.new.oid for file in change.files}


def _analyses(repository: Repository, objects: Objects, base: Base) -> str:
    policies = Policies(objects)
    found = asked_policy(objects, policies, trusted(repository))
    if found is None:
        found = policies.at(policies.key(base.policy_tree))
    return digest_of(usable(found).config.analyses)
