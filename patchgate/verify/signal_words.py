"""How a signal is named for people, a finding or a metric of a symbol: one spelling for every form.

Decides words alone; all foreign text is escaped, and long names are cut.
"""

from __future__ import annotations

from patchgate.commands.results import Result, Worsened
from patchgate.report.wording import number, safe, show_path

MOST_NAME = 100


def place_of(result: Result) -> str:
    """Name where a finding is: `src/a.py:3`."""
    if result.path is None:
        return "(no file)"
    return show_path(result.path) + ("" if result.line is None else f":{result.line}")


def name_result(result: Result) -> str:
    """Name one finding: `src/a.py:3 F401`; one in no file names its tool."""
    rule = safe(" ".join(result.rule.split()), MOST_NAME)
    of = f" of {safe(result.tool, MOST_NAME)}" if result.path is None else ""
    return f"{place_of(result)} {rule}{of}"


def name_symbol(each: Worsened) -> str:
    """Name what has a metric: `src/a.py f`, or the file alone."""
    symbol = f" {safe(each.symbol, MOST_NAME)}" if each.symbol else ""
    return f"{show_path(each.path)}{symbol}"


def name_signal(signal: Result | Worsened) -> str:
    """Name what is over a threshold; a symbol with its value: `src/a.py f 11`."""
    if isinstance(signal, Result):
        return name_result(signal)
    return f"{name_symbol(signal)} {number(signal.after)}"


def worsened_from(signal: Worsened) -> str:
    """Say what a symbol had before."""
    return "new" if signal.before is None else f"{number(signal.before)} before"
