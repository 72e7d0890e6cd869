"""Run the commands of an occasion on a change, or use what they answered before; decide what each answer is.

Linters and formatters run first, at the same time; tests only if these let them. One that fails hides no
other. A command that is missing, takes too long, dies or changes what it must not gives no answer: that is
undecided, and only a warning if it is `optional`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.commands.command_answer import Answer, CommandAnswer
from patchgate.commands.command_plan import CommandEnvironment, CommandPlan, answers_of, plan_command
from patchgate.commands.command_target import CommandTarget
from patchgate.commands.programs import NO_TREE, command_environment, locate_program
from patchgate.commands.remembered_answers import RememberedAnswers, answer_with_base
from patchgate.commands.runner import describe_missing, describe_start_fault, show_command, signal_name
from patchgate.git.path import RepoPath
from patchgate.git.quoting import first_of, printable
from patchgate.policy.command_files import expand, needs_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.settings import ThresholdSettings
from patchgate.report.wording import count
from patchgate.values import dataclass, field, replace

if TYPE_CHECKING:
    from patchgate.commands.command_findings import NewFindings
    from patchgate.commands.command_trial import CommandTrial
    from patchgate.commands.remembered_answers import Seen
    from patchgate.git.repository import Repository

_NAMED = 5
TO_TRUST = "git patchgate commands trust"
_AGAIN = "try again"
_READ_ONLY = "make it read only (ruff: --no-fix), or let it write elsewhere"

Named = tuple[str, CommandSettings]


@dataclass(slots=True)
class CommandChecks:
    """The commands of one change.

    `is_trusted` decides whether a command may run; None: all may. `thresholds` are the limits on metrics.
    """

    target: CommandTarget
    environment: CommandEnvironment
    thresholds: Sequence[ThresholdSettings] = ()
    is_trusted: Callable[[str], bool] | None = None
    answers: RememberedAnswers = field(init=False)

    def __post_init__(self) -> None:
        self.answers = _memory(self.target.repository)

    def run(self, commands: Sequence[Named]) -> tuple[CommandAnswer, ...]:
        """Return the answers of the commands that have something to check, in order.

        Args:
            commands: in the order of `ordered_commands`.

        Raises:
            UndecidedError: an object is missing, or the scratch trees cannot be made.
        """
        found: list[CommandAnswer] = []
        for is_test in (False, True):
            named = [
                each for each in commands if (each[1].kind == "test") == is_test and self._has_work(*each)
            ]
            if is_test and not all(each.lets_pass for each in found):
                found += [
                    CommandAnswer(name, settings, Answer.NOT_RUN, reason="was not run: a linter failed")
                    for name, settings in named
                ]
                continue
            found += self._run_phase(named)
        return tuple(found)

    def _has_work(self, name: str, settings: CommandSettings) -> bool:
        if not self.target.concerns(settings):
            return False
        return not needs_files(settings) or bool(self.target.files(settings))

    def _run_phase(self, commands: Sequence[Named]) -> list[CommandAnswer]:
        found: dict[str, CommandAnswer] = {}
        plans: list[CommandPlan] = []
        for name, settings in commands:
            ready = self._prepare(name, settings)
            if isinstance(ready, CommandAnswer):
                found[name] = ready
            else:
                plans.append(ready)

        def use(trial: CommandTrial) -> None:
            found[trial.plan.name] = self._judge(trial)

        if plans:
            # Imported here: what is remembered starts nothing.
            from patchgate.commands.command_trial import run_trials

            run_trials(self.target, plans, self.environment, use)
        return [found[name] for name, _ in commands]

    def _prepare(self, name: str, settings: CommandSettings) -> CommandPlan | CommandAnswer:
        """Return the plan of a command that must run, or the answer of one that need not, or cannot."""
        blank = CommandAnswer(name, settings, Answer.UNKNOWN, shown=show_command(settings.command))
        if self.is_trusted is not None and not self.is_trusted(name):
            reason = "may not run here: it is not in the policy of the trusted ref, or differs from it"
            return replace(blank, rule="command-not-trusted", reason=reason, hint=f"{TO_TRUST} {name}")
        plan = plan_command(name, settings, self.target, self.environment.environ)
        if plan.tool is None:
            variables = command_environment(self.environment.environ, settings.env, NO_TREE)
            reason, hint = describe_missing(locate_program(settings, variables)[1])
            return replace(blank, rule="command-not-started", reason=f"was not started: {reason}", hint=hint)
        if settings.version is not None:
            from patchgate.commands.program_version import version_fault

            fault = version_fault(plan, self.environment.environ, self.answers)
            if fault is not None:
                return replace(blank, rule="command-not-started", reason=fault[0], hint=fault[1])
        if not settings.remember:
            return plan
        known = self._known(plan)
        left = [path for path in plan.files if path not in known]
        if None in known or (settings.per_file and not left):
            return replace(blank, answer=Answer.PASSED, is_remembered=True, files=len(plan.files))
        return replace(plan, files=tuple(left)) if settings.per_file else plan

    def _known(self, plan: CommandPlan) -> set[RepoPath | None]:
        wanted = answers_of(plan, self.target)
        with_base = self._with_base(plan, wanted) if plan.settings.new_only else {}
        kept = self.answers.known(plan.context, [*wanted.values(), *with_base.values()])
        return {path for path, each in wanted.items() if each in kept or with_base.get(path) in kept}

    def _with_base(
        self, plan: CommandPlan, wanted: Mapping[RepoPath | None, str]
    ) -> dict[RepoPath | None, str]:
        """Return by what an answer is known that depends on the tree before, too."""
        if plan.takes_tree:
            base: str | Seen = self.target.change.base
        else:
            moved = self.target.moved()
            base = self.target.before().seen([*(moved.get(path, path) for path in plan.files), *plan.needed])
        return {path: answer_with_base(each, base) for path, each in wanted.items()}

    def _keep(self, plan: CommandPlan, *, depends_on_base: bool) -> None:
        if plan.settings.remember:
            wanted = answers_of(plan, self.target)
            kept = self._with_base(plan, wanted) if depends_on_base else wanted
            self.answers.keep(plan.context, list(kept.values()))

    # ---- what an end means -------------------------------------------------------------------------------

    def _judge(self, trial: CommandTrial) -> CommandAnswer:
        from patchgate.commands.command_output import read_lines, save_log

        plan = trial.plan
        settings = plan.settings
        mask = self.environment.mask_of(settings.env)
        answer = CommandAnswer(
            plan.name,
            settings,
            Answer.PASSED,
            shown=show_command(expand(settings, plan.files), mask),
            seconds=sum(each.seconds for each in trial.ended),
            files=len(plan.files),
        )
        if trial.survivors:
            left = f"{trial.survivors} processes could not be stopped"
            answer = replace(answer, warnings=(f"of the commands, {left}",))
        log = save_log(self.environment.logs, plan.name, [part[2] for part in trial.parts])
        lines, more = read_lines(trial, mask)
        said = replace(answer, lines=lines, more=more, log=log)
        fault = _fault(trial)
        if fault is not None:
            rule, reason, hint = fault
            return replace(said, answer=Answer.UNKNOWN, rule=rule, reason=reason, hint=self._hint(plan, hint))
        if settings.kind != "test" and trial.changed:
            return _changing(said, trial)
        if settings.has_findings:
            return self._judge_findings(trial, answer, log)
        code = max((each.code or 0 for each in trial.ended), default=0)
        if code:
            return _failed(said, f"ended with exit code {code}", self._hint(plan, None))
        self._keep(plan, depends_on_base=False)
        return answer

    def _hint(self, plan: CommandPlan, hint: str | None) -> str | None:
        """Add what it needs and the tree does not have."""
        if not plan.missing:
            return hint
        absent = f"{first_of(plan.missing, _NAMED, printable)}: in `needs`, but not in the tree"
        return absent if hint is None else f"{hint} ({absent})"

    def _judge_findings(self, trial: CommandTrial, answer: CommandAnswer, log: str | None) -> CommandAnswer:
        from patchgate.commands.command_findings import judge_findings

        found = judge_findings(trial, self.target, self.environment, self.answers, self.thresholds)
        plan = trial.plan
        if isinstance(found, tuple):
            reason, hint = found
            return replace(
                answer,
                answer=Answer.UNKNOWN,
                rule="command-no-answer",
                reason=reason,
                hint=self._hint(plan, hint),
                log=log,
            )
        if not found.lines:
            self._keep(plan, depends_on_base=bool(found.old))
            return replace(answer, old=found.old)
        return _with_findings(answer, found, log)


def _memory(repository: Repository) -> RememberedAnswers:
    is_usable = repository.trusts_caches and not repository.is_receiving
    return RememberedAnswers(repository.common_dir, is_usable=is_usable)


def _failed(answer: CommandAnswer, reason: str, hint: str | None = None) -> CommandAnswer:
    rule = "build-failed" if answer.settings.kind == "test" else "lint-failed"
    fix = "fix what it reports, and stage it"
    return replace(answer, answer=Answer.FAILED, rule=rule, reason=reason, hint=hint or fix)


def _with_findings(answer: CommandAnswer, found: NewFindings, log: str | None) -> CommandAnswer:
    what = count(found.count, "new finding" if answer.settings.new_only else "finding")
    was = f" ({found.old} from before)" if found.old else ""
    answer = replace(answer, lines=found.lines, more=found.count - len(found.lines), log=log, old=found.old)
    return replace(_failed(answer, f"has {what}{was}"), path=found.path, line=found.line)


def _changing(answer: CommandAnswer, trial: CommandTrial) -> CommandAnswer:
    """A formatter would change files, or a linter did, and has checked other bytes."""
    named = first_of(trial.changed, _NAMED, lambda path: path.quoted)
    settings = answer.settings
    answer = replace(answer, changed=trial.changed, path=trial.changed[0])
    if settings.kind == "format":
        words = " ".join(word for word in settings.command if word != "{files}")
        hint = f"run {printable(words, 120)} on {'it' if len(trial.changed) == 1 else 'them'}, and stage that"
        return _failed(answer, f"would change {named}", hint)
    rule = "command-side-effects" if settings.side_effects == "none" else "command-changed-files"
    return replace(
        answer,
        answer=Answer.FAILED,
        rule=rule,
        reason=f"changed {named} in the scratch tree, and has checked other bytes",
        hint=_READ_ONLY,
    )


def _fault(trial: CommandTrial) -> tuple[str, str, str | None] | None:
    """Return why a trial is no answer: rule, reason, next step; None if it is one."""
    settings = trial.plan.settings
    if trial.fault is not None:
        is_started = bool(trial.ended)
        return "command-no-answer" if is_started else "command-not-started", *trial.fault
    if trial.written is not None:
        reason = f"wrote to {printable(trial.written, 200)}, a folder of the working tree that is only linked"
        return "command-no-answer", reason, "let it write elsewhere: set the folder of its cache"
    for ended in trial.ended:
        if ended.fault is not None:
            program = printable(settings.command[0], 120)
            why, hint = describe_start_fault(ended, program, _AGAIN)
            return "command-not-started", f"was not started: {why}", hint
        if ended.timed_out:
            hint = "raise its `timeout`, or let it check less"
            return "command-timed-out", f"took longer than {settings.timeout:g} s and was stopped", hint
        if (ended.code or 0) < 0 and not ended.has_flooded:
            hint = "run it directly to see why"
            return "command-no-answer", f"was killed by {signal_name(-(ended.code or 0))}", hint
        if ended.code in {126, 127}:
            reason = f"ended with exit code {ended.code}: a program was not found, or is not executable"
            return "command-not-started", reason, "check its output, and install what is missing"
    return None
