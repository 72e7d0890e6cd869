"""A separate working tree and index, written by git, and the detection of later writes to it.

Git writes and compares files with the repository's config and the attributes of the tree that is written (a
`.gitattributes` that a command added does not count), but without its hooks, index and sparse checkout.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.pinned import CHECKOUT_FLAGS
from patchgate.git.repository import Repository, failed
from patchgate.git.scratch.temporary_folders import remove
from patchgate.process.child import Child, Completed
from patchgate.values import dataclass, replace

Mark = tuple[int, int, int, int]
"""Of one folder: mode, inode, times of the last change of its names and of itself, in nanoseconds."""
Marks = dict[bytes, Mark]
"""The folders of a tree by their path in it; the root's is empty."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_SECONDS = 2.5


def mark_of(root: bytes, folder: bytes) -> Mark | None:
    """Mark one folder; None if there is none, or it cannot be reached."""
    try:
        found = os.lstat(os.path.join(root, folder) if folder else root)
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    return found.st_mode, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def mark_folders(root: bytes, known: Marks) -> Marks:
    """Mark all folders, reading only those that changed; not `.git` in the root."""
    found: Marks = {}
    fresh: list[bytes] = [] if b"" in known else [b""]
    for folder, mark in known.items():
        now = mark_of(root, folder)
        if now is not None:
            found[folder] = now
            if now != mark:
                fresh += _folders_in(root, folder, known)
    while fresh:
        folder = fresh.pop()
        now = mark_of(root, folder)
        if now is not None:
            found[folder] = now
            fresh += _folders_in(root, folder, known)
    return found


def _folders_in(root: bytes, folder: bytes, known: Marks) -> list[bytes]:
    """List the folders in a folder that are not marked yet."""
    with os.scandir(os.path.join(root, folder) if folder else root) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    above = folder + b"/" if folder else b""
    return [above + name for name in names if above + name not in known and above + name != b".git"]


def changed_folders(root: bytes, marks: Marks) -> list[bytes]:
    """List the folders that differ from their marks, parents first."""
    return sorted(folder for folder, mark in marks.items() if mark_of(root, folder) != mark)


def restore_folders(
    root: bytes,
    marks: Marks,
    names: Callable[[], tuple[set[bytes], set[bytes]]],
    only: bytes | None = None,
) -> None:
    """Remove what does not belong, and restore the permissions of folders.

    Args:
        root: the folder that was marked; the caller has checked that.
        names: lists the files and the gitlinks of the index; called only if something was written.
        only: the one name to remove, besides what replaced a folder; None for every name.

    Raises:
        OSError: something cannot be removed.
    """
    folders = changed_folders(root, marks)
    if not folders:
        return
    if b"" in folders:
        os.chmod(root, stat.S_IMODE(marks[b""][0]))
    files, links = names()
    holding = _holding(files | links)
    for folder in folders:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            _restore_folder(root, folder, marks[folder][0], files, holding | links, only)


def _holding(paths: Iterable[bytes]) -> set[bytes]:
    """List the folders above some paths."""
    found = {b""}
    for folder in {path.rpartition(b"/")[0] for path in paths}:
        above = folder
        while above not in found:
            found.add(above)
            above = above.rpartition(b"/")[0]
    return found


def _restore_folder(
    root: bytes, folder: bytes, mode: int, files: set[bytes], holding: set[bytes], only: bytes | None
) -> None:
    """Restore one folder after its parents; it is opened without following a link."""
    descriptor = _open(root, folder, mode)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != stat.S_IMODE(mode):
            os.fchmod(descriptor, stat.S_IMODE(mode))
        with os.scandir(descriptor) as entries:
            listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        above = folder + b"/" if folder else b""
        for text, is_folder in listed:
            name = os.fsencode(text)
            path = above + name
            if is_folder:
                is_foreign = only is None and path not in holding
                if is_foreign and not remove(name, within=descriptor):
                    raise OSError(f"{text!r} cannot be removed")
            elif path not in files and (only in {None, name} or path in holding):
                os.unlink(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _open(root: bytes, folder: bytes, mode: int) -> int:
    """Open a folder of the tree, step by step; an unreadable one is made readable first."""
    descriptor = os.open(root, _FOLDER)
    names = folder.split(b"/") if folder else []
    for index, name in enumerate(names):
        try:
            try:
                below = os.open(name, _FOLDER, dir_fd=descriptor)
            except PermissionError:
                if index + 1 < len(names) or not stat.S_ISDIR(os.lstat(name, dir_fd=descriptor).st_mode):
                    raise
                os.chmod(name, stat.S_IMODE(mode), dir_fd=descriptor)
                below = os.open(name, _FOLDER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def let_time_pass(probe: str) -> None:
    """Wait until the file system's clock has advanced, so that later writes have a later time.

    Args:
        probe: a file of ours on that file system.

    Raises:
        UndecidedError: its clock does not advance.
    """
    with open(probe, "wb"):
        pass
    os.utime(probe)
    begun = os.lstat(probe).st_mtime_ns
    until = time.monotonic() + _MOST_SECONDS
    while os.lstat(probe).st_mtime_ns == begun:
        if time.monotonic() > until:
            raise UndecidedError(
                "file times in the cache folder do not advance, so changes cannot be detected",
                "set XDG_CACHE_HOME to a folder on a local disk",
            )
        time.sleep(0.001)
        os.utime(probe)


# git compares times too, and a program cannot set the time of a file's change (ctime).
_TOUCHED = ("diff-files", "--name-only", "-z", "--ignore-submodules=dirty")
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Checkout:
    """Files below `root`, and their `index`; all paths are absolute.

    With `variables` git finds the objects of `tree`. `spare` is a folder for copies. `names` are the
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
            *CHECKOUT_FLAGS,
            *arguments,
            stdin=stdin,
            variables={**self.variables, "GIT_INDEX_FILE": self.index},
            in_work_tree=True,
        )

    def write(self) -> None:
        """Write every file that is missing or differs, replacing anything at its path.

        git checks each file, and writes those that changed since it last did.

        Raises:
            UndecidedError: git failed; a blob is missing, a filter failed.
        """
        if self.names is None:
            self.git("read-tree", "--reset", "-u", self.tree)
        else:
            self.git("checkout-index", "-f", "-u", "-z", "--stdin", stdin=_listed(self.names))

    def move(self) -> None:
        """Change the files from the tree of the index to `tree`, only where they differ; none was touched
        since.

        Raises:
            UndecidedError: git failed, for instance because one was touched.
        """
        self.git("read-tree", "-m", "-u", self.tree)

    def moved_names(self) -> list[RepoPath]:
        """List the paths in which the index differs from `tree`."""
        done = self.git("diff-index", "--cached", "--name-only", "-z", "--no-renames", self.tree)
        return _paths(done.out)

    def touched(self) -> list[RepoPath]:
        """List the files that were written or removed since git wrote them, by their times."""
        return self._own(self.git(*_TOUCHED).out)

    @contextmanager
    def touched_meanwhile(self) -> Iterator[Callable[[], list[RepoPath]]]:
        """Start to look for touched files in the background; the yielded function lists them.

        Raises:
            UndecidedError: git failed.
        """
        repository = replace(self.repository, work_tree=self.root)
        argv = repository.argv((*CHECKOUT_FLAGS, *_TOUCHED), in_work_tree=True)
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
        """List the files that differ from what git wrote, byte for byte.

        Raises:
            UndecidedError: git failed.
        """
        touched = self.touched()
        if not touched:
            return []
        with TemporaryDirectory(dir=self.spare, prefix="as-written-", ignore_cleanup_errors=True) as fresh:
            # Below a separate root, so that attributes come from the index.
            self.git("checkout-index", "-f", "-z", "--stdin", stdin=_listed(touched), root=fresh)
            return [path for path in touched if not are_same(self.root, fresh, path)]

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


def are_same(root: str, other: str, path: RepoPath) -> bool:
    """Return whether two paths have the same file: kind, exec bit, bytes; no folder above is a link."""
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
