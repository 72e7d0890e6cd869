"""Write findings for a model: rule, message, place and next step of each, bounded in length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchgate.errors import UndecidedError
from patchgate.report import wording
from patchgate.report.text import describe_finding
from patchgate.report.verdict import Finding, Report, Verdict

_MOST = 8


def describe(findings: Sequence[Finding]) -> str:
    """Write the refusals, without lines of the files: the model has them."""
    blocks = [describe_finding(replace(each, excerpt=None)) for each in findings[:_MOST]]
    more = len(findings) - _MOST
    if more > 0:
        blocks.append(f"… and {wording.count(more, 'more finding')}")
    return "\n".join(["patchgate refuses this:", *blocks])


def require_verdict(report: Report) -> None:
    """Require that every gate gave an answer.

    Raises:
        UndecidedError: one did not.
    """
    if report.verdict is Verdict.UNDECIDED:
        raise UndecidedError(
            wording.verdict_line(report).removeprefix("undecided: "), "git patchgate check --worktree"
        )
