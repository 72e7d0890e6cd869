"""What a merge has at a path although no side changed that path so: git followed a rename there.

The author of a history chooses what its merges start from, so what git takes for a rename. Path by path, a
merge has what one side made, or, where several changed the file, the joined text; at a restricted path that
is a change of the merge: nobody approved the two together, and one may be what the other has undone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heappush

from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.process.child import DEFAULT_OUTPUT, OutputLimitError
from patchgate.values import dataclass, field

Restricted = Callable[[RepoPath], bool]
"""Whether not everybody may change a path."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a merge lands: the trees of the branches that get it, and what not everybody may change there."""

    trees: Sequence[str]
    is_restricted: Restricted


SECONDS = 20.0
"""How long it may take to find what the merges of one walk carry, and one merge: each path costs a step."""
_MORE_EACH = 0.02
BASE_SECONDS = 8.0
"""How long it may take to find the merge bases of branches and of the merges that bring something back."""
_COMPARED_AT_ONCE = 64
_MOST_STEPS = 20_000
# A merge of more commits has too many pairs; the 120 of 16 take 0.4 s.
_MOST_PAIRED = 16
# A commit may say in .gitmodules that a submodule never differs.
_JOINED_AT_ONCE = 1_024
_LINKS = frozenset({b"120000", b"160000"})
_RECORD = re.compile(rb":([0-7]{6}) ([0-7]{6}) ([0-9a-f]+) ([0-9a-f]+) [^\0]*\0([^\0]*)\0")
_ONE_PARENT = re.compile(rb"([0-9a-f]{40,64})\0((?::[^\0]*+\0[^\0]*+\0)*+)")
# Bytes of git's answer about several merges.
_MOST_OF_MANY = 64 << 20
_DIFFER = ("diff-tree", "--stdin", "-r", "-z", "--no-renames", "--ignore-submodules=none")


@dataclass(frozen=True, slots=True)
class CarriedPaths:
    """The paths where a merge is as no side made them: `always`, or if not everybody may change them."""

    always: frozenset[RepoPath]
    restricted: frozenset[RepoPath] = frozenset()

    def on(self, landing: Landing) -> set[RepoPath]:
        """List those where a merge lands."""
        return {*self.always, *filter(landing.is_restricted, self.restricted)}


class CarryLimit:
    """The time that is left to find what merges carry.

    Args:
        merges: how many there are; each adds to it.
        seconds: what they all have; None: `SECONDS`.
    """

    def __init__(self, merges: int = 0, seconds: float | None = None) -> None:
        self._left = (SECONDS if seconds is None else seconds) + _MORE_EACH * merges
        self._deadline = 0.0
        self._parents: list[str] = []

    @contextmanager
    def spent_on(self, parents: Sequence[tuple[str, str]]) -> Iterator[None]:
        """Count the time of one merge, of these parents."""
        started = time.monotonic()
        self._deadline = started + self._left
        self._parents = [commit for commit, _ in parents]
        try:
            yield
        finally:
            self._left -= time.monotonic() - started

    @property
    def has_time(self) -> bool:
        """Whether some is left."""
        return time.monotonic() < self._deadline

    def require_time(self) -> None:
        """Require that some is left.

        Raises:
            UndecidedError: there is none.
        """
        if not self.has_time:
            first, *others = self._parents
            named = " and ".join(each[:12] for each in others)
            raise UndecidedError(
                f"it takes too long to find what the merge of {first[:12]} and {named} brings together",
                f"replace the merge with a rebase: git rebase {first[:12]} {others[0][:12]}",
            )


@dataclass(frozen=True, slots=True)
class _Pair:
    """The trees of two parents, and of their merge bases."""

    one: str
    other: str
    bases: Sequence[str]


def carried_paths(
    repository: Repository,
    objects: Objects,
    parents: Sequence[tuple[str, str]],
    result: str,
    variables: Mapping[str, str] | None,
    limit: CarryLimit | None = None,
) -> CarriedPaths:
    """Find the paths where a merge is as no side made them.

    With several merge bases, each must explain a path. A merge of more than 16 commits explains none.

    Args:
        parents: commit and tree of each.
        result: the tree of the merge, which `objects` can read.
        variables: the environment in which git can read it.
        limit: what is left of the time for this merge and others.

    Raises:
        UndecidedError: git failed, an object is missing, or it takes too long.
    """
    limit = limit or CarryLimit()
    with limit.spent_on(parents):
        if len(parents) > _MOST_PAIRED:
            changed = _changed(repository, [(tree, result) for _, tree in parents], variables)
            return CarriedPaths(frozenset(RepoPath(path) for each in changed for path in each))
        pairs: list[_Pair] = []
        for number, (one_commit, one) in enumerate(parents):
            for other_commit, other in parents[number + 1 :]:
                limit.require_time()
                bases = merge_bases(repository, objects, (one_commit, other_commit))
                pairs.append(_Pair(one=one, other=other, bases=bases))
        changes = _changed(repository, _compared(pairs, result), variables)
        return _unexplained(objects, pairs, result, changes, limit)


@dataclass(frozen=True, slots=True)
class MergeSides:
    """A merge of two commits for `carried_by_each`: each with its tree, their merge bases, its own tree."""

    parents: Sequence[tuple[str, str]]
    bases: Sequence[str]
    result: str


def carried_by_each(
    repository: Repository,
    objects: Objects,
    merges: Mapping[str, MergeSides],
    variables: Mapping[str, str] | None,
    limit: CarryLimit,
) -> Iterator[tuple[str, CarriedPaths]]:
    """Yield for many merges of two commits what `carried_paths` finds, with one child for some of them.

    Args:
        merges: by their ids; the trees of all merge bases of each are known.

    Raises:
        UndecidedError: as `carried_paths`.
    """
    waiting = list(merges.items())
    while waiting:
        some, waiting = waiting[:_COMPARED_AT_ONCE], waiting[_COMPARED_AT_ONCE:]
        sides = [
            (oid, each, [_Pair(one=each.parents[0][1], other=each.parents[1][1], bases=each.bases)])
            for oid, each in some
        ]
        asked = [_compared(pairs, each.result) for _, each, pairs in sides]
        changes = iter(_changed(repository, [pair for pairs in asked for pair in pairs], variables))
        for (oid, each, pairs), compared in zip(sides, asked, strict=True):
            with limit.spent_on(each.parents):
                mine = [next(changes) for _ in compared]
                yield oid, _unexplained(objects, pairs, each.result, mine, limit)


def _compared(pairs: Sequence[_Pair], result: str) -> list[tuple[str, str]]:
    """List the trees that are compared to find what a merge carries."""
    return [
        (pairs[0].one, result),
        (pairs[0].one, pairs[0].other),
        *((base, pair.other) for pair in pairs for base in pair.bases),
    ]


def _unexplained(
    objects: Objects,
    pairs: Sequence[_Pair],
    result: str,
    changes: Sequence[dict[bytes, bytes]],
    limit: CarryLimit,
) -> CarriedPaths:
    made, differs, *others = changes
    kept, restricted = set[RepoPath](), set[RepoPath]()
    for raw in {**made, **{path: b"" for each in others for path in each}}:
        limit.require_time()
        if len(pairs) == 1:
            # Most paths: both sides and the merge are alike, or the merge did to the one side what the other
            # did since each base.
            change = made.get(raw)
            if change is None:
                is_plain = raw not in differs
            else:
                is_plain = all(each.get(raw) == change for each in others)
            if is_plain:
                continue
        path = RepoPath(raw)
        if not _is_explained(objects, path, result, pairs, False):
            kept.add(path)
        elif not _is_explained(objects, path, result, pairs, True):
            restricted.add(path)
    return CarriedPaths(frozenset(kept), frozenset(restricted))


def _is_explained(
    objects: Objects, path: RepoPath, result: str, pairs: Sequence[_Pair], is_restricted: bool
) -> bool:
    """Return whether a merge may have what it has at a path, where no file was renamed.

    Of two parents the merge has what one made of the path since each merge base. Only of two alone may it
    choose, where both changed the path, or join their text; and only if the path is not restricted.
    """
    is_octopus = len(pairs) > 1
    made = objects.entry(result, path.raw)
    for pair in pairs:
        one, other = objects.entry(pair.one, path.raw), objects.entry(pair.other, path.raw)
        for tree in pair.bases:
            base = objects.entry(tree, path.raw)
            if one == other:
                is_right = is_octopus or made == one
            elif base == one:
                is_right = made == other or (is_octopus and made != one)
            elif base == other:
                is_right = made == one or (is_octopus and made != other)
            else:
                is_text = all(entry is not None and entry.is_file for entry in (base, one, other))
                is_right = not is_octopus and (made in (one, other) or is_text) and not is_restricted
            if not is_right:
                return False
    parents = [objects.entry(tree, path.raw) for pair in pairs for tree in (pair.one, pair.other)]
    return not is_octopus or made in parents


@dataclass(slots=True)
class MergeDifference:
    """How a merge differs from its parents.

    `paths` are the files that differ from any, `folders` the trees of each folder, there and in the merge,
    for each parent from which it differs (None: not there). `has_links` is whether a symlink or a submodule
    differs.
    """

    paths: set[bytes] = field(default_factory=set)
    folders: dict[bytes, list[tuple[str | None, str | None]]] = field(default_factory=dict)
    has_links: bool = False

    def add(self, records: bytes, known: dict[bytes, bytes]) -> None:
        """Add raw records of git, of one parent; merges share the paths that are `known`."""
        for old_mode, new_mode, old, new, path in _RECORD.findall(records):
            if b"040000" in (old_mode, new_mode):
                trees = [
                    oid.decode("ascii") if mode == b"040000" else None
                    for mode, oid in ((old_mode, old), (new_mode, new))
                ]
                self.folders.setdefault(path, []).append((trees[0], trees[1]))
                if {old_mode, new_mode} <= {b"040000", b"000000"}:
                    continue
            self.paths.add(known.setdefault(path, path))
            self.has_links |= not _LINKS.isdisjoint((old_mode, new_mode))


def touched_paths(
    repository: Repository, merges: Sequence[str], limit: CarryLimit
) -> dict[str, MergeDifference]:
    """Say of some merges that differ from a parent how. One child for all, or more where it would write too
    much: each may differ from a parent in all files.

    Args:
        merges: their commits.
        limit: what is left of the time for these merges and others; without limits it does not end.

    Raises:
        UndecidedError: git failed, or it takes too long.
    """
    with limit.spent_on([(oid, "") for oid in merges]):
        return _touched_paths(repository, merges, limit)


def _touched_paths(
    repository: Repository, merges: Sequence[str], limit: CarryLimit
) -> dict[str, MergeDifference]:
    found: dict[str, MergeDifference] = {}
    known: dict[bytes, bytes] = {}
    waiting = [list(merges)] if merges else []
    while waiting:
        if repository.has_limits and not limit.has_time:
            raise UndecidedError(
                "it takes too long to find how merges differ from what they join",
                "push fewer merges at once, or replace them with a rebase",
            )
        some = waiting.pop()
        stdin = "".join(f"{oid}\n" for oid in some).encode("ascii")
        most = _MOST_OF_MANY if len(some) > 1 else DEFAULT_OUTPUT
        try:
            asked = (*_DIFFER, "-t", "--raw", "--no-abbrev", "-m")
            answer = repository.git(*asked, stdin=stdin, max_output=most).out
        except OutputLimitError:
            if len(some) == 1:
                raise
            half = len(some) // 2
            waiting += [some[half:], some[:half]]
            continue
        at = 0
        while at < len(answer):
            one = _ONE_PARENT.match(answer, at)
            if one is None:
                raise UndecidedError("git printed something else than the changes of merges", "run git fsck")
            found.setdefault(one[1].decode("ascii"), MergeDifference()).add(one[2], known)
            at = one.end()
    return {oid: each for oid, each in found.items() if each.paths or each.folders}


def joining_merges(repository: Repository, merges: Sequence[str]) -> set[str]:
    """Find the merges of two commits with a file that differs from both.

    Raises:
        UndecidedError: git failed.
    """
    found = set[str]()
    for start in range(0, len(merges), _JOINED_AT_ONCE):
        stdin = "".join(f"{oid}\n" for oid in merges[start : start + _JOINED_AT_ONCE]).encode("ascii")
        merge = ""
        words = iter(repository.output(*_DIFFER, "-c", "--raw", "--no-abbrev", stdin=stdin).split(b"\0"))
        for word in words:
            if word.startswith(b"::"):
                found.add(merge)
                next(words)
            elif word:
                merge = word.decode("ascii", "replace")
    return found


def _changed(
    repository: Repository, pairs: Sequence[tuple[str, str]], variables: Mapping[str, str] | None
) -> list[dict[bytes, bytes]]:
    """Map the paths that differ between the trees of each pair to both entries as git writes them; one child
    for all.
    """
    found: dict[bytes, dict[bytes, bytes]] = {f"{old} {new}".encode("ascii"): {} for old, new in pairs}
    stdin = b"".join(pair + b"\n" for pair in found)
    words = iter(repository.output(*_DIFFER, "--raw", stdin=stdin, variables=variables).split(b"\0"))
    here: dict[bytes, bytes] = {}
    for word in words:
        # The line that names two trees stands before their first record, without a NUL.
        *named, record = word.split(b"\n")
        if named:
            if named[-1] not in found:
                raise UndecidedError("git printed the changes of other trees than asked for", "run git fsck")
            here = found[named[-1]]
        if record.startswith(b":"):
            here[next(words)] = record.rpartition(b" ")[0]
    return [found[f"{old} {new}".encode("ascii")] for old, new in pairs]


class CommitGraph:
    """The commits of a walk, parents first, in which merge bases are found without asking git."""

    def __init__(self, commits: Iterable[tuple[str, Sequence[str]]]) -> None:
        self._parents: list[tuple[str, Sequence[str]]] = list(commits)
        self._places = {oid: place for place, (oid, _) in enumerate(self._parents)}
        # With a commit-graph and dates from 2^34 on git lists some parents later.
        self._is_ordered = all(
            self._places.get(parent, -1) < place
            for place, (_, parents) in enumerate(self._parents)
            for parent in parents
        )

    def merge_bases(self, one: str, other: str) -> list[str] | None:
        """List the best common ancestors of two commits; None if this walk does not show them.

        They may be outside of it or far away, or it has a parent after its child.

        The last commit is looked at first, so all that leads to a commit is known by then.
        """
        start, end = self._places.get(one), self._places.get(other)
        if start is None or end is None or not self._is_ordered:
            return None
        sides = {start: _ONE}
        sides[end] = sides.get(end, 0) | _OTHER
        waiting = [-place for place in sides]
        heapify(waiting)
        open_ends, found = len(waiting), list[str]()
        for _ in range(_MOST_STEPS):
            if not open_ends:
                return found
            place = -heappop(waiting)
            side = sides[place]
            open_ends -= side < _BELOW
            oid, parents = self._parents[place]
            if side == _ONE | _OTHER:
                found.append(oid)
                side |= _BELOW
            for parent in parents:
                above = self._places.get(parent)
                if above is None:
                    return None
                before = sides.get(above)
                sides[above] = after = (before or 0) | side
                if before is None:
                    heappush(waiting, -above)
                    open_ends += after < _BELOW
                else:
                    open_ends -= before < _BELOW <= after
        return None


_ONE, _OTHER, _BELOW = 1, 2, 4
"""From which of two commits one is reached, and whether it is below a common ancestor."""


def merge_bases(repository: Repository, objects: Objects, commits: Sequence[str]) -> list[str]:
    """List the trees of the merge bases of a commit and of a merge of the others.

    Returns:
        At least one: the empty tree if there is no such base.

    Raises:
        UndecidedError: git failed.
    """
    done = repository.git("merge-base", "--all", *commits, answers=(0, 1))
    headers = objects.headers([commit + "^{tree}" for commit in done.out.decode("ascii").split()])
    return [header.oid for header in headers if header is not None] or [objects.empty_tree]
