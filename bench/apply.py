"""Print what applying a patch costs, against what judging it costs.

    python -m bench.apply [--rounds 15] [--files 5000] [--many 100000] [--write FILE]

Each row compares whole processes that ran in the same round, in repositories whose working tree is checked
out in full. The patch changes one file; the policy names no commands. Before each apply the file is put back,
so that the patch is no duplicate; what earlier applies have recorded stays, as it does for a user.

- *apply*, and *apply --index*, against `check --patch` of the same patch in the same repository;
- *apply* with many files less *apply* with few, in milliseconds;
- `git apply` is only in the table of times: it flushes nothing.

PYTHONDONTWRITEBYTECODE is not passed on, and one round before the first does not count: without .pyc files
imports take several times as long.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass

from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds
from bench.tables import Row
from bench.worlds import World, make_wide


@dataclass(frozen=True, slots=True)
class Field:
    """A repository of so many files, checked out, and a patch of one of them; `put_back` undoes it."""

    files: int
    directory: str
    patch: str
    put_back: Callable[[], None]


def make_field(world: World, files: int) -> Field:
    """Make a repository of so many files and a patch of one."""
    wide = make_wide(world, files)
    directory, path = wide.directory, wide.changed[0]
    patch = world.place(f"one-of-{files}.patch")
    with open(patch, "wb") as out:
        out.write(world.git(directory, "diff-index", "--cached", "-p", "HEAD", "--", path))
    world.git(directory, "read-tree", "HEAD")
    world.git(directory, "checkout-index", "-aqf")
    world.git(directory, "update-index", "-q", "--refresh")
    old = wide.contents[path]
    index = os.path.join(directory, ".git", "index")
    with open(index, "rb") as file:
        entries = file.read()

    def put_back() -> None:
        with open(os.path.join(directory, path), "wb") as out:
            out.write(old)
        with open(index, "wb") as out:
            out.write(entries)
        # The file is a new one to the index.
        world.git(directory, "update-index", "-q", "--", path)

    return Field(files, directory, patch, put_back)


def commands_of(world: World, field: Field) -> dict[str, Command]:
    """Name what is timed in one repository."""
    base = (world.patchgate, "apply", "-q", field.patch)
    with_index = (world.patchgate, "apply", "-q", "--index", field.patch)
    lines = {
        "check --patch": (world.patchgate, "check", "-q", "--patch", field.patch),
        "apply": base,
        "apply --index": with_index,
        "git apply": ("git", "apply", field.patch),
    }
    return {
        f"{name}, {field.files:,} files": Command(argv, field.directory, world.env, before=field.put_back)
        for name, argv in lines.items()
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", type=int, default=5_000, help="files of the smaller repository")
    parser.add_argument("--many", type=int, default=100_000, help="files of the larger one")


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the repositories and their patches, and name what is timed in them."""
    few, many = (make_field(world, files) for files in (options.files, options.many))

    def rows(measured: Rounds) -> list[Row]:
        found = [
            Row(
                f"`{name}`, one file, no commands, {field.files:,} files",
                "`check --patch` of it",
                1.4 if name == "apply" else None,
                measured.ratios(f"{name}, {field.files:,} files", f"check --patch, {field.files:,} files"),
            )
            for field in (few, many)
            for name in ("apply", "apply --index")
        ]
        more = measured.differences(f"apply, {many.files:,} files", f"apply, {few.files:,} files")
        against = f"the same at {few.files:,} files"
        return [*found, Row(f"`apply`, one file, {many.files:,} files", against, 30, more, "ms")]

    return Measurement({**commands_of(world, few), **commands_of(world, many)}, rows)


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 15)


if __name__ == "__main__":
    main()
