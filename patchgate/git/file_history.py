"""Find renames between two trees, and the commit that gave a file its content.

A commit counts if it changed the file (a merge: from every parent) and left it with exactly the content and
mode in question. So a change on a side branch that the merge dropped does not count, and a change that was
reverted counts as new.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.repository import MemoryLimitError, Repository, finish
from patchgate.process.child import Child
from patchgate.values import dataclass

_FILES = frozenset({b"100644", b"100755"})
# git compares each new file with each deleted one; above this many it finds exact renames only.
_MOST_PAIRED = 1000
_LOOSE, _EXACT = "-M50%", "-M100%"


def find_renames(
    repository: Repository, before: str, after: str, variables: Mapping[str, str] | None = None
) -> dict[RepoPath, RepoPath]:
    """Find the regular files of a tree that have another name in an older one: new name to old.

    Args:
        before: the id of the older tree.
        after: the id of the newer one.
        variables: environment by which git finds trees outside the repository.

    Raises:
        UndecidedError: git failed, or a tree is missing.
    """
    if before == after:
        return {}
    try:
        return _read(_listed(repository, before, after, _LOOSE, variables))
    except MemoryLimitError:
        # Only large similar files cost so much; identical ones need not be read.
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
        raise UndecidedError("git listed renames in an unknown format", "run git fsck")
    found = {}
    for about, old, new in zip(words[::3], words[1::3], words[2::3], strict=True):
        modes = about.lstrip(b":").split(b" ")[:2]
        if _FILES.issuperset(modes):
            found[RepoPath.from_git(new)] = RepoPath.from_git(old)
    return found


_CHUNK = 1 << 16
# Sets everything that a user's config could change about the walk or its format.
_WALK = (
    "--literal-pathspecs",
    "log",
    "-z",
    "--full-history",
    "--root",
    "-c",
    "-r",
    "--raw",
    "--no-abbrev",
    "--no-renames",
    "--no-show-signature",
    "--no-follow",
    "--no-mailmap",
    "--no-notes",
    "-O/dev/null",
    "--ignore-submodules=none",
    "--format=%H %ct",
)


@dataclass(frozen=True, slots=True)
class FileCommit:
    """The commit that gave a file its content, and its committer date in seconds since the epoch (UTC).

    `is_cut_off` is whether a shallow history ends there: then an older commit may have done it.
    """

    commit: str
    seconds: int
    is_cut_off: bool


def newest_commits(
    repository: Repository, tip: str, folder: bytes, wanted: Mapping[bytes, str]
) -> dict[bytes, FileCommit]:
    """Find for each wanted file the newest commit that gave it its content; files without one are left out.

    The walk is by date, newest first, and ends as soon as all are found.

    Args:
        tip: the full id of the commit where the walk starts.
        folder: all wanted files are below it.
        wanted: the files, each with the blob id that it has at the tip.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    found: dict[bytes, FileCommit] = {}
    if not wanted:
        return found
    pathspec = os.fsdecode(folder.rstrip(b"/"))
    with repository.child(*_WALK, tip, "--", pathspec) as child:
        child.close_input()
        for commit, seconds, path, oid in _changes(child):
            if path not in found and wanted.get(path) == oid:
                found[path] = FileCommit(commit, seconds, commit in repository.shallow)
                if len(found) == len(wanted):
                    break
    return found


def _changes(child: Child) -> Iterator[tuple[str, int, bytes, str]]:
    """Yield the result of each commit for each file: commit, date, path, new blob id (zeroes: it is gone)."""
    commit, seconds = "", 0
    tokens = _tokens(child)
    for token in tokens:
        if not token:
            # Between a merge and its changes git writes two line ends, not one.
            continue
        if not token.startswith((b":", b"\n:")):
            oid, _, date = token.partition(b" ")
            commit, seconds = oid.decode("ascii"), _seconds(date)
            continue
        # `:mode mode oid oid status`; of a merge as many colons, and old modes and ids, as it has parents.
        new = token.split(b" ")[-2]
        path = next(tokens, None)
        if path is None:
            raise _cut_off()
        yield commit, seconds, path, new.decode("ascii")


def _seconds(date: bytes) -> int:
    # For a commit with an unreadable date git writes nothing.
    try:
        return int(date)
    except ValueError:
        return 0


def _tokens(child: Child) -> Iterator[bytes]:
    rest = b""
    while data := os.read(child.out.fileno(), _CHUNK):
        *tokens, rest = (rest + data).split(b"\0")
        yield from tokens
    finish(child, "log")
    if rest:
        raise _cut_off()


def _cut_off() -> UndecidedError:
    return UndecidedError("git log ended in the middle of a line", "run git fsck")
