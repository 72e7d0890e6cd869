"""Print what was measured as markdown: one row for each target, and the plain times under it."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from bench.pairs import Rounds, Spread
from patchgate import __version__


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: what is measured against what, the target, and the figures.

    `unit` is `×` for a ratio and `ms` for a difference in milliseconds; `limit` is the target in that unit,
    None where there is none; `reach` is what would be better still.
    """

    what: str
    against: str
    limit: float | None
    figures: Spread
    unit: str = "×"
    reach: float | None = None


def ratio_table(rows: Sequence[Row]) -> str:
    """Write the rows: the target, the median, the least figure and the spread up to the 90th percentile."""
    lines = [
        "| what | against | target | measured | least | spread | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        target = "–" if row.limit is None else f"≤ {_figure(row.limit, row.unit)}"
        target += "" if row.reach is None else f" ({_figure(row.reach, row.unit)})"
        met = "" if row.limit is None else "met" if row.figures.median <= row.limit else "missed"
        least, median, high = (
            _figure(each, row.unit) for each in (row.figures.least, row.figures.median, row.figures.high)
        )
        cells = (_cell(row.what), _cell(row.against), target, median, least, f"{least} … {high}", met)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _figure(value: float, unit: str) -> str:
    if unit != "×":
        return f"{value:.0f} {unit}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def time_table(rounds: Rounds) -> str:
    """Write the plain times of every command, in milliseconds."""
    lines = ["| command | least ms | median ms | p90 ms | rounds |", "| --- | --- | --- | --- | --- |"]
    for name, taken in rounds.seconds.items():
        times = rounds.times(name)
        shown = " | ".join(f"{each * 1e3:.1f}" for each in (times.least, times.median, times.high))
        lines.append(f"| {_cell(name)} | {shown} | {len(taken)} |")
    return "\n".join(lines) + "\n"


def put_out(text: str, place: str | None) -> None:
    """Print what was measured, and write it into a file where one is named."""
    print(text)
    if place:
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)


def machine() -> str:
    """Say on what this was measured."""
    git = subprocess.run(["git", "version"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    own = f"Python {platform.python_version()}, {git}, {os.cpu_count()} processors, {platform.system()}."
    return f"{own}{_processor()} patchgate {__version__}.\n"


def _processor() -> str:
    """Name the processor, where the system tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        return ""
    return f" {names[0]}." if names else ""


def _cell(text: str) -> str:
    """Escape what would end a cell."""
    return text.replace("|", "\\|")
