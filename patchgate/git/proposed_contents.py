"""Read the change that files would make if they had other contents, before anything writes them.

Git's filters run as for `git add`; new blobs and trees go to a private store. Other changes of the index and
the working tree are left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from patchgate.git.change_sources import LoadedChange, PendingBase, fill_in_details
from patchgate.git.diff import Detail, read_difference
from patchgate.git.model import EXECUTABLE, REGULAR, Change, Entry, FileChange, Source
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, faults
from patchgate.git.private_store import READING, PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.trees import resulting_tree


def read_contents(
    repository: Repository,
    objects: Objects,
    base: PendingBase,
    contents: Mapping[RepoPath, bytes | None],
    detail: Detail,
    store: PrivateStore,
) -> LoadedChange:
    """Read the change from the base to these contents; None means no file.

    Args:
        objects: reads through `store`.

    Raises:
        UndecidedError: git failed, or a file and a folder would have the same name.
    """
    source = Source("worktree", None, base.commit)
    if any(map(faults, contents)):
        # A forbidden name is never looked up.
        nothing = Entry(REGULAR, repository.zero_oid)
        files = [FileChange(path, None, nothing, added_lines=0, size=0) for path in contents if faults(path)]
        return LoadedChange(Change.of(base.tree, base.tree, files), source)
    records = []
    for path, content in contents.items():
        old = objects.entry(base.tree, path.raw)
        old = old if old is not None and old.is_file else None
        new = None if content is None else _added(repository, store, path, content, old)
        if old != new:
            records.append(FileChange(path, old, new))
    result = resulting_tree(objects, base.tree, records, store.write)
    if result.tree == objects.empty_tree:
        store.write("tree", b"")
    trees = [base.tree, result.tree]
    found, binary = read_difference(repository, objects, ("diff-tree", "-r"), trees, detail, store.variables)
    found = fill_in_details(objects, found, binary, detail)
    return LoadedChange(
        change=Change.of(base.tree, result.tree, found, objects.empty_blob),
        source=source,
        folders=result.folders,
        root={record.path.raw: record.new for record in found if b"/" not in record.path.raw},
    )


def _added(
    repository: Repository, store: PrivateStore, path: RepoPath, content: bytes, old: Entry | None
) -> Entry:
    """Write a content as `git add` would; an executable file stays one."""
    name = os.fsdecode(path.raw)
    words = (*READING, "hash-object", "-w", "--stdin", f"--path={name}")
    done = repository.git(*words, stdin=content, variables=store.variables, in_work_tree=True)
    mode = old.mode if old is not None and old.mode in {REGULAR, EXECUTABLE} else REGULAR
    on_disk = os.path.join(repository.work_tree or "", name)
    if os.path.isfile(on_disk):
        mode = EXECUTABLE if os.access(on_disk, os.X_OK) else REGULAR
    return Entry(mode, done.out.decode("ascii").strip())
