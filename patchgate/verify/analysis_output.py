"""An analysis as text, as JSON and as SARIF 2.1.0, and the JSON Schema.

Decides keys and layout only. In JSON no list is cut. In text foreign words are escaped and long lists are
cut. SARIF leaves out what a tool suppressed; the run of a failed analysis has an invocation that reports it.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchgate.commands.analysis_results import AnalysisOutcome, AnalysisResult, AnalysisRun, Measurement
from patchgate.report.json import json_line, path_member
from patchgate.report.sarif import log_of
from patchgate.report.schema import (
    DIGEST,
    OID,
    Schema,
    Shape,
    about,
    document_schema,
    maybe,
    one_of,
    path_key,
)
from patchgate.report.verdict import Json
from patchgate.report.wording import SHORT_OID, count, number, safe, show_path
from patchgate.verify.analyze import Analysis, UnstableAnalysis
from patchgate.verify.verification_json import RESULT, result_document
from patchgate.verify.verification_reasons import MOST_NAME
from patchgate.verify.verification_sarif import analysis_runs
from patchgate.verify.verification_text import list_results, show_result

ANALYSIS_SCHEMA = "patchgate.analysis/2"
_MOST_RESULTS = 50
_MOST_ONCE = 5


def analysis_text(analysis: Analysis) -> str:
    """Write a block for each analysis, and the outcome in the last line."""
    lines: list[str] = []
    for run in analysis.runs.runs.values():
        if run.outcome is not AnalysisOutcome.NOT_EVALUATED:
            lines += _block(run)
    for run in analysis.not_evaluated:
        lines.append(f"not evaluated: {safe(run.reason or run.analysis).rstrip('.')}")
        lines += [f"  help: {safe(run.hint)}"] if run.hint else []
    for each in analysis.unstable:
        lines += _twice(each)
    return "".join(f"{line}\n" for line in (*lines, _closing(analysis)))


def analysis_warnings(analysis: Analysis) -> Iterator[str]:
    """Yield the warnings of the runs, each once."""
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
    listed = list_results(title, run.results, _MOST_RESULTS) or [title]
    return [*listed, *(f"  {line}" for line in _highest(run))]


def _highest(run: AnalysisRun) -> Iterator[str]:
    """Yield the highest value of each metric, with its symbol."""
    highest: dict[str, Measurement] = {}
    for each in run.measurements:
        if each.name not in highest or each.value > highest[each.name].value:
            highest[each.name] = each
    for name in sorted(highest):
        yield f"highest {_value(highest[name])}"


def _value(each: Measurement) -> str:
    symbol = f" {safe(each.symbol, MOST_NAME)}" if each.symbol else ""
    return f"{safe(each.name, MOST_NAME)}  {number(each.value)}  {show_path(each.path)}{symbol}"


def _twice(each: UnstableAnalysis) -> Iterator[str]:
    differing = f": {len(each.differences)} in only one run" if each.differences else ""
    yield f"{each.analysis}: reported something else the second time{differing}"
    for one in each.differences[:_MOST_ONCE]:
        yield f"  {show_result(one) if isinstance(one, AnalysisResult) else _value(one)}"
    if len(each.differences) > _MOST_ONCE:
        yield f"  … and {len(each.differences) - _MOST_ONCE} more"
    yield "  help: pin its version, and disable what depends on time, network or the order of files"


def _closing(analysis: Analysis) -> str:
    runs = analysis.runs.runs.values()
    found = sum(len(run.results) for run in runs)
    where = f"{safe(analysis.what, MOST_NAME)}, tree {analysis.runs.tree[:SHORT_OID]}"
    if analysis.not_evaluated:
        names = ", ".join(run.analysis for run in analysis.not_evaluated)
        return f"undecided: {names} could not be evaluated ({where})"
    if analysis.unstable:
        names = ", ".join(each.analysis for each in analysis.unstable)
        return f"undecided: {names} gave two different results for the same tree ({where})"
    stable = ", both runs equal" if analysis.again is not None else ""
    if found:
        return f"findings: {found}{stable} ({where})"
    return f"clean: no findings{stable} ({where})"


_WORDS = ("clean", "findings", "undecided")


def analysis_json(analysis: Analysis) -> str:
    """Write it as one line of ASCII JSON with a newline."""
    runs = analysis.runs
    unstable = {each.analysis for each in analysis.unstable}
    document: Json = {
        "schema": ANALYSIS_SCHEMA,
        "outcome": _analysis_outcome(analysis),
        "target": analysis.what,
        "commit": analysis.commit,
        "tree": runs.tree,
        "analyses_digest": runs.analyses,
        "digest": runs.digest,
        "is_stable": None if analysis.again is None else not unstable and not analysis.not_evaluated,
        "unstable": sorted(unstable),
        "runs": [_analysis_run(run) for run in _shown(analysis)],
    }
    return json_line(document)


def analysis_sarif(analysis: Analysis) -> str:
    """Write it as a SARIF log on one line, with one run for each analysis and tool."""
    runs = [
        written
        for run in _shown(analysis)
        for written in analysis_runs(run.analysis, run, [(each, None) for each in run.results], {})
    ]
    return log_of(runs)


def _shown(analysis: Analysis) -> list[AnalysisRun]:
    """Return the runs; if one of two runs failed, the failed one."""
    silent = {run.analysis: run for run in analysis.not_evaluated}
    return [silent.get(name, run) for name, run in analysis.runs.runs.items()]


def _analysis_outcome(analysis: Analysis) -> str:
    clean, findings, undecided = _WORDS
    if analysis.exit_code:
        return undecided
    return findings if any(run.results for run in analysis.runs.runs.values()) else clean


def _analysis_run(run: AnalysisRun) -> Json:
    return {
        "analysis": run.analysis,
        "outcome": run.outcome.value,
        "tool": run.tool,
        "key": run.key or None,
        "digest": run.digest or None,
        "reason": run.reason,
        "hint": run.hint,
        "results": [result_document(each) for each in run.results],
        "suppressed": [result_document(each) for each in run.suppressed],
        "metrics": [_measured(each) for each in run.measurements],
        "warnings": list(run.warnings),
    }


def _measured(each: Measurement) -> Json:
    return {**path_member("path", each.path), "symbol": each.symbol, "name": each.name, "value": each.value}


def analysis_schema() -> Schema:
    """Build the JSON Schema (draft 2020-12) of `analyze --format json`."""
    run: Shape = {
        "analysis": str,
        "outcome": AnalysisOutcome,
        "tool": about(str, "the file of the program"),
        "key": about(str | None, "digest of the inputs: tree, settings, program"),
        "digest": about(maybe(DIGEST), "digest of the output"),
        "reason": str | None,
        "hint": str | None,
        "results": [RESULT],
        "suppressed": [RESULT],
        "metrics": [{**path_key("path"), "symbol": str, "name": str, "value": float}],
        "warnings": [str],
    }
    analysis: dict[str, Shape] = {
        "outcome": one_of(*_WORDS),
        "target": str,
        "commit": about(maybe(OID), "HEAD, or the commit that was named"),
        "tree": OID,
        "analyses_digest": about(DIGEST, "digest of the settings and the programs"),
        "digest": about(DIGEST, "digest of the tree and all outputs"),
        "is_stable": about(bool | None, "null: nothing ran twice"),
        "unstable": [str],
        "runs": [run],
    }
    return document_schema(ANALYSIS_SCHEMA, "The analyses of one tree", analysis)
