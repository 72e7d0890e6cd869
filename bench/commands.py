"""Print what a linter costs at a commit: ten clean Python files, and the peers that start the same ruff.

    python -m bench.commands [--rounds 21] [--files 5000,100000] [--peers FOLDER]

*Cold* is the first time: patchgate remembers nothing, and ruff has no cache. *Remembered* is the same change
again: patchgate finds its answer, and to the peers ruff finds its cache in the working tree. All are whole
processes in one interleaved run, by their processor time and by the clock. The command is trusted because
`origin` has it, and ruff may write its cache: the peers would lose most without.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.bypass_managers import PEERS, peers
from bench.hooks import require_fast
from bench.hooks_peers import native_lefthook, version_of
from bench.hooks_place import exit_code, make_base
from bench.measurement import Measurement, run_alone
from bench.pairs import Rounds, Task
from bench.tables import Row
from bench.worlds import POLICY, World

_HOOK = ".git/hooks/pre-commit"
_FILES = 10
_FUNCTIONS = 12
_LIMITS = {"cold": 1.0, "remembered": 0.5}
_LARGE = 100_000
_LARGE_LIMIT = 0.5
_MOST_OVER_RUFF = 60.0


@dataclass(frozen=True, slots=True)
class Linter:
    """One manager that starts ruff: its name and version, and how it is started."""

    name: str
    version: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


def find_linters(world: World, folder: str | None, ruff: str) -> list[Linter]:
    """Find the peers in a virtual environment, without one in a new one; each is told to start this ruff.

    Raises:
        SystemExit: they had to be fetched, and could not be.
    """
    if folder is None:
        peers(Path(folder := world.place("peers")))
    entry = f"{ruff} check --no-fix"
    hook = f"id: ruff, name: ruff, language: system, entry: '{entry}', types: [python], require_serial: true"
    framework = _write(world, "framework.yaml", f"repos:\n- repo: local\n  hooks:\n  - {{{hook}}}\n")
    job = f'{{name: ruff, glob: "*.py", run: "{entry} {{staged_files}}"}}'
    lefthook = _write(world, "lefthook.yml", f"pre-commit:\n  jobs:\n    - {job}\n")
    found = []
    for name in PEERS:
        program = os.path.join(folder, "bin", name)
        if not os.path.exists(program):
            print(f"not installed, so not measured: {name}", file=sys.stderr)
        elif name == "lefthook":
            argv = (native_lefthook(folder), "run", "--no-auto-install", "pre-commit")
            found.append(Linter(name, version_of(argv[0], "version"), argv, (("LEFTHOOK_CONFIG", lefthook),)))
        else:
            found.append(Linter(name, version_of(program), (program, "run", "-c", framework)))
    return found


class LintedCommit:
    """A repository in which ten clean Python files are staged, and what is timed there."""

    def __init__(self, world: World, size: int, ruff: str) -> None:
        self.files = f"{size:,} files"
        self.size = size
        self.place, _ = make_base(world, size, checkout=True)
        words = f'["{ruff}", "check", "--no-fix", "{{files}}"]'
        table = f'\n[commands.ruff]\nkind = "lint"\ncommand = {words}\nfiles = ["*.py"]\non = ["commit"]\n'
        self.place.commit({"patchgate.toml": POLICY + table.encode()})
        self.place.git("remote", "add", "origin", world.place("origin.git"))
        self.place.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.place.install()
        self.place.commit(_modules(1))
        self.place.commit(_modules(2))
        self.place.make_ready(_modules(3))
        self._ruff = ruff
        self._memories = (
            Path(self.place.inside("patchgate", "answers")),
            Path(self.place.directory, ".ruff_cache"),
        )

    def commands(self, linters: Sequence[Linter]) -> dict[str, Task]:
        """Name what is timed; each is started once, so that what it remembers can be put back."""
        timed = {
            "ruff": self.place.at_commit(self._ruff, "check", "--no-fix", *sorted(_modules(3))),
            "patchgate": self.place.at_commit(_HOOK),
            **{each.name: self.place.at_commit(*each.argv, **dict(each.env)) for each in linters},
        }
        self._forget()
        for name, command in timed.items():
            self.place.put_back()
            if exit_code(command, command.env):
                raise SystemExit(f"{name} refuses what is clean")
        for memory in self._memories:
            shutil.copytree(memory, f"{memory}-kept")
        found: dict[str, Task] = {}
        for state, prepare in (("cold", self._forget), ("remembered", self._remember)):
            for name, command in timed.items():
                found[f"{name}, {state}, {self.files}"] = replace(command, before=prepare)
        return found

    def _forget(self) -> None:
        self.place.put_back()
        for memory in self._memories:
            shutil.rmtree(memory, ignore_errors=True)

    def _remember(self) -> None:
        self._forget()
        for memory in self._memories:
            shutil.copytree(f"{memory}-kept", memory)

    def is_fast(self) -> dict[str, bool]:
        """Tell for each state whether the fast path answers."""
        hook = self.place.at_commit(_HOOK)
        self._forget()
        found = {f"cold, {self.files}": self.place.is_fast(hook)}
        self._remember()
        return {**found, f"remembered, {self.files}": self.place.is_fast(hook)}

    def rows(self, rounds: Rounds, linters: Sequence[Linter]) -> list[Row]:
        """Compare, in the order of the targets."""
        found = []
        for state in ("cold", "remembered"):
            ours = f"patchgate, {state}, {self.files}"
            for linter in linters:
                limit: float | None = _LARGE_LIMIT if self.size >= _LARGE else _LIMITS[state]
                limit = limit if linter.name == "prek" else None
                ratios = rounds.ratios(ours, f"{linter.name}, {state}, {self.files}")
                found.append(Row(f"ten files with ruff, {state}, {self.files}", linter.name, limit, ratios))
        over = rounds.differences(f"patchgate, cold, {self.files}", f"ruff, cold, {self.files}")
        what = f"the same, cold, less ruff, {self.files}"
        limit = None if self.size >= _LARGE else _MOST_OVER_RUFF
        found.append(Row(what, "ruff alone", limit, over, "ms"))
        return found


def _modules(number: int) -> dict[str, bytes]:
    """Write ten modules about which ruff has nothing to say."""
    return {f"linted/module_{name}.py": _module(name, number) for name in range(_FILES)}


def _module(name: int, number: int) -> bytes:
    steps = (
        f"\n\ndef step_{each}(count: int) -> int:\n    return count + {name + each * number}\n"
        for each in range(_FUNCTIONS)
    )
    return f'"""Module {name}, edition {number}."""\n{"".join(steps)}'.encode()


def _write(world: World, name: str, text: str) -> str:
    path = world.place(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", default="5000,100000", help="sizes of the repositories, by commas")
    parser.add_argument("--peers", help="a virtual environment with some of the peers; `none`: without them")
    parser.add_argument("--any-path", action="store_true", help="go on where the fast path does not answer")


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the repositories, and name what is timed in them."""
    ruff = os.path.join(os.path.dirname(sys.executable), "ruff")
    linters: Sequence[Linter] = ()
    if options.peers != "none":
        linters = find_linters(world, options.peers and os.path.abspath(options.peers), ruff)
    commits = [LintedCommit(world, int(size), ruff) for size in options.files.split(",")]
    tasks: dict[str, Task] = {}
    for commit in commits:
        tasks |= commit.commands(linters)
    if not options.any_path:
        require_fast({name: is_fast for commit in commits for name, is_fast in commit.is_fast().items()})

    def rows(rounds: Rounds) -> list[Row]:
        spent = [row for commit in commits for row in commit.rows(rounds.spent(), linters)]
        spent = [replace(row, what=f"{row.what}, processor time") for row in spent]
        return [*spent, *(row for commit in commits for row in commit.rows(rounds, linters))]

    versions = ", ".join(f"{each.name} {each.version}" for each in linters)
    ours = subprocess.run((ruff, "--version"), stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    return Measurement(tasks, rows, notes=f"{ours}. Peers: {versions or 'none'}.\n")


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 21)


if __name__ == "__main__":
    main()
