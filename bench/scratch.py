"""Print what a whole scratch tree costs, as ratios to `git worktree add` of the same commit.

    python -m bench.scratch [--rounds 9] [--files 50000] [--write FILE]

A repository of 50,000 files, all checked out. Each round makes one linked worktree with `git worktree add`
(and removes it, which is not timed), and tries two changes of one file, one after the other, in the tree
that is kept. Ratios are formed inside a round.

- *until a command can start*: the repository is opened, the tree of HEAD, the index, the working tree and the
  change is made, the kept tree is moved to it, and the repository that commands find there is made. This is
  the target.
- *and put away*: the same with what comes after a command that wrote one file beside the sources: that is
  removed, every file is looked at, and the tree is declared clean.

The first tree of a repository is made anew, by `git read-tree` with as many writers as there are processors;
its time is printed, and belongs to no target.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Mapping
from functools import partial

from bench.measurement import Measurement, run_alone
from bench.pairs import Rounds, Task
from bench.tables import Row
from bench.worlds import World, make_wide
from patchgate.git.model import REGULAR, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore, tree_with_change
from patchgate.git.repository import open_repository
from patchgate.git.scratch import whole_tree

_WORKTREE = "git worktree add --detach"
_READY = "until a command can start"
_ALL = "and put away"


def try_change(
    env: Mapping[str, str], directory: str, cache: str, path: str, text: bytes
) -> tuple[float, float]:
    """Try a change of one file; give the seconds until a command could start, and until all was put away."""
    begin = time.perf_counter()
    repository = open_repository(env, directory)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        head = objects.header("HEAD^{tree}")
        assert head is not None
        entry = Entry(REGULAR, store.write("blob", text))
        change = FileChange(RepoPath(path.encode()), None, entry)
        tree = tree_with_change(repository, objects, store, head.oid, [change])
        head_commit = objects.header("HEAD")
        with whole_tree(
            repository, store, tree, cache=cache, commit=head_commit.oid if head_commit else None
        ) as scratch:
            ready = time.perf_counter() - begin
            with open(os.path.join(scratch.path, path), "rb") as file:
                if file.read() != text:
                    raise SystemExit("the scratch tree does not have the change")
            with open(os.path.join(scratch.path, "report.txt"), "wb") as file:
                file.write(b"passed\n")
            again = time.perf_counter()
    return ready, ready + time.perf_counter() - again


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", type=int, default=50_000)


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the repository and its first tree, and name what is timed there."""
    wide = make_wide(world, options.files)
    directory, cache, linked = wide.directory, world.place("cache"), world.place("linked")
    world.git(directory, "reset", "-q", "--hard", "HEAD")
    first, _ = try_change(world.env, directory, cache, wide.changed[0], b"first\n")
    texts = (b"%d\n" % number for number in itertools.count())

    def add_worktree() -> float:
        begin = time.perf_counter()
        world.git(directory, "worktree", "add", "-q", "--detach", linked)
        taken = time.perf_counter() - begin
        world.git(directory, "worktree", "remove", "--force", linked)
        return taken

    def change(which: int) -> float:
        # What a big removal leaves for the disk to do must not meet ours alone: the second one counts.
        for path in wide.changed[:2]:
            found = try_change(world.env, directory, cache, path, next(texts))
        return found[which]

    what = f"a whole scratch tree of one changed file, {options.files:,} files, second time: "
    against = "`git worktree add` of the same"

    def rows(measured: Rounds) -> list[Row]:
        return [
            Row(what + _READY, against, 0.05, measured.ratios(_READY, _WORKTREE)),
            Row(what + _ALL, against, None, measured.ratios(_ALL, _WORKTREE)),
        ]

    tasks: dict[str, Task] = {_WORKTREE: add_worktree, _READY: partial(change, 0), _ALL: partial(change, 1)}
    return Measurement(tasks, rows, notes=f"The first tree took {first * 1e3:.0f} ms.\n")


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 9)


if __name__ == "__main__":
    main()
