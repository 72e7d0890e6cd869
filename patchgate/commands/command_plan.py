"""What one command would see of a change, and by what its answer is known again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from patchgate.commands.command_target import CommandTarget
from patchgate.commands.programs import NO_TREE, command_environment, tool_identity
from patchgate.commands.provided_folders import state_of
from patchgate.commands.remembered_answers import answer_on_files, answer_on_tree, context_of
from patchgate.git.path import RepoPath
from patchgate.policy.command import settings_text
from patchgate.policy.command_settings import CommandSettings
from patchgate.values import dataclass

Mask = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class CommandEnvironment:
    """What commands need from outside.

    `environ` are the variables that all programs of the policy share, `cache` is the folder for scratch
    trees, `logs` that of the logs. `mask_of` makes a function that masks secrets in whole lines, for a
    command's own variables. `report_progress` is called about once a second.
    """

    environ: Mapping[str, str]
    cache: str
    logs: str
    mask_of: Callable[[Mapping[str, str]], Mask]
    report_progress: Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """One command and the files that it gets.

    `needed` are the files that it needs besides, `missing` what it needs and the tree does not have. `tool`
    identifies its programs; None if one is missing. `context` is the digest of all that its answer depends on
    besides the files.
    """

    name: str
    settings: CommandSettings
    files: tuple[RepoPath, ...]
    needed: tuple[RepoPath, ...]
    missing: tuple[str, ...]
    tool: str | None
    context: str

    @property
    def takes_tree(self) -> bool:
        """Whether it sees the whole tree."""
        return self.settings.scope == "tree"

    @property
    def paths(self) -> tuple[RepoPath, ...]:
        """The files that its scratch tree has, if that is not the whole tree."""
        return tuple(dict.fromkeys((*self.files, *self.needed)))


def plan_command(
    name: str,
    settings: CommandSettings,
    target: CommandTarget,
    environ: Mapping[str, str],
    files: Sequence[RepoPath] | None = None,
) -> CommandPlan:
    """Find out what a command would see.

    Args:
        environ: the environment that all programs of the policy share.
        files: its files; None: those of the change that it is for.

    Raises:
        UndecidedError: an object is missing.
    """
    needed, missing = target.needed(settings)
    tool = tool_identity(settings, environ)
    environment = command_environment(environ, settings.env, NO_TREE)
    provided = state_of(target.repository.work_tree, settings.provide)
    return CommandPlan(
        name=name,
        settings=settings,
        files=tuple(target.files(settings) if files is None else files),
        needed=tuple(needed),
        missing=tuple(missing),
        tool=tool,
        context=context_of(name, settings_text(settings), tool, environment, provided),
    )


def answers_of(plan: CommandPlan, target: CommandTarget) -> dict[RepoPath | None, str]:
    """Return by what the answer of a plan is known: one digest, or one for each file (`per_file`).

    Raises:
        UndecidedError: an object is missing.
    """
    if plan.takes_tree:
        return {None: answer_on_tree(target.tree(), [path.quoted for path in plan.files])}
    needed = target.seen(plan.needed)
    if plan.settings.per_file:
        return {path: answer_on_files(target.seen([path]), needed) for path in plan.files}
    return {None: answer_on_files(target.seen(plan.files), needed)}


def plan_before(plan: CommandPlan, target: CommandTarget, environ: Mapping[str, str]) -> CommandPlan:
    """Return the same plan on the tree before: the files under their old names."""
    before = target.before()
    moved = target.moved()
    old = (moved.get(path, path) for path in plan.files)
    there = [path for path in old if (entry := before.entry(path.raw)) is not None and entry.is_file]
    return plan_command(plan.name, plan.settings, before, environ, sorted(there))
