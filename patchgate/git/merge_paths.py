"""What a merge has at a path although no side changed that path so: git followed a rename there.

The author of a history chooses what its merges start from, and so what git takes for a rename. Path by
path, a merge has what one side made of it, or, where several sides changed the file, git's merge of its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchgate.git.diff import Detail, read_difference
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository

Files = Mapping[RepoPath, FileChange]


@dataclass(frozen=True, slots=True)
class _Pair:
    """The trees of two parents, and of their merge bases."""

    one: str
    other: str
    bases: Sequence[str]


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

    pairs = [
        _Pair(one=one, other=other, bases=_bases(repository, objects, (one_commit, other_commit)))
        for number, (one_commit, one) in enumerate(parents)
        for other_commit, other in parents[number + 1 :]
    ]
    paths = {*between(parents[0][1], result)}
    for pair in pairs:
        for base in pair.bases:
            paths.update(between(base, pair.other))
    is_octopus = len(parents) > 2
    return {path for path in paths if not _is_explained(objects, path.raw, result, pairs, is_octopus)}


def _is_explained(
    objects: Objects, path: bytes, result: str, pairs: Sequence[_Pair], is_octopus: bool
) -> bool:
    """Return whether a merge may have what it has at a path, where no file was renamed.

    Of two parents the merge has what one made of the path since each merge base. Only of two alone may it
    choose, where both changed the path, or join their text.
    """
    made = objects.entry(result, path)
    for pair in pairs:
        one, other = objects.entry(pair.one, path), objects.entry(pair.other, path)
        for tree in pair.bases:
            base = objects.entry(tree, path)
            if one == other:
                is_right = is_octopus or made == one
            elif base == one:
                is_right = made == other or (is_octopus and made != one)
            elif base == other:
                is_right = made == one or (is_octopus and made != other)
            else:
                is_text = all(entry is not None and entry.is_file for entry in (base, one, other))
                is_right = not is_octopus and (made in (one, other) or is_text)
            if not is_right:
                return False
    parents = [objects.entry(tree, path) for pair in pairs for tree in (pair.one, pair.other)]
    return not is_octopus or made in parents


def _bases(repository: Repository, objects: Objects, commits: Sequence[str]) -> list[str]:
    """List the trees of the merge bases of two commits; the empty tree if there is none."""
    done = repository.git("merge-base", "--all", *commits, answers=(0, 1))
    headers = objects.headers([commit + "^{tree}" for commit in done.out.decode("ascii").split()])
    return [header.oid for header in headers if header is not None] or [objects.empty_tree]
