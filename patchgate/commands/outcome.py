"""How a command ended, and what is said of it.

Decides which outcomes speak against a patch (`lint-failed`, `build-failed`), which leave it undecided
(`command-not-started`, `command-timed-out`), and how the end of a command's output becomes lines that are
safe to show. It decides no verdict.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from patchgate.git.quoting import printable, without_escapes
from patchgate.policy.settings import CommandKind
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, Fixer, Json

_MAX_LINES = 40
_MAX_LINE = 400
_NOTED = 40
_MAX_SHOWN = 300


class Status(StrEnum):
    """How a command ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_STARTED = "not-started"
    TIMED_OUT = "timed-out"
    NOTHING_TO_DO = "nothing-to-do"


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """How one command ended.

    `exit_code` is negative for a signal, None where there is none. `reason` says in one sentence why it was
    not started, was ended, or had nothing to do; `hint` the next step. `tail` are the last lines of its
    output, `shown` is its argument list, both safe for a terminal. `log` is the name of its log's file, None
    where nothing was started; `dropped` counts the bytes of output that are not in it. `warnings` tell what
    else went wrong around it.
    """

    name: str
    kind: CommandKind
    status: Status
    exit_code: int | None = None
    reason: str | None = None
    hint: str | None = None
    tail: tuple[str, ...] = ()
    seconds: float = 0.0
    log: str | None = None
    dropped: int = 0
    shown: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def has_passed(self) -> bool:
        """Tell whether nothing stands in the way of what comes next."""
        return self.status in {Status.PASSED, Status.NOTHING_TO_DO}


def tail_lines(tail: bytes, is_cut: bool, mask: Callable[[bytes], bytes] | None = None) -> tuple[str, ...]:
    """Make the end of a command's output safe to show: at most 40 lines, without colours.

    A line that was written over (CR) is what a terminal would show at last. Where the beginning was cut, the
    first line is left out if there is another. It is masked here once more, for escapes may have stood
    between the letters of a secret.
    """
    plain = without_escapes(tail)
    lines = (mask(plain) if mask else plain).rstrip(b"\r\n\t ").split(b"\n")
    if is_cut and len(lines) > 1:
        del lines[0]
    shown = [printable(line.rstrip(b"\r").rpartition(b"\r")[2], _MAX_LINE) for line in lines[-_MAX_LINES:]]
    return tuple(shown) if any(shown) else ()


def show_command(argv: Sequence[bytes | str], mask: Callable[[bytes], bytes] | None = None) -> str:
    """Write an argument list as a person would type it, on one line, cut where it is long.

    Each word is masked as it is, for afterwards it is quoted, and may be cut in the middle of a secret.
    """
    import shlex

    words = (word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape") for word in argv)
    texts = ((mask(word) if mask else word).decode("utf-8", "surrogateescape") for word in words)
    shown = " ".join(map(shlex.quote, texts))
    if mask is not None:
        # The name of an option is one word, its value the next.
        shown = mask(shown.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
    return printable(shown, _MAX_SHOWN)


def finding_of(outcome: CommandOutcome) -> Finding | None:
    """Say what there is to say of a command that did not pass; None for one that did."""
    if outcome.has_passed:
        return None
    rule = {Status.NOT_STARTED: "command-not-started", Status.TIMED_OUT: "command-timed-out"}.get(
        outcome.status, "lint-failed" if outcome.kind == "lint" else "build-failed"
    )
    fixer = {Status.NOT_STARTED: Fixer.ENVIRONMENT, Status.TIMED_OUT: Fixer.PERSON}.get(
        outcome.status, Fixer.AGENT
    )
    details: dict[str, Json] = {
        "command": outcome.name,
        "argv": outcome.shown,
        "exit_code": outcome.exit_code,
        "tail": list(outcome.tail),
        "seconds": round(outcome.seconds, 1),
        "log": outcome.log,
    }
    return Finding(
        rule,
        Level.ERROR,
        f"command `{outcome.name}` {_how(outcome)}",
        hint=outcome.hint or _hint(rule, outcome),
        who_can_fix=fixer,
        details=details,
        notes=outcome.tail[-_NOTED:],
    )


def _hint(rule: str, outcome: CommandOutcome) -> str | None:
    if rule not in {"lint-failed", "build-failed"}:
        return None
    whole = f" (all of its output: logs/{outcome.log} of the evidence)" if outcome.log else ""
    return f"mend what the command names{whole}, then send the whole patch again"


def _how(outcome: CommandOutcome) -> str:
    if outcome.reason is not None:
        return outcome.reason
    code = outcome.exit_code or 0
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
