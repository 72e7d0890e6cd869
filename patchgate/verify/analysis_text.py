"""What analyses told as people read it; all foreign text is escaped, and long lists are cut and counted."""

from __future__ import annotations

from collections.abc import Iterator

from patchgate.commands.results import AnalysisRun, Evaluated, Measurement, Result
from patchgate.report.wording import SHORT_OID, count, number, safe, show_path
from patchgate.verify.analyze import Analysis, Unstable
from patchgate.verify.signal_words import MOST_NAME
from patchgate.verify.verification_text import list_results, show_result

_MOST_RESULTS = 50
_MOST_ONCE = 5


def text(analysis: Analysis) -> str:
    """Write it: a block for each analysis, and the outcome in the last line."""
    lines: list[str] = []
    for run in analysis.runs.runs.values():
        if run.outcome is not Evaluated.NOT_EVALUATED:
            lines += _block(run)
    for run in analysis.silent:
        lines.append(f"not evaluated: {safe(run.reason or run.analysis).rstrip('.')}")
        lines += [f"  help: {safe(run.hint)}"] if run.hint else []
    for each in analysis.unstable:
        lines += _twice(each)
    return "".join(f"{line}\n" for line in (*lines, _closing(analysis)))


def warnings(analysis: Analysis) -> Iterator[str]:
    """Say what else went wrong around the runs, each thing once."""
    runs = [*analysis.runs.runs.values(), *(analysis.again.runs.values() if analysis.again else ())]
    yield from dict.fromkeys(safe(warning) for run in runs for warning in run.warnings)


def _block(run: AnalysisRun) -> list[str]:
    said = []
    if run.results or not run.measurements:
        said.append(count(len(run.results), "finding") if run.results else "clean")
    if run.suppressed:
        said.append(f"{len(run.suppressed)} suppressed")
    if run.measurements:
        said.append(count(len(run.measurements), "value"))
    title = f"{run.analysis}: {', '.join(said)}"
    listed = list_results(title, run.results, show_result, _MOST_RESULTS) or [title]
    return [*listed, *(f"  {line}" for line in _highest(run))]


def _highest(run: AnalysisRun) -> Iterator[str]:
    """Name of each metric the symbol that has the most."""
    highest: dict[str, Measurement] = {}
    for each in run.measurements:
        if each.name not in highest or each.value > highest[each.name].value:
            highest[each.name] = each
    for name in sorted(highest):
        yield f"highest {_measured(highest[name])}"


def _measured(each: Measurement) -> str:
    symbol = f" {safe(each.symbol, MOST_NAME)}" if each.symbol else ""
    return f"{safe(each.name, MOST_NAME)}  {number(each.value)}  {show_path(each.path)}{symbol}"


def _twice(each: Unstable) -> Iterator[str]:
    told = f": {len(each.once)} in one run only" if each.once else ""
    yield f"{each.analysis}: told other things the second time{told}"
    for one in each.once[:_MOST_ONCE]:
        yield f"  {show_result(one) if isinstance(one, Result) else _measured(one)}"
    if len(each.once) > _MOST_ONCE:
        yield f"  … and {len(each.once) - _MOST_ONCE} more"
    yield "  help: pin its version, and leave out what depends on the time, the network or the order of files"


def _closing(analysis: Analysis) -> str:
    runs = analysis.runs.runs.values()
    found = sum(len(run.results) for run in runs)
    where = f"{safe(analysis.what, MOST_NAME)}, tree {analysis.runs.tree[:SHORT_OID]}"
    if analysis.silent:
        names = ", ".join(run.analysis for run in analysis.silent)
        return f"undecided: {names} could not be evaluated ({where})"
    if analysis.unstable:
        names = ", ".join(each.analysis for each in analysis.unstable)
        return f"undecided: {names} told two things of one tree ({where})"
    stable = ", twice the same" if analysis.again is not None else ""
    if found:
        return f"findings: {found}{stable} ({where})"
    return f"clean: no findings{stable} ({where})"
