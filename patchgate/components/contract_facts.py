"""What the content of one contract says: plain values, cached by the contract's blob id.

Reading a contract costs the import of pydantic and time by its size; these values cost neither. What depends
on other files (whether a dependency exists) is checked in `components.contracts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchgate.values import asdict, dataclass


@dataclass(frozen=True, slots=True)
class ContractMistake:
    """One mistake in a contract: its rule, one sentence, and the next step.

    `where` is the field path (`functions[0].description`), `line` counts from 1; None if there is none.
    `unnamed` are the mistakes that the sentence only counts.
    """

    rule: str
    message: str
    where: str
    line: int | None
    hint: str
    unnamed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in a contract, as written, and its place."""

    name: str
    where: str
    line: int | None


@dataclass(frozen=True, slots=True)
class BudgetPromise:
    """A performance budget that a contract promises: `kind` is p95_latency_ms or max_memory_mb."""

    function: str
    kind: str
    limit: float
    where: str
    line: int | None


@dataclass(frozen=True, slots=True)
class ContractFacts:
    """The facts of one contract; of an unreadable one (`is_readable` false) only the mistakes are known."""

    is_readable: bool
    component_id: str | None = None
    version: str | None = None
    dependencies: tuple[Reference, ...] = ()
    externals: tuple[Reference, ...] = ()
    budgets: tuple[BudgetPromise, ...] = ()
    mistakes: tuple[ContractMistake, ...] = ()
    component_id_line: int | None = None


def facts_to_json(facts: ContractFacts) -> dict[str, Any]:
    """Write facts as plain JSON."""
    return asdict(facts)


def facts_from_json(kept: Mapping[str, Any]) -> ContractFacts:
    """Read what `facts_to_json` wrote."""
    return ContractFacts(
        kept["is_readable"],
        kept["component_id"],
        kept["version"],
        tuple(Reference(**each) for each in kept["dependencies"]),
        tuple(Reference(**each) for each in kept["externals"]),
        tuple(BudgetPromise(**each) for each in kept["budgets"]),
        tuple(
            ContractMistake(**(each | {"unnamed": tuple(each.get("unnamed", ()))}))
            for each in kept["mistakes"]
        ),
        kept["component_id_line"],
    )
