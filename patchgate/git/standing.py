"""The tree that a patch is tried on: everything tracked as it stands, with the patch's effect.

Decides which of the user's uncommitted work a command sees: what is staged, and what differs on disk in files
that the index knows (`git add -N` included), read through git's clean filters. Untracked files are not part
of it. git itself looks at the index and at the disk, so the cost in Python is that of what differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from patchgate.errors import UndecidedError
from patchgate.git.diff import RAW, DiffReader
from patchgate.git.model import Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository, failed
from patchgate.git.trees import resulting_tree

_NOTHING: Mapping[RepoPath, FileChange] = MappingProxyType({})
# What git would only warn of in `git add` must not keep a file from being read.
_READ = ("-c", "core.looseCompression=0", "-c", "core.safecrlf=false")


def tried_tree(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    head_tree: str,
    files: Iterable[FileChange],
    pending: Mapping[RepoPath, FileChange] = _NOTHING,
) -> str:
    """Make the tree of HEAD, what is staged, what differs on disk, and the judged change; give its id.

    New trees and blobs are in the private store, where git finds them with `store.variables`.

    Args:
        objects: reads through `store`.
        head_tree: HEAD's tree.
        files: the judged change; it wins over all else. Its blobs are in `store`.
        pending: what else is known to differ from HEAD's tree; it wins over what is found on disk.

    Raises:
        UndecidedError: the index is in conflict or unreadable, or a file cannot be read.
    """
    changes: dict[RepoPath, FileChange] = {}
    if repository.work_tree is not None:
        # Both look at the index alone, and git's look at the disk is the longer one: side by side.
        with repository.child("diff-index", "--cached", "--ita-invisible-in-index", *RAW, head_tree) as child:
            child.close_input()
            unstaged = _unstaged(repository, store)
            records = DiffReader(child).records()
            ended = child.finish()
        if ended.code != 0:
            raise failed("diff-index", ended)
        changes |= {record.path: record for record in records}
        changes |= unstaged
    changes |= pending
    changes |= {file.path: file for file in files}

    def keep(kind: str, content: bytes) -> None:
        store.write(kind, content, repository.object_format)

    tree = resulting_tree(objects, head_tree, changes.values(), keep).tree
    if tree == objects.empty_tree:
        keep("tree", b"")
    return tree


def changed_since(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    head_tree: str,
    files: Iterable[FileChange],
    tried: str,
) -> list[RepoPath]:
    """List the paths in which the tree that would be tried now is not the one that was.

    Args:
        tried: what `tried_tree` gave for the same change, with the same `store`.

    Raises:
        UndecidedError: as in `tried_tree`.
    """
    now = tried_tree(repository, objects, store, head_tree, files)
    if now == tried:
        return []
    arguments = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", tried, now)
    listed = repository.output(*arguments, variables=store.variables)
    return [RepoPath.from_git(name) for name in listed.split(b"\0")[:-1]]


def _unstaged(repository: Repository, store: PrivateStore) -> dict[RepoPath, FileChange]:
    """Read what differs on disk from the index; what only looks newer turns out to be the same."""
    done = repository.git("diff-files", "-z", "--raw", "--ignore-submodules=all", in_work_tree=True)
    gone: list[RepoPath] = []
    seeds: list[bytes] = []
    names: list[RepoPath] = []
    words = done.out.split(b"\0")
    for about, name in zip(words[0:-1:2], words[1::2], strict=True):
        mode, _, oid, _, status = about[1:].decode("ascii").split(" ")
        path = RepoPath.from_git(name)
        if status == "U":
            raise UndecidedError(
                f"{path.quoted} is not merged: the index holds a conflict",
                "resolve the conflict, then git add the file",
            )
        if status == "D":
            gone.append(path)
            continue
        names.append(path)
        if status != "A":
            seeds.append(f"{mode} {oid}\t".encode("ascii") + name + b"\0")
    found = {path: FileChange(path, None, None) for path in gone}
    if names:
        added = _added(repository, store, b"".join(seeds), b"".join(path.raw + b"\0" for path in names))
        found |= {path: FileChange(path, None, added.get(path)) for path in names}
    return found


def _added(repository: Repository, store: PrivateStore, seed: bytes, names: bytes) -> dict[RepoPath, Entry]:
    """Let git add files to a private index that knows only them; give what it made of them.

    The index knows their entries: a file that is CR LF there stays so under `core.autocrlf`, and without
    `core.fileMode` a file keeps its mode.
    """
    place = store.index_file + "-standing"
    if os.path.exists(place):
        os.unlink(place)
    variables = {**store.variables, "GIT_INDEX_FILE": place}
    if seed:
        repository.output("update-index", "-z", "--index-info", stdin=seed, variables=variables)
    # --remove: a file that is gone since git looked is no longer there, and that is all.
    arguments = (*_READ, "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
    repository.git(*arguments, stdin=names, variables=variables, in_work_tree=True)
    found: dict[RepoPath, Entry] = {}
    for record in repository.output("ls-files", "-z", "--stage", variables=variables).split(b"\0")[:-1]:
        about, _, name = record.partition(b"\t")
        mode, oid, _ = about.decode("ascii").split(" ")
        found[RepoPath.from_git(name)] = Entry(mode, oid)
    return found
