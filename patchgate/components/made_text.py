"""Write the tests that hold a component to its contract: a module for pytest, as text.

Decides which promises become tests, and how these are named and laid out. The text depends on the contract
and the config alone, and is ASCII, so that it is the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from patchgate.components import made_support as support
from patchgate.components.made_values import Kinds, comment, literal

if TYPE_CHECKING:
    from patchgate.components.contract import Contract, Function

# A test's name stands on one line of 79 characters.
_MOST_NAME = 40
_NO_INPUTS = "no example says with which inputs to call it"
_IMPORTS = ("asyncio", "copy", "functools", "importlib", "inspect", "math", "pkgutil", "sys")
_FROM = (
    "from collections.abc import Collection, Iterator, Mapping, Set",
    "from decimal import Decimal",
    "from enum import Enum",
    "from pathlib import Path",
    "from typing import Any",
)
# What only some tests need, in the order of the module: the functions, and what they import.
_HELPERS = (
    (support.ERROR, "builtins"),
    (support.IDEMPOTENCE, "copy"),
    (support.LATENCY, "time"),
    (support.MEMORY, "tracemalloc"),
)
_BUDGETS = (
    ("p95_latency_ms", support.LATENCY, "measure_latency", "ms"),
    ("max_memory_mb", support.MEMORY, "measure_memory", "MiB"),
)
_IS_THERE = ('assert find(case["function"]) is not None',)
_EXAMPLE = (
    'result = run(find(case["function"]), fresh(case))',
    'expected = case["output"]',
    'assert same(result, expected), f"{result!r} is not {expected!r}"',
)
# What is not the function's own call stands before `raises`: its errors prove nothing.
_ERROR = (
    'function = find(case["function"])',
    'error = error_class(case["error"])',
    "inputs = fresh(case)",
    "with pytest.raises(error):",
    "    run(function, inputs)",
)
_IDEMPOTENT = (
    'function = find(case["function"])',
    'for number in range(len(case["inputs"])):',
    "    first = kept(run(function, fresh(case, number)))",
    "    second = run(function, fresh(case, number))",
    '    assert same(second, first), f"first {first!r}, then {second!r}"',
)


@dataclass(frozen=True, slots=True)
class Origin:
    """What the config says of the component: its id, its contract's path, where its modules are."""

    id: str
    contract: str
    source_roots: tuple[str, ...]
    modules: tuple[str, ...]


def module_text(contract: Contract, origin: Origin) -> str:
    """Write the whole module, ended by a line feed."""
    writer = _Writer(contract)
    for function in contract.functions:
        writer.write(function)
    helpers = [text for text, _ in _HELPERS if text in writer.needed]
    fresh = support.FRESH_AND_MADE if writer.kinds.used else support.FRESH
    return "\n\n".join(
        [_head(contract, origin, writer), support.FIND, fresh, support.SAME, *helpers, *writer.pieces]
    )


def _head(contract: Contract, origin: Origin, writer: _Writer) -> str:
    imported = {*_IMPORTS, *(name for text, name in _HELPERS if text in writer.needed)}
    imports = [*(f"import {name}" for name in sorted(imported)), *_FROM]
    if support.ERROR in writer.needed:
        imports += ["", "import pytest"]
    constants = {
        "COMPONENT": origin.id,
        "VERSION": contract.version,
        "CONTRACT": origin.contract,
        "SOURCE_ROOTS": list(origin.source_roots),
        "MODULES": list(origin.modules),
    }
    lines = [f"{name} = {literal(value)}" for name, value in constants.items()]
    if writer.kinds.used:
        lines.append(f"TYPES: dict[str, dict[str, list[str]]] = {literal(writer.kinds.table())}")
    return "\n".join(
        [
            "# ruff: noqa",
            f'"""What the contract of {origin.id} promises, as tests.',
            "",
            f"Made by `git patchgate component tests {origin.id}`.",
            "Do not edit: run the command again when the contract changes.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            *imports,
            "",
            *lines,
            "",
        ]
    )


def untested_budgets(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield function and measure of each budget that no test is made of, for no example gives inputs."""
    for function in contract.functions:
        if not _given(function):
            for kind, _, _, _ in _BUDGETS:
                if getattr(function.performance_budget, kind, None) is not None:
                    yield function.name, kind


def _given(function: Function) -> list[Mapping[str, Any]]:
    """Give the inputs with which a function is called to measure it; none where nobody knows any."""
    given: list[Mapping[str, Any]] = [each.inputs for each in function.examples]
    return given if given or function.inputs else [{}]


class _Writer:
    """The tests as they are written, with what they need; no name is given twice."""

    def __init__(self, contract: Contract) -> None:
        types = {each.name: {field.name: field.type for field in each.fields} for each in contract.types}
        self.kinds = Kinds(types)
        self.pieces: list[str] = []
        self.needed: set[str] = set()
        self._names: set[str] = set()
        # Below it every number is taken.
        self._next: dict[tuple[str, str], int] = {}

    def write(self, function: Function) -> None:
        """Write the tests of one function, and what of it is not tested."""
        self._test(function, "is_there", {}, _IS_THERE)
        for number, example in enumerate(function.examples, 1):
            case = {**self._inputs(function, example.inputs), "output": example.output}
            self._test(function, f"example_{number}", case, _EXAMPLE)
        untested: list[str] = []
        for number, error in enumerate(function.error_cases, 1):
            if error.inputs is None:
                why = f" ({comment(error.condition)})" if error.condition else ""
                untested.append(f"error case {number}, {comment(error.error)}: no inputs say when{why}")
                continue
            case = {**self._inputs(function, error.inputs), "error": error.error}
            self._test(function, f"error_{number}", case, _ERROR, support.ERROR)
        untested += self._repeated(function)
        if untested:
            told = [f"# Not tested of {function.name[:_MOST_NAME]}:", *(f"# - {each}" for each in untested)]
            self.pieces.append("\n".join(told) + "\n")

    def _repeated(self, function: Function) -> Iterator[str]:
        """Write the tests that call a function with the inputs of all its examples; yield what has none."""
        given = _given(function)
        case = self._inputs(function, *given, listed=True)
        if function.idempotent:
            if given:
                self._test(function, "is_idempotent", case, _IDEMPOTENT, support.IDEMPOTENCE)
            else:
                yield f"idempotent: {_NO_INPUTS}"
        for kind, helper, measure, unit in _BUDGETS:
            limit = getattr(function.performance_budget, kind, None)
            if limit is None:
                continue
            if not given:
                yield f"{kind}: {_NO_INPUTS}"
                continue
            limit = int(limit) if limit == int(limit) else limit
            lines = (
                f"measured = {measure}(case)",
                f'assert measured <= case["{kind}"], f"{{measured:.3f}} {unit}"',
            )
            self._test(function, kind, {**case, kind: limit}, lines, helper)

    def _inputs(self, function: Function, *given: Mapping[str, Any], listed: bool = False) -> dict[str, Any]:
        """Give the part of a case that says with which inputs to call, and what to make of them."""
        used = {name for each in given for name in each}
        kinds = {each.name: self.kinds.of(each.type) for each in function.inputs if each.name in used}
        kinds = {name: kind for name, kind in kinds.items() if kind}
        self.kinds.used = self.kinds.used or bool(kinds)
        inputs = list(given) if listed else given[0]
        return {"inputs": inputs, **({"kinds": kinds} if kinds else {})}

    def _test(
        self, function: Function, what: str, case: Mapping[str, Any], lines: Sequence[str], helper: str = ""
    ) -> None:
        short = function.name[:_MOST_NAME]
        name, number = f"test_{short}_{what}", self._next.get((short, what), 2)
        while name in self._names:
            name, number = f"test_{short}_{number}_{what}", number + 1
        self._names.add(name)
        self._next[short, what] = number
        self.needed.add(helper)
        written = literal({"function": function.name, **case}, 1)
        body = "".join(f"    {line}\n" for line in lines)
        self.pieces.append(f"def {name}() -> None:\n    case: Case = {written}\n{body}")
