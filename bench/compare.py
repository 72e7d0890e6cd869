"""Print what a comparison of two reports costs, against the parsing of their two SARIF files.

    python -m bench.compare [--results 100000] [--rounds 15] [--write FILE]

Both reports have so many findings in some 2,000 files; they are those of one tree before and after a change
that moved all lines, mended one finding in a hundred, brought as many, and renamed ten files. Each row is
one whole `compare`, or the `decide` of a verification under an intent of a hundred patterns: after that
`compare`, or where every finding is new, somebody else's, and over a threshold. It stands against
`json.loads` of the two files; both ran in the same round.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections.abc import Callable, Mapping
from functools import partial

from bench.measurement import Measurement, run_alone
from bench.pairs import Rounds
from bench.tables import Row
from bench.worlds import World
from patchgate.commands.analysis_results import AnalysisOutcome, AnalysisResult, AnalysisRun, TreeRuns
from patchgate.git.path import RepoPath
from patchgate.intents.intent import Intent, IntentScope, Moment
from patchgate.policy.settings import ThresholdSettings
from patchgate.verify.regressions import compare
from patchgate.verify.verification_verdict import VerificationInputs, decide

_FILES = 2000
_RULES = [f"F{number}" for number in range(400, 460)]
_RENAMED = {RepoPath(b"moved/f%d.py" % number): RepoPath(b"src/p0/f%d.py" % number) for number in range(10)}
_THRESHOLDS = (
    ThresholdSettings("no-new", "findings:new", 0),
    ThresholdSettings("all", "findings", 1000),
)
_OWN = IntentScope(tuple(RepoPath(b"src/p%d/f?.py" % number) for number in range(100)))
_OTHER = IntentScope(tuple(RepoPath(b"lib/p%d/*.py" % number) for number in range(100)))


def results_of(number: int) -> list[AnalysisResult]:
    """Make the findings of the tree before."""
    chance = random.Random(1)
    found = []
    for index in range(number):
        file = index % _FILES
        path = RepoPath(b"src/p%d/f%d.py" % (file // 50, file))
        # One in ten marks occurs more than once in its file, as `import os` does.
        mark = f"{chance.randrange(number * 10) if index % 10 else file:032x}"
        rule = chance.choice(_RULES)
        text = f"`name_{index}` imported but unused; consider removing it, or use it"
        found.append(
            AnalysisResult("ruff", "ruff", rule, "error", text, (path,), chance.randrange(2000) + 1, mark)
        )
    return found


def changed(results: list[AnalysisResult]) -> list[AnalysisResult]:
    """Make the findings of the tree after."""
    names = {old: new for new, old in _RENAMED.items()}
    found = []
    for index, each in enumerate(results):
        path = names.get(each.paths[0], each.paths[0])
        mark = f"{index:031x}n" if index % 100 == 0 else each.mark
        line = (each.line or 0) + 3
        found.append(AnalysisResult("ruff", "ruff", each.rule, each.level, each.message, (path,), line, mark))
    return found


def runs_of(tree: str, results: list[AnalysisResult]) -> TreeRuns:
    """Make the report of one tree."""
    run = AnalysisRun(
        "ruff", tree, "sha256:" + tree, AnalysisOutcome.FINDINGS, "ruff", results=tuple(results)
    )
    return TreeRuns(tree, "sha256:a", {"ruff": run})


def intent_of(scope: IntentScope) -> Intent:
    """Declare a scope."""
    return Intent("i-1", "why", scope, "/w", "/w/.git", "4" * 40, "1" * 40, Moment(1.0), 3600, 300)


def sarif_of(results: list[AnalysisResult]) -> bytes:
    """Write the same findings as ruff does, without the fixes that it proposes."""
    return json.dumps(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": {"name": "ruff", "rules": [{"id": rule} for rule in _RULES]}},
                    "results": [_written(each) for each in results],
                }
            ],
        },
        indent=2,
    ).encode()


def _written(result: AnalysisResult) -> Mapping[str, object]:
    line = result.line or 1
    place = {
        "artifactLocation": {"uri": f"file:///scratch/{result.paths[0].raw.decode()}"},
        "region": {"startLine": line, "startColumn": 8, "endLine": line, "endColumn": 18},
    }
    return {
        "ruleId": result.rule,
        "level": result.level,
        "message": {"text": result.message},
        "locations": [{"physicalLocation": place}],
    }


def seconds(work: Callable[[], object]) -> float:
    """Run the work once."""
    gc.collect()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--results", type=int, default=100_000)


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the reports, and name what is timed, all of it in this process."""
    old = results_of(options.results)
    new = changed(old)
    files = [sarif_of(old), sarif_of(new)]
    before, after = runs_of("1" * 40, old), runs_of("2" * 40, new)

    nothing = runs_of("3" * 40, [])
    all_new = compare(nothing, after, _THRESHOLDS, {})
    assert len(all_new.new) == options.results

    def compared() -> None:
        comparison = compare(before, after, _THRESHOLDS, _RENAMED)
        decide(VerificationInputs(before, after, comparison, intent=intent_of(_OWN)))

    def decided() -> None:
        answer = decide(VerificationInputs(nothing, after, all_new, intent=intent_of(_OTHER)))
        assert len(answer.external_thresholds) == len(_THRESHOLDS)

    reference = "json.loads of both"
    work: dict[str, Callable[[], object]] = {
        "compare and decide": compared,
        "decide, all new and external": decided,
        "compare, nothing renamed": lambda: compare(before, after, _THRESHOLDS, {}),
        "compare with itself": lambda: compare(before, before, _THRESHOLDS, {}),
        reference: lambda: [json.loads(each) for each in files],
    }
    size = sum(map(len, files)) / 1e6
    against = f"`{reference}`, {size:.0f} MB"

    def rows(measured: Rounds) -> list[Row]:
        return [
            Row(
                f"`{name}`, twice {options.results:,} findings",
                against,
                2.0,
                measured.ratios(name, reference),
            )
            for name in work
            if name != reference
        ]

    return Measurement({name: partial(seconds, each) for name, each in work.items()}, rows)


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 15)


if __name__ == "__main__":
    main()
