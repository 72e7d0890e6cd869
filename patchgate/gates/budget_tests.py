"""Whether a component's tests assert a performance budget.

A budget is asserted by a test function that is not skipped, names the function, and holds an assertion which
names the measure or compares with the limit. That is a look at words, not a proof: it finds budgets that were
forgotten. Of tests in other languages than Python each line is looked at, in the file as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from patchgate.change.path import RepoPath
from patchgate.declared.contract_facts import BudgetPromise
from patchgate.gates.python_tests import tests_of

_WORDS = {
    "p95_latency_ms": frozenset({"p95", "latency", "percentile", "quantiles", "milliseconds"}),
    "max_memory_mb": frozenset({"memory", "tracemalloc", "megabytes", "mb"}),
}
# Seconds and nanoseconds; bytes.
_FACTORS = {"p95_latency_ms": (1, 1e-3, 1e6), "max_memory_mb": (1, 1 << 20, 10**6)}
_ASSERTION = re.compile(r"(?<![A-Za-z0-9])_{0,2}(?:assert|expect|require|should)", re.IGNORECASE)
_COMPARISON = re.compile(r"[<>]|less|greater|below|most", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?<![\w.])[0-9][0-9_]*(?:\.[0-9_]+)?(?:e[-+]?[0-9]{1,3})?", re.IGNORECASE)


class BudgetTests:
    """The tests of one component, read once for all of its budgets."""

    def __init__(self, tests: Mapping[RepoPath, bytes]) -> None:
        self._scopes: list[tuple[frozenset[str], tuple[str, ...]]] = []
        for path, content in sorted(tests.items()):
            if path.raw.endswith(b".py"):
                for test in tests_of(content).values():
                    if not test.is_skipped:
                        self._add(test.statements)
            else:
                self._add(tuple(content.decode("utf-8", "surrogateescape").split("\n")))

    def _add(self, statements: tuple[str, ...]) -> None:
        names = frozenset(name for statement in statements for name in _NAME.findall(statement))
        self._scopes.append((names, tuple(each for each in statements if _ASSERTION.search(each))))

    def asserts(self, promise: BudgetPromise) -> bool:
        """Tell whether some test asserts a budget."""
        return any(
            promise.function in names and any(_speaks_of(each, promise) for each in assertions)
            for names, assertions in self._scopes
        )


def _speaks_of(assertion: str, promise: BudgetPromise) -> bool:
    words = {word.lower() for name in _NAME.findall(assertion) for word in name.split("_")}
    if not words.isdisjoint(_WORDS.get(promise.kind, frozenset())):
        return True
    if not _COMPARISON.search(assertion):
        return False
    limits = [promise.limit * factor for factor in _FACTORS.get(promise.kind, (1,))]
    numbers = [float(number.replace("_", "")) for number in _NUMBER.findall(assertion)]
    return any(abs(number - limit) <= 1e-9 * abs(limit) for number in numbers for limit in limits)
