"""Write the answer to a refused event, in the words of `--format agent`; require that there is a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.errors import UndecidedError
from patchgate.git.quoting import printable
from patchgate.report import agent_text, wording
from patchgate.report.verdict import Finding, Report, Verdict

_MOST = 8


def describe(findings: Sequence[Finding]) -> str:
    """Write the first findings; the others are counted."""
    lines = [line for each in findings[:_MOST] for line in agent_text.describe(each)]
    more = len(findings) - _MOST
    end = [f"… and {wording.count(more, 'more finding')}"] if more > 0 else []
    return "\n".join(["patchgate refuses this:", *lines, *end])


def kept_finding(path: str, use: str) -> Finding:
    """Say that an agent changes a file that only a maintainer may; `use` says what it is."""
    message = f"{printable(path, 200)} is {use}"
    return Finding.of("agent-settings", message, hint="leave that file as it is; a maintainer may change it")


def require_verdict(report: Report) -> None:
    """Require that every gate gave an answer.

    Raises:
        UndecidedError: one did not.
    """
    if report.verdict is Verdict.UNDECIDED:
        raise UndecidedError(
            wording.verdict_line(report).removeprefix("undecided: "), "git patchgate check --worktree"
        )
