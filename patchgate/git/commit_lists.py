"""List commits: those that a revision or a range names, and those that some refs lack; parents first.

A long range can be listed block by block.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, finish
from patchgate.git.revisions import commit_named
from patchgate.values import dataclass

_FORMAT = "%H %T %P%x00%B%x00"
_TRAILERS = "%(trailers:only,unfold,separator=%x1F)"
_LIST = ("rev-list", "--no-commit-header")
_READ_AT_ONCE = 1 << 20
_WALK_SECONDS = 24 * 3600.0
AT_ONCE = 16_384
"""How many commits are listed at once; git's children for them last no longer."""
# Sources: git-interpret-trailers; find_trailer_block_start and find_separator in git's trailer.c.
_MAY_HAVE_TRAILERS = re.compile(rb"^(?:[A-Za-z0-9-]++[ \t]*+:|\(cherry picked from commit )", re.MULTILINE)
# Git reads the continuation of a trailer in quadratic time: 2.4 million lines take it 87 s.
_FOLDED = re.compile(rb"(?:\n[ \t][^\n]*+)++")
_MOST_FOLDED = 64 << 10
_MOST_MESSAGE = 8 << 20
_MOST_HISTORIES = 2


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
    commits = NotReached(repository, [low]).of(list_commits(repository, *range_arguments(low, high)))
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


def commits_with_parents(repository: Repository, *chosen: str) -> dict[str, tuple[str, ...]]:
    """Map each commit that `git rev-list` prints for some arguments to its parents, before its ancestors.

    With a commit-graph, and commits of 2514 (2^34) or later, git 2.39 does not keep the order it promises.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    raw = repository.output("rev-list", "--topo-order", "--parents", *chosen)
    listed = [line.split() for line in raw.decode("ascii").splitlines()]
    parents = {commit: tuple(above) for commit, *above in listed}
    parents_first = list(TopologicalSorter(parents).static_order())
    return {commit: parents[commit] for commit in reversed(parents_first) if commit in parents}


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
        UndecidedError: git failed, objects are missing, or a message cannot be read in a short time.
    """
    return [commit for some in stream_commits(repository, *chosen, stdin=stdin) for commit in some]


def stream_commits(repository: Repository, *chosen: str, stdin: bytes = b"") -> Iterator[list[Commit]]:
    """List the commits that `git rev-list` prints for some arguments, `AT_ONCE` or a few more at once.

    Raises:
        UndecidedError: as in `list_commits`.
    """
    found: list[list[str]] = []
    asked: list[str] = []
    fields: list[bytes] = []
    rest = b""
    # Git waits where its answer is not read at once, and each commit is judged meanwhile.
    with repository.child(*_LIST, f"--format={_FORMAT}", *chosen, seconds=_WALK_SECONDS) as child:
        child.feed(stdin)
        while data := os.read(child.out.fileno(), _READ_AT_ONCE):
            *whole, rest = (rest + data).split(b"\0")
            fields += whole
            for ids, message in zip(fields[::2], fields[1::2], strict=False):
                found.append(ids.decode("ascii").split())
                if may_have_trailers(found[-1][0], message):
                    asked.append(found[-1][0])
            # Messages are not kept; some are larger than all else.
            fields = fields[-1:] if len(fields) % 2 else []
            if len(rest) > _MOST_MESSAGE:
                raise _too_long(fields[0].decode("ascii").split()[0])
            if len(found) >= AT_ONCE:
                yield _made(found, trailers_of(repository, asked, _TRAILERS))
                found, asked = [], []
        finish(child, "rev-list")
    if found:
        yield _made(found, trailers_of(repository, asked, _TRAILERS))


def _made(found: Iterable[Sequence[str]], trailers: Mapping[str, str]) -> list[Commit]:
    return [
        Commit(
            oid=oid,
            tree=tree,
            parents=tuple(parents),
            # Most trailers occur often, like those of the maintainers who sign off.
            trailers=tuple(map(sys.intern, text.split("\x1f"))) if (text := trailers.get(oid)) else (),
        )
        for oid, tree, *parents in found
    ]


def may_have_trailers(oid: str, message: bytes) -> bool:
    """Return whether git may find trailers in a message.

    Raises:
        UndecidedError: it would take git too long to tell.
    """
    if _MAY_HAVE_TRAILERS.search(message) is None:
        return False
    if len(message) > _MOST_FOLDED:
        longest = max((len(each.group()) for each in _FOLDED.finditer(message)), default=0)
        if longest > _MOST_FOLDED or len(message) > _MOST_MESSAGE:
            raise _too_long(oid)
    return True


def _too_long(oid: str) -> UndecidedError:
    return UndecidedError(
        f"the message of {oid[:12]} is too long to read its trailers: "
        f"{_MOST_MESSAGE >> 20} MiB, or {_MOST_FOLDED >> 10} KiB of indented lines",
        "write a shorter message: git commit --amend, or git rebase -i",
    )


def trailers_of(repository: Repository, oids: Sequence[str], form: str) -> dict[str, str]:
    """Ask git for the trailers of commits that may have some.

    Args:
        form: how they are printed, a placeholder of git-log; in it are no NULs.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if not oids:
        return {}
    stdin = "".join(f"{oid}\n" for oid in oids).encode("ascii")
    chosen = (f"--format=%H%x00{form}%x00", "--no-walk=unsorted", "--stdin")
    fields = repository.output(*_LIST, *chosen, stdin=stdin).split(b"\0")
    # Each answer ends in a line feed, which git writes before the next one.
    return {
        oid.decode("ascii").strip(): text.decode("utf-8", "replace")
        for oid, text in zip(fields[::2], fields[1::2], strict=False)
    }


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
    known = list(known)
    chosen, stdin = _rev_list_arguments(tips, known, known_refs)
    found = list_commits(repository, "--topo-order", "--reverse", *limit, *chosen, stdin=stdin)
    return NotReached(repository, known, *known_refs).of(found)


class NotReached:
    """Leaves out of the commits that git lists those that known ones reach.

    Git lists some where several commits have dates from before those (limit_list in its revision.c looks at
    five more), and then to the beginning of the history. So it costs nothing where no root is listed. For the
    first few known commits alone: to list too much is safe, and each costs a walk of all that they reach.

    Args:
        known: the known commits; a missing one is ignored.
        known_refs: options of git-rev-list that name more of them.
    """

    def __init__(self, repository: Repository, known: Sequence[str], *known_refs: str) -> None:
        self._repository = repository
        self._known = known
        self._known_refs = known_refs
        self._reached: frozenset[str] | None = None

    def of(self, commits: list[Commit]) -> list[Commit]:
        """Return those that the known ones do not reach.

        Args:
            commits: as git lists them, parents first: all, or some and the further ones with the next call.

        Raises:
            UndecidedError: git failed, or objects are missing.
        """
        if self._reached is None and not all(commit.parents for commit in commits):
            self._reached = self._history()
        if not self._reached:
            return commits
        reached = self._reached
        return [commit for commit in commits if commit.oid not in reached]

    def _history(self) -> frozenset[str]:
        """List what the known ones reach; nothing where too many others were asked for already."""
        stdin = "".join(f"{oid}\n" for oid in self._known).encode("ascii")
        asked = " ".join(self._known_refs).encode("utf-8", "surrogateescape") + b"\n" + stdin
        histories = self._repository.histories
        if asked not in histories and (len(histories) >= _MOST_HISTORIES or not asked.strip()):
            return frozenset()
        if asked not in histories:
            words = ("--ignore-missing", "--stdin", *self._known_refs)
            raw = self._repository.output("rev-list", *words, stdin=stdin)
            histories[asked] = frozenset(raw.decode("ascii").split())
        return histories[asked]


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
