"""Print what adjudicating a claim costs: beside grep, and in a repository of many files.

    python -m bench.claims [--rounds 15] [--files 500000] [--write FILE]

The first row: 80 files of 2.5 MB together, all of them deliverables, in which nothing is found; against
`grep -E` over the same files, plus a Python that imports every module that the command has loaded at its
end. The expression is `EXTENDED_EXPRESSION`: as near to ours as ERE can be,
for ERE looks neither ahead nor behind, and sees no function. We read the index, grep reads files.

The second: the same small claim in two repositories, of 1,000 files and of many; the scan goes on in the
tracked files until a cap. What git needs to read the index by itself (`git ls-files --unmerged`, which prints
nothing, as often as the command starts a git that reads it) is taken off both sides.

PYTHONDONTWRITEBYTECODE is not passed on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Sequence

from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds, Spread
from bench.tables import Row
from bench.worlds import POLICY, Prose, World, make_wide, write_commit

EXTENDED_EXPRESSION = (
    r"(^|[^A-Za-z0-9_$.])(TODO|FIXME|TBD|XXX|PLACEHOLDER|[Tt]odo|[Ff]ixme)($|[^A-Za-z0-9_])"
    r"|\[(TBD|TODO|INSERT|PLACEHOLDER|MISSING)([] :-])"
    r"|[<[{] ?([Yy]our|YOUR|[Ii]nsert|INSERT|[Ee]nter|[Ff]ill|[Rr]eplace|[Aa]dd|TBD|PLACEHOLDER)[ _-]"
    r"[^]<>{}]*[]>}]"
    r"|[ _-](here|HERE)[]>]|<[Pp]laceholder>|(YOUR|your)[_-][A-Za-z0-9_-]+"
    r"|[Ll][Oo][Rr][Ee][Mm][ \t]+[Ii][Pp][Ss][Uu][Mm]"
    r"|(^|[:;])[ \t]*(pass|\.\.\.)[ \t]*([;#]|$)"
    r"|[Nn]ot([ ]yet)?[ _-]?[Ii]mplemented|[Uu]nimplemented"
)
"""As near as one expression of `grep -E` comes: to search the same by it is a measure of speed."""

FILES = 80
BYTES = 2_500_000
_CODE = "incomplete_deliverable_placeholder"
_LOADED = (
    "import json, sys\nfrom patchgate.cli import program\nprogram.run(sys.argv[1:])\n"
    "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
)
_READERS = ("diff-index", "ls-files", "diff-files")


def verdict_of(world: World, name: str, deliverables: Sequence[str], changed: Sequence[str] = ()) -> str:
    """Write a verdict that says that a placeholder remains; give its path."""
    place = world.place(name)
    verdict = {
        "passed": False,
        "reason_code": _CODE,
        "deliverables": list(deliverables),
        "changed_files": list(changed),
    }
    with open(place, "w", encoding="utf-8") as file:
        json.dump(verdict, file)
    return place


def make_full(world: World) -> tuple[str, list[str]]:
    """Make a repository of as many files and bytes as the caps allow; all lie in the working tree."""
    prose = Prose(FILES)
    size = BYTES // FILES
    paths = [f"src/part{number:02}.{'py' if number % 2 else 'md'}" for number in range(FILES)]
    texts = [b"".join(prose.lines(1000))[: size - 1] + b"\n" for _ in paths]
    if {len(text) for text in texts} != {size}:
        raise SystemExit("the files are not of the size that they have to be")
    # The policy is a tracked text too, and would be cut off by the cap on files.
    policy = POLICY + b'[claims]\nexclude = ["patchgate.toml"]\n'
    contents = [*zip(paths, texts, strict=True), ("patchgate.toml", policy)]
    directory = world.make("full", lambda out: write_commit(out, 0, iter(contents)))
    world.git(directory, "checkout-index", "-a", "-f")
    return directory, paths


def python_of(world: World, directory: str, verdict: str) -> Command:
    """Make the Python that imports what a claim has loaded at its end.

    The first claim makes what is kept of the policy, and loads more for that; so the second one is asked.
    """
    for _ in range(2):
        done = subprocess.run(
            (world.python, "-c", _LOADED, "claim", "-q", verdict),
            cwd=directory,
            env=world.env,
            capture_output=True,
            check=True,
        )
    names = [name for name in json.loads(done.stderr.splitlines()[-1]) if name != "__main__"]
    if heavy := {"pydantic", "pygit2"}.intersection(names):
        raise SystemExit(f"a claim loads {', '.join(sorted(heavy))}: the comparison would flatter it")
    imports = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    return Command((world.python, "-c", imports), world.path, world.env)


def full_commands(world: World) -> dict[str, Command]:
    """Make the commands of the first row."""
    directory, paths = make_full(world)
    verdict = verdict_of(world, "full.json", paths)
    grep = ("grep", "-E", "-c", "--", EXTENDED_EXPRESSION, *paths)
    found = subprocess.run(grep, cwd=directory, env=world.env, stdout=subprocess.DEVNULL, check=False)
    if found.returncode > 1:
        raise SystemExit("grep does not take the expression")
    return {
        "claim": Command((world.patchgate, "claim", verdict), directory, world.env, code=3),
        "grep -E": Command(grep, directory, world.env, code=found.returncode),
        "python, the same imports": python_of(world, directory, verdict),
    }


def wide_commands(world: World, files: int) -> tuple[dict[str, Command], int]:
    """Make the commands of one side of the second row; also how many gits read the index for a claim."""
    wide = make_wide(world, files, changed=100)
    readable = [path for path in wide.changed if path.endswith((".py", ".md", ".ts", ".json"))]
    # A file that is staged in one version and on disk in another is not read.
    world.git(wide.directory, "checkout-index", "-f", "--", *readable[:4])
    verdict = verdict_of(world, f"wide-{files}.json", readable[:1], readable[1:4])
    claim = (world.patchgate, "claim", "--format", "json", verdict)
    told = subprocess.run(claim, cwd=wide.directory, env=world.env, stdout=subprocess.PIPE, check=False)
    data = json.loads(told.stdout)["metadata"]
    if data["scanned_file_count"] != FILES or data["scan_mode"] != "targeted_plus_fallback":
        raise SystemExit(f"a claim among {files} files has scanned {data['scanned_file_count']}")
    listing = ("git", "ls-files", "--unmerged")
    return {
        f"claim, {files:,} files": Command(claim, wide.directory, world.env, code=told.returncode),
        f"git reads the index, {files:,} files": Command(listing, wide.directory, world.env),
    }, readers(world, claim, wide.directory)


def readers(world: World, argv: Sequence[str], directory: str) -> int:
    """Count the gits that a command starts and that read the repository's index.

    One in front of git notes its words; an index of its own, of few files, does not count.
    """
    folder, notes = world.place("noting"), world.place("noted")
    os.makedirs(folder, exist_ok=True)
    real = (
        subprocess.run(("sh", "-c", "command -v git"), stdout=subprocess.PIPE, check=True)
        .stdout.decode()
        .strip()
    )
    place = os.path.join(folder, "git")
    with open(place, "w", encoding="utf-8") as file:
        file.write(
            f'#!/bin/sh\ncase ${{GIT_INDEX_FILE-}} in "" | */.git/index) echo "$@" >>{notes} ;; esac\n'
            f'exec {real} "$@"\n'
        )
    os.chmod(place, 0o755)
    with open(notes, "w", encoding="utf-8"):
        pass
    env = {**world.env, "PATH": f"{folder}:{world.env['PATH']}"}
    subprocess.run(argv, cwd=directory, env=env, stdout=subprocess.DEVNULL, check=False)
    with open(notes, encoding="utf-8") as file:
        return sum(any(word in _READERS for word in line.split()) for line in file)


def own_ratios(measured: Rounds, many: int, few: int, times: int) -> Spread:
    """Compare what two sizes cost without git's own reading, round by round."""
    own = [
        [
            claim - times * listing
            for claim, listing in zip(
                measured.seconds[f"claim, {files:,} files"],
                measured.seconds[f"git reads the index, {files:,} files"],
                strict=True,
            )
        ]
        for files in (many, few)
    ]
    return Spread.of([more / less for more, less in zip(*own, strict=True)])


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", type=int, default=500_000)


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the repositories, and name what is timed in them."""
    few, many = 1000, options.files
    tasks = full_commands(world)
    times = 0
    for files in (few, many):
        more, times = wide_commands(world, files)
        tasks |= more
    what = f"`claim`, {FILES} files of {BYTES:,} bytes, nothing found"
    against = "`grep -E` of them plus a Python that imports the same"

    def rows(measured: Rounds) -> list[Row]:
        return [
            Row(what, against, 1.5, measured.ratios("claim", "grep -E", "python, the same imports")),
            Row(
                f"`claim` among {many:,} files, {times} × git's own reading taken off",
                f"the same among {few:,} files",
                1.3,
                own_ratios(measured, many, few, times),
            ),
        ]

    return Measurement(tasks, rows)


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 15)


if __name__ == "__main__":
    main()
