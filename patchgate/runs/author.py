"""Ask an author (a command of the policy) for one patch: its brief on stdin, its answer on stdout.

It works in a scratch tree of its own with the content of the index and a repository, so whatever it writes
there is lost. Does not judge the answer: it is a patch when `apply` says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from patchgate.commands.environment import shared_environment
from patchgate.commands.programs import command_environment, locate_program
from patchgate.commands.runner import (
    describe_missing,
    describe_start_fault,
    new_file,
    signal_name,
    tail_lines,
)
from patchgate.components.policy_tree import CapturableTree, resolve_components, tree_to_capture
from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import neutral, printable
from patchgate.git.repository import Repository
from patchgate.git.scratch import separate_tree
from patchgate.ledger.masking import Masks
from patchgate.policy import command
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.component import Component, Role
from patchgate.policy.policy import Policy
from patchgate.process.command import ProcessResult, run_command
from patchgate.report.wording import count
from patchgate.runs.brief_text import RULES_TEXT, blocks_of_tests, contract_blocks, limit_lines
from patchgate.runs.cost import VARIABLE, Usage, UsageReportError, read_usage
from patchgate.runs.fault_reading import TEMPORARY_EXIT, fault_of_output
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult, PhaseTask, WorkEnvironment
from patchgate.runs.phases import Phase
from patchgate.runs.run_questions import RunQuestions, brief_lines
from patchgate.runs.triage import FaultKind
from patchgate.storage.temporary_folder import TemporaryFolder
from patchgate.values import dataclass, field, replace

MOST_ANSWER = 8 << 20
"""The most bytes of an answer; the largest patch that an agent may send has far fewer."""
_MOST_CONTRACT = 256 << 10
_MOST_TESTS = 128 << 10
_USAGE = "usage.json"
_OF_ENVIRONMENT = frozenset(
    {
        *(FaultKind.TEMPORARY, FaultKind.TIME_OUT, FaultKind.CONNECTION, FaultKind.LOCKED),
        *(FaultKind.DISK_FULL, FaultKind.NOT_STARTED, FaultKind.MISSING_TOOL),
    }
)

ROLES: Mapping[Phase, tuple[Role, ...]] = {
    Phase.CONTRACT: (Role.CONTRACT,),
    Phase.TESTS: (Role.TESTS,),
    Phase.IMPLEMENTATION: (Role.IMPLEMENTATION,),
}
"""What a phase may change; the phases that are not here may change all roles."""

_TASKS: Mapping[Phase, str] = {
    Phase.INTERVIEW: "Find out what the component must do, and write that down in its files.",
    Phase.SHAPING: "Shape the component: what belongs to it, and what it needs of others.",
    Phase.CONTRACT: "Write the contract of the component, so that it is valid.",
    Phase.TESTS: "Write the tests of the contract, so that they are collected.",
    Phase.IMPLEMENTATION: "Write the implementation, so that all tests of the component pass.",
    Phase.INTEGRATION: "Make the tests of the component pass again, now that all below it are done.",
}
_HOW = (
    "Write one unified diff to standard output, as `git diff` writes it (from its first `diff --git` line "
    "on), and nothing else: no prose, no code fence, no whole file. Exit with 0. Exit code 75 means: try "
    "again later. The working directory is a copy of the index with a repository; nothing else that you "
    "change there is kept."
)


def author_of(policy: Policy, phase: Phase) -> tuple[str, CommandSettings] | None:
    """Return the author of a phase with its name; None if the policy has none."""
    return command.author_of(policy.config.commands, phase.value)


def may_change(component: Component, phase: Phase, path: RepoPath) -> bool:
    """Return whether an author of a phase may change a path: a file of the component with a role of it."""
    return component.role(path) in roles_of(phase)


def roles_of(phase: Phase) -> tuple[Role, ...]:
    """Return the roles of files that a phase may change."""
    return ROLES.get(phase, tuple(Role))


def patterns_of(component: Component, phase: Phase) -> tuple[str, ...]:
    """Return the contract path and the patterns of the files that a phase may change, as in the policy."""
    roles = roles_of(phase)
    contract = (component.settings.contract,) if Role.CONTRACT in roles else ()
    return (*contract, *(glob for role, glob in component.globs if role in roles))


@dataclass(frozen=True, slots=True)
class AuthorCall:
    """One call of an author.

    Args:
        name: the author's in the policy.
        failing: what the check of the phase says; Markdown.
        refusal: why its last answer was refused; Markdown.
        number: of this call, from 1; those before a kill or a pause count.
        answers: to the questions of the policy.
        spent: gets what a call has cost, None where it is not known, as soon as it has ended or is stopped.
        most_answer: the most bytes of its answer.
    """

    name: str
    settings: CommandSettings
    task: PhaseTask
    failing: str
    refusal: str
    number: int
    answers: RunQuestions = field(default_factory=RunQuestions)
    spent: Callable[[Usage | None], None] = lambda usage: None
    most_answer: int = MOST_ANSWER


@dataclass(frozen=True, slots=True)
class AuthorAnswer:
    """What an author answered.

    `patch` is None if there is none to judge. `refusal` is why its answer cannot be a patch, a sentence for
    the author. `ending` is the result of the phase if there is no answer: the author failed, or could not be
    run. `usage` is what it reported of its cost, `usage_fault` why that report cannot be used.
    """

    patch: bytes | None = None
    refusal: str | None = None
    ending: PhaseResult | None = None
    usage: Usage | None = None
    usage_fault: str | None = None


def ask_author(repository: Repository, call: AuthorCall, environment: WorkEnvironment) -> AuthorAnswer:
    """Run an author on the content of the index, and return its answer.

    Raises:
        UsageError: the index does not declare the component.
        UndecidedError: the scratch tree, the log or the brief cannot be made.
    """
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        content = tree_to_capture(repository, objects, store, from_disk=False)
        (component,) = resolve_components(content.policy.components, [call.task.component], "the index")
        brief = write_brief(call, content, component)
        making = separate_tree(
            repository, store, content.tree, cache=environment.cache, commit=content.commit
        )
        with making as scratch, TemporaryFolder() as beside:
            log = _log_path(repository, call.task)
            shared = shared_environment(
                environment.environ, content.policy.config.environment, repository.work_tree
            )
            around = replace(environment, environ=shared)
            return _AuthorRun(call, scratch.path, beside.path, log, around).answer(brief)


def _log_path(repository: Repository, task: PhaseTask) -> str:
    """Return the path of a new log; its folder is made."""
    folder = os.path.join(repository.common_dir, "patchgate", "runs", task.run, "logs")
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        taken = set(os.listdir(folder))
    except OSError as error:
        raise UndecidedError(
            f"the folder for logs {printable(folder)} cannot be made: {error.strerror}",
            "free disk space, or fix its permissions",
        ) from error
    number, stem = 1, f"{task.component}.{task.phase.value}"
    while f"{stem}.{number}.log" in taken:
        number += 1
    return os.path.join(folder, f"{stem}.{number}.log")


@dataclass(frozen=True, slots=True)
class _AuthorRun:
    """One author while it runs, in the scratch tree `place`; `beside` is a folder for its answer."""

    call: AuthorCall
    place: str
    beside: str
    log: str
    environment: WorkEnvironment
    masks: Masks = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "masks", Masks([self.environment.environ, self.call.settings.env]))

    def answer(self, brief: bytes) -> AuthorAnswer:
        settings, task = self.call.settings, self.call.task
        environment = command_environment(self.environment.environ, settings.env, self.place)
        environment[VARIABLE] = os.path.join(self.beside, _USAGE)
        file, missing = locate_program(settings, environment)
        if missing:
            return self._not_started(*describe_missing(missing), missing, FaultKind.MISSING_TOOL)
        place = os.path.join(self.beside, "answer")
        called = f"{self.call.name} on {task.component} ({task.phase.value})"
        with (
            new_file(self.log, "the log ", "resume the run") as log,
            new_file(place, "the file ", "resume the run") as output,
        ):
            try:
                ended = run_command(
                    settings.command,
                    cwd=self.place,
                    env=environment,
                    seconds=self._limit,
                    executable=file,
                    log=log,
                    output=output,
                    max_output=self.call.most_answer,
                    mask=self.masks.stream(),
                    clean=neutral,
                    tick=lambda seconds: self._tick(called, seconds),
                    stdin=brief,
                    stall=task.stall,
                )
            except BaseException:
                # What stopped the call says more than a report or a ledger that cannot be used.
                with suppress(PatchgateError):
                    self.call.spent(read_usage(environment[VARIABLE]))
                raise
        if ended.fault is not None:
            program = printable(settings.command[0], 120)
            said = describe_start_fault(ended, program, "resume the run")
            return self._not_started(*said, (program,), FaultKind.NOT_STARTED)
        # Also of a call that failed: it has cost something.
        usage, fault = None, None
        try:
            usage = read_usage(environment[VARIABLE])
        except UsageReportError as error:
            fault = error.message
        self.call.spent(usage)
        return replace(self._read(ended, place), usage=usage, usage_fault=fault)

    def _tick(self, called: str, seconds: float) -> None:
        self.environment.report(called, seconds)
        self.environment.require_wanted()

    def _read(self, ended: ProcessResult, place: str) -> AuthorAnswer:
        if ended.has_flooded:
            most = count(self.call.most_answer, "byte")
            return AuthorAnswer(
                refusal=f"the answer was more than {most}; answer with one patch of this phase"
            )
        if ended.output_fault is not None:
            reason = f"the answer of {self.call.name} could not be stored: {printable(ended.output_fault)}"
            return self._ended(ended, reason, "free disk space", FaultKind.DISK_FULL)
        if ended.timed_out:
            limit = self.call.task.stall if ended.has_stalled else self._limit
            why = f"wrote nothing for {limit:g} s" if ended.has_stalled else f"took longer than {limit:g} s"
            reason = f"{self.call.name} {why}, and was stopped"
            hint = "a longer limit: role_timeouts in [run], or timeout of the author"
            return self._ended(ended, reason, hint, FaultKind.TIME_OUT)
        if ended.code == TEMPORARY_EXIT:
            reason = f"{self.call.name} asks to be called later (exit code {TEMPORARY_EXIT})"
            return self._ended(ended, reason, None, FaultKind.TEMPORARY)
        if ended.code != 0:
            code = ended.code or 0
            said = f"ended with exit code {code}" if code > 0 else f"was killed by {signal_name(-code)}"
            hint = f"read its errors in {printable(self.log)}"
            return self._ended(ended, f"{self.call.name} {said}", hint, None)
        with open(place, "rb") as file:
            patch = file.read()
        if not patch.strip():
            return AuthorAnswer(patch, refusal="the answer was empty; answer with one unified diff")
        return AuthorAnswer(patch)

    @property
    def _limit(self) -> float:
        asked = self.call.task.author_seconds
        return self.call.settings.timeout if asked is None else asked

    def _ended(
        self, ended: ProcessResult, reason: str, hint: str | None, kind: FaultKind | None
    ) -> AuthorAnswer:
        """Describe the end of an author without an answer; without a kind, its errors show it."""
        task = self.call.task
        read = fault_of_output(
            ended.tail,
            component=task.component,
            phase=task.phase,
            exit_code=ended.code,
            plain=FaultKind.AUTHOR_FAILED,
        )
        ending = PhaseResult(
            PhaseOutcome.FAULT if (kind or read.kind) in _OF_ENVIRONMENT else PhaseOutcome.FAILED,
            f"{task.component}: {reason}",
            hint,
            tail=tail_lines(ended.tail, ended.has_more_than_tail, self.masks.stream()),
            kind=kind or read.kind,
            subject=read.subject if kind is None else self.call.name,
            sample=read.sample,
            exit_code=ended.code,
            timed_out=ended.timed_out,
        )
        return AuthorAnswer(ending=ending)

    def _not_started(
        self, reason: str, hint: str | None, missing: Sequence[str], kind: FaultKind
    ) -> AuthorAnswer:
        ending = PhaseResult(
            PhaseOutcome.FAULT,
            f"{self.call.task.component}: {self.call.name} was not started: {reason}",
            hint,
            kind=kind,
            subject=", ".join(missing),
            missing=tuple(missing),
        )
        return AuthorAnswer(ending=ending)


def write_brief(call: AuthorCall, content: CapturableTree, component: Component) -> bytes:
    """Write what an author needs to know, as Markdown."""
    task = call.task
    head = [
        f"# {task.phase.value} of {task.component}",
        "\n".join(
            [
                f"- run: {task.run}",
                f"- component: {task.component}",
                f"- phase: {task.phase.value}",
                f"- role: {call.settings.role}",
                f"- call: {call.number}",
            ]
        ),
        _TASKS[task.phase],
    ]
    limits = ["## Limits", "\n".join(f"- {line}" for line in limit_lines(content.policy))]
    parts = [RULES_TEXT, *head, *_scope(component, task.phase), *limits]
    if answers := brief_lines(call.answers):
        parts += ["## Answers", "\n".join(answers)]
    if call.failing:
        parts += ["## What is still to do", call.failing.strip()]
    if call.refusal:
        parts += ["## Your last answer was refused", call.refusal.strip()]
    parts += contract_blocks(content.view, component, _MOST_CONTRACT)
    parts += blocks_of_tests(content.view, component, _MOST_TESTS)
    parts += ["## How to answer", _HOW]
    return ("\n\n".join(parts) + "\n").encode("utf-8", "surrogateescape")


def _scope(component: Component, phase: Phase) -> list[str]:
    lines = [f"- `{printable(each)}`" for each in patterns_of(component, phase)]
    return ["## What you may change", "\n".join(lines), "A patch that changes any other file is refused."]
