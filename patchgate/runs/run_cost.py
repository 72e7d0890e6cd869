"""What a run has cost: gathered, added to by hand, and shown as text and as JSON (`patchgate.run-cost/1`)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from patchgate.components.policy_tree import index_tree
from patchgate.errors import PatchgateError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.report.json import json_line
from patchgate.report.schema import Schema, Shape, about, document_schema, map_of, one_of
from patchgate.report.wording import count, safe
from patchgate.runs.cost import (
    CostBudget,
    Spend,
    Usage,
    UsageReportError,
    money,
    record_spend,
    spends_of,
    total,
)
from patchgate.runs.phases import PHASES, Phase
from patchgate.runs.run_record import find_run, keep
from patchgate.runs.run_state import KIND
from patchgate.storage.record import Json
from patchgate.values import dataclass

SCHEMA = "patchgate.run-cost/1"


@dataclass(frozen=True, slots=True)
class RunCost:
    """What a run has spent, and what the policy of the index lets it spend."""

    run: str
    spends: tuple[Spend, ...]
    budget: CostBudget
    warnings: tuple[str, ...]


def cost_of_run(repository: Repository, name: str | None) -> RunCost:
    """Add up what a run has cost.

    Raises:
        UsageError: there is no such run.
        UndecidedError: the ledger cannot be read.
    """
    run = find_run(repository, name).id
    warnings: list[str] = []
    events = Ledger(repository.common_dir).find_events({KIND}, f'"run":"{run}"', strict=True)
    spends = spends_of(events, run, warnings.append)
    budget = CostBudget()
    try:
        with Objects(repository) as objects:
            budget = CostBudget.of(index_tree(repository, objects).policy.config.run)
    except PatchgateError as error:
        warnings.append(f"the caps are not known: {error.message}")
    return RunCost(run, tuple(spends), budget, tuple(warnings))


def add_cost(
    repository: Repository,
    name: str | None,
    phase: Phase,
    component: str | None,
    report: Mapping[str, object],
) -> str:
    """Record what a person says was spent for a run, the newest one without a name; return its id.

    Raises:
        UsageError: there is no such run, it has no such component, or the amount is none.
        UndecidedError: the ledger cannot be read or written.
    """
    state = find_run(repository, name)
    if component is not None and component not in state.plan.phases:
        raise UsageError(
            f"the run {state.id} has no component {printable(component, 60)}",
            f"git patchgate run show {state.id}",
        )
    try:
        usage = Usage.from_plain(report)
    except UsageReportError as error:
        raise UsageError(error.message, "write the amount like 2.50") from error
    record_spend(repository.common_dir, state.id, Spend(phase, usage, component), time.time)
    keep(repository, find_run(repository, state.id))
    return state.id


def cost_text(cost: RunCost) -> list[str]:
    """Write what a run has cost as lines: the whole, then each phase."""
    unknown = sum(each.usage.cost is None for each in cost.spends)
    whole = f"{cost.run}: {money(total(cost.spends))}"
    if cost.budget.total is not None:
        whole += f" of {money(cost.budget.total)}"
    whole += f" in {count(len(cost.spends), 'call')}, {_tokens(cost.spends)}"
    lines = [whole + (f"; {count(unknown, 'call')} without a cost" if unknown else "")]
    for phase, each in cost.budget.summary(cost.spends).items():
        line = f"  {phase.value}: {money(each.spent)}"
        if each.cap is not None and each.remaining is not None:
            line += f" of {money(each.cap)}, {money(each.remaining)} left"
        lines.append(line)
    models = sorted({each.usage.model for each in cost.spends if each.usage.model is not None})
    lines += [f"  {safe(each)}: {_of_model(cost.spends, each)}" for each in models]
    unnamed = [each for each in cost.spends if each.usage.model is None]
    if models and unnamed:
        lines.append(f"  without a model: {_of_calls(unnamed)}")
    return [*lines, *(f"warning: {safe(each)}" for each in cost.warnings)]


def _of_model(spends: Sequence[Spend], model: str) -> str:
    return _of_calls([each for each in spends if each.usage.model == model])


def _of_calls(spends: Sequence[Spend]) -> str:
    return f"{money(total(spends))} in {count(len(spends), 'call')}, {_tokens(spends)}"


def _tokens(spends: Sequence[Spend]) -> str:
    given, got = (
        sum(getattr(each.usage, name) for each in spends) for name in ("input_tokens", "output_tokens")
    )
    return f"{given:,} tokens in, {got:,} out"


def cost_json(cost: RunCost) -> str:
    """Write what a run has cost as a JSON document."""
    phases: dict[str, Json] = {
        phase.value: {"spent": each.spent, "cap": each.cap, "remaining": each.remaining}
        for phase, each in cost.budget.summary(cost.spends).items()
    }
    return json_line(
        {
            "schema": SCHEMA,
            "run": cost.run,
            "cost": total(cost.spends),
            "total_cost": cost.budget.total,
            "phases": phases,
            "calls": [each.plain() for each in cost.spends],
            "warnings": list(cost.warnings),
        }
    )


def cost_schema() -> Schema:
    """Return the schema of what a run has cost."""
    phase: Shape = {
        "spent": float,
        "cap": about(float | None, "null: it has no share of its own"),
        "remaining": float | None,
    }
    call: Shape = {
        "phase": one_of(*(phase.value for phase in PHASES)),
        "component": about(str | None, "null: added for the phase as a whole"),
        "author": about(str | None, "the command that reported it; null: a person did"),
        "model": str | None,
        "input_tokens": int,
        "output_tokens": int,
        "cost": about(float | None, "null: not known"),
    }
    return document_schema(
        SCHEMA,
        "What a run has cost",
        {
            "run": str,
            "cost": float,
            "total_cost": about(float | None, "what it may cost, by the policy of the index"),
            "phases": map_of(phase),
            "calls": [call],
            "warnings": [str],
        },
    )
