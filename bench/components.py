"""Print what components cost: a check near to them and far from them, and the status of all baselines.

    python -m bench.components [--rounds 15] [--files 100000] [--components 200] [--each 50] [--write FILE]

Two repositories have the same files; the policy of one declares the components, each with a contract, a test,
so many files of implementation, and a baseline that holds. Each row compares whole processes that ran in the
same round.

- *check, near*: ten files of ten components' implementations, so that each drifts, against the same check
  where no component is declared;
- *check, far*: ten files of no component, against the same;
- *baseline status*, less Python's start (`python -c pass`) and less the start of our program (the same
  command where no component is declared), against `git ls-tree -r HEAD`; *cold* is without what earlier runs
  have kept.

PYTHONDONTWRITEBYTECODE is not passed on, and one round before the first does not count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds
from bench.tables import Row
from bench.worlds import POLICY, Prose, World, write_commit
from patchgate.components.baseline_file import RecordedFile, write_baseline
from patchgate.git.path import RepoPath
from patchgate.policy.component import Role

_CHANGED = 10


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many files there are, how many components, and how many files each of them has."""

    files: int
    components: int
    each: int


def names_of(sizes: Sizes) -> list[str]:
    """Name the components."""
    return [f"part-{number:03}" for number in range(sizes.components)]


def files_of(name: str, sizes: Sizes, prose: Prose) -> dict[str, tuple[Role, bytes]]:
    """Write the files of one component."""
    contract = {
        "component_id": name,
        "version": "1.0.0",
        "description": "reads one line",
        "functions": [{"name": "read", "side_effects": [{"kind": "none", "target": "none"}]}],
    }
    found = {
        f"contracts/{name}/interface.json": (Role.CONTRACT, json.dumps(contract, indent=2).encode()),
        f"tests/contracts/test_{name}.py": (Role.TESTS, b"def test_read():\n    assert True\n"),
    }
    for number in range(sizes.each):
        found[f"src/{name}/m{number // 30}/f{number}.py"] = (Role.IMPLEMENTATION, b"".join(prose.lines(40)))
    return found


def policy_of(names: list[str]) -> bytes:
    """Declare the components."""
    declared = "".join(
        f'[components.{name}]\ncontract = "contracts/{name}/interface.json"\n'
        f'tests = ["tests/contracts/test_{name}.py"]\nimplementation = ["src/{name}/**"]\n'
        for name in names
    )
    return POLICY + declared.encode()


def baseline_of(name: str, files: dict[str, tuple[Role, bytes]]) -> bytes:
    """Write the baseline of one component."""
    recorded = {
        RepoPath(path.encode()): RecordedFile(
            role,
            "100644",
            hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
            hashlib.sha256(content).hexdigest(),
        )
        for path, (role, content) in files.items()
    }
    return write_baseline(name, recorded)


def make_field(world: World, sizes: Sizes, *, declares: bool) -> str:
    """Make one of the two repositories; ten files near to components are staged in an index of their own."""
    prose = Prose(sizes.files)
    names = names_of(sizes)
    parts = {name: files_of(name, sizes, prose) for name in names}
    others = prose.paths(sizes.files - sum(map(len, parts.values())))
    texts = [b"".join(prose.lines(40)) for _ in range(50)]

    def contents() -> Iterator[tuple[str, bytes | None]]:
        for number, path in enumerate(others):
            yield path.replace("src/", "lib/", 1), texts[number % 50]
        for name, files in parts.items():
            for path, (_, content) in files.items():
                yield path, content
            yield f".patchgate/baselines/{name}.json", baseline_of(name, files)

    def write(out: IO[bytes]) -> None:
        write_commit(out, 0, contents())
        write_commit(out, 1, iter([("patchgate.toml", policy_of(names) if declares else POLICY)]))

    directory = world.make("with" if declares else "without", write)
    index = os.path.join(directory, ".git", "index")
    shutil.copy(index, index + "-near")
    near = [f"src/{name}/m0/f0.py" for name in names[:: max(1, len(names) // _CHANGED)][:_CHANGED]]
    far = [path.replace("src/", "lib/", 1) for path in others[:: len(others) // _CHANGED][:_CHANGED]]
    world.stage(directory, dict.fromkeys(near, b"changed = 1\n"), "index-near")
    world.stage(directory, dict.fromkeys(far, b"changed = 1\n"))
    return directory


def commands_of(world: World, plain: str, declared: str) -> dict[str, Command]:
    """Name what is timed."""
    check = (world.patchgate, "check", "-q")
    kept = os.path.join(declared, ".git", "patchgate")

    def forget() -> None:
        for name in os.listdir(kept):
            if name not in {"policies", "events.jsonl"}:
                place = os.path.join(kept, name)
                shutil.rmtree(place) if os.path.isdir(place) else os.unlink(place)

    def near(directory: str) -> dict[str, str]:
        return {**world.env, "GIT_INDEX_FILE": os.path.join(directory, ".git", "index-near")}

    status = (world.patchgate, "baseline", "status")
    return {
        "check, near, without": Command(check, plain, near(plain)),
        "check, near": Command(check, declared, near(declared)),
        "check, far, without": Command(check, plain, world.env),
        "check, far": Command(check, declared, world.env),
        "baseline status": Command(status, declared, world.env),
        "baseline status, cold": Command(status, declared, world.env, before=forget),
        "git ls-tree -r HEAD": Command(("git", "ls-tree", "-r", "HEAD"), declared, world.env),
        "baseline status, none declared": Command(status, plain, world.env),
        "python -c pass": Command((world.python, "-c", "pass"), declared, world.env),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--components", type=int, default=200)
    parser.add_argument("--each", type=int, default=50, help="files of one implementation")


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the two repositories, and name what is timed in them."""
    sizes = Sizes(options.files, options.components, options.each)
    plain, declared = (make_field(world, sizes, declares=each) for each in (False, True))
    return Measurement(commands_of(world, plain, declared), lambda measured: rows_of(measured, sizes))


def rows_of(measured: Rounds, sizes: Sizes) -> list[Row]:
    """Compare what was timed."""
    without = "the same without components"
    about = f"{sizes.files:,} files, {sizes.components} components of {sizes.each + 2}"
    rows = [
        Row(f"`check`, ten files {place} components, {about}", without, 1.2, measured.ratios(*pair))
        for place, pair in (
            ("of ten", ("check, near", "check, near, without")),
            ("far from", ("check, far", "check, far, without")),
        )
    ]
    for name in ("baseline status", "baseline status, cold"):
        for less in ("baseline status, none declared", "python -c pass"):
            limit = 2 if name == "baseline status" else None
            ratios = measured.ratios(name, "git ls-tree -r HEAD", less=less)
            rows.append(Row(f"`{name}`, {about}, less `{less}`", "`git ls-tree -r HEAD`", limit, ratios))
    return rows


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 15)


if __name__ == "__main__":
    main()
