"""Begin a run, or go on with one: which components and phases, in which order, with what around them."""

from __future__ import annotations

import os
import secrets
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from patchgate.commands.environment import validate_environment
from patchgate.components.component_list import build_graph
from patchgate.components.policy_tree import (
    index_tree,
    no_components_message,
    resolve_components,
)
from patchgate.errors import UsageError
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.policy.policy import Policy
from patchgate.policy.run_settings import RunSettings
from patchgate.report.json import plain_json
from patchgate.runs.author import author_of
from patchgate.runs.components_on_disk import on_disk, warn_of_unstaged
from patchgate.runs.phase_intent import clear_intents_of
from patchgate.runs.phase_task import PhaseResult, PhaseTask
from patchgate.runs.phases import PHASES, Phase, Schedule, Scheduling, Work
from patchgate.runs.resume import ResumeStrategy, plan_resume
from patchgate.runs.retrospective import lessons_of_last_runs
from patchgate.runs.run_loop import LoopEnvironment, LoopSettings, RunLoop
from patchgate.runs.run_output import strategy_lines
from patchgate.runs.run_questions import Ask, RunQuestions, ask_questions, waiting_reason
from patchgate.runs.run_record import (
    ID,
    RunRecord,
    checked_run,
    find_run,
    last_actions,
    new_id,
    newest_to_resume,
    nobody_else_begins,
    status_now,
    this_process,
    unfinished_runs,
)
from patchgate.runs.run_state import (
    ComponentOnDisk,
    RunAction,
    RunPlan,
    RunState,
    RunStatus,
    write_work,
)
from patchgate.runs.timeouts import Impatience, limit_seconds, wall_seconds
from patchgate.runs.worker import Workers, worker_command
from patchgate.values import dataclass, replace

_TESTS_SECONDS = 3600.0
_NAMED = 5


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run; None leaves it to the policy. `changed`: only what differs from its baseline.

    `assumptions` may answer the questions of the policy, in order. `run` is the id of a run that others may
    have started too; None makes a new one.
    """

    ids: tuple[str, ...] = ()
    changed: bool = False
    until: Phase | None = None
    jobs: int | None = None
    scheduling: Scheduling | None = None
    assumptions: tuple[str, ...] = ()
    run: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """Inputs from outside.

    Args:
        environ: the environment of the workers.
        report: gets a sentence after each work.
        report_end: gets how an interrupt or a signal ended the run, line by line.
        progress: gets what is going on, and for how many seconds.
        clock: seconds since the epoch.
        chance: gives so many random bytes as hexadecimal digits.
        perform: does a task here, for one job at a time; None: each has a process of its own.
        ask: asks a person a question of the policy; None: nobody is there.
    """

    environ: Mapping[str, str]
    report: Callable[[str], None] = lambda sentence: None
    report_end: Callable[[str], None] = lambda sentence: None
    progress: Callable[[str, float], None] = lambda what, seconds: None
    clock: Callable[[], float] = time.time
    chance: Callable[[int], str] = secrets.token_hex
    perform: Callable[[PhaseTask], PhaseResult] | None = None
    ask: Ask | None = None


@dataclass(frozen=True, slots=True)
class _Ground:
    """What a run is planned from: the policy of the index, and how its components depend on each other."""

    policy: Policy
    needs: Mapping[str, Collection[str]]
    parents: Mapping[str, str | None]

    @property
    def settings(self) -> RunSettings:
        return self.policy.config.run


def start_run(repository: Repository, request: RunRequest, environment: RunEnvironment) -> RunState | None:
    """Plan a run, record it, and take its components through their phases; None: none has changed.

    Raises:
        UsageError: the policy has no components, one is unknown, components need each other in a circle, or
            an active run has one of them; the run that was named is active, or its name is none.
        ConfigError: the policy cannot be used.
        UndecidedError: a required program is missing, or the ledger cannot be written: nothing was started.
    """
    work_tree = _require_work_tree(repository)
    ground = _ground(repository)
    # Also without `--changed`: a policy on disk that cannot be read is refused, as where a run is resumed.
    ids = _chosen(ground, request, on_disk(repository))
    if not ids:
        return None
    _require_free(repository, ids, environment)
    _record_of(repository, request.run, environment)
    plan = RunPlan(
        phases={name: _phases_of(ground, name, request.until) for name in ids},
        scheduling=request.scheduling or Scheduling(ground.settings.scheduling),
        jobs=request.jobs or ground.settings.max_concurrent,
    )
    # A circle is refused before anything is recorded.
    schedule = _schedule(ground, plan, ())
    _validate(ground, plan, environment, work_tree)
    Ledger(repository.common_dir).require_writable()
    asked = _ask(repository, environment, request.assumptions)
    for lesson in lessons_of_last_runs(repository, environment.clock()):
        environment.report(f"of the last run: {lesson}")
    with nobody_else_begins(repository):
        # Others may have begun while a person was asked.
        _require_free(repository, ids, environment)
        record = _record_of(repository, request.run, environment)
        record.write(
            RunAction.STARTED, {**plan.plain(), "work_tree": plain_json(work_tree), "owner": this_process()}
        )
    warn_of_unstaged(repository, ground.policy, plan, environment.report)
    if asked.waiting:
        return _wait_for_answers(record, asked)
    return _loop(repository, record, schedule, ground, plan, environment)


def resume_run(
    repository: Repository, name: str | None, from_phase: Phase | None, environment: RunEnvironment
) -> RunState:
    """Go on with a run that failed, paused or was interrupted.

    Raises:
        UsageError: there is no such run, it is active, complete or another worktree's, or the phase is too
            late.
        UndecidedError: as for `start_run`.
    """
    name = name or newest_to_resume(repository)
    # A run that cannot be resumed asks nobody anything.
    _plan_resumption(repository, find_run(repository, name), from_phase, environment)
    Ledger(repository.common_dir).require_writable()
    asked = _ask(repository, environment)
    with nobody_else_begins(repository):
        state = checked_run(repository, name)
        resumed = _plan_resumption(repository, state, from_phase, environment)
        # No process of the run is alive, so what they declared is left over.
        clear_intents_of(repository, state.id, environment.environ)
        record = RunRecord(repository, state.id, environment.clock, state)
        record.write(
            RunAction.RESUMED,
            {
                "owner": this_process(),
                "strategy": resumed.strategy.plain(),
                "cleared": [write_work(work) for work in resumed.strategy.cleared],
                "removed": list(resumed.removed),
                "reason": resumed.reason,
            },
        )
    for line in strategy_lines(resumed.strategy, from_phase):
        environment.report(line)
    if resumed.removed:
        named = ", ".join(resumed.removed)
        environment.report(f"left out, because the policy does not declare it any more: {named}")
    warn_of_unstaged(repository, resumed.ground.policy, resumed.plan, environment.report)
    if asked.waiting:
        return _wait_for_answers(record, asked)
    return _loop(repository, record, resumed.schedule, resumed.ground, resumed.plan, environment)


@dataclass(frozen=True, slots=True)
class _Resumption:
    """How a run goes on: `removed` are components that the policy lacks, `reason` is why it stopped."""

    ground: _Ground
    strategy: ResumeStrategy
    plan: RunPlan
    schedule: Schedule
    removed: tuple[str, ...]
    reason: str | None


def _plan_resumption(
    repository: Repository, state: RunState, from_phase: Phase | None, environment: RunEnvironment
) -> _Resumption:
    """Decide how a run goes on, or refuse it, as `resume_run` does; writes nothing."""
    work_tree, place = _require_work_tree(repository), state.work_tree
    if place is not None and place != plain_json(work_tree) and os.path.isdir(place):
        # Its files are there: what is here says nothing about them.
        shown = printable(shlex.quote(place), 400)
        raise UsageError(
            f"the run {state.id} was started in {shown}", f"git -C {shown} patchgate run resume {state.id}"
        )
    ground = _ground(repository)
    status = status_now(state, environment.clock())
    strategy = plan_resume(state, status, on_disk(repository), from_phase)
    removed = tuple(each for each in state.plan.phases if each not in ground.parents)
    kept = {name: phases for name, phases in state.plan.phases.items() if name not in removed}
    _require_free(repository, kept, environment)
    plan = replace(state.plan, phases=kept)
    done = [work for work in state.done if work not in strategy.cleared and work.component in kept]
    schedule = _schedule(ground, plan, done)
    _validate(ground, plan, environment, work_tree)
    reason = state.reason or ("its process ended" if status is RunStatus.INTERRUPTED else None)
    return _Resumption(ground, strategy, plan, schedule, removed, reason)


def _ask(
    repository: Repository, environment: RunEnvironment, assumptions: Sequence[str] = ()
) -> RunQuestions:
    """Answer the questions of the policy; say which of them nobody has answered with some confidence."""
    asked = ask_questions(
        repository, assumptions=assumptions, ask=environment.ask, records=True, clock=environment.clock
    )
    if doubtful := asked.doubtful:
        named = first_of(doubtful, _NAMED)
        environment.report(f"warning: answers that nobody has confirmed: {named} (git patchgate run answer)")
    return asked


def _wait_for_answers(record: RunRecord, asked: RunQuestions) -> RunState:
    reason, command = waiting_reason(asked)
    hint = f"{command}, then git patchgate run resume {record.run}"
    return record.write(RunAction.PAUSED, {"reason": reason, "hint": hint})


def _record_of(repository: Repository, name: str | None, environment: RunEnvironment) -> RunRecord:
    """Return the record of a new run, or of the one that was named, which may be there already."""
    if name is None:
        return RunRecord(repository, new_id(environment.chance), environment.clock)
    if ID.fullmatch(name) is None:
        raise UsageError(
            f"{printable(name, 60)} cannot be the id of a run", "write r- and 8 to 40 digits of 0-9 and a-f"
        )
    if name not in last_actions(repository):
        return RunRecord(repository, name, environment.clock)
    state = find_run(repository, name)
    if status_now(state, environment.clock()) is RunStatus.ACTIVE:
        raise UsageError(f"the run {name} is active", f"git patchgate run show {name}")
    return RunRecord(repository, name, environment.clock, state)


def _require_free(repository: Repository, ids: Iterable[str], environment: RunEnvironment) -> None:
    """Refuse components of a run that goes on: both would do the same, and wait for each other's intents."""
    now = environment.clock()
    for state in unfinished_runs(repository).runs:
        shared = sorted(set(ids) & set(state.plan.phases))
        if shared and status_now(state, now) is RunStatus.ACTIVE:
            named = first_of(shared, _NAMED, lambda name: f"`{name}`")
            raise UsageError(
                f"the run {state.id} is active, and has {named}",
                f"wait until it has ended: git patchgate run show {state.id}; or name other components",
            )


def _require_work_tree(repository: Repository) -> str:
    if repository.work_tree is None:
        raise UsageError("a bare repository has no files to run", "run it in a clone")
    return repository.work_tree


def _ground(repository: Repository) -> _Ground:
    with Objects(repository) as objects:
        policy = index_tree(repository, objects).policy
    graph = build_graph(repository)
    needs: dict[str, set[str]] = {name: set() for name in graph.parents}
    for edge in graph.dependencies:
        if edge.to is not None:
            needs[edge.source].add(edge.to)
    return _Ground(policy, needs, graph.parents)


def _chosen(ground: _Ground, request: RunRequest, found: Mapping[str, ComponentOnDisk]) -> list[str]:
    components = ground.policy.components
    if not components.ids:
        raise UsageError(no_components_message("index"), "git patchgate schema config")
    asked = request.ids or tuple(components.ids)
    ids = [each.id for each in resolve_components(components, asked, "the index")]
    if request.changed:
        ids = [name for name in ids if name not in found or not found[name].is_recorded]
    return ids


def _phases_of(ground: _Ground, name: str, until: Phase | None) -> tuple[Phase, ...]:
    """List the phases of a component: those without a check only where there is an author."""
    is_parent = name in ground.parents.values()
    found = []
    for phase in PHASES:
        is_there = phase in {Phase.CONTRACT, Phase.TESTS, Phase.IMPLEMENTATION}
        is_there |= phase is Phase.INTEGRATION and is_parent
        is_there |= phase in {Phase.INTERVIEW, Phase.SHAPING} and author_of(ground.policy, phase) is not None
        if is_there and (until is None or phase.number <= until.number):
            found.append(phase)
    if not found:
        raise UsageError(f"`{name}` has nothing to do until {until}", "name a later phase")
    return tuple(found)


def _schedule(ground: _Ground, plan: RunPlan, done: Sequence[Work]) -> Schedule:
    return Schedule(
        phases=plan.phases,
        needs={name: ground.needs.get(name, ()) for name in plan.phases},
        parents={name: ground.parents.get(name) for name in plan.phases},
        scheduling=plan.scheduling,
        most=plan.jobs,
        done=done,
    )


def _validate(ground: _Ground, plan: RunPlan, environment: RunEnvironment, work_tree: str) -> None:
    components = ground.policy.components
    commands = [components[name].settings.test_command for name in plan.phases if name in components.ids]
    validate_environment(
        environment.environ, ground.policy.config.environment, work_tree, test_commands=commands
    )


def _loop(
    repository: Repository,
    record: RunRecord,
    schedule: Schedule,
    ground: _Ground,
    plan: RunPlan,
    environment: RunEnvironment,
) -> RunState:
    settings = ground.settings

    def task_of(work: Work) -> PhaseTask:
        author = author_of(ground.policy, work.phase)
        role = None if author is None else author[1].role
        patience, limits = Impatience(settings.impatience), settings.role_timeouts
        stall = limit_seconds(role, patience, limits)
        wall = None if author is None else wall_seconds(author[1].timeout, role, patience, limits)
        return PhaseTask(
            record.run, work.component, work.phase, seconds=_TESTS_SECONDS, stall=stall, author_seconds=wall
        )

    here = environment.perform
    workers = Workers(
        worker_command(repository.work_tree or "", environment.environ),
        environment.environ,
        task_of,
        environment.progress,
    )
    perform = workers.perform if here is None else lambda work: here(task_of(work))
    loop = RunLoop(
        record=record,
        schedule=schedule,
        settings=LoopSettings(
            jobs=plan.jobs,
            max_retries=settings.max_retries,
            systemic_threshold=settings.systemic_threshold,
        ),
        environment=LoopEnvironment(
            perform,
            stop=workers.stop,
            glance=workers.end_idle,
            report=environment.report,
            report_end=environment.report_end,
        ),
    )
    return loop.run()
