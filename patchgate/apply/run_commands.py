"""Run the policy's commands in scratch trees with the patch applied, outside the working tree.

Lint commands run first; tests run only if no lint command failed. The commands are those of the policy from
before the patch: a change does not judge itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from patchgate.apply.apply_run import KINDS, ApplyEnvironment, CommandResults
from patchgate.apply.evidence import Evidence
from patchgate.apply.review import CommandRun
from patchgate.apply.scratch_trees import ScratchTrees, TriedCommand, WithoutPatch
from patchgate.check.gate import at_policy_level
from patchgate.commands.environment import prepare_environment
from patchgate.commands.runner import CommandStatus, command_finding
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.scratch import sweep
from patchgate.ledger.masking import Masks
from patchgate.patches.check_patch import PatchVerdict
from patchgate.policy.command import ordered_commands
from patchgate.policy.command_files import CommandFiles, files_of, matching_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.policy import Profile
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Finding, Fixer, GateOutcome, Outcome
from patchgate.values import replace

_DECLARED = 'though it declares side_effects = "none"'
_SHOWN = 20
_GONE_WELL = frozenset({Outcome.PASS, Outcome.NOT_APPLICABLE})


def run_commands(
    repository: Repository,
    judged: PatchVerdict,
    evidence: Evidence,
    environment: ApplyEnvironment,
    *,
    keeps: bool,
) -> CommandResults:
    """Run the commands of the policy in scratch trees with the patch applied; `keeps` keeps the last tree.

    If the environment of the policy is not complete, no command is started.

    Raises:
        UndecidedError: a log cannot be made.
    """
    try:
        if judged.policy is not None:
            shared = judged.policy.config.environment
            environ = prepare_environment(environment.environ, shared, repository.work_tree)
            environment = replace(environment, environ=environ)
        stuck = sweep(repository, environment.cache)
        tried = _CommandRunner(repository, judged, evidence, environment=environment, keeps=keeps).run()
        left = tuple(
            f"{printable(each)} was left by a killed attempt and cannot be removed" for each in stuck
        )
        return replace(tried, warnings=(*tried.warnings, *left))
    except UndecidedError as error:
        return CommandResults(tuple(GateOutcome(kind, Outcome.UNDECIDED, error.sentence) for kind in KINDS))


class _CommandRunner:
    """The commands of one attempt while they run: the result of each, and its findings."""

    def __init__(
        self,
        repository: Repository,
        judged: PatchVerdict,
        evidence: Evidence,
        environment: ApplyEnvironment,
        *,
        keeps: bool,
    ) -> None:
        self._judged = judged
        commands = {} if judged.policy is None else judged.policy.config.commands
        # The report, the review and the bundle are also masked for these secrets.
        evidence.masks = Masks([environment.environ, *(settings.env for settings in commands.values())])
        self._commands = ordered_commands(commands)
        self._files = files_of(judged.verdict.change.files)
        self._trees_with = partial(ScratchTrees.of, repository, judged, evidence, environment)
        self._trees = self._trees_with(judged.verdict.change.files)
        self._trees.keeps = keeps
        self._findings: list[Finding] = []
        self._warnings: list[str] = []
        self._runs: list[CommandRun] = []
        self._ended: dict[str, list[Outcome]] = {kind: [] for kind in KINDS}

    def run(self) -> CommandResults:
        """Run lint, then tests.

        Raises:
            UndecidedError: a log or a scratch tree cannot be made.
        """
        with self._trees:
            for kind in KINDS:
                self._run_kind(kind)
        kept = self._trees.kept
        also = [f"the scratch tree of the lint commands is kept too: {printable(each)}" for each in kept[:-1]]
        return CommandResults(
            gates=tuple(_gate(kind, self._ended[kind], self._findings) for kind in KINDS),
            findings=tuple(self._findings),
            runs=tuple(self._runs),
            warnings=(*self._warnings, *also),
            kept=kept[-1] if kept else None,
            tree=self._trees.tree if self._trees.has_shown_all else None,
        )

    def _run_kind(self, kind: str) -> None:
        said: dict[str, list[Finding]] = {}
        failed: list[tuple[str, CommandSettings, TriedCommand]] = []
        is_stopped = kind == "test" and not _GONE_WELL.issuperset(self._ended["lint"])
        for name, settings in self._commands:
            if (settings.kind == "test") != (kind == "test") or not self._concerns(settings):
                continue
            if is_stopped:
                self._runs.append(CommandRun(name, kind, "not run: lint stopped it"))
                self._ended[kind].append(Outcome.NOT_RUN)
                continue
            ran = self._run(name, settings)
            if ran.outcome.status is CommandStatus.NOTHING_TO_DO:
                self._ended[kind].append(Outcome.NOT_APPLICABLE)
                continue
            # A command that was ended early has judged nothing, so only that is reported.
            has_ended = ran.outcome.status in {CommandStatus.PASSED, CommandStatus.FAILED}
            written = _changed(self._judged, name, settings, ran.changed) if has_ended else None
            said[name] = [each for each in (command_finding(ran.outcome), written) if each is not None]
            if ran.outcome.status is CommandStatus.FAILED:
                failed.append((name, settings, ran))
        if failed:
            self._compare(failed, said)
        for findings in said.values():
            self._findings += findings
            self._ended[kind].append(_outcome_of(findings))

    def _concerns(self, settings: CommandSettings) -> bool:
        """Whether the patch changes a file that a command is for; a deletion counts."""
        chosen = CommandFiles(settings)
        return any(chosen.match(file.path.raw) for file in self._judged.verdict.change.files)

    def _run(self, name: str, settings: CommandSettings) -> TriedCommand:
        files = matching_files(settings, self._files)
        ran = self._trees.run(name, settings, files, log=name, called=name)
        self._warnings.extend(ran.outcome.warnings)
        self._runs.append(ran.for_review(name, settings.kind))
        return ran

    def _compare(
        self, failed: Sequence[tuple[str, CommandSettings, TriedCommand]], said: dict[str, list[Finding]]
    ) -> None:
        """Check for each command that failed whether it also fails without the patch."""
        # Only one tree may be in use.
        self._trees.release()
        try:
            with self._trees_with(()) as trees:
                before = WithoutPatch(trees)
                for name, settings, ran in failed:
                    said[name][0] = before.settle(name, settings, ran, said[name][0])
                self._runs += before.runs
        except UndecidedError as error:
            self._warnings.append(f"the commands could not be run without the patch: {error.message}")


def _outcome_of(findings: list[Finding]) -> Outcome:
    errors = [each for each in findings if each.level is Level.ERROR]
    if any(not each.definition.undecided for each in errors):
        return Outcome.FAIL
    return Outcome.UNDECIDED if errors else Outcome.PASS


def _gate(kind: str, outcomes: list[Outcome], findings: list[Finding]) -> GateOutcome:
    """Combine the results of all commands of a kind."""
    if not set(outcomes) - {Outcome.NOT_APPLICABLE}:
        return GateOutcome(kind, Outcome.NOT_APPLICABLE)
    for worst in (Outcome.FAIL, Outcome.UNDECIDED, Outcome.NOT_RUN):
        if worst in outcomes:
            reasons = [each.message for each in findings if each.definition.undecided]
            return GateOutcome(kind, worst, reasons[0] if worst is Outcome.UNDECIDED and reasons else None)
    return GateOutcome(kind, Outcome.PASS)


def _changed(
    judged: PatchVerdict, name: str, settings: CommandSettings, paths: Sequence[RepoPath]
) -> Finding | None:
    """Report the tracked files that a command changed: it judged other bytes than those that are written."""
    if not paths or judged.policy is None:
        return None
    named = ", ".join(path.quoted for path in paths[:5]) + (", …" if len(paths) > 5 else "")
    is_declared = settings.side_effects == "none"
    if settings.kind == "format":
        what = f"command `{name}` would change {named}"
        return Finding(
            "lint-failed",
            Level.ERROR,
            what,
            path=paths[0],
            hint="send the whole patch again with these files formatted",
            who_can_fix=Fixer.AGENT,
            details={"actual": paths[:_SHOWN], "command": name},
        )
    definition = RULES["command-side-effects" if is_declared else "command-changed-files"]
    # Tests write snapshots and caches; they judge the files as they were at their start.
    level = definition.level if is_declared or settings.kind == "lint" else Level.WARNING
    finding = Finding(
        definition.id,
        level,
        f"command `{name}` changed {named}, "
        + (_DECLARED if is_declared else "and that change is discarded"),
        path=paths[0],
        hint=definition.hint,
        who_can_fix=Fixer.PERSON,
        details={"actual": paths[:_SHOWN], "command": name},
    )
    return at_policy_level(judged.policy, Profile(judged.verdict.profile), finding)
