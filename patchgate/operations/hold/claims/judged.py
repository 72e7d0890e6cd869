"""The content that a claim is held against: the index, the working tree or a revision; and by whose policy.

Decides which tree each of these is, what is read of it, what differs there from an earlier tree, and whose
`[claims]` count: the trusted ref's, else HEAD's, or those of the revision's first parent.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from patchgate.change.model import FileChange
from patchgate.change.quoting import printable
from patchgate.declared.policy import Policy
from patchgate.errors import UndecidedError, UsageError
from patchgate.gates.claim_scan import Snapshot
from patchgate.git.diff import Detail
from patchgate.git.listing import index_records, tree_records
from patchgate.git.objects import Objects
from patchgate.git.pairs import read_difference
from patchgate.git.repository import Repository
from patchgate.git.sources import Base, pending_base, staged, worktree
from patchgate.operations.hold.claims.disk import DiskSnapshot
from patchgate.operations.hold.claims.snapshots import ObjectSnapshot
from patchgate.operations.judge.policies import Policies, usable
from patchgate.operations.judge.terms import asked_policy, trusted

INDEX, WORKING_TREE = "the index", "the working tree"
_MOST_NAME = 120


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a claim's files are read: in the tree of a revision, in the working tree, else in the index."""

    tree: str | None = None
    worktree: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The content that is judged.

    `read_from` names it for people. `before` is the tree that its newest work started from; None where nobody
    can tell, as of a tree that no commit is named for. `policy_tree` has the policy that judges it, unless a
    ref is trusted above all. `tree` and `commit` are those of a revision.
    """

    repository: Repository
    objects: Objects
    read_from: str
    before: str | None
    policy_tree: str
    tree: str | None = None
    commit: str | None = None
    _differences: dict[str, Sequence[FileChange]] = field(default_factory=dict, compare=False)

    @contextmanager
    def snapshot(self) -> Generator[Snapshot, None, None]:
        """Give what can be read of it.

        Raises:
            UndecidedError: the index holds conflicts or is damaged.
        """
        repository, objects = self.repository, self.objects
        if self.read_from == WORKING_TREE and self.tree is None:
            with DiskSnapshot(repository) as disk:
                yield disk
        elif self.tree is not None:
            yield ObjectSnapshot(objects, self.tree, {}, partial(tree_records, repository, self.tree))
        else:
            before = self.before or objects.empty_tree
            laid = {file.path.raw: file.new for file in self.changes_since(before)}
            yield ObjectSnapshot(objects, before, laid, partial(index_records, repository))

    def changes_since(self, before: str) -> Sequence[FileChange]:
        """Tell what differs there from a tree; each tree is compared once.

        Raises:
            UndecidedError: the index holds conflicts, or git failed.
        """
        if before not in self._differences:
            self._differences[before] = self._compared(before)
        return self._differences[before]

    def _compared(self, before: str) -> Sequence[FileChange]:
        repository, objects = self.repository, self.objects
        if self.tree is not None:
            command = ("diff-tree", "-r")
            files, _ = read_difference(repository, objects, command, [before, self.tree], Detail())
            return files
        base = Base(before, None, before)
        if self.read_from == INDEX:
            return staged(repository, objects, base, Detail()).change.files
        from patchgate.git.private import PrivateStore

        with PrivateStore(repository) as store, Objects(repository, store.variables) as through:
            return worktree(repository, through, base, Detail(), store).change.files

    def holds(self, commit: str | None) -> bool:
        """Tell whether the work after a commit (None: after nothing) can be in what is judged."""
        if self.tree is None or commit is None:
            return True
        if self.commit is None or self.commit == commit:
            return False
        return self.repository.git("merge-base", "--is-ancestor", commit, self.commit).code == 0


def judged_of(repository: Repository, objects: Objects, asked: Asked) -> tuple[Judged, Policy]:
    """Find what is judged, and the policy by which.

    Raises:
        UsageError: there is no such revision, no index or no working tree.
        ConfigError: the policy cannot be used.
        UndecidedError: something of it is not here.
    """
    if asked.tree is not None and asked.worktree:
        raise UsageError("a claim is held against one content", "name --tree or --worktree, not both")
    if asked.tree is not None:
        judged = _revision(repository, objects, asked.tree)
    elif repository.work_tree is None:
        raise UsageError(
            "a bare repository has neither index nor working tree", "name a revision: --tree REV"
        )
    else:
        where = WORKING_TREE if asked.worktree else INDEX
        head = pending_base(repository, objects).policy_tree
        judged = Judged(repository, objects, where, head, head)
    policies = Policies(objects)
    found = asked_policy(objects, policies, trusted(repository))
    return judged, usable(found or policies.at(policies.key(judged.policy_tree)))


def _revision(repository: Repository, objects: Objects, name: str) -> Judged:
    shown = printable(name, _MOST_NAME)
    is_name = bool(name) and not name.startswith("-") and "\n" not in name and "\0" not in name
    commit = objects.header(name + "^{commit}") if is_name else None
    tree = objects.header((commit.oid if commit else name) + "^{tree}") if is_name else None
    if tree is None:
        raise UsageError(f"unknown revision {shown}", "name a commit, a branch or a tag")
    if commit is None:
        head = pending_base(repository, objects).policy_tree
        return Judged(repository, objects, shown, None, head, tree.oid)
    before = _before(objects, commit.oid)
    if before is None:
        # Nothing was there before it, so that its own policy speaks.
        return Judged(repository, objects, shown, objects.empty_tree, tree.oid, tree.oid, commit.oid)
    return Judged(repository, objects, shown, before, before, tree.oid, commit.oid)


def _before(objects: Objects, commit: str) -> str | None:
    """Find the tree of a commit's first parent; None for a root commit."""
    parent = objects.header(commit + "^1^{tree}")
    if parent is not None:
        return parent.oid
    if b"\nparent " in objects.read(commit).partition(b"\n\n")[0]:
        raise UndecidedError(
            f"the parent of commit {commit[:12]} is not in this repository", "git fetch --unshallow"
        )
    return None
