"""`doctor`: do the hooks really run, at every event of every worktree? Also its JSON.

Chooses the worktrees and events, starts each hook, and collects the findings. Changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from patchgate import __version__
from patchgate.commands.environment import BARE_PATH
from patchgate.git.active_hooks import (
    LOCAL_EVENTS,
    SERVER_EVENTS,
    GitEnvironment,
    Worktree,
    list_worktree_hooks,
)
from patchgate.git.hook_managers import FRAMEWORKS, displaced_hook, find_managers, previous_hook
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.hooks.doctor_environment import (
    EnvironmentComparison,
    compare_environments,
    environment_json,
    environment_shape,
)
from patchgate.hooks.doctor_hooks import (
    DoctorFinding,
    HookProbe,
    WorktreeHooks,
    bare_path_finding,
    config_findings,
    git_at,
    hook_findings,
    install_command,
    witness_of,
)
from patchgate.hooks.doctor_repository import PROBES, DoctorContext
from patchgate.report.json import place_member
from patchgate.report.rules import Level
from patchgate.report.schema import Schema, Shape, about, document_schema, maybe, path_key
from patchgate.report.verdict import Json
from patchgate.report.wording import safe
from patchgate.values import dataclass, replace

_IDS = {
    "pre-commit": "patchgate",
    "pre-merge-commit": "patchgate",
    "commit-msg": "patchgate-commit-msg",
    "pre-push": "patchgate-pre-push",
}
# Without these, changes land or leave unchecked; the push checks the rest again.
_NEEDED = frozenset({"pre-commit", "pre-push"})
_NATIVE = "reference-transaction"


def is_managed(hooks: Sequence[HookProbe]) -> bool:
    """Whether a hook manager runs patchgate, and no hook of ours is there."""
    return not any(hook.file.is_ours or hook.displaced for hook in hooks) and any(
        hook.is_through_manager for hook in hooks
    )


def managed_findings(hooks: Sequence[HookProbe], install: str) -> Iterator[DoctorFinding]:
    """Report at which events a hook manager runs patchgate, and at which not.

    Args:
        install: the command that installs native hooks.
    """
    through: dict[tuple[str, str], list[str]] = {}
    for hook in hooks:
        if hook.is_through_manager and hook.managed is not None:
            through.setdefault((hook.managed.by, hook.managed.config), []).append(hook.event)
    for (by, config), events in through.items():
        what = f"{by} runs patchgate at {', '.join(events)} according to {safe(config)} (not tested)"
        yield DoctorFinding(Level.NOTE, what, events=tuple(events))
    first = next(iter(through))
    for hook in hooks:
        if not hook.is_through_manager:
            yield _missing(hook, *first, install)


def _missing(hook: HookProbe, by: str, config: str, install: str) -> DoctorFinding:
    event, remedy = hook.event, install
    if event == _NATIVE:
        what = (
            "only the native hooks run it. Without it, --no-verify, rebase, cherry-pick and "
            "fast-forward are checked at the push, not before"
        )
    elif hook.managed is not None and hook.managed.has_patchgate:
        what = f"{safe(hook.managed.config)} lists patchgate for it, but {by} has no hook installed there"
        remedy = f"{by} install --hook-type {event}"
    elif by in FRAMEWORKS:
        what = f"{safe(config)} has no `id: {_IDS[event]}`, so {by} does not run patchgate there"
    else:
        what = f"{by} does not run patchgate there; its config has no `git patchgate hook {event}`"
    level = Level.ERROR if event in _NEEDED else Level.WARNING
    return DoctorFinding(level, f"{event}: {what}", remedy, events=(event,))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that doctor found; `findings` are about the whole repository.

    `environment` is None if the policy runs no program.
    """

    git: tuple[int, ...]
    worktree_hooks: tuple[WorktreeHooks, ...]
    findings: tuple[DoctorFinding, ...] = ()
    environment: EnvironmentComparison | None = None

    @property
    def runs(self) -> bool:
        """Whether the hooks run everywhere."""
        return all(place.runs for place in self.worktree_hooks) and not any(
            finding.level is Level.ERROR for finding in self.findings
        )

    @property
    def worktrees_to_install(self) -> tuple[Worktree, ...]:
        """The worktrees where `--fix` may run `install`."""
        return tuple(
            place.worktree
            for place in self.worktree_hooks
            if any(finding.is_fixed_by_install for finding in place.findings)
        )

    @property
    def worktrees_to_renew(self) -> tuple[Worktree, ...]:
        """The worktrees for which `--fix` rebuilds the cache of the fast path."""
        if not any(finding.is_fixed_by_renewal for finding in self.findings):
            return ()
        return tuple(
            place.worktree for place in self.worktree_hooks if place.hooks and not place.worktree.is_bare
        )


def examine(
    repository: Repository, environ: Mapping[str, str], *, is_other_directory: bool = False
) -> Diagnosis:
    """Find everything that keeps the hooks from running; changes nothing.

    Args:
        environ: the caller's environment: it may contain git's config, and a hook inherits it.
        is_other_directory: the user named the repository by `-C`, so every remedy names it too.

    Raises:
        PatchgateError: git failed.
    """
    environment = GitEnvironment(repository, environ)
    version = environment.version()
    worktrees = list_worktree_hooks(environment)
    git = "git"
    if is_other_directory:
        git = git_at(repository.work_tree or repository.git_dir)
        worktrees = [replace(each, is_current=False, shares_hooks=False) for each in worktrees]
    there = [each for each in worktrees if each.problem is None]
    worktree_hooks: list[WorktreeHooks] = []
    bare_path_folders: set[str] = set()
    for worktree in worktrees:
        if worktree.problem is not None:
            worktree_hooks.append(WorktreeHooks(worktree, findings=(_unknown(worktree, git),)))
            continue
        events = _events_of(worktree, there)
        worktree_hooks.append(_ask_hooks(environment, environ, worktree, events, version, bare_path_folders))
    known = tuple(place for place in worktree_hooks if place.worktree.problem is None)
    context = DoctorContext(
        repository=repository, environ=environ, git=git, worktree_hooks=known, now=time.time()
    )
    found = [each for probe in PROBES for each in probe(context)]

    def about(worktree: Worktree | None) -> tuple[DoctorFinding, ...]:
        return tuple(finding for place, finding in found if place is worktree)

    whole = [replace(each, findings=(*each.findings, *about(each.worktree))) for each in worktree_hooks]
    compared = compare_environments(repository, environ, [place.worktree for place in known])
    return Diagnosis(version, tuple(whole), about(None), compared)


def _events_of(worktree: Worktree, all_of_them: Sequence[Worktree]) -> tuple[str, ...]:
    """Return the events to check: those of pushes in a bare repository, unless it only has worktrees."""
    if not worktree.is_bare:
        return LOCAL_EVENTS
    is_server = any(worktree.files[event].is_ours for event in SERVER_EVENTS)
    return SERVER_EVENTS if is_server or len(all_of_them) == 1 else ()


def _ask_hooks(
    environment: GitEnvironment,
    environ: Mapping[str, str],
    worktree: Worktree,
    events: Sequence[str],
    git: tuple[int, ...],
    bare_path_folders: set[str],
) -> WorktreeHooks:
    """Start the hooks of a worktree; with the bare PATH, one hook of each hooks folder."""
    local = [event for event in events if event in LOCAL_EVENTS]
    managed = find_managers(worktree.path, {event: worktree.files[event] for event in local})
    hooks = [
        HookProbe(
            event=event,
            file=(file := worktree.files[event]),
            previous=previous_hook(file),
            displaced=displaced_hook(file),
            managed=managed.get(event),
        )
        for event in events
    ]
    with witness_of(environment, environ, worktree) as witness:
        answers = witness.ask_each({hook.event: hook.ours for hook in hooks if hook.ours})
        hooks = [replace(hook, answer=answers.get(hook.event)) for hook in hooks]
        if is_managed(hooks):
            findings = list(managed_findings(hooks, install_command(worktree).line))
            findings += config_findings(worktree, events, git)
        else:
            findings = list(hook_findings(worktree, hooks, git))
        sound = [hook for hook in hooks if hook.is_working]
        if sound and worktree.folder not in bare_path_folders:
            bare_path_folders.add(worktree.folder)
            event = sound[0].event
            found = bare_path_finding(
                event, witness.ask(event, sound[0].file, BARE_PATH), install_command(worktree)
            )
            findings += [found] if found else []
    return WorktreeHooks(worktree, tuple(hooks), tuple(findings))


def _unknown(worktree: Worktree, git: str) -> DoctorFinding:
    if worktree.is_gone:
        return DoctorFinding(Level.NOTE, "the folder of this worktree is gone", f"{git} worktree prune")
    return DoctorFinding(
        Level.ERROR,
        f"this worktree could not be checked: {worktree.problem}",
        f"{git_at(worktree.path)} status",
    )


DOCTOR_SCHEMA = "patchgate.doctor/2"
_MOST_TEXT = 4000


def document(diagnosis: Diagnosis, fixed: Sequence[str] = ()) -> dict[str, Json]:
    """Build the JSON document; `fixed` are the sentences on what was fixed before."""
    return {
        "schema": DOCTOR_SCHEMA,
        "tool": {"version": __version__},
        "git": ".".join(str(part) for part in diagnosis.git),
        "gate_runs": diagnosis.runs,
        "fixed": [*fixed],
        "worktrees": [_worktree(place) for place in diagnosis.worktree_hooks],
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "environment": environment_json(diagnosis.environment),
    }


def _worktree(place: WorktreeHooks) -> dict[str, Json]:
    worktree, setting = place.worktree, place.worktree.hooks_path
    hooks_path: Json = None
    if setting is not None:
        hooks_path = {
            "value": _text(setting.value),
            "scope": setting.scope,
            **place_member("file", setting.file),
        }
    return {
        **place_member("path", worktree.path),
        "bare": worktree.is_bare,
        "gate_runs": place.runs,
        **place_member("hooks_folder", worktree.folder or None),
        "hooks_path": hooks_path,
        "config_hooks": [
            {
                "name": _text(hook.name),
                "command": _text(hook.command),
                "events": [_text(event) for event in hook.events],
                "scope": hook.scope,
                "enabled": hook.is_enabled,
            }
            for hook in worktree.config_hooks
        ],
        "hooks": [_hook(hook) for hook in place.hooks],
        "findings": [_finding(finding) for finding in place.findings],
    }


def _hook(hook: HookProbe) -> dict[str, Json]:
    before, moved, answer = hook.previous, hook.displaced, hook.answer
    through = hook.managed if hook.is_through_manager else None
    return {
        "event": hook.event,
        **place_member("file", hook.file.path),
        "exists": hook.file.exists,
        "executable": hook.file.is_executable,
        "written_by": hook.file.writer or None,
        "format": hook.file.format,
        "chained": None
        if before is None
        else {**place_member("file", before.path), "written_by": before.writer},
        "displaced": None if moved is None else place_member("file", moved.path),
        "patchgate_version": None if answer is None or answer.version is None else _text(answer.version),
        "manager": None
        if through is None
        else {"name": through.by, **place_member("config", through.config)},
    }


def _finding(finding: DoctorFinding) -> dict[str, Json]:
    return {
        "level": finding.level.value,
        "events": [*finding.events],
        "message": finding.what,
        "hint": finding.remedy,
        "fixable": finding.is_fixed_by_install or finding.is_fixed_by_renewal,
    }


def _text(text: str) -> str:
    return printable(text, _MOST_TEXT)


def json_schema() -> Schema:
    """Build the JSON Schema of `patchgate.doctor/2`."""
    finding: Shape = {
        "level": Level,
        "events": [str],
        "message": str,
        "hint": str | None,
        "fixable": about(bool, "`doctor --fix` does it without a question"),
    }
    hook: Shape = {
        "event": str,
        **path_key("file"),
        "exists": bool,
        "executable": bool,
        "written_by": about(str | None, "patchgate, or the tool that wrote the file; null: there is none"),
        "format": int | None,
        "chained": about(
            maybe({**path_key("file"), "written_by": str}), "the hook that was there before, and runs first"
        ),
        "displaced": maybe(path_key("file")),
        "patchgate_version": about(str | None, "of the program that the hook starts; null: it starts none"),
        "manager": about(
            maybe({"name": str, **path_key("config")}),
            "the hook manager that starts patchgate, and its config",
        ),
    }
    config_hook: Shape = {"name": str, "command": str, "events": [str], "scope": str, "enabled": bool}
    worktree: Shape = {
        **path_key("path"),
        "bare": bool,
        "gate_runs": bool,
        **path_key("hooks_folder", str | None),
        "hooks_path": maybe({"value": str, "scope": str, **path_key("file", str | None)}),
        "config_hooks": [config_hook],
        "hooks": [hook],
        "findings": [finding],
    }
    diagnosis: dict[str, Shape] = {
        "tool": {"version": str},
        "git": str,
        "gate_runs": about(bool, "in every worktree"),
        "fixed": [str],
        "worktrees": [worktree],
        "findings": [finding],
        "environment": environment_shape(),
    }
    return document_schema(DOCTOR_SCHEMA, "Whether the hooks of a repository really run", diagnosis)
