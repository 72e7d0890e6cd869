"""Run planned commands on a tree, each in its own scratch tree, at the same time; report what each did.

Nothing here decides what an end means (`command_checks`). A command that changes or removes its tree, or
writes to a folder that is only linked, is found out.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence

from patchgate.commands.analysis import MAX_OUTPUT
from patchgate.commands.command_plan import CommandEnvironment, CommandPlan
from patchgate.commands.command_target import CommandTarget
from patchgate.commands.programs import argument_room, command_environment, locate_program, working_folder
from patchgate.commands.provided_folders import first_written, link_folders, moment, unlink_folders
from patchgate.commands.runner import new_file
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import neutral, without_escapes
from patchgate.git.scratch import copied_trees, sweep, whole_tree
from patchgate.policy.command_files import batches, expand
from patchgate.process.command import ProcessResult, run_command
from patchgate.process.together import run_together
from patchgate.storage.temporary_folder import TemporaryFolder
from patchgate.values import dataclass, field, replace

# As many whole trees are cached for a repository; one is left for others.
_MOST_WHOLE = 3
_AGAIN = "run it again"


@dataclass(slots=True)
class CommandTrial:
    """One command in its scratch tree.

    `place` is the tree, `parts` are its argument lists with the files for their output and log. Afterwards
    `ended` are the ends of its processes, `changed` the files that it changed; `fault` is why it gave no
    answer, as a predicate with its next step. `written` is the first name that it wrote in a linked folder.
    """

    plan: CommandPlan
    place: str
    find_changed: Callable[[], list[RepoPath]]
    parts: list[tuple[list[bytes], str, str]] = field(default_factory=list)
    ended: list[ProcessResult] = field(default_factory=list)
    changed: tuple[RepoPath, ...] = ()
    fault: tuple[str, str | None] | None = None
    written: str | None = None
    survivors: int = 0


def run_trials(
    target: CommandTarget,
    plans: Sequence[CommandPlan],
    environment: CommandEnvironment,
    use: Callable[[CommandTrial], None],
) -> None:
    """Run commands at the same time, as many as there are processors, after removing what killed ones left.

    Args:
        use: is called with each trial in order, while its tree and its files are still there.

    Raises:
        UndecidedError: the scratch trees cannot be made.
    """
    sweep(target.repository, environment.cache)
    whole = [each for each in plans if each.takes_tree]
    few = [each for each in plans if not each.takes_tree]
    groups = [few + whole[:_MOST_WHOLE], *_chunks(whole[_MOST_WHOLE:], _MOST_WHOLE)]
    for group in filter(None, groups):
        _run_group(target, group, environment, use)


def _chunks(plans: Sequence[CommandPlan], size: int) -> Iterator[list[CommandPlan]]:
    for start in range(0, len(plans), size):
        yield list(plans[start : start + size])


def _run_group(
    target: CommandTarget,
    plans: Sequence[CommandPlan],
    environment: CommandEnvironment,
    use: Callable[[CommandTrial], None],
) -> None:
    with contextlib.ExitStack() as stack:
        beside = stack.enter_context(TemporaryFolder()).path
        trials = list(_made(stack, target, plans, environment))
        root = target.repository.work_tree
        since = moment()
        for trial in trials:
            _prepare(trial, root, beside, environment)
            stack.callback(unlink_folders, trial.place, trial.plan.settings.provide)
        _start(trials, environment)
        for trial in trials:
            _look_again(trial, root, since)
        for trial in sorted(trials, key=lambda each: plans.index(each.plan)):
            use(trial)


def _made(
    stack: contextlib.ExitStack,
    target: CommandTarget,
    plans: Sequence[CommandPlan],
    environment: CommandEnvironment,
) -> Iterator[CommandTrial]:
    """Make the scratch tree of each plan; they are removed with the stack."""
    few = [each for each in plans if not each.takes_tree]
    if few:
        paths = {path for each in few for path in each.paths}
        trees = stack.enter_context(
            copied_trees(
                target.repository,
                target.entry,
                paths,
                cache=environment.cache,
                variables=target.store.variables,
            )
        )
        for plan in few:
            tree = trees.make(plan.name, plan.paths)
            yield CommandTrial(plan, tree.path, tree.changed)
    for plan in plans:
        if plan.takes_tree:
            making = whole_tree(
                target.repository,
                target.store,
                target.tree(),
                cache=environment.cache,
                commit=target.commit,
                patience_seconds=300.0 + plan.settings.timeout,
            )
            scratch = stack.enter_context(making)
            yield CommandTrial(plan, scratch.path, scratch.changed)


def _prepare(trial: CommandTrial, root: str | None, beside: str, environment: CommandEnvironment) -> None:
    """Link the provided folders, and make the argument lists."""
    settings = trial.plan.settings
    fault = link_folders(root, trial.place, settings.provide)
    if fault is not None:
        trial.fault = f"was not started: {fault}", "install what the tool needs, or correct `provide`"
        return
    variables = command_environment(environment.environ, settings.env, trial.place)
    for number, part in enumerate(batches(settings, trial.plan.files, argument_room(variables))):
        base = os.path.join(beside, f"{trial.plan.name}.{number}")
        trial.parts.append((expand(settings, part), f"{base}.out", f"{base}.log"))


def _start(trials: Sequence[CommandTrial], environment: CommandEnvironment) -> None:
    """Run the processes of all trials; those of one command at the same time only with `jobs`."""
    tasks: list[Callable[[Callable[[], None]], list[ProcessResult]]] = []
    owners: list[CommandTrial] = []
    lock = threading.Lock()

    def report(name: str, seconds: float) -> None:
        with lock:
            environment.report_progress(name, seconds)

    shared = replace(environment, report_progress=report)
    for trial in trials:
        if trial.fault is not None:
            continue
        is_divided = trial.plan.settings.jobs > 1
        for parts in ([each] for each in trial.parts) if is_divided else [trial.parts]:
            tasks.append(_task(trial, list(parts), shared))
            owners.append(trial)
    if not tasks:
        return
    results, survivors = run_together(tasks, _processors())
    for trial, ended in zip(owners, results, strict=True):
        trial.ended += ended
        trial.survivors = survivors


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _task(
    trial: CommandTrial, parts: Sequence[tuple[list[bytes], str, str]], environment: CommandEnvironment
) -> Callable[[Callable[[], None]], list[ProcessResult]]:
    settings = trial.plan.settings
    folder = working_folder(settings, trial.place)
    variables = command_environment(environment.environ, settings.env, trial.place, folder)
    program, _ = locate_program(settings, variables)
    has_output = settings.has_findings

    def run(check: Callable[[], None]) -> list[ProcessResult]:
        def tick(seconds: float) -> None:
            check()
            environment.report_progress(trial.plan.name, taken + seconds)

        ended: list[ProcessResult] = []
        for argv, out_path, log_path in parts:
            taken = sum(each.seconds for each in ended)
            with contextlib.ExitStack() as files:
                log = files.enter_context(new_file(log_path, "the log ", _AGAIN))
                out = files.enter_context(new_file(out_path, "", _AGAIN)) if has_output else None
                one = run_command(
                    argv,
                    cwd=folder,
                    env=variables,
                    seconds=settings.timeout - taken,
                    executable=program,
                    log=log,
                    output=out,
                    max_output=MAX_OUTPUT,
                    mask=environment.mask_of(settings.env),
                    clean=_plain,
                    tick=tick,
                    is_alone=False,
                )
            ended.append(one)
            if one.fault is not None or one.timed_out:
                break
        return ended

    return run


def _plain(raw: bytes) -> bytes:
    """Remove colours, and escape what else a terminal would obey."""
    return neutral(without_escapes(raw))


def _look_again(trial: CommandTrial, root: str | None, since: int) -> None:
    """Find what a command changed in its tree, and what it wrote to the linked folders."""
    if trial.fault is not None:
        return
    settings = trial.plan.settings
    if settings.provide:
        trial.written = first_written(root, settings.provide, since)
    try:
        trial.changed = tuple(trial.find_changed())
    except UndecidedError as error:
        trial.fault = f"gave no answer: {error.message}", error.hint
