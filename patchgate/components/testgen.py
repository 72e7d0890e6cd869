"""Generate a component's tests from its contract, in `HEAD` or the index (`component tests`).

Decides which modules contain the implementation (by the config alone), and how the pytest module is written.
"""

from __future__ import annotations

import keyword
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from patchgate.components.component_cache import FactsCache, facts_at
from patchgate.components.contract_facts import ContractMistake
from patchgate.components.policy_tree import head_tree, index_tree, resolve_components
from patchgate.errors import ConfigError, Mistake, UsageError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.policy.component import Component, literal_start
from patchgate.values import dataclass

if TYPE_CHECKING:
    from patchgate.components.contract_model import Contract, Function

_MOST_COMMENT = 60
_SHOWN = 20
_COLLECTIONS = {"list": "list", "sequence": "list", "tuple": "tuple", "set": "set", "frozenset": "frozenset"}


class ValueKinds:
    """How JSON becomes values of a contract's types: collections, bytes, and its own types.

    A kind is read from the outside in: `list[Point]` is list, Point. Plain JSON values have no kind.
    """

    def __init__(self, types: Mapping[str, Mapping[str, str]]) -> None:
        self._types = types
        self.used = False

    def of(self, written: str) -> list[str]:
        """Read a type; empty if JSON's value is right, or the type is ambiguous."""
        text = written.strip()
        parts = [each.strip() for each in _split(text, "|")]
        if len(parts) > 1:
            some = [each for each in parts if each != "None"]
            return self.of(some[0]) if len(some) == 1 else []
        if text in self._types or text == "bytes":
            return [text]
        outer, bracket, inner = text.partition("[")
        outer = outer.rpartition(".")[2]
        arguments = [each.strip() for each in _split(inner.removesuffix("]"), ",")] if bracket else []
        if outer == "Optional":
            return self.of(arguments[0]) if len(arguments) == 1 else []
        if outer in {"dict", "Dict", "Mapping"}:
            below = self.of(arguments[1]) if len(arguments) == 2 else []
            return ["dict", *below] if below else []
        kind = _COLLECTIONS.get(outer.lower())
        if kind is None:
            return []
        below = self.of(arguments[0]) if arguments and set(arguments[1:]) <= {"..."} else []
        return [] if kind == "list" and not below else [kind, *below]

    def table(self) -> dict[str, dict[str, list[str]]]:
        """List the fields of the contract's types that have a kind."""
        return {
            name: {field: kind for field, text in fields.items() if (kind := self.of(text))}
            for name, fields in self._types.items()
        }


def _split(text: str, separator: str) -> list[str]:
    """Split a type at a separator outside brackets."""
    parts = [""]
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def as_literal(value: Any, depth: int = 0) -> str:
    """Write a JSON value as an ASCII Python literal, formatted as by `ruff format`.

    Items are on separate lines, with a comma at the end, so no formatter joins them.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        # JSON's 1e999 is infinite, and so is Python's.
        return repr(value).replace("inf", "1e999").replace("e+", "e")
    if value is None or isinstance(value, bool | int):
        return repr(value)
    opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    if not value:
        return opening + closing
    inside = "    " * (depth + 1)
    if isinstance(value, Mapping):
        items = [f"{_text(str(key))}: {as_literal(each, depth + 1)}" for key, each in value.items()]
    else:
        items = [as_literal(each, depth + 1) for each in value]
    lines = "".join(f"{inside}{item},\n" for item in items)
    return f"{opening}\n{lines}{'    ' * depth}{closing}"


def _text(value: str) -> str:
    """Write a string in the quotes that a formatter would choose."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + value.encode("unicode_escape").decode("ascii").replace(quote, "\\" + quote) + quote


def as_comment(text: str) -> str:
    """Write any text so that it fits one line of a comment."""
    shown = printable(text, _MOST_COMMENT).replace("\t", " ")
    plain = shown.encode("ascii", "backslashreplace").decode("ascii")
    return " ".join(plain.split()) or "nothing is said"


# A test's name fits one line of 79 characters.
_MOST_NAME = 40
_NO_INPUTS = "no example says with which inputs to call it"
# Parts that only some tests need, in the order of the module, and what only they import.
_HELPERS = {
    "error_class": ("import builtins\n", "\nimport pytest\n"),
    "kept": (),
    "measure_latency": ("import time\n",),
    "measure_memory": ("import tracemalloc\n",),
}
_BUDGETS = {"p95_latency_ms": "measure_latency", "max_memory_mb": "measure_memory"}


@cache
def _parts() -> dict[str, str]:
    """Read the functions that are copied, by the name of each part."""
    support = resources.files("patchgate.components") / "testgen_template.py"
    _, *pieces = support.read_text("ascii").split("# Part ")
    named = (piece.partition("\n") for piece in pieces)
    return {name: text.rstrip("\n") + "\n" for name, _, text in named}


@dataclass(frozen=True, slots=True)
class Origin:
    """Values from the config: the component's id, its contract's path, where its modules are."""

    id: str
    contract: str
    source_roots: tuple[str, ...]
    modules: tuple[str, ...]


def module_text(contract: Contract, origin: Origin) -> str:
    """Write the whole module, ended by a line feed."""
    writer = _Writer(contract)
    for function in contract.functions:
        writer.write(function)
    parts = _parts()
    fresh = parts["fresh_made" if writer.kinds.used else "fresh"].replace("def fresh_made", "def fresh")
    helpers = [parts[name] for name in _HELPERS if name in writer.needed]
    return "\n\n".join(
        [_head(contract, origin, writer), parts["find"], fresh, parts["same"], *helpers, *writer.pieces]
    )


def _head(contract: Contract, origin: Origin, writer: _Writer) -> str:
    imports = _parts()["imports"]
    for line in (each for name, lines in _HELPERS.items() if name not in writer.needed for each in lines):
        imports = imports.replace(line, "")
    constants = {
        "COMPONENT": origin.id,
        "VERSION": contract.version,
        "CONTRACT": origin.contract,
        "SOURCE_ROOTS": list(origin.source_roots),
        "MODULES": list(origin.modules),
    }
    lines = [f"{name} = {as_literal(value)}" for name, value in constants.items()]
    if writer.kinds.used:
        lines.append(f"TYPES: dict[str, dict[str, list[str]]] = {as_literal(writer.kinds.table())}")
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
            imports,
            *lines,
            "",
        ]
    )


def untested_budgets(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield function and measure of each budget without a test, because no example has inputs."""
    for function in contract.functions:
        if not _example_inputs(function):
            for kind in _BUDGETS:
                if getattr(function.performance_budget, kind, None) is not None:
                    yield function.name, kind


def _example_inputs(function: Function) -> list[Mapping[str, Any]]:
    """Return the inputs with which a function is called to measure it; empty if there are none."""
    given: list[Mapping[str, Any]] = [each.inputs for each in function.examples]
    return given if given or function.inputs else [{}]


class _Writer:
    """Writes the tests, and collects what they need; no name is used twice."""

    def __init__(self, contract: Contract) -> None:
        types = {each.name: {field.name: field.type for field in each.fields} for each in contract.types}
        self.kinds = ValueKinds(types)
        self.pieces: list[str] = []
        self.needed: set[str] = set()
        self._names: set[str] = set()
        # All lower numbers are taken.
        self._next: dict[tuple[str, str], int] = {}

    def write(self, function: Function) -> None:
        self._test(function, "is_there", {})
        for number, example in enumerate(function.examples, 1):
            case = {**self._inputs(function, example.inputs), "output": example.output}
            self._test(function, "example", case, number=number)
        untested: list[str] = []
        for number, error in enumerate(function.error_cases, 1):
            if error.inputs is None:
                why = f" ({as_comment(error.condition)})" if error.condition else ""
                untested.append(f"error case {number}, {as_comment(error.error)}: no inputs say when{why}")
                continue
            case = {**self._inputs(function, error.inputs), "error": error.error}
            self._test(function, "error", case, "error_class", number)
        untested += self._repeated(function)
        if untested:
            comment = [
                f"# Not tested of {function.name[:_MOST_NAME]}:",
                *(f"# - {each}" for each in untested),
            ]
            self.pieces.append("\n".join(comment) + "\n")

    def _repeated(self, function: Function) -> Iterator[str]:
        """Write the tests that call a function with the inputs of all its examples; yield the untested."""
        given = _example_inputs(function)
        case = self._inputs(function, *given, listed=True)
        if function.idempotent:
            if given:
                self._test(function, "is_idempotent", case, "kept")
            else:
                yield f"idempotent: {_NO_INPUTS}"
        for kind, helper in _BUDGETS.items():
            limit = getattr(function.performance_budget, kind, None)
            if limit is None:
                continue
            if not given:
                yield f"{kind}: {_NO_INPUTS}"
                continue
            limit = int(limit) if limit == int(limit) else limit
            self._test(function, kind, {**case, kind: limit}, helper)

    def _inputs(self, function: Function, *given: Mapping[str, Any], listed: bool = False) -> dict[str, Any]:
        """Return the part of a case with the inputs of the call, and the types to convert them to."""
        used = {name for each in given for name in each}
        kinds = {each.name: self.kinds.of(each.type) for each in function.inputs if each.name in used}
        kinds = {name: kind for name, kind in kinds.items() if kind}
        self.kinds.used = self.kinds.used or bool(kinds)
        inputs = list(given) if listed else given[0]
        return {"inputs": inputs, **({"kinds": kinds} if kinds else {})}

    def _test(
        self, function: Function, part: str, case: Mapping[str, Any], helper: str = "", number: int = 0
    ) -> None:
        """Write a test of a part of `testgen_template`; `number` distinguishes those of one part."""
        what = f"{part}_{number}" if number else part
        short = function.name[:_MOST_NAME]
        name, next_number = f"test_{short}_{what}", self._next.get((short, what), 2)
        while name in self._names:
            name, next_number = f"test_{short}_{next_number}_{what}", next_number + 1
        self._names.add(name)
        self._next[short, what] = next_number
        self.needed.add(helper)
        written = as_literal({"function": function.name, **case}, 1)
        body = _parts()[part].partition(" -> None:\n")[2]
        self.pieces.append(f"def {name}() -> None:\n    case: Case = {written}\n{body}")


@dataclass(frozen=True, slots=True)
class GeneratedTests:
    """A module of tests; `is_staged_otherwise`: whether the index has another contract.

    `untested` are the budgets without a test: the function, safe to print, and the measure.
    """

    text: str
    is_staged_otherwise: bool
    untested: tuple[tuple[str, str], ...] = ()


def generate_tests(repository: Repository, name: str, *, cached: bool = False) -> GeneratedTests:
    """Generate the tests of a component from its contract, as a pytest module.

    Args:
        cached: take the contract, and what declares the component, from the index instead of `HEAD`.

    Raises:
        UsageError: there is no such component, it has no contract, or nothing to test.
        ConfigError: the contract, or the policy beside it, cannot be used.
    """
    with Objects(repository) as objects:
        content = (index_tree if cached else head_tree)(repository, objects)
        where = content.place
        (component,) = resolve_components(content.components, [name], where)
        entry = content.view.entry(component.contract.raw)
        place = component.contract.quoted
        if entry is None:
            hint = "git add it first" if cached else "commit it first, or git add it and use --staged"
            raise UsageError(f"{where} has no {place}, the contract of {name}", hint)
        with FactsCache.of(repository) as cache:
            facts = facts_at(content.view, component.contract, cache)
        if facts is None:
            raise UsageError(f"{place} is not a regular file", "replace it with the contract")
        # An unreadable contract may be too large to read.
        raw = objects.read(entry.oid) if facts.is_readable else b""
        otherwise = not cached and _is_staged_otherwise(repository, component.contract, entry.oid)
    from patchgate.components.contract_reading import read_contract

    contract = read_contract(raw)
    if contract is None:
        raise _unreadable(component.contract, facts.mistakes)
    if not contract.functions:
        message = f"the contract of {name} has no functions"
        raise UsageError(message, "add one to `functions`, with examples")
    roots = content.policy.config.baselines.source_roots
    modules = tuple(modules_of(component, roots))
    if not modules:
        raise UsageError(
            f"no implementation pattern of {name} begins with a Python module",
            "use a pattern below a folder of [baselines] source_roots, like src/shaping/**",
        )
    origin = Origin(name, component.settings.contract, roots, modules)
    untested = tuple((printable(function, 80), kind) for function, kind in untested_budgets(contract))
    return GeneratedTests(module_text(contract, origin), otherwise, untested)


def _is_staged_otherwise(repository: Repository, path: RepoPath, oid: str) -> bool:
    """Return whether the index has another file there; a conflict is one."""
    if repository.work_tree is None:
        return False
    place = os.fsdecode(path.raw)
    listed = repository.output("ls-files", "-z", "--stage", "--", f":(top,literal){place}")
    oids = [each.partition(b" ")[2][: len(oid)].decode("ascii") for each in listed.split(b"\0") if each]
    return any(each != oid for each in oids)


def modules_of(component: Component, roots: Sequence[str]) -> Iterator[str]:
    """List the modules and packages that the patterns of an implementation begin with, as they are imported.

    Each is relative to the longest source root of its pattern. Names that no module can have are left out.
    """
    starts = (RepoPath(literal_start(glob)) for glob in component.settings.implementation)
    found = (_module(start, roots) for start in starts)
    yield from dict.fromkeys(each for each in found if each is not None)


def _module(start: RepoPath, roots: Sequence[str]) -> str | None:
    folders = sorted((_folder(each) for each in roots), key=len, reverse=True)
    holding = next((each for each in folders if not each or start.is_within(each)), None)
    if holding is None:
        return None
    below = start.raw[len(holding) :].strip(b"/").decode("utf-8", "surrogateescape")
    parts = below.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    # Non-ASCII names have several encodings; file systems and Python agree only on ASCII.
    if not parts or not all(each.isascii() and each.isidentifier() for each in parts):
        return None
    return None if any(keyword.iskeyword(each) for each in parts) else ".".join(parts)


def _folder(root: str) -> bytes:
    parts = [each for each in root.split("/") if each not in {"", "."}]
    return "/".join(parts).encode("utf-8", "surrogateescape")


def _unreadable(path: RepoPath, mistakes: Sequence[ContractMistake]) -> ConfigError:
    wrong = [each for each in mistakes if each.rule == "contract-invalid"] or list(mistakes)
    shown = (
        Mistake(
            path.quoted,
            each.line,
            key=printable(each.where),
            message=printable(each.message),
            hint=printable(each.hint),
        )
        for each in wrong[:_SHOWN]
    )
    return ConfigError(tuple(shown))
