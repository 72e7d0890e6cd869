"""The values of a reply's parameters: bytes of one parameter in, a checked value or a fault out.

Decides what each kind takes, and what of the written bytes is layout: the white space around a plain text,
whose CRLF are read as LF; in CDATA, and in a patch however it is written, nothing is. What edits must hold is
the gate's to say; here they are only JSON. A text is never read as JSON, whatever it begins with.
"""

from __future__ import annotations

import json

from patchgate.git.quoting import printable
from patchgate.patches.patch_model import Fault
from patchgate.patches.reply_model import Kind, Parameter, Value, Written

MAX_DEPTH = 32
_SPACE = b" \t\r\n"
_RULE = "invalid-json-param"
_JSON_WORDS = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number that is not whole",
    str: "a text",
    list: "a list",
    dict: "an object",
}


class _LongNumber(str):
    """The digits of a number that is longer than any bound."""

    __slots__ = ()


def is_blank(written: Written) -> bool:
    """Tell whether nothing was written."""
    return written.value is not None and not written.value.strip(_SPACE)


def read_value(parameter: Parameter, written: Written) -> tuple[Value, str | None] | Fault:
    """Read a value; beside it stands a note where it was taken otherwise than it was written.

    Args:
        written: with a value.
    """
    raw = written.value or b""
    if parameter.kind is Kind.PATCH:
        return raw.decode("utf-8"), None
    if parameter.kind is Kind.TEXT:
        if not written.in_cdata:
            raw = raw.replace(b"\r\n", b"\n").strip(_SPACE)
        return raw.decode("utf-8"), None
    loaded = _load(parameter, written, raw)
    if isinstance(loaded, Fault) or parameter.kind is Kind.EDITS:
        return loaded if isinstance(loaded, Fault) else (loaded[0], None)
    if parameter.kind is Kind.NUMBER:
        return _number(parameter, written, loaded[0])
    return _strings(parameter, written, loaded[0])


def _load(parameter: Parameter, written: Written, raw: bytes) -> tuple[Value] | Fault:
    """Read JSON, of bounded depth and without text that is none; a tuple, since null is JSON too."""
    try:
        loaded: Value = json.loads(
            raw,
            parse_int=lambda digits: int(digits) if len(digits) <= 18 else _LongNumber(digits),
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        line = written.line if written.value_line is None else written.value_line + error.lineno - 1
        message = f"`{parameter.name}` is not JSON: {error.msg} at character {error.pos + 1} of its value"
        return Fault(_RULE, line, message, _hint(parameter, raw))
    except ValueError as error:
        return Fault(_RULE, written.line, f"`{parameter.name}` is not JSON: {error}", _hint(parameter, raw))
    except RecursionError:
        return _too_deep(parameter, written)
    return (loaded,) if _is_shallow(loaded) else _too_deep(parameter, written)


def _refuse_constant(text: str) -> Value:
    raise ValueError(f"{text} is no number there")


def _too_deep(parameter: Parameter, written: Written) -> Fault:
    message = f"`{parameter.name}` is nested too deeply"
    return Fault(_RULE, written.line, message, f"send {parameter.kind.words}")


def _is_shallow(value: Value) -> bool:
    level: list[Value] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return True
    return False


def _hint(parameter: Parameter, raw: bytes) -> str:
    """Say what to write; of one line that was meant as a text, the very JSON."""
    words = f"`{parameter.name}` takes {parameter.kind.words}"
    text = raw.strip(_SPACE)
    if parameter.kind is Kind.STRINGS and 0 < len(text) <= 100 and not any(mark in text for mark in b'\n[]"'):
        return f"{words}: {printable(json.dumps([text.decode('utf-8')], ensure_ascii=False), 200)}"
    if parameter.kind is Kind.NUMBER:
        return f"{words} from {parameter.least} to {parameter.most}, without quotes"
    return f'{words}: ["…"]' if parameter.kind is Kind.STRINGS else words


def _number(parameter: Parameter, written: Written, value: Value) -> tuple[Value, str | None] | Fault:
    """Take a whole number within its bounds: too large is capped, too small refused."""
    name, hint = parameter.name, _hint(parameter, b"")
    number = value
    if isinstance(value, _LongNumber):
        number = parameter.least - 1 if value.startswith("-") else parameter.most + 1
    if type(number) is not int:
        return Fault(_RULE, written.line, f"`{name}` is {_JSON_WORDS[type(value)]}, not a whole number", hint)
    shown = printable(str(value), 24)
    if number < parameter.least:
        return Fault(_RULE, written.line, f"`{name}` is {shown}, less than {parameter.least}", hint)
    if number > parameter.most:
        return parameter.most, f"`{name}` is {shown}, more than {parameter.most}: {parameter.most} is taken"
    return number, None


def _strings(parameter: Parameter, written: Written, value: Value) -> tuple[Value, str | None] | Fault:
    """Take a list of strings, one at least, none of them blank."""
    name, hint = parameter.name, _hint(parameter, b"")

    def refuse(message: str) -> Fault:
        return Fault(_RULE, written.line, message, hint)

    if not isinstance(value, list):
        return refuse(f"`{name}` is {_JSON_WORDS[_kind(value)]}, not a list of strings")
    if not value:
        return refuse(f"`{name}` is an empty list")
    for number, each in enumerate(value, start=1):
        if type(each) is not str:
            return refuse(f"element {number} of `{name}` is {_JSON_WORDS[_kind(each)]}, not a string")
        if not each.strip():
            return refuse(f"element {number} of `{name}` is empty")
        if any(0xD800 <= ord(character) <= 0xDFFF for character in each):
            return refuse(f"element {number} of `{name}` holds half a surrogate pair")
    return value, None


def _kind(value: Value) -> type:
    return int if isinstance(value, _LongNumber) else type(value)
