"""Print what the hooks cost at what is not boring, but done every day.

    python -m bench.everyday [--rounds 21] [--files 5000,100000] [--only refs,commits,refusal]

Whole processes in interleaved rounds, in repositories that are made here, with the default set of hooks:

- *refs*: a branch, a tag, `switch -c`, `worktree add`, `reset`, with the hook reference-transaction alone,
  against the same with a hook that ends at once.
- *commits*: an amend, a commit with exact renames, a clean merge, less the same with the hooks switched off,
  against `python -I -S -c pass`; a commit with a warning, less the same, and a refused commit, against
  the imports of pydantic and pathspec.
- *refusal*: hook pre-commit at a refusal against `git-patchgate check` of the same, by number of files.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from bench.hooks_place import OFF, Place, make_base, make_warm, ten_files
from bench.hooks_refs import RefCommands
from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds, Task
from bench.tables import Row
from bench.worlds import Wide, World

_PYTHON = "python -I -S -c pass"
_IMPORTS = 'python -c "import pydantic, pathspec"'
_SUBJECT = "Change what is changed every day"
_ALL = ("refs", "commits", "refusal")


class DailyCommits:
    """Commits that are no plain change of files: each from its own state, which is put back before a run."""

    # Name, arguments of git, exit code with the hooks; what it is compared to.
    _COMMANDS = (
        ("amend", ("commit", "-q", "--amend", "--no-edit"), 0, _PYTHON),
        ("rename", ("commit", "-q", "-m", _SUBJECT), 0, _PYTHON),
        ("merge", ("merge", "-q", "--no-edit", "side"), 0, _PYTHON),
        ("warning", ("commit", "-q", "-m", _SUBJECT), 0, _IMPORTS),
        ("refused", ("commit", "-q", "-m", _SUBJECT), 1, _IMPORTS),
    )

    def __init__(self, base: Place, wide: Wide) -> None:
        self._places = {}
        for name, *_ in self._COMMANDS:
            place = base.copy(f"daily-{name}")
            place.install()
            make_warm(place, wide)
            place.git("reset", "-q", "--hard")
            self._prepare(name, place, wide)
            self._places[name] = place
        self._world = base.world

    def _prepare(self, name: str, place: Place, wide: Wide) -> None:
        one = dict([*ten_files(wide, 4).items()][:1])
        if name == "merge":
            place.git("branch", "side", "main~1")
            place.git("symbolic-ref", "HEAD", "refs/heads/side")
            place.git("reset", "-q", "--hard")
            path = wide.changed[9]
            place.commit({path: wide.contents[path] + b"side = 1\n"})
            place.git("symbolic-ref", "HEAD", "refs/heads/main")
            place.git("reset", "-q", "--hard")
        if name == "rename":
            for path in wide.changed[8:10]:
                place.git("mv", path, f"{path}.moved.py")
        if name == "warning":
            one = {f"many/{number}.txt": b"words\n" for number in range(51)}
        if name == "refused":
            one = {"vault/token.txt": b"nothing\n"}
        place.make_ready({} if name in ("merge", "rename") else one)

    def commands(self) -> dict[str, Command]:
        """Name each with the hooks, and switched off; and what they are compared to."""
        found = {}
        for name, argv, code, _ in self._COMMANDS:
            place = self._places[name]
            before = self._before(place, is_merge=name == "merge")
            env = place.world.env
            found[f"git {argv[0]}, {name}"] = Command(
                ("git", *argv), place.directory, env, code=code, before=before
            )
            found[f"git {argv[0]}, {name}, switched off"] = Command(
                ("git", *OFF, *argv), place.directory, env, before=before
            )
        place = self._places["amend"]
        started = (place.interpreter(), "-I", "-S", "-c", "pass")
        found[_PYTHON] = Command(started, place.directory, place.world.env)
        imports = (place.world.python, "-c", "import pydantic, pathspec")
        found[_IMPORTS] = Command(imports, place.directory, place.world.env)
        return found

    def rows(self, rounds: Rounds) -> list[Row]:
        """Compare what the hooks add to git with what Python needs."""
        found = []
        for name, argv, code, against in self._COMMANDS:
            ours = f"git {argv[0]}, {name}"
            ratios = rounds.ratios(ours, against, less=None if code else f"{ours}, switched off")
            what = f"`git {argv[0]}`, {name}" + ("" if code else ", less the same without hooks")
            found.append(Row(what, f"`{against}`", 2.5 if against == _PYTHON else 1.0, ratios))
        return found

    def _before(self, place: Place, *, is_merge: bool) -> Callable[[], None]:
        def before() -> None:
            place.start_over()
            if is_merge:
                for name in ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE"):
                    Path(place.inside(name)).unlink(missing_ok=True)
                place.git("reset", "-q", "--hard")

        return before


class Refusals:
    """The hook pre-commit at a refusal, and `check` of the same index."""

    def __init__(self, world: World, sizes: list[int]) -> None:
        self._places = {}
        for size in sizes:
            place, wide = make_base(world, size, checkout=False)
            place.install()
            make_warm(place, wide)
            shutil.copyfile(place.inside("index"), place.inside("index-refused"))
            world.stage(place.directory, {"vault/token.txt": b"nothing\n"}, "index-refused")
            self._places[size] = place

    def commands(self) -> dict[str, Command]:
        """Name both for each size."""
        found = {}
        for size, place in self._places.items():
            for name, argv in (
                ("pre-commit", (".git/hooks/pre-commit",)),
                ("check", (place.world.patchgate, "check")),
            ):
                command = place.at_commit(*argv, GIT_INDEX_FILE=".git/index-refused")
                found[f"{name}, refused, {size:,} files"] = dataclasses.replace(command, code=1)
        return found

    def rows(self, rounds: Rounds) -> list[Row]:
        """Compare them."""
        found = []
        for size in self._places:
            ratios = rounds.ratios(f"pre-commit, refused, {size:,} files", f"check, refused, {size:,} files")
            what = f"hook pre-commit, a refusal, {size:,} files"
            found.append(Row(what, "`git-patchgate check` of the same", 1.15, ratios, reach=1.05))
        return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", default="5000", help="sizes of the repositories of refusals, by commas")
    parser.add_argument("--only", default=",".join(_ALL), help="which parts, by commas")


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the repositories, and name what is timed in them."""
    parts = options.only.split(",")
    measured: list[RefCommands | DailyCommits | Refusals] = []
    if "refs" in parts or "commits" in parts:
        base, wide = make_base(world, 5000, checkout=True)
    if "commits" in parts:
        measured.append(DailyCommits(base, wide))
    if "refs" in parts:
        place = base.copy("refs")
        place.install()
        make_warm(place, wide)
        place.git("reset", "-q", "--hard")
        place.make_ready({})
        measured.append(RefCommands(place, wide))
    if "refusal" in parts:
        # The repository of the other parts has this name too.
        if measured:
            os.rename(base.directory, world.place("base"))
        measured.append(Refusals(world, [int(size) for size in options.files.split(",")]))
    tasks: dict[str, Task] = {}
    for each in measured:
        tasks |= each.commands()
    return Measurement(tasks, lambda rounds: [row for each in measured for row in each.rows(rounds)])


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 21)


if __name__ == "__main__":
    main()
