"""Read the files that a patch applies to: of a commit's tree, or on disk as `git apply` would find them.

Reports what is at a path, and what blocks the way to it (a parent that is a symlink, a submodule or a file).
Files on disk are read through git's clean filters into a private store. A special file (a FIFO, a socket, a
device) is never opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from patchgate.errors import UndecidedError
from patchgate.git.diff import RAW, DiffReader
from patchgate.git.model import (
    EXECUTABLE,
    GITLINK,
    REGULAR,
    SYMLINK,
    TREE_MODE,
    Descent,
    Entry,
    FileChange,
    folders_above,
)
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import READING, PrivateStore, add_files
from patchgate.git.quoting import quote
from patchgate.git.repository import Repository, finish
from patchgate.git.trees import resulting_tree
from patchgate.values import dataclass


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """The files that a patch is applied to.

    `tree` is a tree of the repository, and `pending` what differs from it here (staged or on disk): both
    together are the base. `entries` are the requested paths (None: no file), `blocked`
    those behind something that is not a folder, with its path.
    """

    tree: str
    pending: Mapping[RepoPath, FileChange]
    entries: Mapping[RepoPath, Entry | None]
    blocked: Mapping[RepoPath, RepoPath]


def base_files_of_tree(
    objects: Objects, tree: str, paths: Iterable[RepoPath], removed: Collection[RepoPath] = ()
) -> BaseFiles:
    """Look paths up in a tree.

    Args:
        removed: the paths that the patch removes: a file there blocks no other path.
    """
    entries: dict[RepoPath, Entry | None] = {}
    blocked: dict[RepoPath, RepoPath] = {}
    above = Descent(_ParentFolder(tree), partial(_below, objects, removed))
    for path in paths:
        folder = above.at(path.parent)
        entry = objects.tree(folder.tree).get(path.name) if folder.tree is not None else None
        if entry is not None and entry.mode == TREE_MODE and _is_emptied(objects, entry.oid, path, removed):
            entry = None
        entries[path] = entry
        if folder.blocking is not None:
            blocked[path] = folder.blocking
    return BaseFiles(tree=tree, pending={}, entries=entries, blocked=blocked)


@dataclass(frozen=True, slots=True)
class _ParentFolder:
    """A folder above a path: its tree, None if there is none, and what is there instead."""

    tree: str | None
    blocking: RepoPath | None = None


def _below(
    objects: Objects, removed: Collection[RepoPath], above: _ParentFolder, folder: bytes
) -> _ParentFolder:
    """Step down to a folder; it may be missing, or be a file that is removed."""
    if above.tree is None:
        return above
    entry = objects.tree(above.tree).get(folder.rpartition(b"/")[2])
    if entry is None:
        return _ParentFolder(None)
    if entry.mode == TREE_MODE:
        return _ParentFolder(entry.oid)
    path = RepoPath(folder)
    return _ParentFolder(None, None if entry.is_file and path in removed else path)


def base_files_on_disk(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    tree: str,
    paths: Iterable[RepoPath],
    removed: Collection[RepoPath] = (),
) -> BaseFiles:
    """Look paths up as `git apply` would find them: on disk, with the index and HEAD's tree behind.

    Args:
        objects: reads through `store`.
        tree: HEAD's tree.
        paths: the touched paths, which pass the path rules.
        removed: the paths that the patch removes.

    Raises:
        UndecidedError: the index is unreadable or in conflict; or a special file is at a path.
    """
    staged = staged_files(repository, tree)

    # Looked up besides the disk: a folder or a submodule of the index need not be there (measured: a new
    # file replaced a submodule that was not checked out, without a message).
    index = resulting_tree(objects, tree, staged.values(), store.write).tree
    in_index = base_files_of_tree(objects, index, paths, removed)
    entries: dict[RepoPath, Entry | None] = {}
    blocked = dict(in_index.blocked)
    modes: dict[RepoPath, str] = {}
    _refuse_special_attributes(repository, in_index.entries)
    on_disk = Descent[RepoPath | bool](True, partial(_below_on_disk, repository, removed))
    for path, known in in_index.entries.items():
        above = on_disk.at(path.parent)
        if isinstance(above, RepoPath) or path in blocked:
            blocked[path] = above if isinstance(above, RepoPath) else blocked[path]
            entries[path] = None
            continue
        found = _on_disk(repository, store, path, known, removed)
        if isinstance(found, str):
            modes[path] = found
        else:
            entries[path] = found
    entries |= read_files(repository, store, modes, in_index.entries)
    absent = [path for path, entry in entries.items() if entry is None and path not in blocked]
    entries |= sparse_files(repository, {path: in_index.entries[path] for path in absent})
    pending = dict(staged)
    for path, entry in entries.items():
        if path in blocked or (entry is not None and entry.mode == TREE_MODE):
            continue
        old = pending[path].old if path in pending else objects.entry(tree, path.raw)
        if old is not None and old.mode == TREE_MODE:
            old = None
        pending.pop(path, None)
        if entry != old:
            pending[path] = FileChange(path, old, entry)
    return BaseFiles(tree=tree, pending=pending, entries=entries, blocked=blocked)


def staged_files(repository: Repository, tree: str) -> dict[RepoPath, FileChange]:
    """Return what is staged; reads the whole index once.

    Raises:
        UndecidedError: the index cannot be read.
    """
    with repository.child("diff-index", "--cached", *RAW, tree) as child:
        child.close_input()
        records = DiffReader(child).records()
        finish(child, "diff-index")
    return {record.path: record for record in records}


def _is_emptied(objects: Objects, tree: str, folder: RepoPath, removed: Collection[RepoPath]) -> bool:
    """Return whether everything in a folder is removed; stops at the first file that is not."""
    waiting = [(folder.raw, tree)]
    while waiting:
        above, oid = waiting.pop()
        for name, entry in objects.tree(oid).items():
            path = above + b"/" + name
            if entry.mode == TREE_MODE:
                waiting.append((path, entry.oid))
            elif RepoPath(path) not in removed:
                return False
    return True


def _below_on_disk(
    repository: Repository, removed: Collection[RepoPath], above: RepoPath | bool, folder: bytes
) -> RepoPath | bool:
    """Step down to a folder on disk: True if it is one, False for nothing or a removed file.

    Anything else is returned as its path: a symlink, a file, another repository.
    """
    if above is not True:
        return above
    full_path = os.path.join(os.fsencode(repository.work_tree or ""), folder)
    try:
        mode = os.lstat(full_path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    path = RepoPath(folder)
    if stat.S_ISREG(mode) and path in removed:
        return False
    if not stat.S_ISDIR(mode):
        return path
    is_repository = os.path.lexists(os.path.join(full_path, b".git")) or is_own_git_folder(
        repository, full_path
    )
    return path if is_repository else True


def is_own_git_folder(repository: Repository, full_path: bytes) -> bool:
    """Return whether a folder is the git directory itself, under any name: hooks there would run."""
    own = (repository.git_dir, repository.common_dir)
    return any(os.path.exists(each) and os.path.samefile(full_path, each) for each in own)


def _on_disk(
    repository: Repository,
    store: PrivateStore,
    path: RepoPath,
    in_index: Entry | None,
    removed: Collection[RepoPath],
) -> Entry | str | None:
    """Return what is on disk: an entry, None for nothing, or the mode of a regular file still to be read."""
    root = os.fsencode(repository.work_tree or "")
    full_path = os.path.join(root, path.raw)
    try:
        found = os.lstat(full_path)
    except (FileNotFoundError, NotADirectoryError):
        # A folder of the index blocks the path although it is not on disk.
        return in_index if in_index is not None and in_index.mode == TREE_MODE else None
    if stat.S_ISLNK(found.st_mode):
        return Entry(SYMLINK, store.write("blob", os.readlink(full_path)))
    if stat.S_ISDIR(found.st_mode):
        if in_index is not None and in_index.mode == GITLINK:
            return in_index
        return None if is_emptied_on_disk(root, path.raw, removed) else Entry(TREE_MODE, "")
    if is_special(found.st_mode):
        raise special_file(path)
    return EXECUTABLE if found.st_mode & 0o100 else REGULAR


def is_special(mode: int) -> bool:
    """Return whether a mode is one that git cannot store: not a file, link or folder."""
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


def special_file(path: RepoPath) -> UndecidedError:
    """Return the error for a FIFO, a socket or a device: opening it may block for ever."""
    return UndecidedError(
        f"{path.quoted} is a special file on disk (a FIFO, a socket or a device)",
        "move it out of the working tree",
    )


def _refuse_special_attributes(repository: Repository, paths: Iterable[RepoPath]) -> None:
    """Refuse a special file where git looks for the attributes of some paths."""
    root = os.fsencode(repository.work_tree or "")
    for folder in folders_above(paths):
        attributes = os.path.join(folder, b".gitattributes")
        try:
            mode = os.lstat(os.path.join(root, attributes)).st_mode
        except OSError:
            continue
        if is_special(mode):
            raise special_file(RepoPath(attributes))


def is_emptied_on_disk(root: bytes, folder: bytes, removed: Collection[RepoPath]) -> bool:
    """Return whether a folder has files, and all of them are removed."""
    from patchgate.git.refs import files_below

    is_empty = True
    for path in files_below(os.path.join(root, folder)):
        is_empty = False
        if RepoPath(os.path.relpath(path, root)) not in removed:
            return False
    return not is_empty


def read_files(
    repository: Repository,
    store: PrivateStore,
    modes: Mapping[RepoPath, str],
    in_index: Mapping[RepoPath, Entry | None],
) -> dict[RepoPath, Entry | None]:
    """Read regular files as `git add` would, into the private store.

    `hash-object` does not look at the index, which `git add` does for two things: a file that is CR LF there
    stays so under `core.autocrlf`, and without `core.fileMode` it keeps its mode. So what differs from the
    index is read once more, with its entry.
    """
    found: dict[RepoPath, Entry | None] = {
        path: Entry(modes[path], oid) for path, oid in _hashed(repository, store, list(modes)).items()
    }
    known = {
        path: entry
        for path in found
        if (entry := in_index[path]) is not None and entry.is_file and entry != found[path]
    }
    if known:
        found |= add_files(repository, store, "disk", known, known)
    return found


def sparse_files(
    repository: Repository, absent: Mapping[RepoPath, Entry | None]
) -> dict[RepoPath, Entry | None]:
    """Return what is missing because of a sparse checkout: it counts as in the index."""
    known = {path: entry for path, entry in absent.items() if entry is not None and entry.mode != TREE_MODE}
    if not known:
        return {}
    listed = repository.output("ls-files", "-z", "-t").split(b"\0")
    skipped = {RepoPath.from_git(record[2:]) for record in listed if record.startswith(b"S ")}
    return {path: entry for path, entry in known.items() if path in skipped}


def _hashed(repository: Repository, store: PrivateStore, paths: list[RepoPath]) -> dict[RepoPath, str]:
    """Read regular files through git's filters into the private store; return their object ids."""
    if not paths:
        return {}
    # git would unquote a name that begins with a quote, and read another file.
    names = (quote(path.raw, high=False) if path.raw.startswith(b'"') else path.raw for path in paths)
    done = repository.git(
        *READING,
        "hash-object",
        "-w",
        "--stdin-paths",
        stdin=b"".join(name + b"\n" for name in names),
        variables=store.variables,
        in_work_tree=True,
    )
    return dict(zip(paths, done.out.decode("ascii").split(), strict=True))
