"""Prepare the index for `apply --index`: check that it is as judged, and make the new one in a copy.

Sets entries in the copy, and brings the new blobs into the repository before an index names them. The user's
own index is written only by `refresh_index`, after everything else.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.model import GITLINK, Entry, FileChange, staged_records
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import ANY_CODE, Repository, finish
from patchgate.storage.filesystem import FaultPoints, flush, flush_folder
from patchgate.values import dataclass

# The most names on a command line; with more, the whole index is listed.
_NAMED = 200
_AT_ONCE = 500
_PIECE = 1 << 18
# Measured with git 2.39: set below a folder that is one entry of a sparse index, an entry left both there.
_WHOLE = ("-c", "index.sparse=false")
_SPARSE = b"sdir"
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}


@dataclass(frozen=True, slots=True)
class StagedIndex:
    """A complete new index file, and the one that it was made from (None: there was none)."""

    content: bytes
    made_from: bytes | None

    def is_current(self, repository: Repository) -> bool:
        """Return whether the index is still the one that this was made from; call it under the lock."""
        return _read(repository.index_file) == self.made_from


def index_entries(repository: Repository, paths: Collection[RepoPath]) -> dict[RepoPath, Entry]:
    """Look up the entries of the index at some paths and below them.

    Raises:
        UndecidedError: one of the paths is in conflict, or git failed.
    """
    named: list[str] = []
    if len(paths) <= _NAMED:
        named = ["--", *(os.fsdecode(path.raw) for path in paths)]
    listed = repository.output("ls-files", "-z", "--stage", *named, variables=_LITERAL)
    wanted = {path.raw for path in paths}
    found: dict[RepoPath, Entry] = {}
    for path, entry, stage in staged_records(listed):
        if not _is_within(path.raw, wanted):
            continue
        if stage != "0":
            raise UndecidedError(
                f"{path.quoted} has an unresolved merge conflict",
                "resolve the conflict, then git add the file",
            )
        found[path] = entry
    return found


def _is_within(name: bytes, wanted: Collection[bytes]) -> bool:
    while name:
        if name in wanted:
            return True
        name = name.rpartition(b"/")[0]
    return False


def paths_unlike_index(repository: Repository, files: Sequence[FileChange]) -> list[RepoPath]:
    """List the touched paths whose index entry differs from what was judged, in order.

    Raises:
        UndecidedError: one of them is in conflict, or git failed.
    """
    touched = {file.path: file for file in files}
    entries = index_entries(repository, touched.keys())
    wrong = {path for path, file in touched.items() if entries.get(path) != file.old}
    for path in entries.keys() - touched.keys():
        # It is staged below a path of the change, where the judged index has nothing.
        wrong.update(RepoPath(folder) for folder in path.parents() if RepoPath(folder) in touched)
    return [file.path for file in files if file.path in wrong]


def new_index(repository: Repository, store: PrivateStore, files: Sequence[FileChange]) -> StagedIndex:
    """Make the index of the result: a copy of the user's in which the touched entries are set.

    It is one file with every entry, also where the user's is split or sparse; git makes it so again when it
    writes one. Its other contents stay (stages of other paths, intent to add). git runs in the working
    tree, for it looks there at files that are as new as their index when it writes one (racy git).

    Raises:
        UndecidedError: an entry does not fit the index (a file where it has a folder), or git failed.
    """
    # The dry run of the patch may have left one there.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(store.index_file)
    variables = store.copy_index()
    made_from = _read(store.index_file)
    nothing = f"0 {repository.zero_oid}\t".encode("ascii")
    gone = b"".join(nothing + file.path.raw + b"\0" for file in files if file.new is None)
    calls = [(["-z", "--index-info"], gone)] if gone else []
    named = [
        f"{file.new.mode},{file.new.oid},{os.fsdecode(file.path.raw)}"
        for file in files
        if file.new is not None
    ]
    for start in range(0, len(named), _AT_ONCE):
        # Not by --index-info: that silently removes conflicting entries from the index.
        chosen = [part for name in named[start : start + _AT_ONCE] for part in ("--cacheinfo", name)]
        calls.append((["--add", *chosen], b""))
    for arguments, stdin in calls:
        repository.git(
            *_WHOLE, "update-index", *arguments, stdin=stdin, variables=variables, in_work_tree=True
        )
    content = _read(store.index_file)
    if made_from is not None and _SPARSE in made_from:
        _require_readable(repository, variables)
    if content is None:
        raise UndecidedError("git could not write the new index", "run git status to see why")
    return StagedIndex(content, made_from)


def _require_readable(repository: Repository, variables: Mapping[str, str]) -> None:
    """Check that git can read the new index, if it converts it to a sparse one.

    Measured with git 2.39: with an entry that is only intended to be added, it read one file over and over.
    """
    listing = ("ls-files", "-z", "--stage")
    as_git_does = repository.git(*listing, variables=variables, answers=ANY_CODE)
    if as_git_does != repository.git(*_WHOLE, *listing, variables=variables):
        raise UndecidedError(
            "git cannot read the sparse index that --index would write",
            "leave out --index, or expand the index: git sparse-checkout init --no-sparse-index",
        )


def store_objects(
    repository: Repository,
    store: PrivateStore,
    files: Iterable[FileChange],
    *,
    faults: FaultPoints | None = None,
) -> None:
    """Write the new blobs to the repository's objects and flush them, so that an index may name them.

    If the write fails, they are unreferenced loose objects, which `git gc` removes.

    Raises:
        UndecidedError: git failed, or the disk did.
    """
    wanted = {file.new.oid for file in files if file.new is not None and file.new.mode != GITLINK}
    if not wanted:
        return
    names = "".join(f"{oid}\n" for oid in sorted(wanted)).encode("ascii")
    flushed = ("-c", "core.fsync=loose-object", "-c", "core.fsyncMethod=fsync")
    with (
        repository.child(
            "pack-objects", "--stdout", "--window=0", "-q", variables=store.variables
        ) as packing,
        repository.child(*flushed, "unpack-objects", "-q") as unpacking,
    ):
        packing.feed(names)
        while piece := os.read(packing.out.fileno(), _PIECE):
            unpacking.write(piece)
        finish(packing, "pack-objects")
        unpacking.close_input()
        finish(unpacking, "unpack-objects")
    objects = os.path.join(repository.common_dir, "objects")
    try:
        _flush_names(objects, wanted, faults or FaultPoints())
    except OSError as error:
        raise UndecidedError(
            f"the new objects could not be flushed to the disk: {error.strerror}", "check the disk"
        ) from error


def _flush_names(objects: str, oids: Collection[str], faults: FaultPoints) -> None:
    """Flush what git does not: the names of loose objects, and existing objects that may be unflushed."""
    folders = set()
    for oid in oids:
        try:
            descriptor = os.open(os.path.join(objects, oid[:2], oid[2:]), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # It is in a pack.
        try:
            flush(descriptor, faults)
        finally:
            os.close(descriptor)
        folders.add(os.path.join(objects, oid[:2]))
    for folder in (*sorted(folders), objects):
        flush_folder(folder, faults)


def refresh_index(repository: Repository, paths: Iterable[RepoPath]) -> bool:
    """Refresh the file times in the index, so that the next `git status` need not read the files.

    Best effort, after the locks are free; a file that was changed since is not staged.

    Returns:
        Whether git did; a failure is not an error.
    """
    names = b"".join(path.raw + b"\0" for path in paths)
    if not names:
        return True
    try:
        repository.git(
            *("add", "--refresh", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"),
            stdin=names,
            variables=_LITERAL,
            in_work_tree=True,
        )
    except UndecidedError:
        return False
    return True


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
