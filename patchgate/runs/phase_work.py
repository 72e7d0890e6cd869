"""The work of one phase of one component: its check, and while that fails its author, under an intent.

The check comes first, so a phase that is repeated after a kill ends in the same tree. An author's answer goes
through `apply`; landings are one after another. Runs in a process of its own: no other child may be started
meanwhile (`process.command`). Which phase is next, and what a fault means for the run, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from patchgate.apply.apply import apply
from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
from patchgate.apply.attempt_records import (
    AttemptRecord,
    find,
    list_chain_since_reset,
    records,
    reset_command,
)
from patchgate.apply.review import feedback
from patchgate.check.policy_lookup import trusted_options
from patchgate.components.policy_tree import PolicyTree, index_tree, resolve_components
from patchgate.errors import PatchgateError, UsageError, ended_attempt
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import first_of
from patchgate.git.repository import Repository, has_pending_transactions
from patchgate.ledger.ledger import Ledger
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.component import Component, Components
from patchgate.report import wording
from patchgate.report.verdict import ChangeVerdict, Report, Verdict
from patchgate.runs.author import MOST_ANSWER, AuthorCall, ask_author, author_of, may_change
from patchgate.runs.cost import CostBudget, recorded_spends
from patchgate.runs.landing import landing, nobody_else_lands, stage
from patchgate.runs.phase_checks import check_phase
from patchgate.runs.phase_intent import PhaseIntent
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult, PhaseTask, WorkEnvironment
from patchgate.runs.phases import Phase
from patchgate.runs.provenance import write_provenance
from patchgate.runs.run_questions import ask_questions
from patchgate.runs.spending import Spending
from patchgate.runs.triage import FaultKind
from patchgate.runs.work_results import (
    feedback_in,
    limit_advice,
    note_of_check,
    result_of_error,
    result_of_verdict,
    tail_of_notes,
)
from patchgate.runs.worktree_changes import (
    Changes,
    Look,
    changed_since,
    look_at,
    look_at_git_files,
    unstaged,
)
from patchgate.values import dataclass, field, replace

__all__ = ["PhaseOutcome", "PhaseResult", "PhaseTask", "WorkEnvironment", "perform"]

# Somebody else changed HEAD or the index during an `apply`: the same patch is tried again.
_MOST_COLLISIONS = 3
_CAPTURING = frozenset({Phase.IMPLEMENTATION, Phase.INTEGRATION})
_NAMED = 5


def perform(
    repository: Repository,
    task: PhaseTask,
    environment: WorkEnvironment,
    *,
    most_answer: int = MOST_ANSWER,
) -> PhaseResult:
    """Do the work of one phase; every fault is a value.

    Args:
        repository: with a working tree.
        task: what to do.
        environment: inputs from outside.
        most_answer: the most bytes of an author's answer.
    """
    began = environment.monotonic()
    work = _PhaseWork(replace(repository, prefix=""), task, environment, most_answer)
    try:
        result = work.result()
    except (PatchgateError, OSError) as error:
        work.note_attempt(error)
        result = result_of_error(task, error)
    work.tell_provenance()
    return replace(
        result,
        attempts=tuple(work.attempts),
        files=tuple(path.quoted for path in work.files),
        warnings=work.warnings(),
        cost=work.spending.cost,
        seconds=environment.monotonic() - began,
    )


@dataclass(slots=True)
class _PhaseWork:
    """One phase while it is worked on: what was tried, and what is to be said to the author.

    `meanwhile` are files that somebody changed while the author ran. `retry_of` is the refused attempt that
    the next one continues. `failing` is what the check says, `refusal` why the last answer was
    refused, both for the author. `is_unstaged` is whether its baseline could not be staged.
    """

    repository: Repository
    task: PhaseTask
    environment: WorkEnvironment
    most_answer: int
    attempts: list[str] = field(default_factory=list)
    files: dict[RepoPath, None] = field(default_factory=dict)
    components: Components = field(default_factory=lambda: Components({}))
    meanwhile: dict[RepoPath, None] = field(default_factory=dict)
    retry_of: str | None = None
    failing: str = ""
    refusal: str = ""
    is_unstaged: bool = False
    spending: Spending = field(init=False)

    def __post_init__(self) -> None:
        self.spending = Spending(self.repository.common_dir, self.task, self.environment.clock)

    def result(self) -> PhaseResult:
        """Check, and ask the author while the check fails.

        Raises:
            PatchgateError: something could not be read, written or started.
            OSError: the system refused something.
        """
        self.environment.require_wanted()
        if has_pending_transactions(self.repository.common_dir):
            with self._landing():
                pass
        intent = PhaseIntent(self.repository, self.task, self.environment)
        intent.clear_leftover()
        content, component = self._content()
        self.components = content.policy.components
        self.spending.budget = CostBudget.of(content.policy.config.run)
        author = author_of(content.policy, self.task.phase)
        check = self._check()
        if check is not None and check.outcome is not PhaseOutcome.FAILED:
            return check
        if author is None:
            return check or self._passed("there is no author for this phase, and nothing to check")
        if check is None and any(each.applied for each in self._tried()):
            return self._passed("its author has answered in this run")
        limit = content.policy.config.apply.max_attempts
        self.failing = "" if check is None else note_of_check(check)
        if (stop := self._join_chain(limit)) is not None:
            return stop
        if (refused := intent.declare(component)) is not None:
            return refused
        try:
            return self._ask(author, component, limit, intent)
        finally:
            intent.clear()

    def warnings(self) -> tuple[str, ...]:
        """Say what was changed meanwhile, without harm to this work."""
        found = list(self.spending.warnings)
        if self.meanwhile:
            found.append(f"changed while its author ran, by it or by somebody else: {_shown(self.meanwhile)}")
        if self.is_unstaged:
            found.append("its baseline could not be staged: git add .patchgate/baselines")
        return tuple(found)

    def tell_provenance(self) -> None:
        """Write beside each file of this work where it came from, also if the work failed after that."""
        if not (made := [each for each in self._tried() if each.applied]):
            return
        try:
            spends = recorded_spends(self.repository.common_dir, self.task.run)
            with nobody_else_lands(self.repository, self.environment), Objects(self.repository) as objects:
                content = index_tree(self.repository, objects)
                resolve_components(content.components, [self.task.component], "the index")
                said = write_provenance(self.repository, self.task, content, made, spends)
        except (PatchgateError, OSError) as error:
            said = [f"where its files came from could not be written: {wording.safe(str(error))}"]
        self.spending.warnings += [each for each in said if each not in self.spending.warnings]

    def note_attempt(self, error: BaseException) -> None:
        """Note the attempt that an error ended."""
        if (ended := ended_attempt(error)) is not None:
            self.attempts.append(ended.id)

    def _content(self) -> tuple[PolicyTree, Component]:
        with Objects(self.repository) as objects:
            content = index_tree(self.repository, objects)
            (component,) = resolve_components(content.components, [self.task.component], "the index")
            return content, component

    def _check(self) -> PhaseResult | None:
        checked = check_phase(self.repository, self.task, self.environment)
        if checked is not None and checked.has_passed and self.task.phase in _CAPTURING:
            own = self.components[self.task.component]
            self.is_unstaged = not stage(self.repository, self.environment, own.baseline)
        return checked

    def _passed(self, reason: str) -> PhaseResult:
        return PhaseResult(PhaseOutcome.PASSED, f"{self.task.component}: {reason}")

    def _tried(self) -> list[AttemptRecord]:
        """List the attempts at this work, oldest first, those before a kill too."""
        known = records(Ledger(self.repository.common_dir), f'"{self.task.name}"')
        here = self.repository.work_tree
        return [each for each in known if each.run == self.task.name and each.work_tree == here]

    def _landed(self) -> list[RepoPath]:
        """List what answers of this work have written, before a kill too, and nobody has committed since."""
        written = {file.path for each in self._tried() if each.applied for file in each.files}
        changed = look_at(self.repository) if written else {}
        return sorted(path for path in written if path in changed)

    def _join_chain(self, limit: int) -> PhaseResult | None:
        """Continue the chain of refusals of this work; return the result if no attempt is left in it."""
        tried = [each for each in self._tried() if each.counts or each.applied]
        ledger = Ledger(self.repository.common_dir)
        last = tried[-1] if tried else None
        if last is None and self.task.retry_of is not None:
            last = find(ledger, self.task.retry_of)
        if last is None or not last.counts:
            return None
        chain = list_chain_since_reset(ledger, last.chain)
        if any(each.applied for each in chain):
            return None
        self.retry_of, self.refusal = last.attempt, feedback_in(last.dir)
        refused = sum(each.counts for each in chain)
        if refused < limit:
            return None
        hint = reset_command(last.attempt)
        return self._exhausted(min(refused, limit), hint, _cause(chain), ", and was not asked again")

    def _exhausted(self, number: int, hint: str, rule: str, more: str = "") -> PhaseResult:
        answers = wording.count(number, "answer")
        reason = f"{answers} of its author did not pass{more}: a maintainer has to look at it"
        if landed := self._landed():
            reason += f"; what landed of them is staged: {_shown(landed)}"
        return PhaseResult(
            PhaseOutcome.WAITING,
            f"{self.task.component}: {reason}",
            f"read the evidence{limit_advice(rule)}, then run {hint}",
            tail=tail_of_notes(self.failing, self.refusal),
            kind=FaultKind.PATCH_REFUSED,
            subject=rule,
        )

    def _ask(
        self, author: tuple[str, CommandSettings], component: Component, limit: int, intent: PhaseIntent
    ) -> PhaseResult:
        """Ask the author until the check passes, at most as often as a patch may be refused."""
        why, answers = FaultKind.ANSWER_UNUSABLE.value, ask_questions(self.repository)
        before_this = len(self._tried())
        for number in range(before_this + 1, before_this + limit + 1):
            self.environment.require_wanted()
            intent.renew()
            recorded = Ledger(self.repository.common_dir).size()
            before, git_files = look_at(self.repository), self._look_at_git_files()
            own = [each for each in unstaged(before) if may_change(component, self.task.phase, each)]
            if own:
                return self._in_the_way(own)
            if (stop := self.spending.stop()) is not None:
                return stop
            call = AuthorCall(
                name=author[0],
                settings=author[1],
                task=self.task,
                failing=self.failing,
                refusal=self.refusal,
                number=number,
                answers=answers,
                spent=partial(self.spending.record, author[0]),
                most_answer=self.most_answer,
            )
            answer = ask_author(self.repository, call, intent.active)
            self.environment.require_wanted()
            if (spoiled := self.spending.judge(author[0], answer)) is not None:
                return spoiled
            changed = self._changed(before, recorded, component)
            behind = [path.quoted for path in changed.wrong]
            now = self._look_at_git_files()
            behind += sorted(name for name in {*git_files, *now} if git_files.get(name) != now.get(name))
            if behind:
                return self._changed_behind(author[0], behind)
            self.meanwhile.update(dict.fromkeys(changed.other))
            if answer.ending is not None:
                return answer.ending
            self.refusal = answer.refusal or ""
            if answer.patch is None:
                continue
            landed = self._land(answer.patch, component, intent)
            if isinstance(landed, PhaseResult):
                return landed
            if not landed:
                continue
            # Before the check: a work whose baseline is written is not done again after a kill.
            self.tell_provenance()
            check = self._check()
            if check is None:
                return self._passed("its author has answered")
            if check.outcome is not PhaseOutcome.FAILED:
                return check
            self.failing = note_of_check(check)
            is_own = check.kind in {None, FaultKind.CHECK_FAILED, FaultKind.TESTS_FAILED}
            why = "" if is_own else f"{check.kind} {check.subject}".strip()
        return self._exhausted(limit, f"git patchgate run resume {self.task.run}", why)

    def _changed(self, before: Look, recorded: int, component: Component) -> Changes:
        """List what was changed past `apply` while the author ran."""
        found = changed_since(self.repository, before, recorded, component, self.components)
        if not (found.wrong or found.other):
            return found
        # Another landing may be half written: nobody lands while we look again.
        with nobody_else_lands(self.repository, self.environment):
            return changed_since(self.repository, before, recorded, component, self.components)

    def _look_at_git_files(self) -> Mapping[str, object]:
        return look_at_git_files(self.repository, self.environment.environ)

    def _changed_behind(self, author: str, changed: Sequence[str]) -> PhaseResult:
        named = first_of(changed, _NAMED)
        return PhaseResult(
            PhaseOutcome.FAILED,
            f"{self.task.component}: changed while {author} ran, and not by its answer: {named}",
            f"undo what it did, or git add what you did; then git patchgate run resume {self.task.run}",
            kind=FaultKind.AUTHOR_FAILED,
            subject=author,
        )

    def _in_the_way(self, own: Sequence[RepoPath]) -> PhaseResult:
        return PhaseResult(
            PhaseOutcome.WAITING,
            f"{self.task.component}: not as it is in the index, which is what an author sees: {_shown(own)}",
            f"git add, stash or remove that, then git patchgate run resume {self.task.run}",
        )

    def _land(self, patch: bytes, component: Component, intent: PhaseIntent) -> bool | PhaseResult:
        """Apply an answer, one after another with those of other phases.

        It is tried beside others: what is refused makes nobody wait.

        Returns:
            Whether it landed or may be corrected; the result of the phase if neither is so.
        """
        report = self._apply(patch, component, intent, self._landing)
        if _has_collided(report):
            # Others have landed since it was tried: now they wait.
            with self._landing():
                for _ in range(_MOST_COLLISIONS):
                    report = self._apply(patch, component, intent, nullcontext)
                    if not _has_collided(report):
                        break
        # The undecided verdict of an attempt that was stopped for this says nothing more.
        self.environment.require_wanted()
        return self._read(report, report.changes[0])

    def _landing(self) -> AbstractContextManager[None]:
        return landing(self.repository, self.environment)

    def _apply(
        self,
        patch: bytes,
        component: Component,
        intent: PhaseIntent,
        landing: Callable[[], AbstractContextManager[None]],
    ) -> Report:
        self.environment.require_wanted()
        report = self._try_to_apply(patch, component, intent, landing)
        if report.attempt is not None:
            self.attempts.append(report.attempt.id)
        return report

    def _try_to_apply(
        self,
        patch: bytes,
        component: Component,
        intent: PhaseIntent,
        landing: Callable[[], AbstractContextManager[None]],
    ) -> Report:
        request = ApplyRequest(
            patch,
            trusted_options(self.repository),
            retry_of=self.retry_of,
            with_index=True,
            is_fine_if_applied=True,
            run=self.task.name,
            may_touch=lambda path: may_change(component, self.task.phase, path),
        )
        place = ApplyEnvironment(
            self.environment.environ,
            self.environment.cache,
            intent.report,
            self.environment.clock,
            before_write=self.environment.require_wanted,
            landing=landing,
        )
        try:
            return apply(self.repository, request, place)
        except UsageError:
            if self.retry_of is None:
                raise
            # Somebody else finished the chain meanwhile: this begins another one.
            self.retry_of = None
            return apply(self.repository, replace(request, retry_of=None), place)

    def _read(self, report: Report, verdict: ChangeVerdict) -> bool | PhaseResult:
        """Read the verdict on an answer; a refusal is what the author gets next."""
        if report.verdict is Verdict.ACCEPTED:
            self.retry_of, self.refusal = None, ""
            if report.attempt is not None and report.attempt.applied:
                self.files.update(dict.fromkeys(file.path for file in verdict.change.files))
            return True
        if report.verdict is Verdict.UNDECIDED or report.retry is None:
            return result_of_verdict(self.task, report, verdict)
        said = feedback_in(report.attempt.dir if report.attempt else None)
        said = said or feedback(report, has_next=False)
        self.refusal = f"{self.refusal}\n\n{said}" if self.refusal else said
        if not report.retry.allowed:
            chain = list_chain_since_reset(Ledger(self.repository.common_dir), report.retry.chain or "")
            return self._exhausted(report.retry.of, report.retry.command, _cause(chain))
        self.retry_of = report.attempt.id if report.attempt else None
        return False


def _shown(paths: Iterable[RepoPath]) -> str:
    return first_of(list(paths), _NAMED, lambda path: path.quoted)


def _cause(chain: Sequence[AttemptRecord]) -> str:
    """Return the rule by which the newest answer was refused that was no echo of the one before it."""
    rules = [rule for each in reversed(chain) for rule in each.rules if not rule.startswith("retry-")]
    return next(iter(rules), "")


def _has_collided(report: Report) -> bool:
    return report.changes[0].fallback_reason == "concurrent-change"
