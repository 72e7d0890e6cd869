"""What is known of one contract by its content alone: plain values, kept by the contract's blob oid.

Reading a contract costs pydantic's import and the time of its size; these values cost neither. What
the content does not tell (whether a dependency is there) is for `components.contracts`. Versions, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

VERSION = (
    r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,7}"
    r"(?:[-.]?[A-Za-z][0-9A-Za-z.-]{0,60}|-[0-9A-Za-z][0-9A-Za-z.-]{0,60})?"
    r"(?:\+[0-9A-Za-z][0-9A-Za-z.-]{0,60})?"
)

_Order = tuple[tuple[int, ...], bool, tuple[tuple[int, int, str], ...]]


def version_of(raw: bytes) -> str | None:
    """Find the version that a contract states, even where the rest of it is wrong; None where it is none."""
    # 3 ms to import, and a commit near a component needs no version.
    from patchgate.policy.strict_json import JsonDocument, read_json

    read = read_json(raw)
    if not isinstance(read, JsonDocument) or not isinstance(read.value, dict):
        return None
    version = read.value.get("version")
    return version if isinstance(version, str) and is_version(version) else None


def is_version(text: str) -> bool:
    """Tell whether a text is a version."""
    return re.fullmatch(VERSION, text) is not None


def is_higher(version: str, than: str) -> bool:
    """Tell whether a version is higher than another.

    Raises:
        ValueError: one of them is no version.
    """
    return _order(version) > _order(than)


def _order(text: str) -> _Order:
    if not is_version(text):
        raise ValueError("this is no version")
    plain = text.partition("+")[0]
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", plain)
    numbers = release[0] if release else ""
    later = plain[len(numbers) :]
    # 1.2 is 1.2.0: trailing zeros do not count.
    kept = tuple(int(part) for part in re.sub(r"(?:\.0+)+$", "", numbers).split("."))
    # Numbers come before words, as in Semantic Versioning.
    parts = tuple(
        (0, int(piece), "") if piece.isdecimal() else (1, 0, piece)
        for piece in re.findall(r"[0-9]+|[A-Za-z]+", later)
    )
    return kept, not later, parts


@dataclass(frozen=True, slots=True)
class ContractMistake:
    """One thing wrong in a contract: the rule that tells of it, one sentence, and the next step.

    `where` is the field path (`functions[0].description`), `line` counts from 1; None where there is none.
    """

    rule: str
    message: str
    where: str
    line: int | None
    hint: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that stands in a contract, as it is written, and where."""

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
        tuple(ContractMistake(**each) for each in kept["mistakes"]),
        kept["component_id_line"],
    )
