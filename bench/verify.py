"""Print what a verification costs whose runs are both kept, against `check` of the same change.

    python -m bench.verify [--rounds 21] [--files 5000] [--results 1000] [--write FILE]

Two repositories with the same files, ten edited ones staged; in the second an intent is active that allows
them. The analysis tells so many results, the same before and after. A row compares whole processes that ran
in the same round. The first verification, which runs the analysis twice, is in the round that does not count.

PYTHONDONTWRITEBYTECODE is not passed on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import IO

from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds
from bench.tables import Row
from bench.worlds import POLICY, Prose, World, write_commit

_CHANGED = 10
_ANALYSIS = b"""\
[commands.told]
kind = "lint"
command = ["cat", "report.sarif"]
output = "sarif"
on = ["verify"]

[[thresholds]]
name = "no-new-findings"
metric = "findings:new"
max = 0
"""


def report_of(paths: Sequence[str], results: int) -> bytes:
    """Write the SARIF of so many results, spread over files of forty lines."""
    told = [
        {
            "ruleId": f"R{number % 7}",
            "message": {"text": f"something about line {number % 40 + 1}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": paths[number * 7 % len(paths)]},
                        "region": {"startLine": number % 40 + 1},
                    }
                }
            ],
        }
        for number in range(results)
    ]
    run = {"tool": {"driver": {"name": "told"}}, "results": told}
    return json.dumps({"version": "2.1.0", "runs": [run]}).encode()


def make_field(world: World, files: int, results: int, *, declares: bool) -> str:
    """Make a repository; ten files that no result names are edited and staged, after they were declared."""
    prose = Prose(files)
    paths = prose.paths(files)
    texts = [b"".join(prose.lines(40)) for _ in range(50)]
    changed = paths[:: files // _CHANGED][:_CHANGED]
    told = [path for path in paths if path not in changed]

    def contents() -> Iterator[tuple[str, bytes | None]]:
        for number, path in enumerate(paths):
            yield path, texts[number % 50]
        yield "report.sarif", report_of(told, results)

    def write(out: IO[bytes]) -> None:
        write_commit(out, 0, contents())
        write_commit(out, 1, iter([("patchgate.toml", POLICY + _ANALYSIS)]))

    directory = world.make("declared" if declares else "plain", write)
    world.git(directory, "checkout-index", "-a", "-f")
    if declares:
        allowed = [word for path in changed for word in ("--allow", path)]
        declare = ("patchgate", "intent", "declare", "-m", "Edit ten files", "--ttl", "24h", *allowed)
        env = {"PATH": os.path.dirname(world.patchgate) + os.pathsep + world.env["PATH"]}
        subprocess.run(("git", *declare), cwd=directory, env=world.env | env, check=True, capture_output=True)
    world.stage(directory, {path: texts[0] + b"".join(prose.lines(3)) for path in changed})
    return directory


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--results", type=int, default=1000)


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the two repositories, and name what is timed in them."""
    tasks: dict[str, Command] = {}
    for declares, name in ((False, ""), (True, ", an intent")):
        field = make_field(world, options.files, options.results, declares=declares)
        # By the limits of people: ten files are more than an agent may touch.
        check = (world.patchgate, "check", "--profile", "commit")
        tasks[f"check{name}"] = Command(check, field, world.env)
        tasks[f"verify{name}"] = Command((world.patchgate, "verify"), field, world.env)
    about = f"{options.files:,} files, {options.results:,} results before and after, both kept"

    def rows(measured: Rounds) -> list[Row]:
        return [
            Row(
                f"`verify`{name}, {about}",
                "`check` of the same change",
                1.5,
                measured.ratios(f"verify{name}", f"check{name}"),
            )
            for name in ("", ", an intent")
        ]

    return Measurement(tasks, rows)


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 21)


if __name__ == "__main__":
    main()
