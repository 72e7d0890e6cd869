"""Read a contract: bytes in, facts out, all mistakes at once, each with its field path and line.

Decides what is wrong by the content alone, not whether dependencies exist (`component_names`). Everything
except the shape is checked in the values as written, so that a wrong key hides no other mistake.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic import ValidationError

from patchgate.check.vague_phrases import vague_phrases
from patchgate.components.contract_facts import BudgetPromise, ContractFacts, ContractMistake, Reference
from patchgate.components.contract_model import MAX_TYPE, Contract, modern_effects
from patchgate.components.contract_types import KNOWN_TYPES, TypeTextError, did_you_mean_type, names_in
from patchgate.git.quoting import printable
from patchgate.policy.strict_json import JsonDocument, JsonFault, JsonPath, dotted, read_json

MOST_MISTAKES = 100
MAX_SUGGESTIONS = 50
# Errors; if there are too many mistakes, these are kept first.
_ERRORS = frozenset({"contract-invalid", "contract-type-unknown", "side-effects-empty", "side-effects-mixed"})
_INVALID = "contract-invalid"


def facts_of(raw: bytes) -> ContractFacts:
    """Read a contract; its mistakes are sorted by line, at most 100, plus one for each rule with more.

    Those come last, each at the line of the first mistake that it counts.
    """
    return _read(raw)[0]


def read_contract(raw: bytes) -> Contract | None:
    """Read a contract as its model; None if `facts_of` has a mistake of the rule contract-invalid."""
    facts, contract = _read(raw)
    return None if any(mistake.rule == _INVALID for mistake in facts.mistakes) else contract


def _read(raw: bytes) -> tuple[ContractFacts, Contract | None]:
    document = read_json(raw)
    if not isinstance(document, JsonFault) and not isinstance(document.value, dict):
        document = JsonFault("a contract is a JSON object", document.line_of(()), "begin it with {")
    if isinstance(document, JsonFault):
        fault = ContractMistake(_INVALID, document.message, "", document.line, document.hint)
        return ContractFacts(False, mistakes=(fault,)), None
    contract: Contract | None = None
    found = list(_doubled_keys(document))
    try:
        contract = Contract.model_validate(document.value)
    except ValidationError as error:
        from patchgate.components.contract_model import shape_mistakes

        found += shape_mistakes(error.errors(include_url=False), document)
    if document.doubled:
        contract = None
    found += _of_content(document, are_types_known=not any(each.where[:5] == "types" for each in found))
    mistakes = _bounded(found)
    if contract is None:
        return ContractFacts(False, mistakes=mistakes), None
    facts = ContractFacts(
        is_readable=True,
        component_id=contract.component_id,
        version=contract.version,
        dependencies=tuple(_references(document, "dependencies", contract.dependencies)),
        externals=tuple(_references(document, "external_dependencies", contract.external_dependencies)),
        budgets=tuple(_budgets(document, contract)),
        mistakes=mistakes,
        component_id_line=document.line_of(("component_id",)),
    )
    return facts, contract


def _bounded(found: list[ContractMistake]) -> tuple[ContractMistake, ...]:
    if len(found) > MOST_MISTAKES:
        found.sort(key=lambda mistake: (mistake.rule not in _ERRORS, mistake.line or 0))
        left: dict[str, list[ContractMistake]] = {}
        for mistake in found[MOST_MISTAKES:]:
            left.setdefault(mistake.rule, []).append(mistake)
        kept = sorted(found[:MOST_MISTAKES], key=lambda mistake: mistake.line or 0)
        # Rule by rule, because a policy may make any rule an error.
        for rule, rest in left.items():
            message = f"{len(rest):,} more not shown"
            hint = "fix those that are shown, then run it again"
            unnamed = tuple(f"`{each.where}`: {each.message}" for each in rest)
            kept.append(ContractMistake(rule, message, "", rest[0].line, hint, unnamed))
        return tuple(kept)
    return tuple(sorted(found, key=lambda mistake: mistake.line or 0))


def _references(document: JsonDocument, key: str, names: tuple[str, ...]) -> Iterator[Reference]:
    for index, name in enumerate(names):
        yield Reference(name, dotted((key, index)), document.line_of((key, index)))


def _budgets(document: JsonDocument, contract: Contract) -> Iterator[BudgetPromise]:
    known: set[str] = set()
    for index, function in enumerate(contract.functions):
        # If a name occurs twice, the first counts; the other is reported as a mistake.
        if function.performance_budget is None or function.name in known:
            continue
        known.add(function.name)
        for kind in ("p95_latency_ms", "max_memory_mb"):
            limit = getattr(function.performance_budget, kind)
            place = ("functions", index, "performance_budget", kind)
            if limit is not None:
                yield BudgetPromise(function.name, kind, limit, dotted(place), document.line_of(place))


def _doubled_keys(document: JsonDocument) -> Iterator[ContractMistake]:
    for place, line in document.doubled:
        message = f"the key occurs twice, first on line {document.line_of(place)}"
        yield ContractMistake(_INVALID, message, dotted(place), line, "remove one of them")


def _of_content(document: JsonDocument, *, are_types_known: bool) -> Iterator[ContractMistake]:
    """Find mistakes in the values of a contract of any shape."""
    value: dict[str, Any] = document.value
    yield from _doubled_names(document)
    for place, function in _objects(value, (), "functions"):
        yield from _side_effects(document, place, function)
    for place, text in _texts(value):
        for _, _, words in vague_phrases(text):
            message = f'it says "{" ".join(words.split())}", which cannot be checked'
            hint = "write something that can be checked, or remove the words"
            yield _mistake(document, "contract-vague", place, message, hint)
    if are_types_known:
        yield from _types(document)


def _mistake(document: JsonDocument, rule: str, place: JsonPath, message: str, hint: str) -> ContractMistake:
    return ContractMistake(rule, message, dotted(place), document.line_of(place), hint)


def _objects(value: dict[str, Any], above: JsonPath, key: str) -> Iterator[tuple[JsonPath, dict[str, Any]]]:
    """Return the objects in a list, with their places; a wrong shape is reported elsewhere."""
    listed = value.get(key)
    for index, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, dict):
            yield (*above, key, index), each


def _strings(value: dict[str, Any], above: JsonPath, *keys: str) -> Iterator[tuple[JsonPath, str]]:
    """Return the strings at some keys, and in the lists there."""
    for key in keys:
        held = value.get(key)
        if isinstance(held, str):
            yield (*above, key), held
        for index, each in enumerate(held if isinstance(held, list) else ()):
            if isinstance(each, str):
                yield (*above, key, index), each


def _doubled_names(document: JsonDocument) -> Iterator[ContractMistake]:
    value: dict[str, Any] = document.value
    functions, types = (list(_objects(value, (), key)) for key in ("functions", "types"))
    yield from _twice(document, "function", _named(functions))
    yield from _twice(document, "type", _named(types))
    for place, each in types:
        yield from _twice(document, "field", _named(_objects(each, place, "fields")))
    for place, each in functions:
        yield from _twice(document, "input", _named(_objects(each, place, "inputs")))
    for key in ("dependencies", "external_dependencies"):
        yield from _twice(document, "dependency", _strings(value, (), key))


def _named(objects: Any) -> Iterator[tuple[JsonPath, str]]:
    for place, each in objects:
        if isinstance(each.get("name"), str):
            yield (*place, "name"), each["name"]


def _twice(
    document: JsonDocument, what: str, names: Iterator[tuple[JsonPath, str]]
) -> Iterator[ContractMistake]:
    first: dict[str, JsonPath] = {}
    for place, name in names:
        before = first.setdefault(name, place)
        if before is not place:
            line = document.line_of(before)
            message = f"the {what} `{printable(name, 60)}` occurs twice, first on line {line}"
            yield _mistake(document, _INVALID, place, message, "remove or rename one of them")


def _side_effects(
    document: JsonDocument, place: JsonPath, function: dict[str, Any]
) -> Iterator[ContractMistake]:
    written = function.get("side_effects")
    here = (*place, "side_effects")
    mistake = partial(_mistake, document)
    if written in (None, []) or written == "":
        hint = 'list each one, or write [{"kind": "none"}]'
        yield mistake("side-effects-empty", here, "the function lists no side effects", hint)
        return
    for each, text in _strings(function, place, "side_effects"):
        (taken,) = modern_effects(text)
        keys = ("kind",) if taken["kind"] == "none" else ("kind", "target")
        plain = json.dumps({key: taken[key] for key in keys}, ensure_ascii=False)
        message = "this side effect is a plain string, as in older contracts"
        yield mistake("contract-outdated", each, message, f"write {printable(plain, 200)}")
    effects = modern_effects(written)
    if not isinstance(effects, list):
        return
    kinds = [each.get("kind") if isinstance(each, dict) else None for each in effects]
    if "none" in kinds and any(kind != "none" for kind in kinds):
        first = (*here, kinds.index("none"))
        message = "`none` is listed with other side effects"
        yield mistake("side-effects-mixed", first, message, "remove `none`, or the others")
    if function.get("idempotent") is True and "writes_file" in kinds:
        first = (*here, kinds.index("writes_file"))
        hint = "check that a second call leaves the same file, and say so in its description"
        yield mistake("side-effects-idempotent", first, "the function is idempotent and writes a file", hint)
    for index, each in enumerate(effects):
        target = each.get("target", "") if isinstance(each, dict) else None
        if isinstance(target, str) and not target.strip() and kinds[index] != "none":
            at = (*here, index, "target")
            yield mistake(_INVALID, at, "the side effect has no target", "name what it reads or changes")


def _texts(value: dict[str, Any]) -> Iterator[tuple[JsonPath, str]]:
    """Return the texts of a contract that are prose."""
    yield from _strings(value, (), "description", "invariants")
    for place, each in _objects(value, (), "types"):
        yield from _strings(each, place, "description")
    for place, function in _objects(value, (), "functions"):
        yield from _strings(function, place, "description", "invariants", "side_effects")
        for inner, case in _objects(function, place, "error_cases"):
            yield from _strings(case, inner, "condition")
        for inner, effect in _objects(function, place, "side_effects"):
            yield from _strings(effect, inner, "description")


def _types(document: JsonDocument) -> Iterator[ContractMistake]:
    """Find the unknown types."""
    value: dict[str, Any] = document.value
    own: set[str] = {name for _, name in _named(_objects(value, (), "types"))}
    written: list[tuple[JsonPath, str]] = []
    for place, each in _objects(value, (), "types"):
        for inner, declared in _objects(each, place, "fields"):
            written += _strings(declared, inner, "type")
    for place, function in _objects(value, (), "functions"):
        for inner, declared in _objects(function, place, "inputs"):
            written += _strings(declared, inner, "type")
        if isinstance(function.get("output"), dict):
            written += _strings(function["output"], (*place, "output"), "type")
        own.update(
            case["error"]
            for _, case in _objects(function, place, "error_cases")
            if isinstance(case.get("error"), str)
        )
    guesses = 0
    for place, text in written:
        # Too long or blank: reported as a wrong shape.
        if not text.strip() or len(text) > MAX_TYPE:
            continue
        try:
            unknown = dict.fromkeys(
                name for name in names_in(text) if name not in KNOWN_TYPES and name not in own
            )
        except TypeTextError as error:
            message = f"`{printable(text, 60)}` is not a type: {error}"
            hint = "write it as in Python, like dict[str, list[int]] or str | None"
            yield _mistake(document, "contract-type-unknown", place, message, hint)
            continue
        for name in unknown:
            guesses += 1
            guess = did_you_mean_type(name[:100], sorted(own)) if guesses <= MAX_SUGGESTIONS else None
            otherwise = "declare it in `types`, or prefix it with its module"
            hint = f"did you mean `{guess}`?" if guess else otherwise
            message = f"the type `{printable(name, 60)}` is not known"
            yield _mistake(document, "contract-type-unknown", place, message, hint)
