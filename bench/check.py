"""Print what `git patchgate check` costs, as ratios to what must be paid anyway.

    python -m bench.check [--rounds 11] [--files 5000,100000] [--write FILE]

Each row compares whole processes that ran in the same round:

- *staged, clean* and *refused*: `check` with ten staged files against a Python that imports click, pydantic,
  pygit2 and pathspec and does nothing. The policy was checked before (its cache is warm), as at every commit
  but the first under a new policy.
- *at N files, more than at M*: the difference of the two, in milliseconds.
- *-h* and *explain*: against a Python that imports click.

PYTHONDONTWRITEBYTECODE is not passed on, and one round before the first does not count: without .pyc files
imports take several times as long.
"""

from __future__ import annotations

import argparse
import os

from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds
from bench.tables import Row
from bench.worlds import World, make_wide

IMPORTS = "import click, pydantic, pygit2, pathspec"


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


def staged_rows(measured: Rounds, sizes: list[int]) -> list[Row]:
    """Compare the commands that judge a staged change, and those that judge nothing."""
    imports = "a Python that imports click, pydantic, pygit2 and pathspec"
    clean = f"clean, {sizes[0]:,} files"
    rows = [Row(f"`check`, ten staged files, {clean}", imports, 1.0, measured.ratios(clean, "four imports"))]
    for size in sizes[1:]:
        more = measured.differences(f"clean, {size:,} files", clean)
        rows.append(Row(f"the same at {size:,} files, how much more", clean, 25.0, more, "ms"))
    for size in sizes:
        refused = f"refused, {size:,} files"
        limit = 1.0 if size == sizes[0] else None
        rows.append(Row(f"`check`, {refused}", imports, limit, measured.ratios(refused, "four imports")))
    for name in ("-h", "explain"):
        ratios = measured.ratios(name, "import click")
        rows.append(Row(f"`{name}`", "a Python that imports click", 1.3, ratios))
    return rows


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", default="5000,100000", help="sizes of the repositories, by commas")


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the repositories, and name what is timed in them."""
    sizes = [int(size) for size in options.files.split(",")]
    return Measurement(staged_commands(world, sizes), lambda measured: staged_rows(measured, sizes))


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 11)


if __name__ == "__main__":
    main()
