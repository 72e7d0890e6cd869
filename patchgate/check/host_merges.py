"""Whether all hosts make the same merge of a head that is not up to date, where that matters.

By another program, setting or attribute a host finds other renames, and joins the lines of both sides in
another way. Where that decides about the policy, or about a path that not everybody may change, no merge that
is made here says what will land.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from patchgate.errors import UndecidedError
from patchgate.git.merge_paths import Restricted
from patchgate.git.model import TREE_MODE, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestors
from patchgate.git.repository import BIG_FILE
from patchgate.git.trees import compare_trees
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE, may_have_table
from patchgate.report.wording import SHORT_OID

_MOST_BASES = 16
_Changes = Mapping[RepoPath, FileChange]


class HostMerges:
    """The merges that hosts may make of two commits.

    Args:
        sides: the commit of the branch, and the one that would be merged into it.

    Raises:
        UndecidedError: git failed, or there are too many merge bases.
    """

    def __init__(self, objects: Objects, sides: tuple[str, str]) -> None:
        self._objects = objects
        self._branch, self._tip = (side[:SHORT_OID] for side in sides)
        bases = common_ancestors(objects.repository, *sides)
        if len(bases) > _MOST_BASES:
            raise self._undecided(f"{self._tip} and {self._branch} have {len(bases)} merge bases")
        found = objects.headers([f"{each}^{{tree}}" for each in (*sides, *bases)])
        trees = [each.oid for each in found if each is not None]
        self._sides, self._bases = trees[:2], trees[2:]

    def require_one_policy(self) -> None:
        """Require that no lines of both sides are joined to the policy of the merge.

        Raises:
            UndecidedError: both sides have changed the file of the policy, or one that may become it.
        """
        for path in (CONFIG_FILE, PYPROJECT_FILE):
            sides = [self._objects.entry(tree, path.raw) for tree in self._sides]
            before = [self._objects.entry(tree, path.raw) for tree in self._bases]
            if sides[0] == sides[1] or (len(before) == 1 and before[0] in sides):
                continue
            if path == CONFIG_FILE or any(self._may_have_table(each) for each in sides):
                raise self._undecided(
                    f"both sides have changed {path.quoted}: hosts may join its lines to another policy"
                )

    def require_one_result(self, is_restricted: Restricted) -> None:
        """Require that all hosts bring the same to where not everybody may change it.

        Raises:
            UndecidedError: what comes to such a path depends on how a host joins lines, finds renames, or
                merges several merge bases first.
        """

        def is_guarded(path: RepoPath) -> bool:
            return path.raw == PYPROJECT_FILE.raw or is_restricted(path)

        if len(self._bases) > 1:
            # What hosts make of the merge bases may be anything, also where these are alike.
            for path, file in sorted(self._compared(*self._sides).items()):
                is_one_sides = file.old is None or file.new is None
                if is_restricted(path) or (is_one_sides and is_guarded(path)):
                    raise self._undecided(
                        f"there are several merge bases, and both sides differ in {path.quoted}"
                    )
        for base in self._bases:
            changes = [self._compared(base, tree) for tree in self._sides]
            one, other = changes
            for path in sorted(filter(is_restricted, one.keys() & other.keys())):
                if one[path].new != other[path].new:
                    raise self._undecided(f"both sides have changed {path.quoted}: hosts may join its lines")
            for tree, ours, theirs in zip(self._sides, changes, reversed(changes), strict=True):
                new = sorted(path for path, file in ours.items() if file.old is None)
                if _has_other_names(ours, theirs):
                    for path in filter(is_guarded, new):
                        raise self._undecided(
                            f"{path.quoted} may be the new name of a file that one side has changed: hosts "
                            "find different renames"
                        )
                if new:
                    self._require_same_folders(tree, ours, theirs)

    def _require_same_folders(self, tree: str, ours: _Changes, theirs: _Changes) -> None:
        gone = _folders(path for path, file in ours.items() if file.new is None)
        for folder in sorted(gone & _folders(path for path, file in theirs.items() if file.old is None)):
            entry = self._objects.entry(tree, folder)
            if entry is None or entry.mode != TREE_MODE:
                raise self._undecided(
                    f"one side has left {RepoPath(folder).quoted}, where the other has new files: hosts may "
                    "move these"
                )

    def _compared(self, before: str, after: str) -> _Changes:
        return compare_trees(self._objects, before, after)

    def _may_have_table(self, project: Entry | None) -> bool:
        if project is None or not project.is_file:
            return False
        is_big = self._objects.sizes([project.oid])[project.oid] > BIG_FILE
        return is_big or may_have_table(self._objects.read(project.oid))

    def _undecided(self, why: str) -> UndecidedError:
        return UndecidedError(
            f"it depends on the host what the merge of {self._tip} into {self._branch} brings: {why}",
            f"merge or rebase onto {self._branch}",
        )


def _has_other_names(ours: _Changes, theirs: _Changes) -> bool:
    """Return whether the new name is in doubt of a file that one side has removed, and the other changed.

    A file that is moved as it is, while no other one has its content, gets the same name from every host.
    """
    made = Counter(_content(file.new) for file in ours.values() if file.old is None and file.new)
    gone = {path: _content(file.old) for path, file in ours.items() if file.old and file.new is None}
    moved = Counter(gone.values())
    edited = (path for path, file in theirs.items() if path in gone and file.new is not None)
    return any((moved[gone[path]], made[gone[path]]) != (1, 1) for path in edited)


def _content(entry: Entry) -> tuple[str, str]:
    """Name what two entries have in common if git takes the one for the other without comparing them."""
    return entry.oid, "" if entry.is_file else entry.mode


def _folders(paths: Iterable[RepoPath]) -> set[bytes]:
    """List the folders above some paths."""
    found = set[bytes]()
    for path in paths:
        folder = path.raw
        while (folder := folder.rpartition(b"/")[0]) and folder not in found:
            found.add(folder)
    return found
