"""Break off an apply wherever it can be broken off, and print how often it was all old, all new, or neither.

    python -m tests.crash [--long] [--seed N] [--program git|patchgate] [--part PART] [--jobs N]

Without `--program` both are broken off, git first, so that its counts stand beside. Without `--long` each
part is a sample, chosen by the seed, as in the test suite; with it every kill point is one, and the random
parts have hundreds. Parts: `kill` (SIGKILL at every system call that changes something), `child` (the same
for each git that the apply starts), `recover` (recover killed too, twice), `signal` (SIGINT, SIGTERM, SIGHUP
at any time), `together` (two to eight applies), `commit` (`git commit -a` races), `editor` (a person saves a
target), `disk` (full), `limit` (files may not grow), `closed` (a folder may not be written).

A part for which the machine lacks something (strace, root, a mount) is skipped and says so. Each failure of
ours is told with what led to it; the exit code is 1 if our program failed anywhere.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.crash.aftermath import Aftermath, Counts
from tests.crash.comparer import Kind
from tests.crash.plan import PARTS, Found, Plan, Task
from tests.crash.programs import PROGRAMS, Program


@dataclass
class Row:
    """A row of the table; `counts` has states where the part knows them."""

    counts: Counts
    broken: int = 0
    missed: int = 0
    has_states: bool = False

    def add(self, where: str, found: Found) -> None:
        """Count one task."""
        if found is None:
            self.missed += 1
        elif isinstance(found, Aftermath):
            self.has_states = True
            self.counts.add(where, found)
            self.broken += bool(found.failures)
        else:
            self.counts.points += 1
            self.broken += bool(found)
            self.counts.failures += [f"{self.counts.name}, {where}: {problem}" for problem in found]

    def cells(self, *, ours: bool) -> list[str]:
        """Write it."""
        counts = self.counts
        if not self.has_states:
            return [str(counts.points), *["–"] * 5, str(self.broken)]
        at_once = [str(counts.at_once[kind]) for kind in (Kind.OLD, Kind.NEW, Kind.PARTIAL)]
        after = " / ".join(str(counts.afterwards[kind]) for kind in (Kind.OLD, Kind.NEW, Kind.PARTIAL))
        # git claims nothing; a partial tree is what is broken.
        broken = self.broken if ours else counts.at_once[Kind.PARTIAL]
        return [str(counts.points), *at_once, str(counts.with_litter), after if ours else "–", str(broken)]


HEAD = ("points", "all old", "all new", "partial", "litter", "after recover: old / new / partial", "broken")
_tasks: list[Task] = []


def _perform(job: tuple[int, str]) -> tuple[int, Found]:
    number, above = job
    folder = Path(above, f"worker-{os.getpid()}")
    try:
        return number, _tasks[number].do(folder)
    except Exception:  # noqa: BLE001 - whatever failed is told with what led to it
        return number, [traceback.format_exc(limit=-3)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def broken_off(plan: Plan, part: str, jobs: int) -> dict[str, Row]:
    """Do one part for one program, and tell each failure of ours at once; give the rows."""
    program = plan.program
    if (reason := plan.why_not(part)) is not None:
        print(f"{program.name}: {part} skipped: {reason}", file=sys.stderr)
        return {}
    _tasks[:] = getattr(plan, part)()
    rows: dict[str, Row] = {}
    # Forked, so that each worker has the tasks, which are functions, as they are.
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        work = [(number, str(plan.folder)) for number in range(len(_tasks))]
        for number, found in pool.imap(_perform, work):
            task = _tasks[number]
            row = rows.setdefault(task.row, Row(Counts(f"{program.name}, {task.row}")))
            known = len(row.counts.failures)
            row.add(task.where, found)
            if program.ours:
                print(*row.counts.failures[known:], sep="\n", end="\n" * (len(row.counts.failures) > known))
                sys.stdout.flush()
    if missed := sum(row.missed for row in rows.values()):
        print(f"{program.name}: {part}: {missed} points were not reached again", file=sys.stderr)
    print(*lines_of(program, rows), sep="\n", file=sys.stderr)
    return rows


def lines_of(program: Program, rows: dict[str, Row]) -> list[str]:
    """Write the rows of one program."""
    return [
        f"| `{program.name}` | {name} | {' | '.join(row.cells(ours=program.ours))} |"
        for name, row in rows.items()
    ]


def table(told: Sequence[tuple[Program, dict[str, Row]]]) -> str:
    """Write the counts as a Markdown table."""
    lines = [f"| program | broken off by | {' | '.join(HEAD)} |", "| --- | --- " + "| --: " * len(HEAD) + "|"]
    return "\n".join([*lines, *(line for program, rows in told for line in lines_of(program, rows))])


def main() -> int:
    """Break off what was asked for; print the table, and the failures."""
    reader = argparse.ArgumentParser(prog="python -m tests.crash")
    reader.add_argument("--long", action="store_true")
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--program", choices=list(PROGRAMS), action="append")
    reader.add_argument("--part", choices=PARTS, action="append")
    reader.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = reader.parse_args()
    told: list[tuple[Program, dict[str, Row]]] = []
    for name in options.program or list(PROGRAMS):
        for program in PROGRAMS[name]:
            rows: dict[str, Row] = {}
            with tempfile.TemporaryDirectory(prefix="crash-") as folder:
                plan = Plan(program, Path(folder), options.seed, is_long=options.long)
                for part in options.part or PARTS:
                    rows |= broken_off(plan, part, options.jobs)
            told.append((program, rows))
    print(table(told))
    return int(any(row.broken for program, rows in told if program.ours for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
