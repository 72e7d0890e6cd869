"""One benchmark as all of them are run: what it times, the rows that come of it, and how it is called.

Each module that measures has `add_options`, `prepare` and a `main` that is `run_alone`. `bench.run` calls the
same `prepare`, for two revisions at once if it has to compare them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.pairs import Rounds, Task, run_rounds
from bench.tables import Row, machine, put_out, ratio_table, time_table
from bench.worlds import World


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one benchmark times, by name, and the rows that compare these times.

    `require_valid` is called after the rounds, and ends the program where the times mean nothing; `notes` are
    lines below the table.
    """

    tasks: Mapping[str, Task]
    rows: Callable[[Rounds], list[Row]]
    require_valid: Callable[[], None] = field(default=_nothing)
    notes: str = ""


def joined(parts: Sequence[Measurement]) -> Measurement:
    """Join measurements into one, whose tasks run in the same rounds; no two have a task of one name."""
    tasks = {name: task for part in parts for name, task in part.tasks.items()}

    def require_valid() -> None:
        for part in parts:
            part.require_valid()

    return Measurement(
        tasks,
        lambda measured: [row for part in parts for row in part.rows(measured)],
        require_valid,
        "\n".join(part.notes for part in parts if part.notes),
    )


AddOptions = Callable[[argparse.ArgumentParser], None]
Prepare = Callable[[World, argparse.Namespace], Measurement]


def parser_of(doc: str | None, add_options: AddOptions, rounds: int) -> argparse.ArgumentParser:
    """Make the parser of one benchmark: its own options, and `--rounds`."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    add_options(parser)
    return parser


def run_alone(doc: str | None, add_options: AddOptions, prepare: Prepare, rounds: int) -> None:
    """Measure one benchmark, print its table, and clean up.

    Args:
        doc: the documentation of its module.
        add_options: adds its options.
        prepare: makes what is measured.
        rounds: how many rounds, unless `--rounds` says another number.
    """
    parser = parser_of(doc, add_options, rounds)
    parser.add_argument("--write", help="write the tables to this file too")
    options = parser.parse_args()
    with World() as world:
        measurement = prepare(world, options)
        measured = run_rounds(measurement.tasks, options.rounds)
        measurement.require_valid()
    parts = (ratio_table(measurement.rows(measured)), machine(), time_table(measured), measurement.notes)
    put_out("\n".join(part for part in parts if part), options.write)
