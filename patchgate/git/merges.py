"""The merge that git makes without help: the base that a merge commit is compared with.

The difference between that merge and the commit is what was added while merging. Only a path in conflict
has no such base: it may be as on either side, and anything else is judged as a change of the first parent. An
octopus is merged head by head. Source: git-merge-tree, `--write-tree --stdin`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.diff import Records
from patchgate.git.model import TREE_MODE, FileChange
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository, failed
from patchgate.git.tree_view import differing_files
from patchgate.process.child import TimeLimitError
from patchgate.values import dataclass, field

Sides = Mapping[bytes, tuple[str, ...]]
"""Paths in conflict, each with the commits between which it is.

The commit that a step of an octopus made is such a side only of a path that no earlier step had in conflict:
at other paths it has markers.
"""

_PINNED = (
    ("merge.renames", "true"),
    ("merge.directoryRenames", "conflict"),
    ("merge.renameLimit", "7000"),
)
SECONDS = 20.0
"""How long git may take for the merges of one walk, and for one merge.

Where branches merged each other again and again, git merges the bases first, and theirs before: the work
grows manyfold with each level (measured: 60 small merges, more than 45 s).
"""
# More than the merge of a large tree takes, and little enough that cheap ones buy no time for slow ones.
_MORE_EACH = 0.02
_TRIED_AGAIN = 20
# In the year 2096: git searches a merge base from the newest commit on. With a date of 0 it went through
# the whole history first (measured: 100,000 commits, 300 ms instead of 3).
_WHO = "patchgate <patchgate> 4000000000 +0000"


@dataclass(frozen=True, slots=True)
class Merged:
    """Git's result of a merge: a tree, and the paths in conflict.

    At a path of `conflicts` the tree has markers, or one side. `aside` are names of files that git moved
    out of the way of a folder; under its new name each is in conflict.
    """

    tree: str
    conflicts: Sides = field(default_factory=dict)
    aside: Sides = field(default_factory=dict)


def automatic_merges(
    store: PrivateStore, merges: Sequence[tuple[str, ...]], attributes: str = ""
) -> list[Merged]:
    """Merge each tuple of two or more commits as git would.

    The trees are in `store`. No setting or attribute of the repository counts.

    Args:
        attributes: those that count for all paths.

    Raises:
        UndecidedError: git failed, an object is missing, or git exceeded the time limit.
    """
    deadline = time.monotonic() + SECONDS + _MORE_EACH * len(merges)
    found: dict[tuple[str, ...], Merged] = {}
    ours = {heads: heads[0] for heads in merges}
    step = 1
    while under_way := [heads for heads in ours if len(heads) > step]:
        pairs = [(ours[heads], heads[step]) for heads in under_way]
        try:
            made = _merge(store, pairs, deadline - time.monotonic(), attributes)
        except TimeLimitError as error:
            raise _too_slow(under_way[_slow(store, pairs)]) from error
        for heads, merged in zip(under_way, made, strict=True):
            pair = (ours[heads], heads[step])
            found[heads] = _after(store, found[heads], merged, pair) if heads in found else merged
            if len(heads) > step + 1:
                ours[heads] = _commit(store, merged.tree, (ours[heads], heads[step]))
        step += 1
    return [found[heads] for heads in merges]


class TipMerges:
    """A context manager: merges of two commits as git makes them, each made once; `store` has their trees."""

    def __init__(self, repository: Repository) -> None:
        self.store = PrivateStore(repository)
        self._made: dict[tuple[str, str], Merged | UndecidedError] = {}

    def __enter__(self) -> TipMerges:
        return self

    def __exit__(self, *error: object) -> None:
        self.store.__exit__()

    def of(self, branch: str, tip: str) -> Merged:
        """Merge a tip into a branch.

        Raises:
            UndecidedError: as in `automatic_merges`; the same again where it is asked for twice.
        """
        made = self._made.get((branch, tip))
        if made is None:
            try:
                (made,) = automatic_merges(self.store, [(branch, tip)])
            except UndecidedError as error:
                made = error
            self._made[branch, tip] = made
        if isinstance(made, UndecidedError):
            raise made
        return made


def _after(store: PrivateStore, before: Merged, merged: Merged, pair: tuple[str, str]) -> Merged:
    """Join the earlier steps of an octopus with the step that merged a pair of commits."""
    if not before.conflicts:
        return merged
    conflicts = dict(merged.conflicts)
    # A rename can move markers of an earlier step to a path without conflict.
    with Objects(store.bare(), store.variables) as objects:
        headers = objects.headers([f"{commit}^{{tree}}" for commit in pair])
        trees = [header.oid for header in headers if header is not None]
        conflicts.update(dict.fromkeys(differing_files(objects, merged.tree, trees), pair))
    fresh, aside = (
        {path: pair[1:] if path in before.conflicts else pair for path in each}
        for each in (conflicts, merged.aside)
    )
    return Merged(merged.tree, _joined(before.conflicts, fresh), _joined(before.aside, aside))


def _slow(store: PrivateStore, pairs: Sequence[tuple[str, str]]) -> int:
    """Find the merge that took too long: the last one that takes much of the time alone.

    The work grows with each level, so the last one is named if no single one is slow.
    """
    last = len(pairs) - 1
    for index in range(last, max(last - _TRIED_AGAIN, 0), -1):
        try:
            _merge(store, [pairs[index]], SECONDS / _TRIED_AGAIN)
        except TimeLimitError:
            return index
    return last


def _too_slow(heads: Sequence[str]) -> UndecidedError:
    named = ", ".join(head[:12] for head in heads[:-1]) + f" and {heads[-1][:12]}"
    return UndecidedError(
        f"git takes too long to repeat the merge of {named}, which the merge commit is compared with",
        f"replace the merge with a rebase: git rebase {heads[0][:12]} {heads[1][:12]}",
    )


def _merge(
    store: PrivateStore, pairs: Sequence[tuple[str, str]], seconds: float, attributes: str = ""
) -> list[Merged]:
    """Merge pairs of commits, through one child with a time limit."""
    settings = [part for name, value in _PINNED for part in ("-c", f"{name}={value}")]
    arguments = (*settings, "merge-tree", "--write-tree", "--no-messages", "--allow-unrelated-histories")
    asked = b"".join(" ".join(pair).encode("ascii") + b"\n" for pair in pairs)
    done = store.bare(attributes).git(
        *arguments, "--stdin", "-z", stdin=asked, variables=store.variables, seconds=seconds
    )
    # Git 2.39 takes a missing tree for an empty one, prints a message, and exits with 0.
    if b"error:" in done.err:
        raise failed("merge-tree", done)
    words = iter(done.out.split(b"\0"))
    found: list[Merged] = []
    for pair in pairs:
        status, tree = next(words, b""), next(words, b"")
        if status not in {b"0", b"1"}:
            raise UndecidedError("git merge-tree printed no result", "run git fsck")
        # The list ends with an empty word: `mode SP oid SP stage TAB path`.
        conflicts = {word.partition(b"\t")[2]: pair for word in iter(lambda: next(words, b""), b"")}
        # merge-ort's unique_path: `path~head`, and a number where that is taken too.
        marks = [b"~" + head.encode("ascii") for head in pair]
        aside = {path.rpartition(mark)[0]: pair for path in conflicts for mark in marks if mark in path}
        found.append(Merged(tree.decode("ascii"), conflicts, aside))
    return found


def _commit(store: PrivateStore, tree: str, parents: tuple[str, ...]) -> str:
    """Write a commit for a step to the store; the same heads make the same commit."""
    named = "".join(f"parent {parent}\n" for parent in parents)
    text = f"tree {tree}\n{named}author {_WHO}\ncommitter {_WHO}\n\nstep\n"
    return store.write("commit", text.encode("ascii"))


def own_changes(
    objects: Objects, merged: Merged, tree_of: Callable[[str], str], elsewhere: Records, first: Records
) -> Records:
    """Choose what a merge with conflicts changed itself.

    Args:
        tree_of: gives the tree of a commit.
        elsewhere: how the result differs from `merged`; counts where nothing is in conflict.
        first: how it differs from the first parent; counts in conflict, unless it is as one side has it.
    """
    # The name alone does not prove a conflict of a file with a folder.
    moved = {path: sides for path, sides in merged.aside.items() if _is_folder(objects, merged.tree, path)}
    conflicts = _joined(merged.conflicts, moved)
    since_first = {file.path for file in first[0]}

    def is_own(file: FileChange, is_first: bool) -> bool:
        path = file.path.raw
        if path not in conflicts:
            return not is_first
        # The first parent of an octopus is not always one of the sides.
        if not is_first and file.path in since_first:
            return False
        return all(objects.file_at(tree_of(side), path) != file.new for side in conflicts[path])

    chosen = [
        (file, position in binary)
        for is_first, (files, binary) in ((False, elsewhere), (True, first))
        for position, file in enumerate(files)
        if is_own(file, is_first)
    ]
    return [file for file, _ in chosen], {position for position, (_, marked) in enumerate(chosen) if marked}


def _joined(one: Sides, other: Sides) -> Sides:
    return {path: one.get(path, ()) + other.get(path, ()) for path in {**one, **other}}


def _is_folder(objects: Objects, tree: str, path: bytes) -> bool:
    entry = objects.entry(tree, path)
    return entry is not None and entry.mode == TREE_MODE
