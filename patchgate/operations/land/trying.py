"""Trying: the policy's commands run where the patch is already in, away from the working tree.

Decides which commands run and in which order (lint, then tests; the tests only if no lint command stopped
it), in which scratch tree each does, and what their outcomes are for the verdict. The commands are those of
the policy from before the patch: no change judges itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from patchgate.change.path import RepoPath
from patchgate.change.quoting import neutral, printable
from patchgate.declared.command import files_of, in_order
from patchgate.declared.policy import Profile
from patchgate.declared.settings import CommandSettings
from patchgate.errors import UndecidedError
from patchgate.git.repository import Repository
from patchgate.ledger.evidence import Evidence
from patchgate.operations.judge.patches import Judged
from patchgate.operations.land.review import CommandRun
from patchgate.verdict.rules import RULES, Level
from patchgate.verdict.verdict import Finding, Fixer, GateOutcome, Outcome

KINDS = ("lint", "test")
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Tried:
    """What the commands said: gates `lint` and `test`, findings, each run for the review, warnings.

    `kept` is where the scratch tree is that was to be kept, `tree` what stood in it if it was a whole one.
    """

    gates: tuple[GateOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    runs: tuple[CommandRun, ...] = ()
    warnings: tuple[str, ...] = ()
    kept: str | None = None
    tree: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the commands get from outside: their environment, a folder for caches, whom to tell progress."""

    environ: Mapping[str, str]
    cache: str
    tell: Callable[[str, float], None]
    keeps_scratch: bool = False


def try_commands(repository: Repository, judged: Judged, evidence: Evidence, around: Surroundings) -> Tried:
    """Run the commands of the policy in scratch trees that have the patch in.

    Raises:
        UndecidedError: a log cannot be made.
    """
    commands = {} if judged.policy is None else judged.policy.config.commands
    if not commands:
        return Tried(tuple(GateOutcome(kind, Outcome.NOT_APPLICABLE) for kind in KINDS))
    from patchgate.git.scratch import sweep

    try:
        stuck = sweep(repository, around.cache)
        with _Trees(repository, judged, around) as trees:
            tried = _run_all(commands, judged, evidence, trees, around)
        left = tuple(
            f"{printable(place)} is left of a killed attempt and cannot be removed" for place in stuck
        )
        return replace(tried, warnings=(*tried.warnings, *left))
    except UndecidedError as error:
        reason = f"{error.message}; {error.hint}" if error.hint else error.message
        return Tried(tuple(GateOutcome(kind, Outcome.UNDECIDED, reason) for kind in KINDS))


class _Trees:
    """The scratch trees of one attempt, each made when a command first needs it; a context manager."""

    def __init__(self, repository: Repository, judged: Judged, around: Surroundings) -> None:
        from patchgate.git.scratch import Scratch
        from patchgate.git.standing import tried_tree

        self._repository = repository
        self._judged = judged
        self._around = around
        self._held = ExitStack()
        self._made: dict[str, Scratch] = {}
        footing = judged.footing
        self._tree = tried_tree(
            repository, judged.objects, judged.store, footing.policy_tree, judged.verdict.change.files
        )

    def __enter__(self) -> _Trees:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    @property
    def kept(self) -> str | None:
        """Where the last scratch tree is, if it is to be kept."""
        if not self._around.keeps_scratch or not self._made:
            return None
        return list(self._made.values())[-1].path

    @property
    def tree(self) -> str | None:
        """The whole tree that commands saw; None where they saw the touched files alone, or nothing."""
        return self._tree if "tree" in self._made else None

    def path(self, scope: str) -> str:
        """Give the place for commands of a scope, made where it is not there yet."""
        from patchgate.git.scratch import touched_files, whole_tree

        if scope in self._made:
            return self._made[scope].path
        repository, judged, around = self._repository, self._judged, self._around
        if scope == "files":
            paths = [file.path for file in judged.verdict.change.files]
            making = touched_files(
                repository,
                judged.objects,
                judged.store,
                self._tree,
                paths,
                cache=around.cache,
                keep=around.keeps_scratch,
            )
        else:
            making = whole_tree(
                repository,
                judged.store,
                self._tree,
                cache=around.cache,
                commit=judged.footing.head or judged.footing.commit,
                keep=around.keeps_scratch,
            )
        self._made[scope] = self._held.enter_context(making)
        return self._made[scope].path

    def changed(self, scope: str) -> list[RepoPath]:
        """Name the tracked files that a command changed, and put them back."""
        paths = self._made[scope].changed()
        if paths:
            self._made[scope].put_back()
        return paths


def _run_all(
    commands: Mapping[str, CommandSettings],
    judged: Judged,
    evidence: Evidence,
    trees: _Trees,
    around: Surroundings,
) -> Tried:
    from patchgate.ledger.masking import Masks
    from patchgate.tools.outcome import Status, finding_of
    from patchgate.tools.runner import run

    masks = Masks([around.environ, *(settings.env for settings in commands.values())])
    # The report, the review and the bundle are kept without these secrets too.
    evidence.masks = masks
    files = files_of(judged.verdict.change.files)
    findings: list[Finding] = []
    warnings: list[str] = []
    runs: list[CommandRun] = []
    ended: dict[str, list[Outcome]] = {kind: [] for kind in KINDS}
    for name, settings in in_order(commands):
        if settings.kind == "test" and set(ended["lint"]) - {Outcome.PASS, Outcome.NOT_APPLICABLE}:
            runs.append(CommandRun(name, settings.kind, "not run: lint stopped it"))
            ended["test"].append(Outcome.NOT_RUN)
            continue
        place = trees.path(settings.scope)
        outcome = run(
            name,
            settings,
            place=place,
            files=files,
            environ=around.environ,
            log_path=evidence.log_path(name),
            mask=masks.stream(),
            clean=neutral,
            tick=lambda seconds, name=name: around.tell(name, seconds),  # type: ignore[misc]
        )
        warnings.extend(outcome.warnings)
        runs.append(
            CommandRun(
                name,
                settings.kind,
                outcome.status.value,
                outcome.seconds if outcome.log else None,
                outcome.exit_code,
                f"logs/{outcome.log}" if outcome.log else None,
            )
        )
        if outcome.status is Status.NOTHING_TO_DO:
            ended[settings.kind].append(Outcome.NOT_APPLICABLE)
            continue
        changed = trees.changed(settings.scope)
        # One that was ended in the middle has judged nothing, and that is what is reported of it.
        has_ended = outcome.status in {Status.PASSED, Status.FAILED}
        written = _changed(judged, name, settings.kind, changed) if has_ended else None
        said = [each for each in (finding_of(outcome), written) if each is not None]
        findings += said
        ended[settings.kind].append(_outcome_of(said))
    gates = tuple(_gate(kind, ended[kind], findings) for kind in KINDS)
    return Tried(gates, tuple(findings), tuple(runs), tuple(warnings), trees.kept, trees.tree)


def _outcome_of(findings: list[Finding]) -> Outcome:
    errors = [each for each in findings if each.level is Level.ERROR]
    if any(not each.definition.undecided for each in errors):
        return Outcome.FAIL
    return Outcome.UNDECIDED if errors else Outcome.PASS


def _gate(kind: str, outcomes: list[Outcome], findings: list[Finding]) -> GateOutcome:
    """Say how all commands of a kind ended together."""
    if not set(outcomes) - {Outcome.NOT_APPLICABLE}:
        return GateOutcome(kind, Outcome.NOT_APPLICABLE)
    for worst in (Outcome.FAIL, Outcome.UNDECIDED, Outcome.NOT_RUN):
        if worst in outcomes:
            reasons = [each.message for each in findings if each.definition.undecided]
            return GateOutcome(kind, worst, reasons[0] if worst is Outcome.UNDECIDED and reasons else None)
    return GateOutcome(kind, Outcome.PASS)


def _changed(judged: Judged, name: str, kind: str, paths: list[RepoPath]) -> Finding | None:
    """Report the tracked files that a command changed: it has judged other bytes than those that land."""
    if not paths or judged.policy is None:
        return None
    from patchgate.gates.gate import levelled

    named = ", ".join(path.quoted for path in paths[:5]) + (", …" if len(paths) > 5 else "")
    definition = RULES["command-changed-files"]
    # Tests write snapshots and caches; what they judge is what was there when they began.
    level = definition.level if kind == "lint" else Level.WARNING
    finding = Finding(
        definition.id,
        level,
        f"command `{name}` changed {named}, which does not land",
        paths[0],
        hint=definition.fix[:1].lower() + definition.fix[1:],
        who_can_fix=Fixer.PERSON,
        details={
            "pattern": None,
            "limit": None,
            "actual": [path.quoted for path in paths[:_SHOWN]],
            "command": name,
        },
    )
    return levelled(judged.policy, Profile(judged.verdict.profile), finding)
