"""The content that a capture records: the index, or with `--worktree` everything in the working tree.

Decides which tree that is, as git itself would write it, and which policy speaks of components there: its
own; and which files the working tree has otherwise than the index. Nothing is written to the repository; new
objects are in the private store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.diff import Detail
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.sources import pending_base, worktree
from patchgate.git.tree_view import TreeView
from patchgate.policy.policies import Policies, usable
from patchgate.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Recordable:
    """A whole tree that tests can run in, the policy in it, and the commit that it follows.

    `unstaged` are the files that the working tree has otherwise than the index, sorted.
    """

    view: TreeView
    policy: Policy
    commit: str | None
    store: PrivateStore
    unstaged: tuple[RepoPath, ...] = ()

    @property
    def tree(self) -> str:
        """The id of the tree; its new objects are in `store`."""
        return self.view.tree


def content_of(
    repository: Repository, objects: Objects, store: PrivateStore, *, from_disk: bool
) -> Recordable:
    """Write the tree of the index, or of the working tree, into the private store.

    Args:
        objects: reads through `store`.
        from_disk: whether everything in the working tree counts that is not ignored.

    Raises:
        UsageError: there is no working tree.
        UndecidedError: the index holds a conflict, or git failed.
        ConfigError: the policy of that content cannot be used.
    """
    if repository.work_tree is None:
        raise UsageError(
            "a bare repository has neither index nor working tree", "capture in a clone, and push it"
        )
    _require_merged(repository)
    base = pending_base(repository, objects)
    variables = store.copy_index()
    unstaged = _unstaged(repository, variables)
    if from_disk:
        worktree(repository, objects, base, Detail(), store)
    # What is only intended to be added is no part of it, as of the next commit.
    tree = repository.output("write-tree", variables=variables).decode("ascii").strip()
    view = TreeView(objects, tree)
    policies = Policies(objects)
    policy = usable(policies.at(policies.key(view.tree)))
    return Recordable(view, policy, base.commit, store, unstaged)


def _unstaged(repository: Repository, variables: Mapping[str, str]) -> tuple[RepoPath, ...]:
    """List what `git add --all` would add to a private index: changed, gone and untracked files."""
    # A file that was only touched is not told; the exit code tells of others that changed.
    refresh = ("update-index", "-q", "--refresh")
    repository.git(*refresh, variables=variables, in_work_tree=True, answers=(0, 1))
    found: set[bytes] = set()
    for command in (
        ("diff-files", "-z", "--name-only", "--ignore-submodules=dirty"),
        ("ls-files", "-z", "--others", "--exclude-standard"),
    ):
        done = repository.git(*command, variables=variables, in_work_tree=True)
        # A repository nested in this one is listed as a folder.
        found.update(name.rstrip(b"/") for name in done.out.split(b"\0") if name)
    return tuple(RepoPath.from_git(name) for name in sorted(found))


def _require_merged(repository: Repository) -> None:
    listed = repository.output("ls-files", "-z", "--unmerged")
    if listed:
        path = RepoPath.from_git(listed.split(b"\0")[0].partition(b"\t")[2])
        raise UndecidedError(
            f"{path.quoted} is not merged: the index holds a conflict",
            "resolve the conflict, then git add the file",
        )
