"""How a command answered about a change, and the findings that this makes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.policy.command_settings import CommandSettings
from patchgate.report.rules import Level
from patchgate.report.verdict import Detail, Finding, Fixer, GateOutcome, Outcome
from patchgate.report.wording import count
from patchgate.values import dataclass

MOST_LINES = 60
_MOST_PATHS = 20


class Answer(StrEnum):
    """What a command said of a change."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The answer of one command.

    `rule` names why it did not pass; `reason` is a predicate of the command and `hint` the next step. `lines`
    are the tool's own, safe for a terminal and with paths as in the repository; `more` counts those that are
    only in `log`, a file. `changed` are the files that it would change. `old` counts the findings that were
    there before, `is_remembered` is whether it did not run because the answer was known.
    """

    name: str
    settings: CommandSettings
    answer: Answer
    rule: str = ""
    reason: str = ""
    hint: str | None = None
    lines: tuple[str, ...] = ()
    more: int = 0
    log: str | None = None
    shown: str = ""
    changed: tuple[RepoPath, ...] = ()
    path: RepoPath | None = None
    line: int | None = None
    old: int = 0
    seconds: float = 0.0
    files: int = 0
    is_remembered: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def lets_pass(self) -> bool:
        """Whether tests may run after it: it passed, or may be missing."""
        return self.answer is Answer.PASSED or (self.answer is Answer.UNKNOWN and self.settings.optional)

    @property
    def gate(self) -> str:
        """The gate that it belongs to, as in `apply`."""
        return "test" if self.settings.kind == "test" else "lint"


_FIXERS = {
    "lint-failed": Fixer.AGENT,
    "build-failed": Fixer.AGENT,
    "command-changed-files": Fixer.PERSON,
    "command-not-trusted": Fixer.PERSON,
}


def finding_of(answer: CommandAnswer) -> Finding | None:
    """Return the finding for a command that did not pass; None if it passed, or was not run."""
    if answer.answer in {Answer.PASSED, Answer.NOT_RUN}:
        return None
    is_allowed = answer.answer is Answer.UNKNOWN and answer.settings.optional
    notes = answer.lines
    if answer.more:
        notes = (*notes, f"… {count(answer.more, 'more line')}: {printable(answer.log or '', 300)}")
    details: dict[str, Detail] = {
        "command": answer.name,
        "argv": answer.shown,
        "tail": list(answer.lines),
        "seconds": round(answer.seconds, 1),
        "log": answer.log,
    }
    if answer.changed:
        details["actual"] = answer.changed[:_MOST_PATHS]
    return Finding(
        answer.rule,
        Level.WARNING if is_allowed else Level.ERROR,
        f"command `{answer.name}` {answer.reason}",
        path=answer.path,
        line=answer.line,
        hint=answer.hint,
        who_can_fix=_FIXERS.get(answer.rule, Fixer.ENVIRONMENT),
        details=details,
        notes=notes,
    )


def gates_of(answers: Sequence[CommandAnswer]) -> tuple[GateOutcome, ...]:
    """Combine the answers into the gates `lint` and `test`; a gate without a command is left out."""
    gates = []
    for gate in ("lint", "test"):
        own = [each for each in answers if each.gate == gate]
        if own:
            gates.append(GateOutcome(gate, _outcome(own), _reason(own)))
    return tuple(gates)


def _outcome(answers: Sequence[CommandAnswer]) -> Outcome:
    found = {each.answer for each in answers if not each.lets_pass}
    if Answer.FAILED in found:
        return Outcome.FAIL
    if Answer.UNKNOWN in found:
        return Outcome.UNDECIDED
    return Outcome.NOT_RUN if found else Outcome.PASS


def _reason(answers: Sequence[CommandAnswer]) -> str | None:
    if _outcome(answers) is not Outcome.UNDECIDED:
        return None
    return next(f"command `{each.name}` {each.reason}" for each in answers if each.answer is Answer.UNKNOWN)
