"""Which working tree a journal is about, and whether it is one of this repository.

Decides where a landing that was cut short may be undone or tidied: in the very folder that it wrote (device
and inode, as the journal has them), wherever that is now, if its `.git` leads to this repository. A copy has
other folders, so nothing is done from it; it has no say in the tree that it was copied from. It does not
decide what is done.

One other tree is taken: a repository that was put back in whole, its git directory inside it, where the
journal says. Both are other folders then, but they belong together as they did.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from patchgate.errors import UndecidedError
from patchgate.git.quoting import quote_path
from patchgate.git.repository import Repository
from patchgate.git.transaction.journal import Journal, identity_of
from patchgate.storage.folder import Folder
from patchgate.storage.owner import Owner

_MOST_BYTES = 1 << 14


def own_index(repository: Repository) -> str:
    """Name the index as a journal has it: by its name alone in the git directory, else by where it is."""
    folder, name = os.path.split(repository.index_file)
    is_own = "index" in name and _is_same(folder, repository.git_dir)
    return name if is_own else repository.index_file


def find(repository: Repository, journal: Journal, record: Folder) -> tuple[str, str]:
    """Find the working tree that a journal is about, and the index.

    Raises:
        UndecidedError: it is no working tree of this repository, or is gone, or the index is elsewhere.
    """
    for tree, git_dir in _candidates(repository, journal):
        if _is_meant(repository, journal, tree):
            return tree, _index_of(repository, journal, git_dir, record)
    shown, own = quote_path(os.fsencode(journal.work_tree)), quote_path(record.path)
    if not os.path.isdir(journal.work_tree):
        raise UndecidedError(
            f"the working tree {shown} of an interrupted apply is gone",
            f"put it back, or run the command where it is now, or remove the record {own}",
        )
    raise UndecidedError(
        f"the record {own} of an interrupted apply belongs to another working tree ({shown})",
        "if this is a copy, or that tree was made anew, look with git status at what the apply left here"
        " (.patchgate-*, git's index.lock), then remove that record; else run git patchgate recover there",
    )


def _candidates(repository: Repository, journal: Journal) -> Iterator[tuple[str, str]]:
    """Yield the working trees of this repository, each with its git directory; the likeliest first."""
    if repository.work_tree is not None:
        yield repository.work_tree, repository.git_dir
    linked = os.path.join(repository.common_dir, "worktrees")
    names = sorted(os.listdir(linked)) if os.path.isdir(linked) else []
    pointers = [_line(os.path.join(linked, name, "gitdir")) for name in names]
    for tree in (journal.work_tree, os.path.dirname(repository.common_dir), *map(os.path.dirname, pointers)):
        git_dir = _git_dir_of(tree, repository.common_dir)
        if git_dir is not None:
            yield tree, git_dir


def _git_dir_of(tree: str, common_dir: str) -> str | None:
    """Follow a tree's `.git` to its git directory; None where that is not one of this repository.

    Source: gitrepository-layout(5), `gitdir` and `commondir`.
    """
    place = os.path.join(tree, ".git")
    git_dir = place
    if not os.path.isdir(place):
        told = _line(place)
        if not told.startswith("gitdir: "):
            return None
        git_dir = os.path.join(tree, told.removeprefix("gitdir: "))
    if _is_same(git_dir, common_dir):
        return git_dir
    is_linked = _is_same(os.path.dirname(git_dir), os.path.join(common_dir, "worktrees"))
    leads_back = _is_same(os.path.join(git_dir, _line(os.path.join(git_dir, "gitdir"))), place)
    return git_dir if is_linked and leads_back else None


def _is_meant(repository: Repository, journal: Journal, tree: str) -> bool:
    try:
        found = identity_of(os.stat(tree)), identity_of(os.stat(repository.common_dir))
    except OSError:
        return False
    known = journal.tree, journal.common
    if journal.owner.boot_id != Owner.current().boot_id:
        # The number of a device may be another after a restart.
        found, known = (_inode(found[0]), _inode(found[1])), (_inode(known[0]), _inode(known[1]))
    is_other = found[0] != known[0] and found[1] != known[1]
    is_whole = _is_same(os.path.join(tree, ".git"), repository.common_dir)
    return found == known or (is_other and is_whole and tree == journal.work_tree)


def _index_of(repository: Repository, journal: Journal, git_dir: str, record: Folder) -> str:
    if os.path.isabs(journal.index_file):
        if journal.index_file != repository.index_file:
            shown = quote_path(os.fsencode(journal.index_file))
            raise UndecidedError(
                f"an interrupted apply wrote an index elsewhere: {shown}",
                "run git patchgate recover with GIT_INDEX_FILE set to it, or, if it is gone, remove the"
                f" record {quote_path(record.path)}",
            )
        return journal.index_file
    return os.path.join(git_dir, journal.index_file)


def _inode(identity: str) -> str:
    return identity.partition(":")[2]


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def _line(path: str) -> str:
    """Read a file of one line; empty where there is none."""
    try:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return os.fsdecode(file.read(_MOST_BYTES).rstrip(b"\r\n"))
    except (OSError, ValueError):
        pass
    return ""
