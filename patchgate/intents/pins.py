"""What is there when a piece of work begins: the commit, the files that are dirty already, the analyses.

Decides what is remembered of the worktree, so that nothing which was there before is blamed on the work. Who
may begin, and what a later commit makes of it, others decide. Nothing is written to the repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchgate.check.terms import policy_of_analyses
from patchgate.git.diff import Detail
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.sources import pending_base, staged, worktree
from patchgate.policy.analyses import digest_of
from patchgate.policy.policy import Profile


@dataclass(frozen=True, slots=True)
class Pins:
    """What a worktree holds at one moment, as `Intent` has it.

    `most_files` is how many of them one commit may touch under an intent; None: any number.
    """

    base: str | None
    tree: str
    dirty: Mapping[RepoPath, tuple[str | None, ...]]
    analyses: str
    most_files: int | None = None


def pins_of(repository: Repository) -> Pins:
    """Look at a worktree.

    A dirty file is remembered as it is staged and as the working tree has it: either may be committed next.

    Raises:
        ConfigError: the policy of `HEAD` cannot be used.
        UndecidedError: the index holds conflicts, or something cannot be read.
    """
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        # Also while a merge waits: what it brought is in the files then, and was there before.
        base = pending_base(repository, objects)
        in_index = staged(repository, objects, base, Detail()).change
        on_disk = worktree(repository, objects, base, Detail(), store).change
        policy, _ = policy_of_analyses(repository, objects)
        return Pins(
            base.commit,
            base.tree,
            _oids((*in_index.files, *on_disk.files)),
            digest_of(policy.config.analyses),
            policy.limits(Profile.AGENT, None).max_files,
        )


def _oids(files: Iterable[FileChange]) -> dict[RepoPath, tuple[str | None, ...]]:
    found: dict[RepoPath, dict[str | None, None]] = {}
    for file in files:
        found.setdefault(file.path, {})[None if file.new is None else file.new.oid] = None
    return {path: tuple(oids) for path, oids in found.items()}
