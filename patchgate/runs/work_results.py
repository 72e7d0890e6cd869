"""Read an error, a verdict or a failing check into the result of a phase, and into words for its author."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from patchgate.apply.evidence_folders import FEEDBACK
from patchgate.errors import PatchgateError
from patchgate.git.quoting import printable
from patchgate.report import wording
from patchgate.report.verdict import ChangeVerdict, Fixer, Outcome, Report, Verdict
from patchgate.runs.brief_text import fenced
from patchgate.runs.fault_reading import fault_of_error
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult, PhaseTask
from patchgate.runs.triage import FaultKind

# Rules of `apply` that are faults of the environment, as `triage.FaultKind` names them.
_KINDS = {
    "command-timed-out": FaultKind.TIME_OUT,
    "command-not-started": FaultKind.NOT_STARTED,
    "concurrent-change": FaultKind.LOCKED,
}

_MOST_NOTE = 16 << 10
_MOST_TAIL = 40
_FEW = 4
_LIMITS = {
    "max-files": "max_files",
    "max-added-lines": "max_added_lines",
    "max-file-bytes": "max_file_bytes",
}


def result_of_error(task: PhaseTask, error: PatchgateError | OSError) -> PhaseResult:
    """Describe an exception: what it says, and which fault it, or what caused it, shows."""
    hint = None
    if isinstance(error, PatchgateError):
        said, hint = wording.safe(error.message), None if error.hint is None else wording.safe(error.hint)
    else:
        said = f"the system refused: {printable(str(error.strerror or error))}"
    read = fault_of_error(error, component=task.component, phase=task.phase)
    kind = None if read is None else read.kind
    kind = kind or _kind_said(said)
    return PhaseResult(PhaseOutcome.FAULT, f"{task.component}: {said}", hint, kind=kind, sample=said)


def _kind_said(sentence: str) -> FaultKind | None:
    """Read the fault that a sentence of ours shows: a full disk, or a lock."""
    if os.strerror(errno.ENOSPC) in sentence:
        return FaultKind.DISK_FULL
    return FaultKind.LOCKED if sentence.startswith(("the lock ", "git's lock ")) else None


def result_of_verdict(task: PhaseTask, report: Report, verdict: ChangeVerdict) -> PhaseResult:
    """Describe an answer that could not be judged or written, or that no author can correct."""
    decisive = verdict.decisive
    rule = verdict.fallback_reason or "undecided"
    gates = (*verdict.gates, *verdict.context_gates)
    undecided = next((each.reason for each in gates if each.outcome is Outcome.UNDECIDED), None)
    why = decisive.message if decisive is not None else undecided or "no verdict was possible"
    outcome = PhaseOutcome.FAULT
    if rule == "dirty-workspace" or (decisive is not None and decisive.who_can_fix is Fixer.PERSON):
        outcome = PhaseOutcome.WAITING
    elif report.verdict is Verdict.REJECTED:
        outcome = PhaseOutcome.FAILED
    details = {} if decisive is None else decisive.details
    tail = () if decisive is None else tuple(wording.safe(each) for each in decisive.notes)
    code = details.get("exit_code")
    return PhaseResult(
        PhaseOutcome.FAULT if rule in _KINDS else outcome,
        f"{task.component}: {wording.safe(why)}",
        None if decisive is None or decisive.hint is None else wording.safe(decisive.hint),
        tail=tail,
        kind=_KINDS.get(rule, _kind_said(why)),
        subject=str(details.get("command") or ""),
        exit_code=code if isinstance(code, int) else None,
        timed_out=rule == "command-timed-out",
    )


def note_of_check(check: PhaseResult) -> str:
    """Write for an author why the check of its phase fails."""
    shown = "\n".join(check.tail)[-_MOST_NOTE:]
    fails = f"The check of this phase fails: {check.reason}"
    return f"{fails}\n\n{fenced(shown.encode())}" if shown else fails


def feedback_in(folder: str | None) -> str:
    """Read what an attempt said to its sender; empty if its evidence is gone."""
    if folder is None:
        return ""
    with suppress(OSError), open(os.path.join(folder, FEEDBACK), encoding="utf-8", errors="replace") as file:
        return file.read(_MOST_NOTE)
    return ""


def tail_of_notes(failing: str, refusal: str) -> tuple[str, ...]:
    """Choose the lines that a pause shows: the check that fails first, then the last refusal."""
    check, refused = (_lines_of(each) for each in (failing, refusal))
    if not (check and refused):
        return (check or refused)[-_MOST_TAIL:]
    # So many lines of each are shown together.
    return (*check[-_FEW:], *refused[:_FEW])


def _lines_of(note: str) -> tuple[str, ...]:
    lines = (line for line in note.splitlines() if line.strip() and not line.startswith("```"))
    return tuple(wording.safe(line) for line in lines)


def limit_advice(rule: str) -> str:
    """Say what allows an answer that a limit refuses: the policy, for no approval is for a patch."""
    key = _LIMITS.get(rule)
    if key is None:
        return ""
    return (
        f"; if the answer is right, raise {key} in [policy.agent] and commit that: no approval is for a patch"
    )
