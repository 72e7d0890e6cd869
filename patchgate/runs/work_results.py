"""Read an error, or the verdict on an answer that did not land, into the result of a phase."""

from __future__ import annotations

import errno
import os

from patchgate.errors import PatchgateError
from patchgate.git.quoting import printable
from patchgate.report import wording
from patchgate.report.verdict import ChangeVerdict, Fixer, Outcome, Report, Verdict
from patchgate.runs.fault_reading import fault_of_error
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult, PhaseTask
from patchgate.runs.triage import FaultKind

# Rules of `apply` that are faults of the environment, as `triage.FaultKind` names them.
_KINDS = {
    "command-timed-out": FaultKind.TIME_OUT,
    "command-not-started": FaultKind.NOT_STARTED,
    "concurrent-change": FaultKind.LOCKED,
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
