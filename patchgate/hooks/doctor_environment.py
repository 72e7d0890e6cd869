"""What the programs of a policy find: from the shell, in commands, and in hooks that a GUI starts.

A program that a command would not find is an error. What only a hook with the bare PATH would not find is a
warning, and only if a hook runs programs of the policy (`[verify] on_push`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from patchgate.check.policy_lookup import trusted_options
from patchgate.commands.environment import (
    BARE_PATH,
    ProgramPlaces,
    find_programs,
    shared_environment,
    suggest,
)
from patchgate.commands.programs import NO_TREE, command_environment, locate_program
from patchgate.commands.runner import describe_missing
from patchgate.errors import PatchgateError
from patchgate.git.active_hooks import Worktree
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.hooks.doctor_hooks import DoctorFinding
from patchgate.policy.policy import Policy
from patchgate.policy.tree_policies import TreePolicies, old_table_notes
from patchgate.report.json import place_member
from patchgate.report.rules import Level
from patchgate.report.schema import Shape, about, maybe, one_of, path_key
from patchgate.report.verdict import Json
from patchgate.report.wording import safe
from patchgate.values import dataclass, replace

SHELL, COMMANDS, BARE = "shell", "commands", "bare-path"
_SHOWN_AS = {SHELL: "shell", COMMANDS: "commands", BARE: "hooks of GUIs"}
_MOST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class EnvironmentComparison:
    """The programs of the policy of one worktree, as each environment finds them.

    `views` are by name: `SHELL` is the caller's own environment, `COMMANDS` what a command that is started
    from there gets, `BARE` what a command of a hook gets if a GUI started it. Without `requires_python` it is
    unimportant where Python is.
    """

    worktree: Worktree
    views: Mapping[str, ProgramPlaces]
    requires_python: bool

    @property
    def is_complete(self) -> bool:
        """Whether commands find everything that the policy requires."""
        return not self.views[COMMANDS].missing


def compare_environments(
    repository: Repository, environ: Mapping[str, str], worktrees: Sequence[Worktree]
) -> EnvironmentComparison | None:
    """Compare what the policy's programs find in each environment.

    Args:
        environ: the caller's.
        worktrees: those of the repository; the current one counts, else the first.

    Returns:
        None if the policy runs no program, or cannot be used.

    Raises:
        PatchgateError: git failed.
    """
    choices = sorted((each for each in worktrees if not each.is_bare), key=lambda each: not each.is_current)
    if not choices:
        return None
    worktree = choices[0]
    policy = _policy_of(repository, worktree)
    if policy is None or not _runs_programs(policy):
        return None
    config, root = policy.config, worktree.path
    tools = [tool for each in config.commands.values() for tool in each.required_tools]
    tools += [tool for each in config.old_analyses.values() for tool in each.required_tools]
    seen = {SHELL: environ, COMMANDS: _of_commands(policy, environ, root)}
    seen[BARE] = _of_commands(policy, {**environ, "PATH": BARE_PATH}, root)
    views = {name: _places(policy, each, root, tools) for name, each in seen.items()}
    return EnvironmentComparison(worktree, views, requires_python=_requires_python(policy))


def _policy_of(repository: Repository, worktree: Worktree) -> Policy | None:
    """Return the policy of the next commit; None if there is none that can be used, which is reported."""
    try:
        revision = trusted_options(repository).policy_from or worktree.head
        with Objects(repository) as objects:
            header = objects.header(revision + "^{tree}") if revision else None
            policies = TreePolicies(objects)
            return None if header is None else policies.at(policies.key(header.oid)).policy
    except PatchgateError:
        return None


def _runs_programs(policy: Policy) -> bool:
    config = policy.config
    return bool("environment" in config.written or config.commands or config.analyses or config.components)


def _of_commands(policy: Policy, environ: Mapping[str, str], root: str) -> Mapping[str, str]:
    shared = shared_environment(environ, policy.config.environment, root)
    return command_environment(shared, {}, NO_TREE)


def _requires_python(policy: Policy) -> bool:
    """Whether the policy says which Python it needs: without `[environment]` none may be needed."""
    return "environment" in policy.config.written


def _places(
    policy: Policy, environ: Mapping[str, str], root: str, tools: Sequence[str] = ()
) -> ProgramPlaces:
    """Find the programs that everything of a policy requires, and `tools`."""
    config = policy.config
    commands = [each.test_command for each in config.components.values()]
    found = find_programs(environ, config.environment, root, tools=tools, test_commands=commands)
    # A Python that is not required is not missing.
    return found if _requires_python(policy) else replace(found, python=found.python or "")


def missing_program_findings(
    policy: Policy, environ: Mapping[str, str], root: str
) -> Iterator[DoctorFinding]:
    """Report what is missing for the programs of a policy.

    Args:
        environ: the caller's.
        root: the working tree of the policy, an absolute path.
    """
    for note in old_table_notes(policy):
        yield DoctorFinding(Level.NOTE, note, "write the new lines, and commit them")
    yield from _shared_findings(policy, environ, root)
    yield from _pushed_findings(policy, environ, root)
    config = policy.config
    shared = shared_environment(environ, config.environment, root)
    known = set(config.environment.required_tools)
    for table, settings in (("commands", config.commands), ("analyses", config.old_analyses)):
        for name, each in settings.items():
            own = tuple(tool for tool in each.required_tools if tool not in known)
            own_environment = command_environment(shared, each.env, NO_TREE)
            _, missing = locate_program(replace(each, required_tools=own), own_environment)
            if missing:
                reason, hint = describe_missing(missing)
                place = policy.line_of((table, name))
                what = f"[{table}.{name}]{f' ({place})' if place else ''} cannot run: {reason}"
                yield DoctorFinding(Level.ERROR, what, hint)


def _shared_findings(policy: Policy, environ: Mapping[str, str], root: str) -> Iterator[DoctorFinding]:
    """Report what `[environment]` requires, and what the tests of components need."""
    here = _places(policy, _of_commands(policy, environ, root), root)
    if here.missing:
        place = policy.line_of(("environment",))
        whose = f"[environment]{f' ({place})' if place else ''} is not complete"
        whose = whose if _requires_python(policy) else "the tests of components cannot run"
        remedy = suggest(here, environ, root)
        yield DoctorFinding(Level.ERROR, f"{whose}: {'; '.join(here.missing)}", remedy)


def _pushed_findings(policy: Policy, environ: Mapping[str, str], root: str) -> Iterator[DoctorFinding]:
    """Report what pre-push finds from the shell, but not if a GUI starts it."""
    config = policy.config
    if not config.verify.on_push:
        return
    programs = [each.command[0] for each in config.analyses.values() if "/" not in each.command[0]]
    tools = [*programs, *(tool for each in config.analyses.values() for tool in each.required_tools)]
    here, bare = (
        find_programs(_of_commands(policy, around, root), config.environment, root, tools=tools)
        for around in (environ, {**environ, "PATH": BARE_PATH})
    )
    lost = {name: bare.tools[name] for name in bare.missing_tools if here.tools[name] is not None}
    is_python_lost = _requires_python(policy) and bare.python is None and here.python is not None
    bare = replace(bare, tools=lost, python=None if is_python_lost else "")
    if bare.missing:
        what = f"pre-push: in programs with the bare PATH {BARE_PATH} (GUIs), the analyses cannot run"
        remedy = suggest(bare, environ, root)
        yield DoctorFinding(Level.WARNING, f"{what}: {'; '.join(bare.missing)}", remedy, events=("pre-push",))


def environment_lines(comparison: EnvironmentComparison) -> list[str]:
    """Write where each program is, as lines: places that several environments share are written once."""
    views = comparison.views
    shell, commands = views[SHELL].path, views[COMMANDS].path
    lines = ["environment of the policy's programs:"]
    for title, folders in (
        ("only on the PATH of the shell", [each for each in shell if each not in commands]),
        ("only on the PATH of commands", [each for each in commands if each not in shell]),
        (f"PATH in {_SHOWN_AS[BARE]}", views[BARE].path),
    ):
        if folders:
            lines.append(f"  {title}: {', '.join(map(safe, folders))}")
    if comparison.requires_python:
        python = views[COMMANDS].python_path
        where = _by_place({name: each.python for name, each in views.items()})
        lines.append(f"  python_path {safe(python)}: {where}")
    lines += [
        f"  {safe(tool)}: {_by_place({name: each.tools[tool] for name, each in views.items()})}"
        for tool in views[COMMANDS].tools
    ]
    lacks = {name: each.lacks_pytest[0] for name, each in views.items() if each.lacks_pytest}
    if lacks:
        lines.append(f"  cannot import pytest: {_by_place(lacks)}")
    return lines


def _by_place(files: Mapping[str, str | None]) -> str:
    """Write a file with the names of the environments that find it."""
    names: dict[str | None, list[str]] = {}
    for name, file in files.items():
        names.setdefault(file, []).append(_SHOWN_AS[name])
    return "; ".join(
        f"{'not found' if file is None else safe(file)} ({', '.join(each)})" for file, each in names.items()
    )


def environment_json(comparison: EnvironmentComparison | None) -> Json:
    """Build the part of the JSON document about the environment; None if the policy runs no program."""
    if comparison is None:
        return None
    views: list[Json] = [
        {
            "name": name,
            "path": [_text(folder) for folder in view.path],
            "python": _text(view.python) if view.python else None,
            "tools": [
                {"name": _text(tool), "file": None if file is None else _text(file)}
                for tool, file in view.tools.items()
            ],
            "lacks_pytest": [_text(each) for each in view.lacks_pytest],
            "missing": [*view.missing],
        }
        for name, view in comparison.views.items()
    ]
    return {
        **place_member("worktree", comparison.worktree.path),
        "python_path": _text(comparison.views[COMMANDS].python_path),
        "is_complete": comparison.is_complete,
        "views": views,
    }


def environment_shape() -> Shape:
    """Return the shape of `environment_json`."""
    view: Shape = {
        "name": about(
            one_of(SHELL, COMMANDS, BARE),
            "the caller's own; a command's that is started there; a command's of a hook that a GUI starts",
        ),
        "path": about([str], "the folders of PATH"),
        "python": about(str | None, "the file that python_path means; null: there is none"),
        "tools": [{"name": str, "file": about(str | None, "null: it was not found")}],
        "lacks_pytest": about([str], "Pythons of test commands that cannot import pytest"),
        "missing": about([str], "what is missing, one sentence each"),
    }
    environment: Shape = {
        **path_key("worktree"),
        "python_path": str,
        "is_complete": about(bool, "whether commands find everything"),
        "views": [view],
    }
    return about(maybe(environment), "where the policy's programs are; null: it runs none")


def _text(text: str) -> str:
    return printable(text, _MOST_TEXT)
