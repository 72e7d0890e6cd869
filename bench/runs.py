"""Print what a run costs: wavefront against phased with a real clock, and a ledger of many events.

    python -m bench.runs [--rounds 7] [--unit 1.0] [--events 100000] [--write FILE]

The first table: five leaves, whose authors of contract, tests and implementation sleep (5,1,1), (1,5,1),
(1,1,5), (1,1,1) and (1,1,1) units, with five works at once. Phased takes 15 units and wavefront 7, plus what
the works themselves cost.

The second: `status` and `run rebuild` in a repository whose ledger has so many events, a quarter of them of
runs, all of which are complete or all but 20; against a Python that reads the JSON of each line.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import time

from bench.measurement import Measurement, run_alone
from bench.pairs import Command, Rounds
from bench.tables import Row
from bench.worlds import POLICY, World, write_commit

LEAVES = {"a": (5, 1, 1), "b": (1, 5, 1), "c": (1, 1, 5), "d": (1, 1, 1), "e": (1, 1, 1)}
ROLES = {"contract": "contract_author", "tests": "test_author", "implementation": "code_author"}
LEAST_SAVED = 0.30
MOST_STATUS = 0.3
UNFINISHED = 20
_READ = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"


def contract_of(name: str) -> str:
    """Write a contract of one function."""
    function = {"name": "read", "inputs": [], "side_effects": [{"kind": "none"}]}
    return json.dumps({"component_id": name, "version": "1.0.0", "functions": [function]})


def make_leaves(world: World, name: str, unit: float) -> str:
    """Make a repository of five components without files, and their authors; `unit` is in seconds."""
    answers = world.place(f"{name}-answers")
    os.makedirs(answers)
    tables = []
    for leaf, units in LEAVES.items():
        files = (
            (f"contracts/{leaf}.json", contract_of(leaf)),
            (f"tests/{leaf}.sh", f"test -s src/{leaf}.txt"),
            (f"src/{leaf}.txt", "done"),
        )
        for phase, length, (path, line) in zip(ROLES, units, files, strict=True):
            with open(os.path.join(answers, f"{leaf}-{phase}"), "w", encoding="utf-8") as file:
                file.write(f"sleep {length * unit}\ncat <<'END'\n")
                file.write(
                    f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
                )
                file.write(f"@@ -0,0 +1 @@\n+{line}\nEND\n")
        tables.append(
            f'[components.{leaf}]\ncontract = "{files[0][0]}"\ntests = ["{files[1][0]}"]\n'
            f'implementation = ["{files[2][0]}"]\ntest_command = ["sh", "{files[1][0]}"]\n'
        )
    for phase, role in ROLES.items():
        script = f"leaf=$(sed -n 's/^- component: //p'); sh {shlex.quote(answers)}/$leaf-{phase}"
        tables.append(
            f'[commands.{phase}]\nkind = "author"\nrole = "{role}"\nphase = "{phase}"\n'
            f"command = {json.dumps(['sh', '-c', script])}\n"
        )
    policy = POLICY + "\n".join(tables).encode()
    directory = world.make(name, lambda out: write_commit(out, 0, iter([("patchgate.toml", policy)])))
    world.git(directory, "checkout-index", "-a", "-f")
    return directory


def seconds_of_run(world: World, scheduling: str, unit: float) -> float:
    """Time one run of the five leaves; every work must pass."""
    directory = make_leaves(world, scheduling, unit)
    argv = (world.patchgate, "run", "start", "--jobs", "5", "--scheduling", scheduling)
    began = time.perf_counter()
    done = subprocess.run(argv, cwd=directory, env=world.env, capture_output=True, check=False)
    taken = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(done.stdout.decode() + done.stderr.decode())
    return taken


def make_ledger(world: World, events: int, unfinished: int = 0) -> str:
    """Make a repository whose ledger has so many events: each fourth of a run, each twentieth an attempt."""
    from patchgate.apply.attempt_records import AttemptRecord
    from patchgate.ledger.ledger import written_forms
    from patchgate.runs.phases import PHASES
    from patchgate.storage.record import START, canonical_event, line_of

    name = f"ledger-{unfinished}"
    directory = world.make(name, lambda out: write_commit(out, 0, iter([("patchgate.toml", POLICY)])))
    folder = os.path.join(directory, ".git", "patchgate")
    os.makedirs(folder, exist_ok=True)
    phases = [phase.value for phase in PHASES[2:5]]
    steps: list[dict[str, object]] = [{"action": "started", "phases": {"a": phases}, "jobs": 1}]
    steps[0] |= {"scheduling": "phased", "work_tree": directory, "owner": {"host": "bench", "pid": 1}}
    for phase in phases:
        steps += [{"action": action, "component": "a", "phase": phase} for action in ("began", "finished")]
    steps.append({"action": "completed"})
    paused = {"action": "paused", "reason": "a test", "hint": None}
    apart = max(1, events // 4 // len(steps) // max(1, unfinished))
    previous = START
    with open(os.path.join(folder, "events.jsonl"), "wb") as file:
        for number in range(events):
            kind: str = "run"
            about: dict[str, object] = {"run": f"r-{number // 4 // len(steps):08x}"}
            if number % 4:
                kind, about = "captured", {"component": "a", "baseline": "0" * 40, "dependencies": {}}
                if number % 20 == 1:
                    name = f"a-{number:06x}"
                    tried = AttemptRecord(
                        name, name, None, 1, "rejected", False, True, False, "patch", "0" * 64
                    )
                    kind, about = "attempted", {**tried.plain()}
            else:
                run, step = divmod(number // 4, len(steps))
                is_left = unfinished > 0 and run % apart == 0 and step == len(steps) - 1
                about |= paused if is_left else steps[step]
            for event in written_forms(kind, about, 1_700_000_000.0 + number):  # type: ignore[arg-type]
                previous, line = line_of(canonical_event(event), previous)
                file.write(line)
    return directory


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--unit", type=float, default=1.0, help="seconds")
    parser.add_argument("--events", type=int, default=100_000)


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Time the leaves, make the ledgers, and name what is timed in them."""
    taken = {each: seconds_of_run(world, each, options.unit) for each in ("phased", "wavefront")}
    saved = 1 - taken["wavefront"] / taken["phased"]
    leaves = (
        f"five leaves, {options.unit:g} s a unit: phased {taken['phased']:.1f} s, "
        f"wavefront {taken['wavefront']:.1f} s, saved {saved:.0%} (at least {LEAST_SAVED:.0%})\n"
    )
    events = options.events
    directory, other = make_ledger(world, events), make_ledger(world, events, UNFINISHED)
    ledger = os.path.join(directory, ".git", "patchgate", "events.jsonl")
    unfinished = f"status, {UNFINISHED} unfinished runs"
    tasks = {
        "status": Command((world.patchgate, "status"), directory, world.env),
        unfinished: Command((world.patchgate, "status"), other, world.env),
        "log -n 20": Command((world.patchgate, "log", "-n", "20"), directory, world.env),
        "log": Command((world.patchgate, "log"), directory, world.env),
        "attempts list": Command((world.patchgate, "attempts", "list"), directory, world.env),
        "run rebuild": Command((world.patchgate, "run", "rebuild", "--dry-run"), directory, world.env),
        "python reads the JSON": Command((world.python, "-c", _READ, ledger), directory, world.env),
    }

    def rows(measured: Rounds) -> list[Row]:
        what = f"`run rebuild`, {events:,} events"
        ratios = measured.ratios("run rebuild", "python reads the JSON")
        found = [Row(what, "a Python that reads their JSON", 3.0, ratios)]
        for name in ("status", unfinished, "log -n 20", "log", "attempts list"):
            times = measured.milliseconds(name)
            found.append(Row(f"`{name}`, {events:,} events", "nothing", MOST_STATUS * 1e3, times, "ms"))
        return found

    return Measurement(tasks, rows, notes=leaves)


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 7)


if __name__ == "__main__":
    main()
