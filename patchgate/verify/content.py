"""What is analysed, and by whose word: the staged tree, the working tree or a revision; and HEAD's policy.

Decides which tree each of these is, and makes it a real one, in the private store, where git has it in no
commit. The analyses are those of the policy that was there before (the trusted ref's, else that of what is
compared with, or HEAD's), never those of what is analysed: no change chooses its own measure.
"""

from __future__ import annotations

from typing import NamedTuple

from patchgate.check.terms import policy_of_analyses
from patchgate.errors import UsageError
from patchgate.git.diff import Detail
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.git.sources import pending_base, staged, worktree
from patchgate.git.trees import resulting_tree
from patchgate.policy.policy import Policy

STAGED, WORKTREE = "staged", "worktree"
REVISION = "a commit, a branch or a tag"
_TO_DECLARE = (
    'write [analyses.NAME] with command = ["ruff", "check", "--no-fix", "--output-format", "sarif", '
    '"--exit-zero", "."] into patchgate.toml, and commit it'
)


class Analysed(NamedTuple):
    """A tree that analyses can run in, and the commit that HEAD names there (None: an unborn branch)."""

    tree: str
    commit: str | None


def source_of(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    what: str,
    taken: str = f"{REVISION}, or {STAGED} or {WORKTREE}",
) -> Analysed:
    """Find the tree of `staged`, `worktree` or a revision; what is new of it lies in the private store.

    Args:
        objects: reads through `store`.
        taken: names, for the hint, what may be asked for here.

    Raises:
        UsageError: there is no such revision, or no working tree.
        UndecidedError: the index holds conflicts, or git failed.
    """
    if what not in {STAGED, WORKTREE}:
        return _revision(objects, what, taken)
    if repository.work_tree is None:
        raise UsageError("a bare repository has neither index nor working tree", "name a revision")
    base = pending_base(repository, objects)
    reading = (
        worktree(repository, objects, base, Detail(), store)
        if what == WORKTREE
        else staged(repository, objects, base, Detail())
    )

    def keep(kind: str, content: bytes) -> None:
        store.write(kind, content, repository.object_format)

    # At the cost of the change: `git write-tree` would look at every folder that has no cached tree.
    return Analysed(resulting_tree(objects, base.tree, reading.change.files, keep).tree, base.commit)


def _revision(objects: Objects, what: str, taken: str) -> Analysed:
    named = tree_named(objects, what)
    if named is None:
        raise UsageError(f"unknown revision {printable(what, 120)}", f"name {taken}")
    return Analysed(*named)


def analysis_policy(repository: Repository, objects: Objects, before: Analysed | None = None) -> Policy:
    """Find the policy whose analyses count: the trusted ref's, else that of `before`, else HEAD's.

    Args:
        before: what a change is compared with. Where no analysis is named there, as before the first, HEAD
            speaks.

    Raises:
        UsageError: it names no analysis.
        ConfigError: it cannot be used.
        UndecidedError: it cannot be read.
    """
    policy, whose = policy_of_analyses(repository, objects, None if before is None else before.tree)
    if not policy.config.analyses:
        raise UsageError(f"the policy of {printable(whose, 120)} names no analysis", _TO_DECLARE)
    return policy
