"""A component's contract (`interface.json`) as pydantic models, and their mistakes in plain words.

Decides the shapes, and which words may be names: generated tests contain them, so no name can be code.
`contract_reading` reads a whole contract.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from patchgate.components.contract_facts import ContractMistake
from patchgate.components.contract_versions import VERSION, is_version
from patchgate.git.quoting import printable
from patchgate.policy.strict_json import JsonDocument, JsonPath, dotted
from patchgate.policy.validators import COMPONENT_ID, TextError, check_id

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_BUDGET = 1_000_000_000
MAX_TYPE = 1000
MAX_REFERENCE = 400
IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]{0,99}"
# Those of Python since 3.7, as a fixed list, so that every Python gives the same answer.
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """False None True and as assert async await break class continue def del elif else except finally for
        from global if import in is lambda nonlocal not or pass raise return try while with yield""",
    )
)
KINDS = ("none", "reads_file", "writes_file", "network_call", "mutates_state", "logging")
SideEffectKind: TypeAlias = Literal[
    "none", "reads_file", "writes_file", "network_call", "mutates_state", "logging"
]


def _check_identifier(text: str) -> str:
    if not re.fullmatch(IDENTIFIER, text):
        raise TextError(
            f"`{printable(text, 60)}` is not a name",
            "use up to 100 of A-Z, a-z, 0-9 and _, not beginning with a digit",
        )
    if text in KEYWORDS:
        raise TextError(f"`{text}` is a keyword of Python", "choose another name")
    return text


def _check_dotted(text: str) -> str:
    if len(text) > MAX_REFERENCE:
        raise TextError(f"a name has at most {MAX_REFERENCE} characters", "write a shorter one")
    for part in text.split("."):
        _check_identifier(part)
    return text


def _check_version(text: str) -> str:
    if not is_version(text):
        raise TextError(
            f"`{printable(text, 60)}` is not a version",
            "write it like 1.2.0, or 1.2.0-rc.1 for a pre-release",
        )
    return text


def _check_reference(text: str) -> str:
    if not text.strip() or len(text) > MAX_REFERENCE or not text.isprintable():
        raise TextError(
            f"a dependency is a name of 1 to {MAX_REFERENCE} characters, without control characters",
            "name a component, a module or a path",
        )
    return text


def _check_external(text: str) -> str:
    _check_reference(text)
    if text.startswith("/") or "\\" in text or ".." in text.split("/") or re.match(r"[A-Za-z]:", text):
        raise TextError(
            f"`{printable(text, 60)}` points outside the repository",
            "name a module, or a path from a source root, with / between the folders",
        )
    return text


def _check_type(text: str) -> str:
    if not text.strip() or len(text) > MAX_TYPE:
        raise TextError(f"a type has 1 to {MAX_TYPE} characters", "write it as in Python, like list[str]")
    return text


def _pattern(expression: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{expression}$"})


Identifier = Annotated[str, AfterValidator(_check_identifier), _pattern(IDENTIFIER)]
Dotted = Annotated[str, AfterValidator(_check_dotted), _pattern(rf"{IDENTIFIER}(?:\.{IDENTIFIER})*")]
Id = Annotated[str, AfterValidator(check_id), _pattern(COMPONENT_ID)]
Version = Annotated[str, AfterValidator(_check_version), _pattern(VERSION)]
Reference = Annotated[str, AfterValidator(_check_reference)]
External = Annotated[str, AfterValidator(_check_external)]
TypeText = Annotated[str, AfterValidator(_check_type)]
Budget = Annotated[float, Field(ge=1, le=MAX_BUDGET)]
Values: TypeAlias = dict[Identifier, Any]
# JSON has lists, a frozen model has tuples: so the container is lax, its elements are strict.
LIST = Field(default=(), strict=False)


class ContractPart(BaseModel):
    """An object of a contract: strict, frozen, without unknown keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NamedType(ContractPart):
    """A field of a type, or an input of a function."""

    name: Identifier
    type: TypeText


class TypeDeclaration(ContractPart):
    """A type that the contract declares."""

    name: Identifier
    description: str = ""
    fields: Annotated[tuple[NamedType, ...], LIST]


class Output(ContractPart):
    """What a function returns."""

    type: TypeText


class ErrorCase(ContractPart):
    """An error that a function raises: its class, its condition, and inputs that cause it."""

    error: Dotted
    condition: str = ""
    inputs: Values | None = None


class Example(ContractPart):
    """Inputs, and what the function returns for them."""

    inputs: Values = Field(default_factory=dict)
    output: Any


class SideEffect(ContractPart):
    """What a function does besides returning a result; `target` is empty only for the kind `none`."""

    kind: SideEffectKind
    target: str = ""
    description: str = ""


class PerformanceBudget(ContractPart):
    """What a call may cost; `complexity` is for readers and is not tested."""

    p95_latency_ms: Budget | None = None
    max_memory_mb: Budget | None = None
    complexity: str = ""


def modern_effects(written: Any) -> Any:
    """Turn plain-string side effects of older contracts into objects; everything else stays as it is."""
    if isinstance(written, str):
        written = [written]
    if not isinstance(written, list):
        return written
    return [_modern_effect(each) if isinstance(each, str) else each for each in written]


def _modern_effect(text: str) -> dict[str, str]:
    """Read `writes_file: out.txt`; without a known kind it is mutates_state."""
    word, _, rest = text.strip().replace(":", " ", 1).partition(" ")
    kind = word.lower().replace("-", "_")
    if kind in KINDS:
        return {"kind": kind, "target": rest.strip() or ("" if kind == "none" else text.strip())}
    if kind in {"", "nothing", "no"}:
        return {"kind": "none", "description": text}
    return {"kind": "mutates_state", "target": text, "description": text}


class Function(ContractPart):
    """One function that the component promises."""

    name: Identifier
    description: str = ""
    inputs: Annotated[tuple[NamedType, ...], LIST]
    output: Output | None = None
    error_cases: Annotated[tuple[ErrorCase, ...], LIST]
    invariants: Annotated[tuple[str, ...], LIST]
    side_effects: Annotated[tuple[SideEffect, ...], LIST, BeforeValidator(modern_effects)]
    idempotent: bool = False
    performance_budget: PerformanceBudget | None = None
    examples: Annotated[tuple[Example, ...], LIST]


class Contract(ContractPart):
    """What a component promises."""

    component_id: Id
    version: Version
    description: str = ""
    dependencies: Annotated[tuple[Reference, ...], LIST]
    external_dependencies: Annotated[tuple[External, ...], LIST]
    types: Annotated[tuple[TypeDeclaration, ...], LIST]
    functions: Annotated[tuple[Function, ...], LIST]
    invariants: Annotated[tuple[str, ...], LIST]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `interface.json`."""
    schema = Contract.model_json_schema()
    function = schema["$defs"]["Function"]
    plain = {"type": "string", "deprecated": True, "description": "the form of older contracts"}
    effects = function["properties"]["side_effects"]
    effects["items"] = {"anyOf": [effects["items"], plain]}
    effects["minItems"] = 1
    effects.pop("default", None)
    function["required"] = [*function["required"], "side_effects"]
    schema["$defs"]["SideEffect"].update(
        {
            "if": {"properties": {"kind": {"const": "none"}}},
            "else": {"properties": {"target": {"minLength": 1}}, "required": ["target"]},
        }
    )
    for case in ("ErrorCase", "Example"):
        inputs = schema["$defs"][case]["properties"]["inputs"]
        for each in inputs.get("anyOf", [inputs]):
            if "patternProperties" in each:
                each["additionalProperties"] = False
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:patchgate:contract:1",
        **schema,
        "title": "The contract of a component (interface.json)",
    }


# difflib takes 0.07 ms to look up one name; thousands of wrong names would be slow.
MAX_SUGGESTIONS = 50
SCHEMA_HINT = "`git patchgate schema contract` shows what each key accepts"
_WANTED = {
    "string_type": "a string",
    "bool_type": "true or false",
    "float_type": "a number",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "greater_than_equal": "a number of 1 or more",
    "less_than_equal": f"a number of at most {MAX_BUDGET:,}",
    "literal_error": "one of " + ", ".join(KINDS),
}
_KINDS = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, "a string"),
    (list, "a list"),
    (dict, "an object"),
)


def shape_mistakes(details: Sequence[ErrorDetails], document: JsonDocument) -> Iterator[ContractMistake]:
    """Turn pydantic's errors into mistakes."""
    left = MAX_SUGGESTIONS
    for detail in details:
        kind = detail["type"]
        place: JsonPath = tuple(part for part in detail["loc"] if part != "[key]")
        hint = SCHEMA_HINT
        fault = detail.get("ctx", {}).get("error")
        if isinstance(fault, TextError):
            message, hint = fault.message, fault.hint or SCHEMA_HINT
        elif kind == "extra_forbidden":
            message = f"unknown key `{printable(str(place[-1]), 60)}`"
            keys = tuple(_model_at(place[:-1]).model_fields)
            guess = _did_you_mean(str(place[-1]), keys) if left > 0 else None
            left -= 1
            hint = guess or f"the keys here are {', '.join(keys)}"
        elif kind == "missing":
            message, hint = f"`{place[-1]}` is missing", "add it: " + SCHEMA_HINT
        else:
            message = f"expected {_WANTED.get(kind, 'another value')}, got {_got(detail['input'])}"
            if kind == "literal_error" and isinstance(detail["input"], str) and left > 0:
                hint = _did_you_mean(detail["input"], KINDS) or hint
                left -= 1
        yield ContractMistake("contract-invalid", message, dotted(place), document.line_of(place), hint)


def _got(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return f'"{printable(value, 40)}"'
    if isinstance(value, int | float) and not isinstance(value, bool):
        return printable(str(value), 40)
    return next((words for kind, words in _KINDS if isinstance(value, kind)), "something else")


def _model_at(place: JsonPath) -> type[BaseModel]:
    """Find the model of the object at a place."""
    model: type[BaseModel] = Contract
    for part in place:
        if isinstance(part, str) and part in model.model_fields:
            model = _within(model.model_fields[part].annotation) or model
    return model


def _within(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _within(inner))), None)


def _did_you_mean(word: str, choices: Sequence[str]) -> str | None:
    from difflib import get_close_matches

    return next((f"did you mean `{match}`?" for match in get_close_matches(word[:100], choices, n=1)), None)
