"""Read commits as changes: one streaming diff-tree child, never a process for each commit.

Decides what each is compared with: its first parent, the empty tree, or the merge that git makes without
help. `commit_lists` lists the commits.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from patchgate.errors import UndecidedError
from patchgate.git.change_sources import LoadedChange, carried_files, fill_in_details, solver
from patchgate.git.commit_lists import Commit
from patchgate.git.diff import Detail, DiffReader, Records, is_text_candidate, read_difference
from patchgate.git.model import Change, FileChange, Source
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import MemoryLimitError, Repository, finish
from patchgate.git.trees import FOLDERS, ChangedFolders, TreeCheck, folders_between
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.git.merge_paths import CarriedPaths, CarryLimit, Landing, MergeDifference
    from patchgate.git.merges import Merged

_AT_ONCE = 64
_FEW = 8
_MOST_BEFORE = 250_000


class Walk:
    """Reads the changes of a list of commits; a context manager that owns what the walk needs.

    `objects` reads through the walk's private store, which has merged trees.
    """

    def __init__(self, repository: Repository, commits: Sequence[Commit]) -> None:
        self.repository = repository
        self._stack = contextlib.ExitStack()
        self._commits = commits
        self._trees = {commit.oid: commit.tree for commit in commits}
        self._merged: dict[tuple[str, ...], Merged] = {}
        merges = [commit.parents for commit in commits if len(commit.parents) > 1]
        self._variables: dict[str, str] = {}
        self._joining: set[str] = set()
        self._asked: Sequence[str] = ()
        self._merges: dict[str, int] = {}
        self._differences: dict[str, MergeDifference] = {}
        self._carried: dict[str, CarriedPaths] = {}
        self._carry_limit: CarryLimit | None = None
        self._touch_limit: CarryLimit | None = None
        self._solved_limit: CarryLimit | None = None
        self._is_carried = False
        if merges:
            # 10 ms, and most ranges have no merge.
            from patchgate.git.merges import automatic_merges
            from patchgate.git.private_store import PrivateStore

            with contextlib.ExitStack() as stack:
                store = stack.enter_context(PrivateStore(repository))
                self._variables = store.variables
                trees = automatic_merges(store, merges)
                self._stack = stack.pop_all()
            self._merged = dict(zip(merges, trees, strict=True))
            self._joining = self._find_joining(commits)
            plain = (each.oid for each in commits if len(each.parents) > 1 and each.oid not in self._joining)
            self._merges = {oid: place for place, oid in enumerate(plain)}
        self.objects = self._stack.enter_context(Objects(repository, self._variables or None))
        self._trees_checked = TreeCheck(self.objects)

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _find_joining(self, commits: Sequence[Commit]) -> set[str]:
        """Find the merges that may have what no side made: those with a conflict, of more than two commits,
        or with a file that differs from each parent's.
        """
        from patchgate.git.merge_paths import joining_merges

        merges = [commit for commit in commits if len(commit.parents) > 1]
        found = {
            commit.oid
            for commit in merges
            if len(commit.parents) > 2
            or (commit.parents in self._merged and self._merged[commit.parents].conflicts)
        }
        return found | joining_merges(self.repository, [each.oid for each in merges if each.oid not in found])

    def is_clean_merge(self, commit: Commit) -> bool:
        """Return whether a merge of two commits is what git makes of them alone, and each file in it is as a
        side made it, or as both did.
        """
        merged = self._merged.get(commit.parents)
        if merged is None or merged.conflicts or merged.tree != commit.tree:
            return False
        if commit.oid in self._joining:
            self._carry_together()
            carried = self._carried.get(commit.oid)
            return carried is not None and not carried.always
        return True

    def differences_of(self, merges: Sequence[Commit]) -> dict[str, MergeDifference]:
        """Say of some merges that differ from a parent how."""
        return self._touched([commit.oid for commit in merges])

    def _touched(self, merges: Sequence[str]) -> dict[str, MergeDifference]:
        from patchgate.git.merge_paths import BASE_SECONDS, CarryLimit, touched_paths

        if self._touch_limit is None:
            self._touch_limit = CarryLimit(len(self._merges), seconds=BASE_SECONDS)
        return touched_paths(self.repository, merges, self._touch_limit)

    def _difference_of(self, commit: Commit) -> MergeDifference | None:
        """Say how one merge differs from its parents; those that follow in the walk are asked for with it."""
        if commit.oid not in self._asked:
            place = self._merges.get(commit.oid, 0)
            self._asked = [*self._merges][place : place + _AT_ONCE] or [commit.oid]
            self._differences = self._touched(self._asked)
        return self._differences.get(commit.oid)

    def _carry_together(self) -> None:
        """Find what the merges carry whose merge bases are in the walk; others are asked for one by one."""
        if self._is_carried:
            return
        self._is_carried = True
        from patchgate.git.merge_paths import CarryLimit, CommitGraph, MergeSides, carried_by_each

        graph = CommitGraph((commit.oid, commit.parents) for commit in self._commits)
        joining = [each for each in self._commits if each.oid in self._joining and len(each.parents) == 2]
        bases = {each.oid: graph.merge_bases(*each.parents) for each in joining}
        if not self.repository.shallow:
            further = [each for each in joining if bases[each.oid] is None]
            if len(further) > _FEW:
                graph = CommitGraph(self._before([parent for each in further for parent in each.parents]))
                bases |= {each.oid: graph.merge_bases(*each.parents) for each in further}
        merges = {}
        for commit in joining:
            parents = [(parent, self.tree_of(parent)) for parent in commit.parents]
            trees = [*map(self.tree_of, bases[commit.oid] or ())]
            if trees:
                merges[commit.oid] = MergeSides(parents, trees, commit.tree)
        limit = self._carry_limit = CarryLimit(len(self._joining))
        # One that takes too long has that error when it is asked for itself.
        with contextlib.suppress(UndecidedError):
            for oid, paths in carried_by_each(
                self.repository, self.objects, merges, self.without_index, limit
            ):
                self._carried[oid] = paths

    def _before(self, tips: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
        """List commits and what is before them, parents first: with many merges git is not asked for each."""
        listing = (
            "rev-list",
            "--topo-order",
            "--reverse",
            "--parents",
            f"--max-count={_MOST_BEFORE}",
            "--stdin",
        )
        stdin = "".join(f"{oid}\n" for oid in dict.fromkeys(tips)).encode("ascii")
        for line in self.repository.output(*listing, stdin=stdin).decode("ascii").splitlines():
            oid, *parents = line.split(" ")
            yield oid, parents

    def base_of(self, commit: Commit) -> str:
        """The tree that a commit is judged against."""
        if not commit.parents:
            return self.objects.empty_tree
        merged = self._merged.get(commit.parents)
        if merged is None or merged.conflicts:
            return self.tree_of(commit.parents[0])
        return merged.tree

    def tree_of(self, commit: str) -> str:
        """The tree of a commit, from the walk, or from git."""
        tree = self._trees.get(commit)
        if tree is None:
            header = self.objects.header(commit + "^{tree}")
            if header is None:
                raise UndecidedError(
                    f"commit {commit[:12]} is not in this repository", "git fetch --unshallow, then try again"
                )
            tree = self._trees[commit] = header.oid
        return tree

    def read(self, commits: Sequence[Commit], detail: Detail) -> Iterator[tuple[Commit, LoadedChange]]:
        """Read commit after commit, through one diff-tree child; every commit once, or an error.

        Raises:
            UndecidedError: git failed, or an object is missing.
        """
        done = 0
        try:
            for each in self._stream(commits, detail):
                yield each
                done += 1
        except MemoryLimitError:
            # Git needs too much memory for a commit that was not yielded yet, often for a large file. From
            # the first of those on, each gets a separate child; one that still needs too much raises.
            for commit in commits[done:]:
                read = [self._alone(old, commit.tree, detail) for old in self._compared(commit)]
                raw = self._joined(commit, *read)
                (reading,) = self._finished([commit], [raw], [self._folders_alone(commit)], detail)
                yield commit, reading

    def _stream(self, commits: Sequence[Commit], detail: Detail) -> Iterator[tuple[Commit, LoadedChange]]:
        """Read commits in batches, to keep memory small.

        Git may die after any byte, and what it wrote before looks like the whole answer. So a commit counts
        as read when the line of the next pair of trees has arrived; after the last pair an empty one
        is asked for. The last batch waits for the child's end too.
        """
        compared = [[f"{tree} {commit.tree}" for tree in self._compared(commit)] for commit in commits]
        end = f"{self.objects.empty_tree} {self.objects.empty_tree}"
        headers = [f"{pair}\n".encode("ascii") for pairs in [*compared, [end]] for pair in pairs]
        with self.repository.child(
            "diff-tree", "--stdin", *FOLDERS, *detail.flags, variables=self.without_index
        ) as child:
            child.feed(b"".join(headers))
            reader = DiffReader(child, detail.glance, has_folders=True, is_limited=self.repository.has_limits)
            following = iter(headers)
            _pass(reader, next(following))
            for start in range(0, len(commits), _AT_ONCE):
                batch = commits[start : start + _AT_ONCE]
                raw: list[Records] = []
                touched: list[ChangedFolders] = []
                for commit in batch:
                    read: list[Records] = []
                    folders = _nothing_of(commit)
                    for old in self._compared(commit):
                        read.append(_next(reader, next(following), detail))
                        between = ChangedFolders.of(folders.origin, old, commit.tree, reader.take_folders())
                        folders = folders.joined(between)
                    raw.append(self._joined(commit, *read))
                    touched.append(folders)
                if start + _AT_ONCE >= len(commits):
                    finish(child, "diff-tree")
                yield from zip(batch, self._finished(batch, raw, touched, detail), strict=True)

    @property
    def without_index(self) -> dict[str, str]:
        """The environment in which git sees the walk's trees, and no attribute of the index."""
        # Without an index git before 2.43 finds no tracked attributes either: see docs/decisions/git.md.
        return {**self._variables, "GIT_INDEX_FILE": os.path.join(self.repository.git_dir, "no-index")}

    def _alone(self, old: str, new: str, detail: Detail) -> Records:
        command = ("diff-tree", "-r")
        return read_difference(self.repository, self.objects, command, [old, new], detail, self.without_index)

    def _folders_alone(self, commit: Commit) -> ChangedFolders:
        found = _nothing_of(commit)
        for old in self._compared(commit):
            between = folders_between(self.repository, old, commit.tree, found.origin, self.without_index)
            found = found.joined(between)
        return found

    def _compared(self, commit: Commit) -> list[str]:
        """Return what a commit's tree is compared with: its base; for a merge with conflicts, git's merge
        too.
        """
        merged = self._merged.get(commit.parents)
        more = [merged.tree] if merged is not None and merged.conflicts else []
        return [self.base_of(commit), *more]

    def _joined(self, commit: Commit, first: Records, elsewhere: Records | None = None) -> Records:
        """Join the records of one commit, in the order of `_compared`."""
        if elsewhere is None:
            return first
        from patchgate.git.merges import own_changes

        return own_changes(self.objects, self._merged[commit.parents], self.tree_of, elsewhere, first)

    def _finished(
        self,
        batch: Sequence[Commit],
        raw: Sequence[Records],
        touched: Sequence[ChangedFolders],
        detail: Detail,
    ) -> Iterator[LoadedChange]:
        """Complete the records of several commits at once, so that sizes are asked in few round trips."""
        folders = self._trees_checked.listings(
            [(folders, records) for folders, (records, _) in zip(touched, raw, strict=True)]
        )
        flat = [record for records, _ in raw for record in records]
        marks: set[int] = set()
        offset = 0
        for records, binary in raw:
            marks.update(offset + index for index in binary)
            offset += len(records)
        done = fill_in_details(self.objects, flat, marks, detail)
        parts: list[list[FileChange]] = []
        offset = 0
        for records, _ in raw:
            parts.append(done[offset : offset + len(records)])
            offset += len(records)
        for commit, files, around in zip(batch, parts, folders, strict=True):
            change = Change.of(self.base_of(commit), commit.tree, files, self.objects.empty_blob)
            parents = commit.parents if len(commit.parents) > 1 else ()
            kind = "merge" if parents else "commit"
            parent = commit.parents[0] if commit.parents else None
            # For a merge with conflicts, the files are not the whole overlay.
            reading = LoadedChange(change, Source(kind, commit.oid, parent, parents=parents), around)
            yield self._of_merge(reading, commit, detail) if kind == "merge" else reading

    def _of_merge(self, reading: LoadedChange, commit: Commit, detail: Detail) -> LoadedChange:
        parents = [(parent, self.tree_of(parent)) for parent in commit.parents]

        def carried(landing: Landing) -> Sequence[FileChange]:
            own = reading.change
            if commit.oid not in self._joining:
                known = self._difference_of(commit)
                if known is None or not any(landing.is_restricted(RepoPath(path)) for path in known.paths):
                    return ()
            from patchgate.git.merge_paths import CarryLimit, carried_paths

            variables = self.without_index
            self._carry_together()
            if commit.oid not in self._carried:
                self._carry_limit = self._carry_limit or CarryLimit(len(self._joining))
                self._carried[commit.oid] = carried_paths(
                    self.repository, self.objects, parents, own.after, variables, self._carry_limit
                )
            paths = self._carried[commit.oid]
            return carried_files(self.repository, self.objects, trees, own, detail, variables, landing, paths)

        trees = tuple(tree for _, tree in parents)
        solved = solver(
            self.repository,
            self.objects,
            self._merged.get(commit.parents),
            commit.tree,
            detail,
            self.without_index,
        )
        whole = reading.with_overlay(commit.tree, ())
        if solved is None:
            return replace(whole, heads=commit.parents, parents=trees, carried=carried)
        from patchgate.git.merge_paths import BASE_SECONDS, CarryLimit

        self._solved_limit = limit = self._solved_limit or CarryLimit(seconds=BASE_SECONDS)
        return replace(
            whole, heads=commit.parents, limit=limit, parents=trees, carried=carried, solved=solved
        )


def _nothing_of(commit: Commit) -> ChangedFolders:
    return ChangedFolders(f"commit {commit.oid[:12]}", [], commit.is_past)


def _next(reader: DiffReader, following: bytes, detail: Detail) -> Records:
    """Read what differs between a pair of trees of a walk, and the line that begins the following pair."""
    found = reader.records()
    marked: set[int] = set()
    if detail.lines:
        marked = reader.patches(found, lambda file: detail.watch if is_text_candidate(file) else None)
    _pass(reader, following)
    return found, marked


def _pass(reader: DiffReader, header: bytes) -> None:
    """Read the line that begins a pair of trees."""
    if reader.line() + b"\n" != header:
        raise UndecidedError("git printed the changes of another commit than expected", "run git fsck")
