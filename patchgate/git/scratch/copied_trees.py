"""Small scratch trees for commands that run at the same time: git writes the files once, each tree copies.

Two children of git serve any number of trees (6 ms), and a command that changes its files changes nobody
else's. What a command changed is found by comparing bytes with what git wrote.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

from patchgate.errors import UndecidedError
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.git.scratch.checkout import are_same
from patchgate.git.scratch.temporary_folders import require_outside, temporary, translate_errors
from patchgate.git.scratch.trees import small_checkout
from patchgate.git.scratch_record import identity_of
from patchgate.values import dataclass


@dataclass(frozen=True, slots=True)
class CopiedTree:
    """One tree; `path` is the folder in which a command runs, `files` are those that it has."""

    path: str
    files: tuple[RepoPath, ...]
    _source: str
    _identity: tuple[int, int] | None

    def changed(self) -> list[RepoPath]:
        """List the files that a command changed, removed or replaced.

        Raises:
            UndecidedError: the tree itself is gone.
        """
        if self._identity is None or identity_of(self.path) != self._identity:
            raise UndecidedError(
                "a command removed or replaced the scratch tree itself",
                "let it write only inside its working directory",
            )
        return [path for path in self.files if not are_same(self.path, self._source, path)]


@dataclass(frozen=True, slots=True)
class CopiedTrees:
    """Makes trees from files that git has written; `files` are those that are there."""

    files: frozenset[RepoPath]
    _folder: str
    _source: str

    def make(self, name: str, paths: Iterable[RepoPath]) -> CopiedTree:
        """Copy some of the files into a fresh folder; those that are not there are left out.

        Raises:
            UndecidedError: they cannot be copied.
        """
        root = os.path.join(self._folder, f"tree-{name}")
        files = tuple(sorted(path for path in set(paths) if path in self.files))
        with translate_errors("cannot write the scratch tree"):
            os.mkdir(root, 0o700)
            for path in files:
                _copy(os.path.join(os.fsencode(self._source), path.raw), os.fsencode(root), path)
        return CopiedTree(root, files, self._source, identity_of(root))


@contextlib.contextmanager
def copied_trees(
    repository: Repository,
    entry_of: Callable[[bytes], Entry | None],
    paths: Iterable[RepoPath],
    *,
    cache: str,
    variables: Mapping[str, str],
) -> Iterator[CopiedTrees]:
    """Write some files of a tree once, as a checkout would, for trees that are removed at the end.

    Args:
        entry_of: gives the entry of a path in the tree that is tried; None if it has none.
        paths: every file that some tree needs.
        cache: the folder for scratch trees; created if missing.
        variables: how git finds the objects.

    Raises:
        UndecidedError: they cannot be written, or a blob is missing.
    """
    cache = require_outside(repository, cache)
    with temporary(repository, os.path.join(cache, "touched")) as folder:
        checkout = small_checkout(repository, entry_of, paths, folder, tree="", variables=variables)
        with translate_errors("cannot write the scratch tree"):
            os.mkdir(checkout.root)
            checkout.write()
        yield CopiedTrees(frozenset(checkout.names or ()), folder, checkout.root)


def _copy(source: bytes, root: bytes, path: RepoPath) -> None:
    target = os.path.join(root, path.raw)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    found = os.lstat(source)
    if stat.S_ISDIR(found.st_mode):
        # A gitlink.
        os.makedirs(target, exist_ok=True)
    elif stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source), target)
    else:
        shutil.copyfile(source, target)
        os.chmod(target, stat.S_IMODE(found.st_mode))
