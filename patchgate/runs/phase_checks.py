"""The check of each phase, on the tree of the index: what must be so before a component has passed it.

A contract must be valid, tests must be collected, an implementation must be captured, and a parent once more
after all components below it. Interview and shaping have no check.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.commands.environment import shared_environment
from patchgate.commands.runner import runs_pytest
from patchgate.components.baseline_file import write_baseline
from patchgate.components.capture import capture, is_written
from patchgate.components.capture_run import (
    CAPTURE_AGAIN,
    CapturedComponent,
    CaptureEnvironment,
    CaptureRequest,
    CaptureResult,
    Ending,
    TestRun,
    collect_tests,
)
from patchgate.components.drift_gathering import files_of, record
from patchgate.components.policy_tree import CapturableTree, resolve_components, tree_to_capture
from patchgate.components.python_tests import read_tests
from patchgate.components.validate import validate
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.policy.component import Component, Role
from patchgate.report import wording
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import Finding, Outcome
from patchgate.runs.fault_reading import fault_of_output
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult, PhaseTask, WorkEnvironment
from patchgate.runs.phases import Phase
from patchgate.runs.triage import FaultKind
from patchgate.storage.temporary_folder import TemporaryFolder
from patchgate.values import replace

_SHOWN = 10
_NAMED = 5
_GATE = "contracts"


def check_phase(repository: Repository, task: PhaseTask, environment: WorkEnvironment) -> PhaseResult | None:
    """Check whether a component has passed a phase; None if the phase has no check.

    Raises:
        UsageError: the index does not declare the component.
        ConfigError: the policy of the index cannot be used.
        UndecidedError: something cannot be read, or a scratch tree cannot be made.
    """
    if task.phase is Phase.CONTRACT:
        return _check_contract(repository, task)
    if task.phase is Phase.TESTS:
        return _check_tests(repository, task, environment)
    if task.phase is Phase.IMPLEMENTATION:
        return _capture(repository, task, environment)
    if task.phase is Phase.INTEGRATION:
        return _check_integration(repository, task, environment)
    return None


def _check_contract(repository: Repository, task: PhaseTask) -> PhaseResult:
    """Validate the contract; drift is left to the phases that follow."""
    validated = validate(repository, [task.component])
    (change,) = validated.report.changes
    errors = [
        each
        for each in change.findings
        if each.level is Level.ERROR and each.definition.stage is Stage.CONTRACTS
    ]
    if errors:
        number = wording.count(len(errors), "error")
        return PhaseResult(
            PhaseOutcome.FAILED,
            f"{task.component}: its contract has {number}: {wording.safe(errors[0].message)}",
            f"git patchgate component validate {task.component}",
            tail=_lines(errors),
            kind=FaultKind.CHECK_FAILED,
        )
    undecided = [each for each in change.gates if each.gate == _GATE and each.outcome is Outcome.UNDECIDED]
    if undecided:
        why = wording.safe(undecided[0].reason or "the gate gave no answer")
        return PhaseResult(PhaseOutcome.FAULT, f"{task.component}: its contract could not be checked: {why}")
    if not validated.contracts:
        return _failed(task, "its contract does not exist", "write it, and git add it")
    return PhaseResult(PhaseOutcome.PASSED, f"{task.component}: its contract is valid")


def _lines(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Write findings for an author: the rule, the place, the message and the next step."""
    lines: list[str] = []
    for each in findings[:_SHOWN]:
        place = wording.show_place(each)
        lines.append(f"error[{each.rule}]{f' at {place}' if place else ''}: {wording.safe(each.message)}")
        lines += [f"help: {wording.safe(each.hint)}"] if each.hint else []
    if len(findings) > _SHOWN:
        lines.append(f"and {wording.count(len(findings) - _SHOWN, 'more error')}")
    return tuple(lines)


def _check_tests(repository: Repository, task: PhaseTask, environment: WorkEnvironment) -> PhaseResult:
    """Collect the tests, or only read them while there is no implementation that they could import."""
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        content = tree_to_capture(repository, objects, store, from_disk=False)
        (component,) = resolve_components(content.policy.components, [task.component], "the index")
        files = files_of(component, content.view)
        tests = [path for path, (role, entry) in files.items() if role is Role.TESTS and entry.is_file]
        if not tests:
            hint = "add its tests, or fix its `tests` in the policy"
            return _failed(task, "it has no test files", hint, kind=FaultKind.NOTHING_COLLECTED)
        if not runs_pytest(component.settings.test_command):
            return PhaseResult(PhaseOutcome.PASSED, f"{task.component}: {_there_are(len(tests))}")
        if not any(role is Role.IMPLEMENTATION for role, _ in files.values()):
            return _read_statically(task, content, tests)
        run = _collect(repository, content, component, tests, task, environment)
    return _of_run(task, run)


def _there_are(number: int) -> str:
    return f"there {'is' if number == 1 else 'are'} {wording.count(number, 'test file')}"


def _read_statically(task: PhaseTask, content: CapturableTree, tests: Sequence[RepoPath]) -> PhaseResult:
    """Count the test functions in the text: without an implementation, an import of it would fail."""
    number = 0
    for path in tests:
        entry = content.view.entry(path.raw)
        if entry is not None and path.name.endswith(b".py"):
            number += len(read_tests(content.view.objects.read(entry.oid)).functions)
    if not number:
        hint = "write a function `test_…`; a file that is not valid Python has none"
        return _failed(task, "its test files have no test functions", hint, kind=FaultKind.NOTHING_COLLECTED)
    found = wording.count(number, "test function")
    reason = f"{task.component}: {found}, not collected, because there is no implementation yet"
    return PhaseResult(PhaseOutcome.PASSED, reason)


def _collect(
    repository: Repository,
    content: CapturableTree,
    component: Component,
    tests: Sequence[RepoPath],
    task: PhaseTask,
    environment: WorkEnvironment,
) -> TestRun:
    from patchgate.git.scratch import whole_tree

    making = whole_tree(
        repository,
        content.store,
        content.tree,
        cache=environment.cache,
        commit=content.commit,
        patience_seconds=task.seconds,
    )
    with TemporaryFolder() as beside, making as scratch:
        return collect_tests(
            component,
            tests,
            content.policy.config.baselines.source_roots,
            place=scratch.path,
            beside=beside.path,
            environ=shared_environment(
                environment.environ, content.policy.config.environment, repository.work_tree
            ),
            tick=lambda seconds: environment.report(f"collecting the tests of {component.id}", seconds),
            seconds=task.seconds,
        )


def _capture(repository: Repository, task: PhaseTask, environment: WorkEnvironment) -> PhaseResult:
    around = CaptureEnvironment(
        environment.environ,
        environment.cache,
        environment.clock(),
        environment.report,
        seconds=task.seconds,
    )
    (done,) = capture(repository, CaptureRequest((task.component,)), around).components
    if done.run is None:
        return _failed(task, done.reason, done.hint, tail=done.mistakes)
    return _of_run(task, done.run, done)


def _check_integration(repository: Repository, task: PhaseTask, environment: WorkEnvironment) -> PhaseResult:
    """Require that all components below are recorded as they are now, then capture the parent."""
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        content = tree_to_capture(repository, objects, store, from_disk=False)
        components = content.policy.components
        resolve_components(components, [task.component], "the index")
        below = [components[name] for name in components.ids if task.component in components.ancestors(name)]
        owing = [each.id for each in below if not _is_recorded(repository, content, each)]
    if not below:
        return PhaseResult(PhaseOutcome.PASSED, f"{task.component}: no component is below it")
    if owing:
        named = ", ".join(owing[:_NAMED]) + (f", and {len(owing) - _NAMED} more" if owing[_NAMED:] else "")
        reason = f"{named} {'is' if len(owing) == 1 else 'are'} below it, and not recorded as they are now"
        return _failed(task, reason, f"git patchgate baseline capture {' '.join(owing[:_NAMED])}")
    return _capture(repository, task, environment)


def _is_recorded(repository: Repository, content: CapturableTree, component: Component) -> bool:
    """Whether the baseline in the working tree is what a capture of the index would write."""
    files = files_of(component, content.view)
    raw = write_baseline(component.id, record(files, content.view.objects))
    return is_written(repository.work_tree or "", component.baseline, raw)


def _of_run(task: PhaseTask, run: TestRun, done: CapturedComponent | None = None) -> PhaseResult:
    """Describe a run of tests, and what was captured of it."""
    is_done = run.ending is Ending.PASSED
    if done is not None:
        is_done = done.result in {CaptureResult.RECORDED, CaptureResult.UNCHANGED}
    result = PhaseResult(
        PhaseOutcome.PASSED,
        f"{task.component}: {run.reason}",
        tail=run.tail,
        counts=None if run.counts is None else run.counts.named(),
        exit_code=run.exit_code,
        timed_out=run.timed_out,
        missing=run.missing,
    )
    if is_done:
        return result
    # A run that goes on captures it without being told.
    hint = None if run.hint is None else run.hint.removesuffix(CAPTURE_AGAIN)
    result = replace(result, outcome=PhaseOutcome.FAILED, hint=hint)
    if run.ending is Ending.NOT_RUN:
        subject = ", ".join(run.missing)
        return replace(result, outcome=PhaseOutcome.FAULT, kind=_why_not_run(run), subject=subject)
    if run.ending is Ending.EMPTY:
        return replace(result, kind=FaultKind.NOTHING_COLLECTED)
    read = fault_of_output(
        "\n".join(run.tail).encode("utf-8", "surrogateescape"),
        component=task.component,
        phase=task.phase,
        exit_code=run.exit_code,
        plain=FaultKind.TESTS_FAILED,
    )
    return replace(result, kind=read.kind, subject=read.subject, sample=read.sample)


def _why_not_run(run: TestRun) -> FaultKind:
    """Tell what is wrong here from what is wrong with the component: what is not found ends no other work."""
    if run.timed_out:
        return FaultKind.TIME_OUT
    if run.missing:
        return FaultKind.NOTHING_COLLECTED
    return FaultKind.NOT_STARTED if run.exit_code is None else FaultKind.MISSING_TOOL


def _failed(
    task: PhaseTask,
    reason: str,
    hint: str | None,
    *,
    kind: FaultKind = FaultKind.CHECK_FAILED,
    tail: tuple[str, ...] = (),
) -> PhaseResult:
    return PhaseResult(PhaseOutcome.FAILED, f"{task.component}: {reason}", hint, tail=tail, kind=kind)
