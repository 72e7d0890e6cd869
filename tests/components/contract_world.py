"""Contracts to try: a good one that has everything, and ways to change one thing in it."""

from __future__ import annotations

import copy
import json
from typing import Any

GOOD: dict[str, Any] = {
    "component_id": "shaping",
    "version": "1.2.0",
    "description": "Shapes orders.",
    "dependencies": ["schemas", "Store"],
    "external_dependencies": ["lib.money", "data/rates.json"],
    "types": [
        {
            "name": "Order",
            "description": "What was ordered.",
            "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": "Order | None"}],
        }
    ],
    "functions": [
        {
            "name": "shape",
            "description": "Gives the order in its shape.",
            "inputs": [{"name": "order", "type": "Order"}, {"name": "rates", "type": "dict[str, Decimal]"}],
            "output": {"type": "list[tuple[int, ...]]"},
            "error_cases": [{"error": "ValueError", "condition": "no id", "inputs": {"order": {}}}],
            "invariants": ["The result is sorted."],
            "side_effects": [{"kind": "logging", "target": "stderr", "description": "one line"}],
            "idempotent": True,
            "performance_budget": {"p95_latency_ms": 100, "max_memory_mb": 1.5, "complexity": "O(n)"},
            "examples": [{"inputs": {"order": {"id": 1}, "rates": {}}, "output": [[1, 2.0]]}],
        },
        {"name": "reset", "side_effects": [{"kind": "none"}]},
    ],
    "invariants": ["No order is lost."],
}


def good() -> dict[str, Any]:
    """Give a good contract to change."""
    return copy.deepcopy(GOOD)


def with_value(path: str, value: Any) -> dict[str, Any]:
    """Give a good contract with another value at a place, like `functions.0.name`."""
    contract = good()
    holder: Any = contract
    *above, last = [int(part) if part.isdecimal() else part for part in path.split(".")]
    for part in above:
        holder = holder[part]
    if isinstance(holder, list) and last == len(holder):
        holder.append(value)
    else:
        holder[last] = value
    return contract


def raw_of(contract: Any) -> bytes:
    """Write a contract, a member on each line."""
    return json.dumps(contract, indent=2).encode()
