"""The files that a patch meets: those of a commit's tree, or those on disk as `git apply` would find them.

Decides what stands at a path and what keeps a path from being reached (a parent that is a symlink, a
submodule or a file). Files on disk are read through git's own clean filters, into a private store.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchgate.change.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, Entry, FileChange
from patchgate.change.path import RepoPath
from patchgate.git.diff import RAW, DiffReader
from patchgate.git.objects import TREE_MODE, Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository, failed


@dataclass(frozen=True, slots=True)
class Ground:
    """What a patch is laid on.

    `tree` is a tree of the repository, and `pending` what differs from it here (staged or on disk): both
    together are the base. `entries` are the paths that were asked for (None: nothing is there), `blocked`
    those that lie behind something that is no folder, with its path.
    """

    tree: str
    pending: Mapping[RepoPath, FileChange]
    entries: Mapping[RepoPath, Entry | None]
    blocked: Mapping[RepoPath, RepoPath]


def ground_of_tree(objects: Objects, tree: str, paths: Iterable[RepoPath]) -> Ground:
    """Look paths up in a tree."""
    entries: dict[RepoPath, Entry | None] = {}
    blocked: dict[RepoPath, RepoPath] = {}
    for path in paths:
        entry = objects.entry(tree, path.raw)
        entries[path] = entry if entry is None or entry.mode != TREE_MODE else Entry(TREE_MODE, entry.oid)
        for folder in path.parents():
            above = objects.entry(tree, folder) if folder else None
            if above is not None and above.mode != TREE_MODE:
                blocked[path] = RepoPath(folder)
    return Ground(tree, {}, entries, blocked)


def ground_on_disk(
    repository: Repository, objects: Objects, store: PrivateStore, tree: str, paths: Iterable[RepoPath]
) -> Ground:
    """Look paths up as `git apply` would meet them: on disk, where the index and HEAD's tree stand behind.

    Args:
        tree: HEAD's tree.
        paths: the touched paths; they broke no path rule.

    Raises:
        UndecidedError: the index is unreadable or in conflict.
    """
    staged = _staged(repository, tree)
    entries: dict[RepoPath, Entry | None] = {}
    blocked: dict[RepoPath, RepoPath] = {}
    regular: list[RepoPath] = []
    modes: dict[RepoPath, str] = {}
    for path in paths:
        in_index = staged[path].new if path in staged else objects.entry(tree, path.raw)
        behind = _blocking(repository, path)
        if behind is not None:
            blocked[path] = behind
            entries[path] = None
            continue
        found = _on_disk(repository, store, path, in_index)
        if isinstance(found, str):
            modes[path] = found
            regular.append(path)
        else:
            entries[path] = found
    for path, oid in _hashed(repository, store, regular).items():
        entries[path] = Entry(modes[path], oid)
    pending = dict(staged)
    for path, entry in entries.items():
        old = pending[path].old if path in pending else objects.entry(tree, path.raw)
        if old is not None and old.mode == TREE_MODE:
            old = None
        pending.pop(path, None)
        if entry != old:
            pending[path] = FileChange(path, old, entry)
    return Ground(tree, pending, entries, blocked)


def _staged(repository: Repository, tree: str) -> dict[RepoPath, FileChange]:
    """What is staged: the one reading of the whole index."""
    with repository.child("diff-index", "--cached", *RAW, tree) as child:
        child.close_input()
        records = DiffReader(child).records()
        ended = child.finish()
        if ended.code != 0:
            raise failed("diff-index", ended)
    return {record.path: record for record in records}


def _blocking(repository: Repository, path: RepoPath) -> RepoPath | None:
    """Find a parent on disk that is no folder: a symlink above all."""
    root = os.fsencode(repository.work_tree or "")
    for folder in path.parents():
        if not folder:
            continue
        try:
            mode = os.lstat(os.path.join(root, folder)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISDIR(mode):
            return RepoPath(folder)
        if os.path.lexists(os.path.join(root, folder, b".git")):
            return RepoPath(folder)
    return None


def _on_disk(
    repository: Repository, store: PrivateStore, path: RepoPath, in_index: Entry | None
) -> Entry | str | None:
    """Say what stands on disk: an entry, None for nothing, or the mode of a regular file yet to be read."""
    place = os.path.join(os.fsencode(repository.work_tree or ""), path.raw)
    try:
        found = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        return Entry(SYMLINK, store.write("blob", os.readlink(place), repository.object_format))
    if stat.S_ISDIR(found.st_mode):
        if in_index is not None and in_index.mode == GITLINK:
            return in_index
        return Entry(TREE_MODE, "")
    return EXECUTABLE if found.st_mode & 0o100 else REGULAR


def _hashed(repository: Repository, store: PrivateStore, paths: list[RepoPath]) -> dict[RepoPath, str]:
    """Read regular files through git's filters into the private store; give their object ids."""
    if not paths:
        return {}
    done = repository.git(
        "-c",
        "core.looseCompression=0",
        "hash-object",
        "-w",
        "--stdin-paths",
        stdin=b"".join(path.raw + b"\n" for path in paths),
        variables=store.variables,
        in_work_tree=True,
    )
    if done.code != 0:
        raise failed("hash-object", done)
    return dict(zip(paths, done.out.decode("ascii").split(), strict=True))
