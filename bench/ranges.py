"""Print what a range, and a push of it, cost, as ratios to what git needs to list the changes.

    python -m bench.ranges [--rounds 5] [--commits 10000] [--kind] [--write FILE]
    python -m bench.ranges --repository DIR --range A..B

Whole processes that ran in the same round; Python's start is not counted: the time of `check` of one commit
(the last of the range, under the same policy) is taken off.

- *line budgets off*: `check A..B` under a policy without content rules, sizes and line budgets, against
  `git rev-list --topo-order --reverse A..B | git diff-tree --stdin -r --raw -z` with pinned flags.
- the others: under the defaults (line budgets, sizes, secrets, conflict markers), against the same with
  `--numstat`, or with `-p -U0`, which they need themselves.
- a second check of the same range, which is remembered, and one whose report lists every commit (JSON),
  against the first.
- a history with merges stands against all that it needs, one after the other: `--raw`, `-p -U0`, and
  `git log --merges --remerge-diff --raw`.

The history is made here: each of 10,000 commits adds 12 lines to one of some 3,000 files, or with `--kind`
changes a few lines, which git takes longer to find. `--repository` takes a real one, a full clone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from dataclasses import dataclass, replace
from functools import partial

from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds
from bench.tables import Row
from bench.worlds import World, forget_ranges, make_history, make_worst_history

RAW = "--raw -z --no-renames --no-abbrev --ignore-submodules=none -O/dev/null"
NUMSTAT = "--numstat --no-ext-diff --no-textconv --no-indent-heuristic --diff-algorithm=myers"
PATCH = (
    "-p -U0 --full-index --no-color --no-ext-diff --no-textconv --no-indent-heuristic --diff-algorithm=myers"
)
# The references, by the names of git's commands; all have pinned flags.
_RAW = "rev-list | diff-tree --raw"
_NUMSTAT = "rev-list | diff-tree --raw --numstat"
_PATCH = "rev-list | diff-tree --raw -p -U0"
_MERGES = "log --merges --remerge-diff --raw"
_OFF = b"""[policy]
max_file_bytes = "off"

[policy.commit]
max_added_lines = "off"

[policy.agent]
max_added_lines = "off"
deny_classes = ["lock", "artifact"]

[content]
secrets = false
conflict_markers = false
"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row: what is measured, the task it is, the one whose time is taken off, and the references."""

    what: str
    ours: str
    less: str
    references: tuple[str, ...]
    limit: float
    reach: float | None


_ROWS = (
    Comparison(
        "`check A..B`, line budgets off", "range, lines off", "one commit, lines off", (_RAW,), 1.5, 1.15
    ),
    Comparison("`check A..B`", "range, lines on", "one commit, lines on", (_PATCH,), 1.3, 1.1),
    Comparison("`check A..B`", "range, lines on", "one commit, lines on", (_NUMSTAT,), 1.15, 1.05),
    Comparison("`pre-push`", "push", "one commit, lines on", (_NUMSTAT,), 1.15, 1.05),
    Comparison("`pre-receive`", "receive", "one commit, lines on", (_NUMSTAT,), 1.15, 1.05),
)


def with_policy(world: World, objects: str, text: bytes, below: str | None = None) -> tuple[str, str]:
    """Make a bare repository on somebody's objects, with a commit of its own that holds a policy.

    Args:
        below: the commit that it adds the policy to; None: it has nothing else.

    Returns:
        The folder, and the commit.
    """
    directory = world.place("judged.git")
    world.git(world.path, "init", "-q", "--bare", directory)
    with open(os.path.join(directory, "objects", "info", "alternates"), "w", encoding="utf-8") as file:
        file.write(objects + "\n")
    blob = world.git(directory, "hash-object", "-w", "--stdin", stdin=text).decode().strip()
    rows = world.git(directory, "ls-tree", below) if below is not None else b""
    kept = [row + b"\n" for row in rows.splitlines() if not row.endswith(b"\tpatchgate.toml")]
    kept.append(f"100644 blob {blob}\tpatchgate.toml\n".encode())
    tree = world.git(directory, "mktree", stdin=b"".join(kept)).decode().strip()
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
    parents = () if below is None else ("-p", below)
    return directory, world.git(
        directory, *who, "commit-tree", "-m", "policy", *parents, tree
    ).decode().strip()


@dataclass(frozen=True, slots=True)
class Range:
    """The commits `low..high` of a repository, to be judged in a bare one on the same objects.

    `policy` is a commit there without content rules and line budgets; `count` and `merges` say how many
    commits and merges there are.
    """

    world: World
    directory: str
    policy: str
    low: str
    high: str
    count: int
    merges: int

    @classmethod
    def of(cls, world: World, source: str, chosen: str) -> Range:
        """Name the commits `A..B` of a full clone."""
        first, _, last = chosen.partition("..")
        low, high = (_line(world, source, "rev-parse", f"{name}^{{commit}}") for name in (first, last))
        objects = _line(world, source, "rev-parse", "--path-format=absolute", "--git-path", "objects")
        directory, policy = with_policy(world, objects, _OFF, low)
        world.git(directory, "update-ref", "refs/heads/main", low)
        counted = ("rev-list", "--count", f"{low}..{high}")
        count, merges = (int(_line(world, directory, *counted, *options)) for options in ((), ("--merges",)))
        return cls(world, directory, policy, low, high, count, merges)

    def commands(self) -> dict[str, Command]:
        """Name what is timed: git's walks, the range and its last commit, and the hooks."""
        between = f"{self.low}..{self.high}"
        walk = f"git rev-list --topo-order --reverse {between} | git diff-tree --stdin -r {RAW}"
        off = ("--policy-from", self.policy)
        found = {
            _RAW: self._shell(walk),
            _NUMSTAT: self._shell(f"{walk} {NUMSTAT}"),
            _PATCH: self._shell(f"{walk} {PATCH}"),
            "one commit, lines off": self._check(self.high, *off),
            "one commit, lines on": self._check(self.high),
            "range, lines off": self._check(between, *off),
            "range, lines on": self._check(between),
            "range again": replace(self._check(between), before=self._check_once),
            "range as JSON": self._check(between, "--format", "json"),
            "push": self._hook("pre-push", f"refs/heads/main {self.high} refs/heads/main {self.low}"),
            "receive": self._hook("pre-receive", f"{self.low} {self.high} refs/heads/main"),
        }
        if self.merges:
            merges = f"git log --merges --remerge-diff --raw --format= {between} >{os.devnull}"
            found[_MERGES] = self._shell(merges)
        return found

    def _shell(self, line: str) -> Command:
        return Command(("sh", "-c", line), self.directory, self.world.env)

    def _check(self, revision: str, *options: str) -> Command:
        # A generated or a real history may break a rule: that changes nothing about its cost.
        argv = (self.world.patchgate, "check", "-q", "--exit-zero", *options, revision)
        return Command(argv, self.directory, self.world.env, before=partial(forget_ranges, self.directory))

    def _check_once(self) -> None:
        """Let the range be remembered, if nothing is said about it."""
        command = self._check(f"{self.low}..{self.high}")
        subprocess.run(command.argv, cwd=command.cwd, env=command.env, stdout=subprocess.DEVNULL, check=True)

    def _hook(self, name: str, line: str) -> Command:
        """Name a hook with what git says to it."""
        arguments = " file:///nowhere file:///nowhere" if name == "pre-push" else ""
        hook = f"{self.world.patchgate} hook {name}{arguments}"
        argv = ("sh", "-c", f"echo '{line}' | {hook}; true")
        return Command(argv, self.directory, self.world.env, before=partial(forget_ranges, self.directory))

    def rows(self, measured: Rounds) -> list[Row]:
        """Compare the range, and the hooks, with git; Python's start is taken off."""
        commits = f"{self.count:,} commits"
        rows: tuple[Comparison, ...] = _ROWS
        if self.merges:
            commits += f" ({self.merges:,} merges)"
            every = (_RAW, _PATCH, _MERGES)
            rows = tuple(replace(row, references=every, limit=1.5, reach=None) for row in _ROWS[2:])
        found = [
            Row(
                f"{row.what}, {commits}, without Python's start",
                "; ".join(f"`git {each}`" for each in row.references),
                row.limit,
                measured.ratios(row.ours, *row.references, less=row.less),
                reach=row.reach,
            )
            for row in rows
        ]
        for what, ours, limit in (
            ("a second `check A..B`", "range again", 0.1),
            ("`check A..B --format json`", "range as JSON", None),
        ):
            found.append(
                Row(
                    f"{what}, {commits}",
                    "the first `check A..B`",
                    limit,
                    measured.ratios(ours, "range, lines on"),
                )
            )
        return found


def _line(world: World, directory: str, *arguments: str) -> str:
    return world.git(directory, *arguments).decode().strip()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--commits", type=int, default=10_000, help="length of the history that is made")
    parser.add_argument("--kind", action="store_true", help="make a history that git takes longer to list")
    parser.add_argument("--repository", help="a full clone to take instead of the history made here")
    parser.add_argument("--range", help="the commits in it: A..B")


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the history, and name what is timed in it."""
    source, chosen = options.repository, options.range
    if not (source and chosen):
        make = make_history if options.kind else make_worst_history
        source, chosen = make(world, options.commits), f"main~{options.commits}..main"
    judged = Range.of(world, os.path.abspath(source), chosen)
    return Measurement(judged.commands(), judged.rows)


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 5)


if __name__ == "__main__":
    main()
