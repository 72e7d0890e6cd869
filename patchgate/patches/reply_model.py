"""The shapes of the agents' reply protocol: actions, their parameters, and what a reply was read as.

Decides the kinds of values and how a row of the table of actions is written. Which actions there are stands
in `reply`, how a reply is cut into blocks in `reply_grammar`, how a value is read there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from patchgate.patches.patch_model import Fault

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value] | None"


class Kind(StrEnum):
    """What a parameter takes. A patch and edits are proposals: they go through the gate."""

    TEXT = "text"
    STRINGS = "strings"
    NUMBER = "number"
    PATCH = "patch"
    EDITS = "edits"

    @property
    def is_json(self) -> bool:
        """Tell whether the value is JSON."""
        return self in {Kind.STRINGS, Kind.NUMBER, Kind.EDITS}

    @property
    def is_proposal(self) -> bool:
        """Tell whether the value proposes a change."""
        return self in {Kind.PATCH, Kind.EDITS}

    @property
    def words(self) -> str:
        """Say what is to be written."""
        return _WORDS[self]


_WORDS = {
    Kind.TEXT: "text",
    Kind.STRINGS: "a JSON list of strings",
    Kind.NUMBER: "a whole number",
    Kind.PATCH: "a unified diff",
    Kind.EDITS: "structured edits in JSON",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an action.

    `least` and `most` are the bounds of a number: below the first it is refused, above the second the second
    is taken, with a note. `default` is what a parameter is that was not given; None: it is absent.
    """

    name: str
    kind: Kind
    about: str
    required: bool = False
    default: int | None = None
    least: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class Action:
    """One row of the table: what can be asked for, and an example that holds.

    Of each group in `one_of` exactly one parameter must be given.
    """

    name: str
    about: str
    parameters: tuple[Parameter, ...]
    example: Mapping[str, str]
    one_of: tuple[tuple[str, ...], ...] = ()

    def find(self, name: str) -> Parameter | None:
        """Find the parameter of a name."""
        return next((each for each in self.parameters if each.name == name), None)

    def needs(self, parameter: Parameter) -> bool:
        """Tell whether a parameter may not be empty: it must be there, or stands for one that must."""
        return parameter.required or any(parameter.name in group for group in self.one_of)


@dataclass(frozen=True, slots=True)
class Written:
    """A parameter as it was written: `line` of its tag, counted from 1, and the bytes of its value.

    `value` is None where it could not be read. `value_line` is the line on which the value begins, None where
    it is in several pieces.
    """

    name: str
    line: int
    value: bytes | None = field(repr=False)
    value_line: int | None
    in_cdata: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A `<function=NAME>` block as it was written; `name` is None where its tag cannot be read.

    `is_whole` is false where a parameter may have been lost: then nobody can say that one is missing.
    """

    name: str | None
    line: int
    parameters: tuple[Written, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a reply proposes: `kind` is `patch` or `edits`, `raw` its very bytes."""

    kind: str
    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply was read as; it holds where there is no fault.

    `params` are the values that could be read, defaults included. `notes` say what was taken otherwise than
    it was written; they and the faults are safe for a terminal.
    """

    action: str | None
    params: Mapping[str, Value]
    notes: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    proposal: Proposal | None = None
