"""Decide what a fault means for a run: try again, fail one component, pause the run, or fail it.

One component that fails is its own fault; the same fault in several components of a phase is one of their
environment (`find_systemic`). Does not read output (`fault_reading`), wait, or choose a random number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from patchgate.git.quoting import printable
from patchgate.runs.phases import Phase
from patchgate.values import dataclass

FIRST_WAIT = 2.0
LONGEST_WAIT = 60.0
"""The seconds that a retry may wait after the first try, and at most."""
_MOST_DOUBLED = 30
EARLY_COMPONENTS = 2
"""So many components that collected nothing are a pattern, if all did. Source: the success criteria of D."""
MOST_SAMPLE = 200
OF_WORKER = "its process"
"""The subject of the fault of a work whose process ended without a result."""


class FaultClass(StrEnum):
    """What a fault means.

    Transient: try again. Permanent: the run fails at once. Systemic: the run pauses, because several
    components have the same fault. Failed: the component alone has failed.
    """

    TRANSIENT = "transient"
    PERMANENT = "permanent"
    SYSTEMIC = "systemic"
    FAILED = "failed"


class FaultKind(StrEnum):
    """What went wrong."""

    TEMPORARY = "temporary"
    """Exit code 75 (EX_TEMPFAIL of sysexits.h), or a service that asks to be called later."""
    TIME_OUT = "time-out"
    CONNECTION = "connection"
    LOCKED = "locked"
    CONFIG = "config"
    MISSING_FILE = "missing-file"
    NOT_STARTED = "not-started"
    """The program of a command does not exist or cannot be run."""
    DISK_FULL = "disk-full"
    BUDGET_SPENT = "budget-spent"
    NOTHING_COLLECTED = "nothing-collected"
    IMPORT_ERROR = "import-error"
    MISSING_TOOL = "missing-tool"
    """A command was started, and did not find a program that it calls."""
    AUTHOR_FAILED = "author-failed"
    ANSWER_UNUSABLE = "answer-unusable"
    """An author's answer is no patch: prose, nothing, too much."""
    PATCH_REFUSED = "patch-refused"
    CHECK_FAILED = "check-failed"
    TESTS_FAILED = "tests-failed"


_TRANSIENT = frozenset({FaultKind.TEMPORARY, FaultKind.TIME_OUT, FaultKind.CONNECTION, FaultKind.LOCKED})
_PERMANENT = frozenset(
    {
        *(FaultKind.CONFIG, FaultKind.MISSING_FILE, FaultKind.NOT_STARTED),
        *(FaultKind.DISK_FULL, FaultKind.BUDGET_SPENT),
    }
)
_SHARED = _TRANSIENT | {
    *(FaultKind.NOTHING_COLLECTED, FaultKind.IMPORT_ERROR, FaultKind.MISSING_TOOL),
    *(FaultKind.AUTHOR_FAILED, FaultKind.PATCH_REFUSED),
}
"""What the environment may cause; a permanent fault has ended the run before it could be a pattern."""


@dataclass(frozen=True, slots=True)
class RunFault:
    """One fault of one component in one phase.

    Args:
        subject: what it is about, the same for the same cause: a module, a program, the name of a command.
        sample: one line that shows it, safe for a terminal.
    """

    component: str
    phase: Phase
    kind: FaultKind
    subject: str = ""
    sample: str = ""

    @property
    def signature(self) -> str:
        """What equal faults of different components have in common: the kind, and for most the subject."""
        if self.kind is FaultKind.NOTHING_COLLECTED or not self.subject:
            return self.kind.value
        return f"{self.kind}:{self.subject}"


@dataclass(frozen=True, slots=True)
class SystemicPattern:
    """The same fault in several components of a phase: `recommendation` says what to do about it.

    `sample_error` is the sample of the first component that has one; the components are sorted.
    """

    pattern: FaultKind
    signature: str
    affected_components: tuple[str, ...]
    sample_error: str
    recommendation: str


def classify(fault: RunFault, pattern: SystemicPattern | None = None) -> FaultClass:
    """Return what a fault means; systemic if it is part of a pattern that was found."""
    if fault.kind in _PERMANENT:
        return FaultClass.PERMANENT
    if pattern is not None and fault.signature == pattern.signature:
        return FaultClass.SYSTEMIC
    return FaultClass.TRANSIENT if fault.kind in _TRANSIENT else FaultClass.FAILED


def is_retried(fault: RunFault, tries: int, max_retries: int) -> bool:
    """Return whether the same work is tried again.

    Args:
        tries: how many tries have failed so, with this one: at least 1.
        max_retries: how many more tries there may be after the first (`[run] max_retries`).
    """
    return classify(fault) is FaultClass.TRANSIENT and tries <= max_retries


def backoff(tries: int, chance: float) -> float:
    """Return the seconds to wait before the next try: exponential with full jitter, at most 60.

    Source: “Exponential Backoff And Jitter”, AWS Architecture Blog, 2015.

    Args:
        tries: how many tries have failed, at least 1.
        chance: a random number from 0 to 1.
    """
    return chance * min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(tries - 1, _MOST_DOUBLED))


def find_systemic(faults: Collection[RunFault], *, threshold: int, completed: int) -> SystemicPattern | None:
    """Find the fault that most components of a phase share; None if too few share one.

    Where every component collected no tests, two are enough: no test has shown that tests can run at all.

    Args:
        faults: those of one phase, without those that a later try overcame.
        threshold: how many components must share a fault (`[run] systemic_threshold`).
        completed: how many components have ended this phase, with or without a fault.
    """
    groups: dict[str, dict[str, RunFault]] = {}
    for fault in sorted(faults, key=lambda each: (each.component, each.subject, each.sample)):
        if fault.kind in _SHARED and (fault.subject or fault.kind is not FaultKind.PATCH_REFUSED):
            groups.setdefault(fault.signature, {}).setdefault(fault.component, fault)
    if not groups:
        return None
    signature, group = min(groups.items(), key=lambda each: (-len(each[1]), each[0]))
    found = list(group.values())
    is_early = found[0].kind is FaultKind.NOTHING_COLLECTED and len(found) >= completed
    if len(found) < (min(threshold, EARLY_COMPONENTS) if is_early else threshold):
        return None
    return SystemicPattern(
        found[0].kind,
        signature,
        tuple(group),
        next((each.sample for each in found if each.sample), ""),
        _recommend(found, max(completed, len(found))),
    )


_DOCTOR = "run git patchgate doctor"
_RESUME = "then git patchgate run resume"
_ADVICE: Mapping[FaultKind, str] = {
    FaultKind.TEMPORARY: "ended with a temporary failure{about}: wait until the service answers, " + _RESUME,
    FaultKind.TIME_OUT: (
        "took too long{about}: find out what they wait for, or set a longer limit in [run] role_timeouts, "
        + _RESUME
    ),
    FaultKind.CONNECTION: (
        "could not connect{about}: check the network, and the proxy in [environment] env, " + _RESUME
    ),
    FaultKind.LOCKED: (
        "found a lock{about}: end the process that locks it, or remove what a killed one left, " + _RESUME
    ),
    FaultKind.NOTHING_COLLECTED: (
        "collected no tests: compare `tests` and `test_command` of these components with their files; "
        + _DOCTOR
    ),
    FaultKind.IMPORT_ERROR: (
        "cannot import {subject}: install it where commands find it ([environment] in the config), "
        "or fix the import; " + _DOCTOR
    ),
    FaultKind.MISSING_TOOL: "did not find {subject}: it is not on the PATH of hooks; " + _DOCTOR,
    FaultKind.PATCH_REFUSED: (
        "had every answer refused{about}: fix what refuses them, or the author command, reset the attempts "
        "that git patchgate status names, " + _RESUME
    ),
    FaultKind.AUTHOR_FAILED: "ended the same way{about}: fix the author command or its login, " + _RESUME,
}
_MODULE = "python -m "


def _recommend(found: Sequence[RunFault], completed: int) -> str:
    """Say in one sentence how many components share a fault, why, and what to do next."""
    kind, subjects = found[0].kind, {each.subject for each in found}
    subject = printable(subjects.pop(), MOST_SAMPLE) if len(subjects) == 1 else ""
    if kind is not FaultKind.NOTHING_COLLECTED or not subject:
        # The subject of a failed author is its message without what differs.
        shown = found[0].sample if kind is FaultKind.AUTHOR_FAILED else subject
        what = _ADVICE[kind].format(subject=shown or "something", about=f" ({shown})" if shown else "")
    elif subject.startswith(_MODULE):
        module = subject.removeprefix(_MODULE)
        what = f"collected no tests: {module} is not installed for the Python of hooks; {_DOCTOR}"
    else:
        what = f"collected no tests: {subject} is not on the PATH of hooks; {_DOCTOR}"
    return f"{len(found)} of {completed} {what}"
