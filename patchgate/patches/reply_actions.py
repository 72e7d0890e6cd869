"""The agents' reply protocol: the table of actions, and what one raw reply asks for; it judges no patch.

To add an action, add a `ReplyAction` with a valid example to `ACTIONS`: validation, `describe` and the tests
are made from that table. A new kind of value is a `ParameterKind` and a branch of `read_value`. A new fault
is a rule in `report/rules`. `tests/patches/test_reply_actions.py` checks every row against its example.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from patchgate.git.quoting import printable
from patchgate.patches.edits import LongNumber
from patchgate.patches.patch_model import MAX_FAULTS, Fault
from patchgate.patches.reply_grammar import (
    MAX_REPLY_BYTES,
    Block,
    Parameter,
    ParameterKind,
    ParsedReply,
    Proposal,
    ReplyAction,
    Value,
    WrittenParameter,
    print_block,
    read_blocks,
)

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


def is_blank(written: WrittenParameter) -> bool:
    """Return whether the value is blank."""
    return written.value is not None and not written.value.strip(_SPACE)


def read_value(parameter: Parameter, written: WrittenParameter) -> tuple[Value, str | None] | Fault:
    """Read a value, with a note if it was changed."""
    raw = written.value or b""
    if parameter.kind is ParameterKind.PATCH:
        return raw.decode("utf-8"), None
    if parameter.kind is ParameterKind.TEXT:
        if not written.in_cdata:
            raw = raw.replace(b"\r\n", b"\n").strip(_SPACE)
        return raw.decode("utf-8"), None
    loaded = _load(parameter, written, raw)
    if isinstance(loaded, Fault) or parameter.kind is ParameterKind.EDITS:
        return loaded if isinstance(loaded, Fault) else (loaded[0], None)
    if parameter.kind is ParameterKind.NUMBER:
        return _number(parameter, written, loaded[0])
    return _strings(parameter, written, loaded[0])


def _load(parameter: Parameter, written: WrittenParameter, raw: bytes) -> tuple[Value] | Fault:
    """Read JSON of bounded depth; a tuple, because null is a value too."""
    try:
        loaded: Value = json.loads(
            raw,
            parse_int=lambda digits: int(digits) if len(digits) <= 18 else LongNumber(digits),
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        line = written.line if written.value_line is None else written.value_line + error.lineno - 1
        message = f"`{parameter.name}` is not JSON: {error.msg} at character {error.pos + 1} of its value"
        return Fault(_RULE, line, message, hint=_hint(parameter, raw))
    except ValueError as error:
        return Fault(
            _RULE, written.line, f"`{parameter.name}` is not JSON: {error}", hint=_hint(parameter, raw)
        )
    except RecursionError:
        return _too_deep(parameter, written)
    return (loaded,) if _is_shallow(loaded) else _too_deep(parameter, written)


def _refuse_constant(text: str) -> Value:
    raise ValueError(f"{text} is not allowed in JSON")


def _too_deep(parameter: Parameter, written: WrittenParameter) -> Fault:
    message = f"`{parameter.name}` is nested too deeply"
    return Fault(_RULE, written.line, message, hint=f"send {parameter.kind.words}")


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
    """Say what to write; for one line of plain text, the JSON of it."""
    words = f"`{parameter.name}` takes {parameter.kind.words}"
    text = raw.strip(_SPACE)
    if (
        parameter.kind is ParameterKind.STRINGS
        and 0 < len(text) <= 100
        and not any(mark in text for mark in b'\n[]"')
    ):
        return f"{words}: {printable(json.dumps([text.decode('utf-8')], ensure_ascii=False), 200)}"
    if parameter.kind is ParameterKind.NUMBER:
        return f"{words} from {parameter.least} to {parameter.most}, without quotes"
    return f'{words}: ["…"]' if parameter.kind is ParameterKind.STRINGS else words


def _number(
    parameter: Parameter, written: WrittenParameter, value: Value
) -> tuple[Value, str | None] | Fault:
    """Read a whole number within its bounds: too large is capped, too small is refused."""
    name, hint = parameter.name, _hint(parameter, b"")
    number = value
    if isinstance(value, LongNumber):
        number = parameter.least - 1 if value.startswith("-") else parameter.most + 1
    if type(number) is not int:
        return Fault(
            _RULE, written.line, f"`{name}` is {_JSON_WORDS[type(value)]}, not a whole number", hint=hint
        )
    shown = printable(str(value), 24)
    if number < parameter.least:
        return Fault(_RULE, written.line, f"`{name}` is {shown}, less than {parameter.least}", hint=hint)
    if number > parameter.most:
        return parameter.most, f"`{name}` is {shown}, more than {parameter.most}: {parameter.most} is used"
    return number, None


def _strings(
    parameter: Parameter, written: WrittenParameter, value: Value
) -> tuple[Value, str | None] | Fault:
    """Read a list of strings, at least one, none blank."""
    name, hint = parameter.name, _hint(parameter, b"")

    def refuse(message: str) -> Fault:
        return Fault(_RULE, written.line, message, hint=hint)

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
            return refuse(f"element {number} of `{name}` contains half a surrogate pair")
    return value, None


def _kind(value: Value) -> type:
    return int if isinstance(value, LongNumber) else type(value)


_DIFF = """\
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -1,2 +1,2 @@
-total = 1
+total = 2
 print(total)
"""
_EDITS = r'{"patch": {"edits": [{"path": "src/app.py", "start": 1, "end": 1, "new_text": "total = 2\n"}]}}'

ACTIONS = (
    ReplyAction(
        "explore",
        "look at the code around some anchors",
        (
            Parameter("anchors", ParameterKind.STRINGS, "paths or names to start from", required=True),
            Parameter("hop", ParameterKind.NUMBER, "how many references away", default=1, least=0, most=2),
            Parameter(
                "limit", ParameterKind.NUMBER, "how many places at most", default=20, least=1, most=100
            ),
        ),
        example={"anchors": '["src/app.py", "total"]', "hop": "1"},
    ),
    ReplyAction(
        "memory",
        "recall what is known about a subject",
        (
            Parameter("target", ParameterKind.TEXT, "what it is about", required=True),
            Parameter("intent", ParameterKind.TEXT, "what it is needed for", required=True),
        ),
        example={"target": "src/app.py", "intent": "why total was 1"},
    ),
    ReplyAction(
        "repair",
        "propose a change",
        (
            Parameter("subplan", ParameterKind.TEXT, "what is changed, and why", required=True),
            Parameter("patch", ParameterKind.PATCH, "the whole change, as git diff writes it"),
            Parameter("edits", ParameterKind.EDITS, f"lines of one file, {_EDITS}"),
        ),
        example={"subplan": "count from 2", "patch": _DIFF},
        one_of=(("patch", "edits"),),
    ),
    ReplyAction(
        "submit",
        "hand the work in",
        (Parameter("summary", ParameterKind.TEXT, "what was done"),),
        example={"summary": "total counts from 2"},
    ),
    ReplyAction(
        "noop",
        "do nothing",
        (Parameter("reason", ParameterKind.TEXT, "why there is nothing to do"),),
        example={"reason": "the tests pass as they are"},
    ),
)
"""Every action that a reply may ask for."""


def read_reply(raw: bytes, actions: Sequence[ReplyAction] = ACTIONS) -> ParsedReply:
    """Read one raw reply, and report every fault that is certain, by line."""
    blocks, found = read_blocks(raw)
    readings = [_read_block(block, actions) for block in blocks]
    faults = [*found, *(fault for reading in readings for fault in reading.faults)]
    if not faults:
        (reading,) = readings
        return reading
    faults.sort(key=lambda fault: fault.line or 0)
    action, params = (readings[0].action, readings[0].params) if len(readings) == 1 else (None, {})
    return ParsedReply(action, params, faults=tuple(faults[:MAX_FAULTS]))


def _read_block(block: Block, actions: Sequence[ReplyAction]) -> ParsedReply:
    action = next((each for each in actions if each.name == block.name), None)
    faults: list[Fault] = [*_find_repeated(block.parameters)]
    if action is None:
        if block.name is not None:
            faults.append(_unknown_action(block.name, block.line, actions))
        return ParsedReply(None, {}, faults=tuple(faults))
    given = {each.name: each for each in reversed(block.parameters)}
    for name, written in given.items():
        if action.find(name) is None:
            faults.append(_unknown_parameter(action, name, written.line, actions))
    faults += _find_missing(action, block, given)
    params: dict[str, Value] = {}
    notes: list[str] = []
    for parameter in action.parameters:
        written_here = given.get(parameter.name)
        if written_here is None:
            if parameter.default is not None:
                params[parameter.name] = parameter.default
        elif written_here.value is not None and not (action.needs(parameter) and is_blank(written_here)):
            read = read_value(parameter, written_here)
            if isinstance(read, Fault):
                faults.append(read)
            else:
                params[parameter.name] = read[0]
                notes += [read[1]] if read[1] else []
    proposal = _proposal(action, given)
    return ParsedReply(action.name, params, notes=tuple(notes), faults=tuple(faults), proposal=proposal)


def _proposal(action: ReplyAction, given: Mapping[str, WrittenParameter]) -> Proposal | None:
    for parameter in action.parameters:
        written = given.get(parameter.name)
        if parameter.kind.is_proposal and written is not None and written.value is not None:
            return Proposal(parameter.kind.value, written.value)
    return None


def _find_repeated(parameters: Sequence[WrittenParameter]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for each in parameters:
        line = first.get(each.name)
        if line is None:
            first[each.name] = each.line
        else:
            message = f"the parameter `{printable(each.name, 60)}` is already given on line {line}"
            details = {"first_line": line}
            yield Fault(
                "duplicate-param", each.line, message, hint="leave one of the two out", details=details
            )


def _find_missing(
    action: ReplyAction, block: Block, given: Mapping[str, WrittenParameter]
) -> Iterator[Fault]:
    """Find parameters that are missing, and parameters that exclude each other."""
    for parameter in action.parameters:
        written = given.get(parameter.name)
        if action.needs(parameter) and written is not None and is_blank(written):
            message = f"the parameter `{parameter.name}` of {action.name} is empty"
            yield Fault("missing-required-param", written.line, message, hint=_write(parameter))
        elif parameter.required and written is None and block.is_whole:
            message = f"{action.name} needs the parameter `{parameter.name}`"
            yield Fault("missing-required-param", block.line, message, hint=f"add it: {_write(parameter)}")
    for group in action.one_of:
        there = sorted((given[name] for name in group if name in given), key=lambda each: each.line)
        names = " or ".join(f"`{name}`" for name in group)
        if not there and block.is_whole:
            message = f"{action.name} needs {names}"
            yield Fault("missing-required-param", block.line, message, hint="add one of them, not both")
        for each in there[1:]:
            message = f"{action.name} takes {names}, and `{there[0].name}` is given on line {there[0].line}"
            details = {"first_line": there[0].line}
            yield Fault(
                "duplicate-param", each.line, message, hint="leave one of the two out", details=details
            )


def _write(parameter: Parameter) -> str:
    return f'<param name="{parameter.name}"> with {parameter.about}, {parameter.kind.words}'


def _unknown_action(name: str, line: int, actions: Sequence[ReplyAction]) -> Fault:
    known = [action.name for action in actions]
    said = f"`{printable(name, 60)}` is not an action" if name.strip() else "`<function=>` names no action"
    hint = _did_you_mean(name, known) or f"the actions are {', '.join(known)}"
    return Fault("unknown-action", line, said, hint=hint, details={"actual": printable(name, 60)})


def _unknown_parameter(action: ReplyAction, name: str, line: int, actions: Sequence[ReplyAction]) -> Fault:
    known = [parameter.name for parameter in action.parameters]
    message = f"{action.name} takes no parameter `{printable(name, 60)}`"
    hint = _did_you_mean(name, known)
    if hint is None:
        owner = next((each.name for each in actions if each.find(name)), None)
        hint = f"{action.name} takes {', '.join(known)}" + (f"; `{name}` belongs to {owner}" if owner else "")
    return Fault("unknown-param", line, message, hint=hint, details={"actual": printable(name, 60)})


def _did_you_mean(name: str, known: Sequence[str]) -> str | None:
    # Only a mistake needs it, and it costs a good reply's start 3 ms.
    import difflib

    plain = name[:60].strip(" \t\r\"'/").lower()
    close = difflib.get_close_matches(plain, known, n=1)
    return f"did you mean `{close[0]}`?" if close else None


DESCRIBE_SCHEMA = "patchgate.actions/2"

_FORM = """\
Answer with exactly one block, and nothing before or after it:

<function=NAME>
<param name="NAME">value</param>
</function>

Each parameter at most once. A value is plain text (`<` and `&` are not special), or <![CDATA[…]]>, in which
everything is text, tags too; write ]]> there as ]]]]><![CDATA[>. A patch is taken byte for byte: it begins
with `diff --git` and ends with a newline.
"""


def describe(actions: Sequence[ReplyAction] = ACTIONS) -> str:
    """Write the table for a prompt: the form, then each action with its parameters and an example."""
    parts = [_FORM, *(_action(action) for action in actions)]
    return "\n".join(parts)


def example_of(action: ReplyAction) -> str:
    """Write the example of an action as a whole reply."""
    values = [(name, text.encode("utf-8")) for name, text in action.example.items()]
    return print_block(action.name, values, plain=True).decode("utf-8")


def table(actions: Sequence[ReplyAction] = ACTIONS) -> dict[str, Value]:
    """Write the table as a document, `patchgate.actions/2`."""
    return {
        "schema": DESCRIBE_SCHEMA,
        "max_bytes": MAX_REPLY_BYTES,
        "actions": [
            {
                "name": action.name,
                "description": action.about,
                "parameters": [_parameter(parameter) for parameter in action.parameters],
                "one_of": [list(group) for group in action.one_of],
                "example": example_of(action),
            }
            for action in actions
        ],
    }


def _parameter(parameter: Parameter) -> dict[str, Value]:
    is_number = parameter.kind is ParameterKind.NUMBER
    return {
        "name": parameter.name,
        "kind": parameter.kind.value,
        "json": parameter.kind.is_json,
        "required": parameter.required,
        "default": parameter.default,
        "minimum": parameter.least if is_number else None,
        "maximum": parameter.most if is_number else None,
        "description": parameter.about,
    }


def _action(action: ReplyAction) -> str:
    lines = [f"  {each.name} ({_takes(action, each)}): {each.about}" for each in action.parameters]
    return "\n".join([f"{action.name}: {action.about}", *lines]) + f"\n\n{example_of(action)}"


def _takes(action: ReplyAction, parameter: Parameter) -> str:
    """Say what a parameter takes, and whether it is required."""
    what = parameter.kind.words
    if parameter.kind is ParameterKind.NUMBER:
        what = f"JSON number, {parameter.least} to {parameter.most}"
    if parameter.required:
        return f"required, {what}"
    others = [name for group in action.one_of if parameter.name in group for name in group]
    if others:
        return f"either this or {' or '.join(n for n in others if n != parameter.name)}, {what}"
    return f"optional, {what}" + ("" if parameter.default is None else f", else {parameter.default}")
