"""What a merge has at a path although no side changed that path so: git followed a rename there.

The author of a history chooses what its merges start from, and so what git takes for a rename. Path by
path, a merge has what one side made of it, or, where several sides changed the file, git's merge of its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchgate.git.diff import Detail, read_difference
from patchgate.git.model import Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository

Files = Mapping[RepoPath, FileChange]


@dataclass(frozen=True, slots=True)
class _Side:
    """A parent beside the first one: its tree, a merge base of the two, and what it changed since."""

    tree: str
    base: str
    changed: Files


def carried_paths(
    repository: Repository,
    objects: Objects,
    parents: Sequence[tuple[str, str]],
    result: str,
    variables: Mapping[str, str] | None,
) -> set[RepoPath]:
    """Find the paths where a merge is as no side made them.

    With several merge bases, each must explain a path.

    Args:
        parents: commit and tree of each.
        result: the tree of the merge.
        variables: the environment in which that tree can be read.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """

    def between(old: str, new: str) -> Files:
        command, trees = ("diff-tree", "-r"), [old, new]
        files, _ = read_difference(repository, objects, command, trees, Detail(), variables)
        return {file.path: file for file in files}

    commit, first = parents[0]
    sides = [
        _Side(tree=tree, base=base, changed=between(base, tree))
        for other, tree in parents[1:]
        for base in _bases(repository, objects, commit, other)
    ]
    since_first = between(first, result)
    paths = {*since_first, *(path for side in sides for path in side.changed)}

    def explains(side: _Side, path: RepoPath) -> bool:
        entries = [objects.entry(tree, path.raw) for tree in (side.base, first, side.tree, result)]
        return _is_explained(*entries)

    if len(parents) == 2:
        return {path for path in paths if not all(explains(side, path) for side in sides)}
    # An octopus brings what any of its heads made.
    return {path for path in since_first if not any(explains(side, path) for side in sides)}


def _is_explained(base: Entry | None, ours: Entry | None, theirs: Entry | None, made: Entry | None) -> bool:
    """Return whether a merge of two sides may have an entry at a path, where no file was renamed."""
    if ours == base:
        return made == theirs
    if theirs in {base, ours}:
        return made == ours
    if made in (ours, theirs):
        return True
    # The text of a file that both changed.
    return all(entry is not None and entry.is_file for entry in (base, ours, theirs))


def _bases(repository: Repository, objects: Objects, one: str, other: str) -> list[str]:
    """List the trees of the merge bases of two commits; the empty tree if there is none."""
    done = repository.git("merge-base", "--all", one, other, answers=(0, 1))
    headers = objects.headers([commit + "^{tree}" for commit in done.out.decode("ascii").split()])
    return [header.oid for header in headers if header is not None] or [objects.empty_tree]
