"""A working tree of our own, with an index of our own beside it, written by git.

Decides how git writes and compares files there: with the config and the attributes of the repository, so that
they are as a checkout would make them, but without its hooks, its index and its sparse checkout. Attributes
are those of the tree that is written: a `.gitattributes` that a command planted has no say.
It does not decide where the tree is, nor who else may write to it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository, failed
from patchgate.process import Child, Completed

_CHOSEN = (
    # These would keep a change from being seen, or a file from being written.
    "core.fileMode=true",
    "core.trustCTime=true",
    "core.checkStat=default",
    "core.ignoreStat=false",
    "core.sparseCheckout=false",
    "index.sparse=false",
    "core.untrackedCache=false",
    # As many as there are processors: the first checkout took 0.7 s instead of 1.1 (5,000 files).
    "checkout.workers=0",
)
_FLAGS = tuple(part for setting in _CHOSEN for part in ("-c", setting))
# git compares times too, and that of a file's change (ctime) nobody can set.
_TOUCHED = ("diff-files", "--name-only", "-z", "--ignore-submodules=dirty")
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Checkout:
    """Files below `root`, and the `index` that knows them; all paths are absolute.

    `variables` lead git to the objects of `tree`. `spare` is a folder of ours for copies. `names` are the
    paths that are written; None for all that the index has.
    """

    repository: Repository
    root: str
    index: str
    spare: str
    variables: Mapping[str, str]
    tree: str
    names: frozenset[RepoPath] | None = None

    def git(self, *arguments: str, stdin: bytes = b"", root: str | None = None) -> Completed:
        """Run git on this index, and on these files or those below another root.

        Raises:
            UndecidedError: git failed.
        """
        return replace(self.repository, work_tree=root or self.root).git(
            *_FLAGS,
            *arguments,
            stdin=stdin,
            variables={**self.variables, "GIT_INDEX_FILE": self.index},
            in_work_tree=True,
        )

    def write(self) -> None:
        """Write every file that is missing or differs, over whatever stands in its place.

        git looks at each file, and writes those that changed since it last did.

        Raises:
            UndecidedError: git failed; a blob is missing, a filter failed.
        """
        if self.names is None:
            self.git("read-tree", "--reset", "-u", self.tree)
        else:
            self.git("checkout-index", "-f", "-u", "-z", "--stdin", stdin=_listed(self.names))

    def move(self) -> None:
        """Go from the tree of the index to `tree` at the cost of what differs; no file was touched since.

        Raises:
            UndecidedError: git failed, for instance because they are not.
        """
        self.git("read-tree", "-m", "-u", self.tree)

    def moved_names(self) -> list[RepoPath]:
        """List the paths in which the index differs from `tree`."""
        done = self.git("diff-index", "--cached", "--name-only", "-z", "--no-renames", self.tree)
        return _paths(done.out)

    def touched(self) -> list[RepoPath]:
        """List the files that something wrote to or removed since git wrote them, as their times tell."""
        return self._own(self.git(*_TOUCHED).out)

    @contextmanager
    def touched_meanwhile(self) -> Iterator[Callable[[], list[RepoPath]]]:
        """Begin to look for touched files, while something else reads the index; what is yielded lists them.

        Raises:
            UndecidedError: git failed.
        """
        repository = replace(self.repository, work_tree=self.root)
        argv = repository.argv((*_FLAGS, *_TOUCHED), in_work_tree=True)
        env = {**repository.environment, **self.variables, "GIT_INDEX_FILE": self.index}
        with Child(argv, cwd=self.root, env=env) as child:
            child.close_input()

            def touched() -> list[RepoPath]:
                listed = child.out.read()
                done = child.finish()
                if done.code != 0:
                    raise failed(_TOUCHED[0], done)
                return self._own(listed)

            yield touched

    def _own(self, listed: bytes) -> list[RepoPath]:
        return [path for path in _paths(listed) if self.names is None or path in self.names]

    def changed(self) -> list[RepoPath]:
        """List the files that are not, byte for byte, what git wrote.

        Raises:
            UndecidedError: git failed.
        """
        touched = self.touched()
        if not touched:
            return []
        with TemporaryDirectory(dir=self.spare, prefix="as-written-", ignore_cleanup_errors=True) as fresh:
            # Below a root of its own, so that attributes come from the index.
            self.git("checkout-index", "-f", "-z", "--stdin", stdin=_listed(touched), root=fresh)
            return [path for path in touched if not _are_same(self.root, fresh, path)]

    def names_in_index(self) -> tuple[set[bytes], set[bytes]]:
        """List the files of the index, and its gitlinks."""
        records = self.git("ls-files", "-z", "--stage").out.split(b"\0")[:-1]
        links = {
            name for about, _, name in (each.partition(b"\t") for each in records if each[:6] == b"160000")
        }
        return {each.partition(b"\t")[2] for each in records} - links, links


def _paths(listed: bytes) -> list[RepoPath]:
    return [RepoPath.from_git(name) for name in listed.split(b"\0")[:-1]]


def _listed(paths: frozenset[RepoPath] | list[RepoPath]) -> bytes:
    return b"".join(path.raw + b"\0" for path in sorted(paths))


def _are_same(root: str, other: str, path: RepoPath) -> bool:
    """Tell whether two places hold the same file: kind, exec bit, bytes; no folder above is a link."""
    here, there = (os.path.join(os.fsencode(each), path.raw) for each in (root, other))
    try:
        for folder in path.parents():
            if not stat.S_ISDIR(os.lstat(os.path.join(os.fsencode(root), folder)).st_mode):
                return False
        one, two = os.lstat(here), os.lstat(there)
        kind = stat.S_IFMT(one.st_mode)
        if kind != stat.S_IFMT(two.st_mode) or (one.st_mode ^ two.st_mode) & stat.S_IXUSR:
            return False
        if kind == stat.S_IFLNK:
            return os.readlink(here) == os.readlink(there)
        return kind != stat.S_IFREG or (one.st_size == two.st_size and _have_same_bytes(here, there))
    except OSError:
        return False


def _have_same_bytes(here: bytes, there: bytes) -> bool:
    with open(here, "rb") as one, open(there, "rb") as two:
        while True:
            left, right = one.read(_PIECE), two.read(_PIECE)
            if left != right:
                return False
            if not left:
                return True
