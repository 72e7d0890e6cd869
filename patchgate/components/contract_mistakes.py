"""How a contract's wrong shape is told: pydantic's errors in plain words, each with its place and next step.

Imported only where there is a mistake. The words are our own, since those of pydantic change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from patchgate.components.contract import KINDS, MAX_BUDGET, Contract
from patchgate.components.contract_facts import ContractMistake
from patchgate.git.quoting import printable
from patchgate.policy.json_places import JsonDocument, Place, dotted
from patchgate.policy.texts import TextError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# difflib takes 0.07 ms to look up one name; thousands of wrong ones would be felt.
MAX_SUGGESTIONS = 50
SCHEMA_HINT = "`git patchgate schema contract` says what each key takes"
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
        place: Place = tuple(part for part in detail["loc"] if part != "[key]")
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


def _model_at(place: Place) -> type[BaseModel]:
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
