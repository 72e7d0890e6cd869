"""The source that a claim is checked against: the index, the working tree or a revision; and whose policy.

Decides which tree each of these is, what is read from it (on disk: regular files, no link is followed), what
differs there from an earlier tree, and whose `[claims]` apply: the trusted ref's, else HEAD's, or those of
the revision's first parent.
"""

from __future__ import annotations

import errno
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from io import FileIO

from patchgate.check.policy_lookup import requested_policy, trusted_options
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.change_sources import PendingBase, pending_base, read_staged, read_worktree
from patchgate.git.diff import Detail, read_difference
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.git.revisions import tree_named
from patchgate.git.working_tree import (
    Obstruction,
    ObstructionKind,
    differing_from_index,
    folder_above,
    index_names,
    index_records,
    is_there,
    name_of,
    open_file,
    open_root,
    tree_records,
    untracked_names,
)
from patchgate.placeholders.claims.claim import SkipReason, SourceName
from patchgate.placeholders.claims.claim_scan import FallbackFilter, PathInfo, Snapshot
from patchgate.placeholders.claims.snapshots import ObjectSnapshot, is_in_git
from patchgate.policy.policy import Policy
from patchgate.policy.tree_policies import TreePolicies, require_usable
from patchgate.values import dataclass, field

_PIECE = 1 << 20
_NOT_THERE = frozenset({errno.ENOENT, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})
_SKIP_REASONS = {
    ObstructionKind.LINK: SkipReason.SYMLINK,
    ObstructionKind.OTHER: SkipReason.MISSING,
    ObstructionKind.REPOSITORY: SkipReason.OUTSIDE,
}
_MOST_NAME = 120


@contextmanager
def disk_snapshot(repository: Repository) -> Generator[DiskSnapshot, None, None]:
    """Open the folder of a working tree as a snapshot.

    Raises:
        UndecidedError: it cannot be opened.
    """
    with ExitStack() as stack:
        try:
            root = stack.enter_context(open_root(repository.work_tree or ""))
        except OSError as error:
            raise UndecidedError(
                f"the working tree cannot be read: {error.strerror or 'no reason given'}",
                "check the permissions of its folder",
            ) from error
        yield DiskSnapshot(repository, root)


class DiskSnapshot:
    """The working tree of a repository, below an open folder."""

    def __init__(self, repository: Repository, root: int) -> None:
        self._repository = repository
        self._root = root
        self._states: dict[RepoPath, tuple[int, ...]] = {}

    def inspect(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, PathInfo]:
        """Look up what is at each path."""
        return {path: self._inspect(path) for path in paths}

    def read(self, path: RepoPath, most: int) -> bytes | None:
        """Read the first bytes of a file that was inspected; None: it cannot be read, or it has changed."""
        try:
            with folder_above(self._root, path) as above:
                if isinstance(above, Obstruction):
                    return None
                with open_file(path.name, above) as file:
                    before = _file_state(os.fstat(file.fileno()))
                    content = _read_first(file, most)
                    after = _file_state(os.fstat(file.fileno()))
        except OSError:
            return None
        return content if before == after == self._states[path] else None

    def tracked(self, selection: FallbackFilter) -> Generator[RepoPath, None, None]:
        """List the files that the filter accepts: untracked ones, the newest work, and then the others.

        Raises:
            UndecidedError: they cannot be listed.
        """
        for listed in (untracked_names, index_names):
            with closing(listed(self._repository)) as pieces:
                for record in selection.select(pieces, name_of):
                    yield RepoPath.from_git(name_of(record))

    def _inspect(self, path: RepoPath) -> PathInfo:
        if path.is_too_long:
            return PathInfo(fault=SkipReason.MISSING)
        if is_in_git(path):
            return PathInfo(fault=SkipReason.OUTSIDE)
        try:
            with folder_above(self._root, path) as above:
                if isinstance(above, Obstruction):
                    return PathInfo(fault=_SKIP_REASONS[above.kind])
                found = os.stat(path.name, dir_fd=above, follow_symlinks=False)
                # A submodule for instance.
                is_repository = stat.S_ISDIR(found.st_mode) and is_there(path.name + b"/.git", above)
        except OSError as error:
            return PathInfo(fault=SkipReason.MISSING if error.errno in _NOT_THERE else SkipReason.UNREADABLE)
        if is_repository:
            return PathInfo(fault=SkipReason.OUTSIDE)
        if not stat.S_ISREG(found.st_mode):
            return PathInfo(fault=SkipReason.SYMLINK if stat.S_ISLNK(found.st_mode) else SkipReason.MISSING)
        self._states[path] = _file_state(found)
        return PathInfo(found.st_size)


def _read_first(file: FileIO, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := file.read(min(most, _PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _file_state(found: os.stat_result) -> tuple[int, ...]:
    """Return the fields that change when a file's content changes."""
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where a claim's files are read: in the tree of a revision, in the working tree, else in the index."""

    tree: str | None = None
    worktree: bool = False


@dataclass(frozen=True, slots=True)
class ClaimSource(ABC):
    """The files that a claim is checked against; one subclass for each kind of source.

    `read_from` is its name in messages. `before` is the tree that its newest work started from; None where
    that is unknown, as for a tree without a commit. `committed` is the tree of what is no longer pending,
    `policy_tree` has the policy that applies unless a ref is trusted.
    """

    repository: Repository
    objects: Objects
    read_from: str
    before: str | None
    committed: str
    policy_tree: str
    _differences: dict[str, Sequence[FileChange]] = field(default_factory=dict, compare=False, kw_only=True)
    _unlike: dict[RepoPath, bool] = field(default_factory=dict, compare=False, kw_only=True)

    @abstractmethod
    @contextmanager
    def snapshot(self) -> Generator[Snapshot, None, None]:
        """Open it for reading.

        Raises:
            UndecidedError: the index has conflicts or is damaged.
        """

    @abstractmethod
    def _compared(self, before: str) -> Sequence[FileChange]: ...

    def changes_since(self, before: str) -> Sequence[FileChange]:
        """List what differs from a tree; each tree is compared once.

        Raises:
            UndecidedError: the index has conflicts, or git failed.
        """
        if before not in self._differences:
            self._differences[before] = self._compared(before)
        return self._differences[before]

    def may_follow(self, commit: str | None) -> bool:
        """Return whether work that follows a commit (None: the beginning) can be in it."""
        return True

    def staged_differently(self, paths: Collection[RepoPath]) -> frozenset[RepoPath]:
        """Find the files that differ between the index and the disk, where the user did not choose one.

        Raises:
            UndecidedError: they cannot be compared.
        """
        return frozenset()


class IndexSource(ClaimSource):
    """What is staged, over HEAD."""

    def staged_differently(self, paths: Collection[RepoPath]) -> frozenset[RepoPath]:
        """Find the files that differ in the working tree; each path is compared once."""
        unknown = [path for path in paths if path not in self._unlike]
        found = differing_from_index(self.repository, unknown)
        self._unlike.update((path, path in found) for path in unknown)
        return frozenset(path for path in paths if self._unlike[path])

    def on_disk(self) -> WorktreeSource:
        """Return the working tree that the index belongs to."""
        return WorktreeSource(
            repository=self.repository,
            objects=self.objects,
            read_from=SourceName.WORKING_TREE.value,
            before=self.committed,
            committed=self.committed,
            policy_tree=self.committed,
            index=self,
        )

    @contextmanager
    def snapshot(self) -> Generator[Snapshot, None, None]:
        """Open the index for reading."""
        overlay = {file.path.raw: file.new for file in self.changes_since(self.committed)}
        listed = partial(index_records, self.repository)
        yield ObjectSnapshot(objects=self.objects, tree=self.committed, overlay=overlay, listed=listed)

    def _compared(self, before: str) -> Sequence[FileChange]:
        return read_staged(
            self.repository, self.objects, PendingBase(before, None, before), Detail()
        ).change.files


@dataclass(frozen=True, slots=True)
class WorktreeSource(ClaimSource):
    """What is on disk, tracked or not, over HEAD; `index` where that is the default source."""

    index: IndexSource | None = None

    def staged_differently(self, paths: Collection[RepoPath]) -> frozenset[RepoPath]:
        """Find the files that are staged with other content; none if the user chose the working tree."""
        if self.index is None:
            return frozenset()
        staged_too = {file.path for file in self.index.changes_since(self.index.committed)}
        return differing_from_index(self.repository, staged_too.intersection(paths))

    @contextmanager
    def snapshot(self) -> Generator[Snapshot, None, None]:
        """Open the working tree for reading."""
        with disk_snapshot(self.repository) as disk:
            yield disk

    def _compared(self, before: str) -> Sequence[FileChange]:
        from patchgate.git.private_store import PrivateStore

        base = PendingBase(before, None, before)
        with PrivateStore(self.repository) as store, Objects(self.repository, store.variables) as through:
            return read_worktree(self.repository, through, base, Detail(), store).change.files


@dataclass(frozen=True, slots=True)
class TreeSource(ClaimSource):
    """A tree in git, and its commit where the revision names one."""

    tree: str
    commit: str | None

    @contextmanager
    def snapshot(self) -> Generator[Snapshot, None, None]:
        """Open the tree for reading."""
        listed = partial(tree_records, self.repository, self.tree)
        yield ObjectSnapshot(objects=self.objects, tree=self.tree, overlay={}, listed=listed)

    def _compared(self, before: str) -> Sequence[FileChange]:
        trees = [before, self.tree]
        files, _ = read_difference(self.repository, self.objects, ("diff-tree", "-r"), trees, Detail())
        return files

    def may_follow(self, commit: str | None) -> bool:
        """Return whether a commit is an ancestor of this one; False where that is unknown."""
        if commit is None:
            return True
        if self.commit is None or self.commit == commit:
            return False
        command = ("merge-base", "--is-ancestor", commit, self.commit)
        return self.repository.git(*command, answers=ANY_CODE).code == 0


def open_source(
    repository: Repository, objects: Objects, options: SourceOptions
) -> tuple[ClaimSource, Policy]:
    """Find the source that the options choose, and the policy that applies.

    Raises:
        UsageError: there is no such revision, no index or no working tree.
        ConfigError: the policy cannot be used.
        UndecidedError: an object that it needs is missing.
    """
    if options.tree is not None and options.worktree:
        raise UsageError("--tree and --worktree exclude each other", "give one of them")
    source: ClaimSource
    if options.tree is not None:
        source = _tree_source(repository, objects, options.tree)
    elif repository.work_tree is None:
        raise UsageError(
            "a bare repository has neither index nor working tree", "name a revision: --tree REV"
        )
    else:
        head = pending_base(repository, objects).policy_tree
        source = (WorktreeSource if options.worktree else IndexSource)(
            repository=repository,
            objects=objects,
            read_from=(SourceName.WORKING_TREE if options.worktree else SourceName.INDEX).value,
            before=head,
            committed=head,
            policy_tree=head,
        )
    policies = TreePolicies(objects)
    found = requested_policy(objects, policies, trusted_options(repository))
    return source, require_usable(found or policies.at(policies.key(source.policy_tree)))


def use_worktree_if_unstaged(source: ClaimSource, named: Collection[RepoPath]) -> ClaimSource:
    """Choose the working tree instead of the index where files that a claim names exist and are not staged.

    Where one of them is staged with other content, the index is kept: it is not known which one is meant.

    Raises:
        UndecidedError: the two cannot be compared.
    """
    if not isinstance(source, IndexSource):
        return source
    unstaged = source.staged_differently(named)
    if not unstaged or any(file.path in unstaged for file in source.changes_since(source.committed)):
        return source
    with disk_snapshot(source.repository) as disk:
        if all(each.fault is not None for each in disk.inspect([*unstaged]).values()):
            return source
    return source.on_disk()


def _tree_source(repository: Repository, objects: Objects, name: str) -> TreeSource:
    shown = printable(name, _MOST_NAME)
    named = tree_named(objects, name)
    if named is None:
        raise UsageError(f"unknown revision {shown}", "name a commit, a branch or a tag")
    tree, commit = named
    made = partial(
        TreeSource, repository=repository, objects=objects, read_from=shown, tree=tree, commit=commit
    )
    if commit is None:
        head = pending_base(repository, objects).policy_tree
        return made(before=None, committed=head, policy_tree=head)
    before = _parent_tree(objects, commit)
    if before is None:
        # A root commit is checked by its own policy.
        return made(before=objects.empty_tree, committed=tree, policy_tree=tree)
    return made(before=before, committed=tree, policy_tree=before)


def _parent_tree(objects: Objects, commit: str) -> str | None:
    """Find the tree of a commit's first parent; None for a root commit."""
    parent = objects.header(commit + "^1^{tree}")
    if parent is not None:
        return parent.oid
    if b"\nparent " in objects.read(commit).partition(b"\n\n")[0]:
        raise UndecidedError(
            f"the parent of commit {commit[:12]} is not in this repository", "git fetch --unshallow"
        )
    return None
