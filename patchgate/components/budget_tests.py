"""Whether a component's tests assert a performance budget.

A budget is asserted by a test function that is not skipped, names the function, and holds an assertion which
names the measure or compares with the limit. That is a look at words, not a proof: it finds budgets that were
forgotten. Of tests in other languages than Python each line is looked at, in the file as a whole. The time
grows with the tests and the budgets, not with their product: what a test asserts is read once.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patchgate.components.contract_facts import BudgetPromise
from patchgate.components.python_tests import tests_of
from patchgate.git.path import RepoPath

_WORDS = {
    "p95_latency_ms": frozenset({"p95", "latency", "percentile", "quantiles", "milliseconds"}),
    "max_memory_mb": frozenset({"memory", "tracemalloc", "megabytes", "mb"}),
}
_MEASURED = frozenset().union(*_WORDS.values())
# Seconds and nanoseconds; bytes.
_FACTORS = {"p95_latency_ms": (1, 1e-3, 1e6), "max_memory_mb": (1, 1 << 20, 10**6)}
_ASSERTION = re.compile(r"(?<![A-Za-z0-9])_{0,2}(?:assert|expect|require|should)", re.IGNORECASE)
_COMPARISON = re.compile(r"[<>]|less|greater|below|most", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?<![\w.])[0-9][0-9_]*(?:\.[0-9_]+)?(?:e[-+]?[0-9]{1,3})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Asserted:
    """What the assertions of one test say: their words, and the numbers that they compare with, sorted."""

    words: frozenset[str]
    numbers: tuple[float, ...]

    def speaks_of(self, promise: BudgetPromise) -> bool:
        if not self.words.isdisjoint(_WORDS.get(promise.kind, frozenset())):
            return True
        limits = (promise.limit * factor for factor in _FACTORS.get(promise.kind, (1,)))
        return any(self._compares_with(limit) for limit in limits)

    def _compares_with(self, limit: float) -> bool:
        least, most = limit - 1e-9 * abs(limit), limit + 1e-9 * abs(limit)
        place = bisect_left(self.numbers, least)
        return place < len(self.numbers) and self.numbers[place] <= most


class BudgetTests:
    """The tests of one component, read once for all of its budgets."""

    def __init__(self, tests: Mapping[RepoPath, bytes]) -> None:
        self._naming: dict[str, list[_Asserted]] = {}
        for path, content in sorted(tests.items()):
            if path.raw.endswith(b".py"):
                for test in tests_of(content).values():
                    if not test.is_skipped:
                        self._add(test.statements)
            else:
                self._add(tuple(content.decode("utf-8", "surrogateescape").split("\n")))

    def _add(self, statements: tuple[str, ...]) -> None:
        assertions = [each for each in statements if _ASSERTION.search(each)]
        if assertions:
            asserted = _asserted(assertions)
            for name in {name for statement in statements for name in _NAME.findall(statement)}:
                self._naming.setdefault(name, []).append(asserted)

    def asserts(self, promise: BudgetPromise) -> bool:
        """Tell whether some test asserts a budget."""
        return any(each.speaks_of(promise) for each in self._naming.get(promise.function, ()))


def _asserted(assertions: Sequence[str]) -> _Asserted:
    words: set[str] = set()
    numbers: set[float] = set()
    for each in assertions:
        words.update(word.lower() for name in _NAME.findall(each) for word in name.split("_"))
        if _COMPARISON.search(each):
            numbers.update(float(number.replace("_", "")) for number in _NUMBER.findall(each))
    return _Asserted(_MEASURED & words, tuple(sorted(numbers)))
