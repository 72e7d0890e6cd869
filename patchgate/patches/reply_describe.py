"""The table of actions as it is told: in few words for a prompt, and as a document.

Decides the words alone; everything that is said comes from the table and the limits of the grammar.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.patches.reply import ACTIONS
from patchgate.patches.reply_grammar import MAX_REPLY_BYTES, print_block
from patchgate.patches.reply_model import Action, Kind, Parameter, Value

DESCRIBE_SCHEMA = "patchgate.actions/1"

_FORM = """\
Answer with exactly one block, and nothing before or after it:

<function=NAME>
<param name="NAME">value</param>
</function>

Each parameter at most once. A value is plain text (`<` and `&` are themselves), or <![CDATA[…]]>, in which
everything is text, tags too; there write ]]> as ]]]]><![CDATA[>. A patch is taken byte for byte: it begins
with `diff --git` and ends with a newline.
"""


def describe(actions: Sequence[Action] = ACTIONS) -> str:
    """Write the table for a prompt: the form, then each action with its parameters and an example."""
    parts = [_FORM, *(_action(action) for action in actions)]
    return "\n".join(parts)


def example_of(action: Action) -> str:
    """Write the example of an action as a whole reply."""
    values = [(name, text.encode("utf-8")) for name, text in action.example.items()]
    return print_block(action.name, values, plain=True).decode("utf-8")


def table(actions: Sequence[Action] = ACTIONS) -> dict[str, Value]:
    """Write the table as a document, `patchgate.actions/1`."""
    return {
        "schema": DESCRIBE_SCHEMA,
        "max_bytes": MAX_REPLY_BYTES,
        "actions": [
            {
                "name": action.name,
                "about": action.about,
                "parameters": [_parameter(parameter) for parameter in action.parameters],
                "one_of": [list(group) for group in action.one_of],
                "example": example_of(action),
            }
            for action in actions
        ],
    }


def _parameter(parameter: Parameter) -> dict[str, Value]:
    is_number = parameter.kind is Kind.NUMBER
    return {
        "name": parameter.name,
        "kind": parameter.kind.value,
        "json": parameter.kind.is_json,
        "required": parameter.required,
        "default": parameter.default,
        "least": parameter.least if is_number else None,
        "most": parameter.most if is_number else None,
        "about": parameter.about,
    }


def _action(action: Action) -> str:
    lines = [f"  {each.name} ({_takes(action, each)}): {each.about}" for each in action.parameters]
    return "\n".join([f"{action.name}: {action.about}", *lines]) + f"\n\n{example_of(action)}"


def _takes(action: Action, parameter: Parameter) -> str:
    """Say what a parameter takes, and whether it must be there."""
    what = parameter.kind.words
    if parameter.kind is Kind.NUMBER:
        what = f"JSON number, {parameter.least} to {parameter.most}"
    if parameter.required:
        return f"required, {what}"
    others = [name for group in action.one_of if parameter.name in group for name in group]
    if others:
        return f"either this or {' or '.join(n for n in others if n != parameter.name)}, {what}"
    return f"optional, {what}" + ("" if parameter.default is None else f", else {parameter.default}")
