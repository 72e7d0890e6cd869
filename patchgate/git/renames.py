"""Which files of one tree are files of another under a new name, as git tells.

Decides how git is asked: a likeness of half, and at most so many pairs that it stays cheap; above that only
exact renames are found. Whether anything follows from a rename, others decide.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.repository import MemoryLimitError, Repository

_FILES = frozenset({b"100644", b"100755"})
# git compares each new file with each that is gone; above this many it looks for exact renames only.
_MOST_PAIRED = 1000
_LOOSE, _EXACT = "-M50%", "-M100%"


def renames(
    repository: Repository, before: str, after: str, variables: Mapping[str, str] | None = None
) -> dict[RepoPath, RepoPath]:
    """Find the regular files of a tree that have another name in an older one: new name to old.

    Args:
        before: the id of the older tree.
        after: the id of the newer one.
        variables: lead git to trees that the repository does not have.

    Raises:
        UndecidedError: git failed, or a tree is missing.
    """
    if before == after:
        return {}
    try:
        return _read(_listed(repository, before, after, _LOOSE, variables))
    except MemoryLimitError:
        # Only large files that are alike cost so much; those of one content need not be read.
        return _read(_listed(repository, before, after, _EXACT, variables))


def _listed(
    repository: Repository, before: str, after: str, likeness: str, variables: Mapping[str, str] | None
) -> bytes:
    flags = ("-r", "-z", "--raw", "--no-abbrev", likeness, f"-l{_MOST_PAIRED}", "--diff-filter=R")
    return repository.output("diff-tree", *flags, before, after, variables=variables)


def _read(listed: bytes) -> dict[RepoPath, RepoPath]:
    """Read records of `:mode mode oid oid Rscore NUL old NUL new NUL` (git-diff-tree, raw output)."""
    words = listed.split(b"\0")[:-1]
    if len(words) % 3:
        raise UndecidedError("git lists renames in a form that is not known", "run git fsck")
    found = {}
    for about, old, new in zip(words[::3], words[1::3], words[2::3], strict=True):
        modes = about.lstrip(b":").split(b" ")[:2]
        if _FILES.issuperset(modes):
            found[RepoPath.from_git(new)] = RepoPath.from_git(old)
    return found
