"""List commits: those that a revision or a range names, and those that some refs lack; parents first.

A long range can be listed block by block.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, finish
from patchgate.git.revisions import commit_named
from patchgate.values import dataclass

_FORMAT = "%H %T %P%x00%(trailers:only,unfold,separator=%x1F)%x00"
_LIST = ("rev-list", f"--format={_FORMAT}", "--no-commit-header")
_READ_AT_ONCE = 1 << 20
_WALK_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit to be judged: ids of itself, its tree and its parents, and the trailers of its message.

    `is_past` is whether it is known to be older than the policy that judges it.
    """

    oid: str
    tree: str
    parents: tuple[str, ...]
    trailers: tuple[str, ...] = ()
    is_past: bool = False


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits that a revision names, parents first; of a range also its two ends."""

    commits: list[Commit]
    between: tuple[str, str] | None = None


def commits_of(repository: Repository, objects: Objects, revision: str) -> CommitRange:
    """List the commits that `REV` (one) or `A..B` (those in B but not in A, parents first) names.

    Raises:
        UsageError: a revision is unknown or ambiguous, or the syntax is wrong.
        UndecidedError: the history is cut off where a parent is needed (shallow), or objects are missing.
    """
    if ".." not in revision:
        commits = list_commits(repository, "--no-walk", commit_named(objects, revision))
        return CommitRange(require_parents(repository, commits))
    low, high = range_ends(objects, revision)
    commits = list_commits(repository, *range_arguments(low, high))
    if not commits:
        require_whole(repository, low, high)
    return CommitRange(require_parents(repository, commits), (low, high))


def range_ends(objects: Objects, revision: str) -> tuple[str, str]:
    """Return the commits A and B of a range `A..B`; an empty name is HEAD.

    Raises:
        UsageError: one is unknown or ambiguous, or the syntax is wrong.
    """
    if "..." in revision:
        raise UsageError("A...B is not a range of commits", "use A..B")
    first, _, last = revision.partition("..")
    return commit_named(objects, first or "HEAD"), commit_named(objects, last or "HEAD")


def range_arguments(low: str, high: str) -> tuple[str, ...]:
    """Return the arguments by which rev-list lists the commits of a range, parents first."""
    return "--topo-order", "--reverse", high, "^" + low


def require_whole(repository: Repository, low: str, high: str) -> None:
    """Refuse an empty range of a shallow clone.

    Raises:
        UndecidedError: this is one.
    """
    if repository.shallow:
        raise UndecidedError(
            f"{low}..{high} has no commits, but this clone is shallow: commits may be missing",
            "git fetch --unshallow",
        )


def require_parents(repository: Repository, commits: list[Commit]) -> list[Commit]:
    """Return the commits, after checking that a shallow clone has all of their parents.

    Raises:
        UndecidedError: the parents of one are missing.
    """
    for commit in commits:
        if commit.oid in repository.shallow:
            raise UndecidedError(
                f"the parents of {commit.oid[:12]} are missing: this clone is shallow",
                "git fetch --deepen=50, or git fetch --unshallow",
            )
    return commits


def recent_commits(repository: Repository, objects: Objects, count: int) -> list[Commit]:
    """List the last `count` commits of HEAD, parents first; merges and a shallow end are left out."""
    head = objects.header("HEAD^{commit}")
    if head is None:
        return []
    chosen = ("--topo-order", "--reverse", "--no-merges", f"--max-count={count}", head.oid)
    return [commit for commit in list_commits(repository, *chosen) if commit.oid not in repository.shallow]


def list_commits(repository: Repository, *chosen: str, stdin: bytes = b"") -> list[Commit]:
    """List the commits that `git rev-list` prints for some arguments, in its order.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    return _listed(repository.output(*_LIST, *chosen, stdin=stdin).split(b"\0"))


def stream_commits(repository: Repository, *chosen: str, at_once: int) -> Iterator[list[Commit]]:
    """List the commits that `git rev-list` prints for some arguments, so many at once.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    # Git waits where its answer is not read at once, and each commit is judged meanwhile.
    with repository.child(*_LIST, *chosen, seconds=_WALK_SECONDS) as child:
        child.close_input()
        fields: list[bytes] = []
        rest = b""
        while data := os.read(child.out.fileno(), _READ_AT_ONCE):
            *whole, rest = (rest + data).split(b"\0")
            fields += whole
            while len(fields) > 2 * at_once:
                yield _listed([*fields[: 2 * at_once], b""])
                fields = fields[2 * at_once :]
        finish(child, "rev-list")
        if fields:
            yield _listed([*fields, b""])


def _listed(fields: Sequence[bytes]) -> list[Commit]:
    """Read commits, of two fields each; the last field is empty."""
    found: list[Commit] = []
    for index in range(0, len(fields) - 1, 2):
        oid, tree, *parents = fields[index].decode("ascii").split()
        text = fields[index + 1]
        # Most trailers occur often, like those of the maintainers who sign off.
        trailers = (
            tuple(sys.intern(each) for each in text.decode("utf-8", "replace").split("\x1f")) if text else ()
        )
        found.append(Commit(oid=oid, tree=tree, parents=tuple(parents), trailers=trailers))
    return found


def commits_not_in(
    repository: Repository,
    tips: Sequence[str],
    known: Iterable[str],
    *known_refs: str,
    most: int | None = None,
) -> list[Commit]:
    """List the commits that are reachable from `tips` but not from known ones, parents first.

    Args:
        tips: commits of this repository.
        known: commits that count as known; a missing one is ignored.
        known_refs: options of git-rev-list that name more of them, like `--all`.
        most: how many to list, the last of them.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if not tips:
        return []
    limit = () if most is None else (f"--max-count={most}",)
    chosen, stdin = _rev_list_arguments(tips, known, known_refs)
    return list_commits(repository, "--topo-order", "--reverse", *limit, *chosen, stdin=stdin)


def count_commits_not_in(
    repository: Repository, tips: Sequence[str], known: Iterable[str], *known_refs: str
) -> int:
    """Count the commits that `commits_not_in` would list.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if not tips:
        return 0
    chosen, stdin = _rev_list_arguments(tips, known, known_refs)
    return int(repository.output("rev-list", "--count", *chosen, stdin=stdin))


def _rev_list_arguments(
    tips: Sequence[str], known: Iterable[str], known_refs: Sequence[str]
) -> tuple[tuple[str, ...], bytes]:
    """Return the arguments and the standard input by which git-rev-list lists the unknown commits."""
    words = dict.fromkeys([*tips, *(f"^{oid}" for oid in known)])
    stdin = "".join(f"{word}\n" for word in words).encode("ascii")
    excluded = ("--not", *known_refs) if known_refs else ()
    return ("--ignore-missing", "--stdin", *excluded), stdin
