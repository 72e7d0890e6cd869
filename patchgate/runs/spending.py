"""What one work spends: recorded call by call, and no call that a cap of the run does not allow."""

from __future__ import annotations

import time
from collections.abc import Callable

from patchgate.runs.author import AuthorAnswer
from patchgate.runs.cost import CostBudget, Spend, Usage, record_spend, recorded_spends, total
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult, PhaseTask
from patchgate.runs.triage import FaultKind
from patchgate.values import dataclass, field


@dataclass(slots=True)
class Spending:
    """The calls of one work, and the budget of its run; `own` are the spends of this process."""

    common_dir: str
    task: PhaseTask
    clock: Callable[[], float] = time.time
    budget: CostBudget = field(default_factory=CostBudget)
    own: list[Spend] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """What was spent here, as money."""
        return total(self.own)

    def stop(self) -> PhaseResult | None:
        """Return the result of the phase if no author may be called any more; a maintainer may raise the cap.

        Raises:
            UndecidedError: the ledger cannot be read.
        """
        if self.budget.total is None:
            return None
        reached = self.budget.reached(self.task.phase, recorded_spends(self.common_dir, self.task.run))
        if reached is None:
            return None
        return PhaseResult(
            PhaseOutcome.WAITING,
            f"{self.task.component}: no author is called any more: {reached}",
            f"git patchgate run cost {self.task.run}; raise the cap in [run], then git patchgate run resume "
            f"{self.task.run}",
            kind=FaultKind.BUDGET_SPENT,
        )

    def record(self, author: str, usage: Usage | None) -> None:
        """Record a call with what it has cost, as far as that is known.

        Raises:
            UndecidedError: the ledger cannot be written.
        """
        spend = Spend(self.task.phase, usage or Usage(), self.task.component, author)
        record_spend(self.common_dir, self.task.run, spend, self.clock)
        self.own.append(spend)

    def judge(self, author: str, answer: AuthorAnswer) -> PhaseResult | None:
        """Return the result of the phase if a cap needs to know what a call has cost, and nobody does."""
        if answer.usage_fault is not None:
            said = f"what {author} reports of its cost cannot be used: {answer.usage_fault}"
            if self.budget.total is not None:
                return PhaseResult(
                    PhaseOutcome.FAILED,
                    f"{self.task.component}: {said}",
                    f"fix {author}, and record what it has cost: git patchgate run cost add",
                    kind=FaultKind.AUTHOR_FAILED,
                    subject=f"{author}: usage",
                )
            self._warn(said)
        elif self.budget.total is not None and (answer.usage is None or answer.usage.cost is None):
            self._warn(f"{author} did not report what its call cost, so total_cost does not count it")
        return None

    def _warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)
