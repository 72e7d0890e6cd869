"""Print what `git patchgate check` costs, as ratios to what must be paid anyway.

    python -m bench.check [--rounds 21] [--files 5000,100000] [--write FILE]
                          [--worst] [--repository DIR --range A..B]

Each row compares whole processes that ran in the same round:

- *staged, clean* and *refused*: `check` with ten staged files against a Python that imports click, pydantic,
  pygit2 and pathspec and does nothing. The policy was checked before (its cache is warm), as at every commit
  but the first under a new policy.
- *at N files, more than at M*: the difference of the two, in milliseconds.
- *A..B, line budgets off*: `check A..B` under a policy without content rules, sizes and line budgets against
  `git rev-list --topo-order --reverse A..B | git diff-tree --stdin -r --raw -z` with pinned flags.
- *A..B, line budgets on*: `check A..B` under the defaults (line budgets, sizes, secrets, conflict markers)
  against the same with `--numstat`, and with `-p -U0`, which it needs itself.
- *pre-push*: the hook on a push of the same commits, against both.
- *-h* and *explain*: against a Python that imports click.

In the rows of a range Python's start is not counted: the time of `check` of one commit (the last of the
range, under the same policy, in the same round) is taken off. The history is made here (10,000 small
commits over some 3,000 files in nested folders; `--worst`: each adds 12 lines to one file); `--repository`
takes a real one, a full clone, and its
merges are judged by us and skipped by `git diff-tree`. PYTHONDONTWRITEBYTECODE is not passed on, and one
round before the first does not count: without .pyc files imports take several times as long.
"""

from __future__ import annotations

import argparse
import os

from bench.pairs import Command, run_rounds
from bench.tables import Row, machine, put_out, ratio_table, time_table
from bench.worlds import World, make_history, make_wide, make_worst_history

IMPORTS = "import click, pydantic, pygit2, pathspec"
RAW = "--raw -z --no-renames --no-abbrev --ignore-submodules=none -O/dev/null"
NUMSTAT = "--numstat --no-ext-diff --no-textconv --no-indent-heuristic --diff-algorithm=myers"
PATCH = (
    "-p -U0 --full-index --no-color --no-ext-diff --no-textconv --no-indent-heuristic --diff-algorithm=myers"
)
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


def staged_commands(world: World, sizes: list[int]) -> dict[str, Command]:
    """Make the repositories, and name the commands that judge what is staged in them."""
    found = {
        "four imports": _python(world, IMPORTS),
        "import click": _python(world, "import click"),
        "-h": Command((world.patchgate, "-h"), world.path, world.env),
        "explain": Command((world.patchgate, "explain", "deny-prefix"), world.path, world.env),
    }
    for size in sizes:
        wide = make_wide(world, size)
        found[f"clean, {size:,} files"] = Command((world.patchgate, "check"), wide.directory, world.env)
        refused = {**world.env, "GIT_INDEX_FILE": os.path.join(wide.directory, ".git", "index-refused")}
        found[f"refused, {size:,} files"] = Command(
            (world.patchgate, "check"), wide.directory, refused, code=1
        )
    return found


def _python(world: World, program: str) -> Command:
    return Command((world.python, "-c", program), world.path, world.env)


def staged_rows(world: World, sizes: list[int], rounds: int) -> tuple[list[Row], str]:
    """Measure the rows of a staged change, and of the commands that judge nothing."""
    measured = run_rounds(staged_commands(world, sizes), rounds)
    imports = "a Python that imports click, pydantic, pygit2 and pathspec"
    clean, refused = (f"{word}, {sizes[0]:,} files" for word in ("clean", "refused"))
    rows = [Row(f"`check`, ten staged files, {clean}", imports, 1.0, measured.ratios(clean, "four imports"))]
    for size in sizes[1:]:
        more = measured.differences(f"clean, {size:,} files", clean)
        more = type(more)(more.least * 1e3, more.median * 1e3, more.high * 1e3)
        rows.append(Row(f"the same at {size:,} files, how much more", clean, 25.0, more, "ms"))
    for size in sizes:
        refused = f"refused, {size:,} files"
        limit = 1.0 if size == sizes[0] else None
        rows.append(Row(f"`check`, {refused}", imports, limit, measured.ratios(refused, "four imports")))
    for name in ("-h", "explain"):
        ratios = measured.ratios(name, "import click")
        rows.append(Row(f"`{name}`", "a Python that imports click", 1.3, ratios))
    return rows, time_table(measured)


def with_policy(world: World, objects: str, text: bytes) -> tuple[str, str]:
    """Make a bare repository on somebody's objects, with a commit of its own that holds a policy.

    Returns:
        The folder, and the commit.
    """
    directory = world.place("judged.git")
    world.git(world.path, "init", "-q", "--bare", directory)
    with open(os.path.join(directory, "objects", "info", "alternates"), "w", encoding="utf-8") as file:
        file.write(objects + "\n")
    blob = world.git(directory, "hash-object", "-w", "--stdin", stdin=text).decode().strip()
    tree = (
        world.git(directory, "mktree", stdin=f"100644 blob {blob}\tpatchgate.toml\n".encode())
        .decode()
        .strip()
    )
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
    return directory, world.git(directory, *who, "commit-tree", "-m", "policy", tree).decode().strip()


def range_rows(world: World, source: str, chosen: str, rounds: int) -> tuple[list[Row], str]:
    """Measure the rows of a range of a repository's commits."""
    first, _, last = chosen.partition("..")
    low, high = (
        world.git(source, "rev-parse", f"{name}^{{commit}}").decode().strip() for name in (first, last)
    )
    objects = (
        world.git(source, "rev-parse", "--path-format=absolute", "--git-path", "objects").decode().strip()
    )
    directory, policy = with_policy(world, objects, _OFF)
    count = world.git(directory, "rev-list", "--count", f"{low}..{high}").decode().strip()
    walk = f"git rev-list --topo-order --reverse {low}..{high} | git diff-tree --stdin -r {RAW}"

    def check(revision: str, *options: str) -> Command:
        # A generated or a real history may break a rule: that changes nothing about its cost.
        argv = (world.patchgate, "check", "-q", "--exit-zero", *options, revision)
        return Command(argv, directory, world.env)

    off = ("--policy-from", policy)
    commands = {
        "rev-list | diff-tree --raw": Command(("sh", "-c", walk), directory, world.env),
        "rev-list | diff-tree --raw --numstat": Command(
            ("sh", "-c", f"{walk} {NUMSTAT}"), directory, world.env
        ),
        "rev-list | diff-tree -p -U0": Command(("sh", "-c", f"{walk} {PATCH}"), directory, world.env),
        "one commit, lines off": check(high, *off),
        "one commit, lines on": check(high),
        "range, lines off": check(f"{low}..{high}", *off),
        "range, lines on": check(f"{low}..{high}"),
        "push": _push(world, directory, low, high),
    }
    measured = run_rounds(commands, rounds)
    rows = []
    for state, reference, limit in (
        ("off", "rev-list | diff-tree --raw", 1.5),
        ("on", "rev-list | diff-tree --raw --numstat", 1.15),
    ):
        ratios = measured.ratios(f"range, lines {state}", reference, less=f"one commit, lines {state}")
        what = f"`check A..B`, {int(count):,} commits, line budgets {state}, without Python's start"
        rows.append(Row(what, f"`git {reference}`, pinned flags", limit, ratios))
    patch = "rev-list | diff-tree -p -U0"
    for what, name in (("`check A..B`, line budgets on", "range, lines on"), ("`pre-push`", "push")):
        ratios = measured.ratios(name, patch, less="one commit, lines on")
        rows.append(
            Row(f"{what}, {int(count):,} commits, without Python's start", f"`git {patch}`", 1.3, ratios)
        )
    return rows, time_table(measured)


def _push(world: World, directory: str, low: str, high: str) -> Command:
    """Name the hook on a push of the range to a branch that has its beginning."""
    line = f"refs/heads/main {high} refs/heads/main {low}"
    hook = f"{world.patchgate} hook pre-push file:///nowhere file:///nowhere"
    return Command(("sh", "-c", f"echo '{line}' | {hook}; true"), directory, world.env)


def main() -> None:
    """Measure, print, and clean up."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--files", default="5000,100000", help="sizes of the repositories, by commas")
    parser.add_argument("--commits", type=int, default=10_000, help="length of the history that is made")
    parser.add_argument("--worst", action="store_true", help="make the history that costs most beside git")
    parser.add_argument("--repository", help="a full clone to take instead of the history made here")
    parser.add_argument("--range", help="the commits in it: A..B")
    parser.add_argument("--only", choices=["staged", "range"], help="measure only these rows")
    parser.add_argument("--write", help="write the tables to this file too")
    arguments = parser.parse_args()
    if (arguments.repository is None) != (arguments.range is None):
        parser.error("--repository and --range go together")
    sizes = [int(size) for size in arguments.files.split(",")]
    rows: list[Row] = []
    times = ""
    with World() as world:
        if arguments.only != "range":
            rows, times = staged_rows(world, sizes, arguments.rounds)
        if arguments.only != "staged":
            source, chosen = arguments.repository, arguments.range
            if source is None:
                make = make_worst_history if arguments.worst else make_history
                source, chosen = make(world, arguments.commits), f"main~{arguments.commits}..main"
            more, taken = range_rows(world, os.path.abspath(source), chosen, max(3, arguments.rounds // 3))
            rows, times = rows + more, times + "\n" + taken
    text = f"{ratio_table(rows)}\n{machine()}\n{times}"
    put_out(text, arguments.write)


if __name__ == "__main__":
    main()
