"""The attributes that a patch brings: what git will store, once it has landed, for the files that it writes.

A patch is judged and written under the attributes that hold before it, as with `git apply`. Where it changes
a `.gitattributes`, git may store something else than was judged when a file is next added. This module finds
these files, and decides nothing about them. It asks git in a copy of the working tree as it will be: what the
patch writes and the attributes beside it as files, links to everything else (a filter may look at it).
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from patchgate.errors import UndecidedError
from patchgate.git.folders import folders_above
from patchgate.git.model import REGULAR, SYMLINK, Entry, FileChange
from patchgate.git.path import RepoPath
from patchgate.git.preimages import read_files
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.staging import index_entries
from patchgate.git.transaction.places import Content, Write

_ATTRIBUTES = b".gitattributes"


def stored_otherwise_after(
    repository: Repository, files: Sequence[FileChange], writes: Sequence[Write]
) -> tuple[RepoPath, ...]:
    """Find the files that git will not store as they were judged, by the attributes that a patch brings.

    Without a `.gitattributes` among the files no child is started, and there are none.

    Args:
        files: the judged change.
        writes: what is to be written for it.

    Raises:
        UndecidedError: git could not store a file at all, or the files beside it cannot be read.
    """
    if not any(file.path.raw.rpartition(b"/")[2] == _ATTRIBUTES for file in files):
        return ()
    judged = {file.path: file.new for file in files if file.new is not None}
    written = {write.path: write.new for write in writes}
    asked = {
        path: REGULAR
        for path, content in written.items()
        if content is not None and content.mode != SYMLINK and path in judged
    }
    if not asked:
        return ()
    held = index_entries(repository, asked.keys())
    known: dict[RepoPath, Entry | None] = {path: held.get(path) for path in asked}
    # A store of its own: no file and no index of an earlier question is in the way.
    with PrivateStore(repository) as store:
        folder = store.index_file + "-after"
        try:
            _make_copy(repository, os.fsencode(folder), written)
        except OSError as error:
            raise UndecidedError(
                f"the files beside the patch cannot be read: {error.strerror}", "see who may read them"
            ) from error
        try:
            found = read_files(replace(repository, work_tree=folder), store, asked, known)
        except UndecidedError as error:
            raise UndecidedError(
                f"git could not store what the patch writes by attributes that it brings: {error.message}",
                "leave .gitattributes out of the patch, or mend it there",
            ) from error
    return tuple(path for path in asked if _oid(found.get(path)) != _oid(judged[path]))


def _oid(entry: Entry | None) -> str | None:
    return None if entry is None else entry.oid


def _make_copy(repository: Repository, folder: bytes, written: Mapping[RepoPath, Content | None]) -> None:
    """Make the working tree as it will be: what is written as files in folders, links to the rest."""
    root = os.fsencode(repository.work_tree or "")
    made = {path: content for path, content in written.items() if content is not None}
    above = sorted({b""} | folders_above(made))
    for inside in above:
        os.mkdir(os.path.join(folder, inside))
    own = {*above, *(path.raw for path in written)}
    for inside in above:
        for name in _names_in(os.path.join(root, inside)):
            own_name = os.path.join(inside, name)
            if own_name in own or name == b".git":
                continue
            source, place = os.path.join(root, own_name), os.path.join(folder, own_name)
            if name == _ATTRIBUTES and stat.S_ISREG(os.lstat(source).st_mode):
                # git follows no link that has this name.
                shutil.copyfile(source, place, follow_symlinks=False)
            else:
                os.symlink(source, place)
    for path, content in made.items():
        _write(os.path.join(folder, path.raw), content)


def _names_in(folder: bytes) -> Iterable[bytes]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        # The patch makes it.
        return ()


def _write(place: bytes, content: Content) -> None:
    if content.mode == SYMLINK:
        os.symlink(content.data, place)
        return
    with open(place, "xb") as file:
        file.write(content.data)
