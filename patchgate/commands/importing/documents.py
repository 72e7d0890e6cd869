"""Read the config of another manager as plain values: text, lists and mappings, within limits.

A file is a regular file of at most 256 KiB. YAML aliases are followed, but not into themselves, and not to
more than 20,000 values. Every scalar is text: `on`, `1.10` and dates stay what the file says.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from patchgate.errors import UsageError
from patchgate.git.quoting import printable

if TYPE_CHECKING:
    from yaml import Node  # type: ignore[import-untyped]

Value: TypeAlias = "str | Sequence[Value] | Mapping[str, Value] | None"

MAX_BYTES = 256 << 10
MAX_DEPTH = 40
MAX_VALUES = 20_000
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "yes", "on"})
_NOTHING = "nothing was changed"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_true(value: Value) -> bool:
    """Read a scalar as a boolean; everything else is false."""
    return isinstance(value, str) and value.lower() in _TRUE


def text_of(value: Value) -> str:
    """Read a scalar as text; everything else is empty."""
    return value if isinstance(value, str) else ""


def texts_of(value: Value) -> list[str]:
    """Read a scalar or a list of scalars as texts; everything else is left out."""
    if isinstance(value, str):
        return [value]
    return [each for each in items_of(value) if isinstance(each, str)]


def is_list(value: Value) -> bool:
    """Whether a value is a list."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def mapping_of(value: Value) -> Mapping[str, Value]:
    """Read a mapping; everything else is empty."""
    return value if isinstance(value, Mapping) else {}


def items_of(value: Value) -> Sequence[Value]:
    """Read a list; everything else is empty."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def read_document(folder: str, name: str) -> tuple[Mapping[str, Value], bool]:
    """Read a YAML or JSON file whose top level is a mapping.

    Args:
        folder: where it is.
        name: its name there, for messages too.

    Returns:
        The mapping, and whether it is JSON.

    Raises:
        UsageError: there is no such regular file, it is too large, or it is not valid.
    """
    text = _read_text(folder, name)
    try:
        found, is_json = _json(text, name), True
    except ValueError:
        if name.endswith(".json"):
            raise
        found, is_json = _yaml(text, name), False
    if not isinstance(found, Mapping):
        raise _invalid(name, "its top level is not a mapping")
    return found, is_json


def _read_text(folder: str, name: str) -> str:
    shown = printable(name)
    try:
        number = os.open(os.path.join(folder, name), _FLAGS)
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise UsageError(f"{shown} is not a regular file; {_NOTHING}", "name a file")
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        if os.path.islink(os.path.join(folder, name)):
            raise UsageError(f"{shown} is a symbolic link; {_NOTHING}", "name its target") from error
        raise UsageError(f"{shown} cannot be read: {error.strerror}; {_NOTHING}", "check its name") from error
    if len(raw) > MAX_BYTES:
        raise UsageError(
            f"{shown} is larger than {MAX_BYTES >> 10} KiB; {_NOTHING}", "write the commands by hand"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid(name, "it is not UTF-8") from error


def _invalid(name: str, why: str, line: int | None = None) -> UsageError:
    place = printable(name) if line is None else f"{printable(name)}:{line}"
    return UsageError(
        f"{place}: {printable(why, 200)}; {_NOTHING}", "correct the file, then run the command again"
    )


class _NoJsonError(UsageError, ValueError):
    """The text is not JSON."""


def _json(text: str, name: str) -> Value:
    try:
        return _checked(json.loads(text), name)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        place = printable(name) if line is None else f"{printable(name)}:{line}"
        raise _NoJsonError(f"{place}: not valid JSON; {_NOTHING}", "correct the file") from error


def _checked(value: object, name: str, depth: int = 0) -> Value:
    """Make plain values of JSON: each scalar as text."""
    if depth > MAX_DEPTH:
        raise _invalid(name, f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {_text(key, name): _checked(each, name, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_checked(each, name, depth + 1) for each in value]
    if value is None:
        return None
    return _text(json.dumps(value) if isinstance(value, bool | int | float) else str(value), name)


def _text(text: str, name: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _invalid(name, "it contains half of a surrogate pair") from error
    if "\0" in text:
        raise _invalid(name, "it contains a NUL")
    return text


def _yaml(text: str, name: str) -> Value:
    try:
        # An optional dependency, which only this command needs.
        import yaml
    except ImportError as error:
        raise UsageError(
            f"{printable(name)} is YAML, and the package PyYAML is not installed; {_NOTHING}",
            "pip install 'patchgate[import]', in the environment of patchgate",
        ) from error
    try:
        _check_depth(text, name)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        why = f"not valid YAML: {error.problem or error.context or 'it ends too early'}"
        raise _invalid(name, why, None if mark is None else mark.line + 1) from error
    except yaml.YAMLError as error:
        raise _invalid(name, f"not valid YAML: {str(error).splitlines()[0]}") from error
    return _Constructor(name).value(node) if node is not None else {}


def _check_depth(text: str, name: str) -> None:
    """Refuse deep nesting before anything recursive reads it."""
    import yaml

    depth = values = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.NodeEvent):
            values += 1
        if depth > MAX_DEPTH:
            raise _invalid(name, f"it is nested more than {MAX_DEPTH} levels deep", event.start_mark.line + 1)
        if values > MAX_VALUES:
            raise _invalid(name, f"it has more than {MAX_VALUES:,} values")


class _Constructor:
    """Makes plain values of YAML nodes, counting those that aliases repeat."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._above: set[int] = set()
        self._made = 0

    def value(self, node: Node) -> Value:
        import yaml

        self._made += 1
        if self._made > MAX_VALUES:
            raise _invalid(self._name, f"its aliases repeat more than {MAX_VALUES:,} values")
        if isinstance(node, yaml.ScalarNode):
            is_plain = node.style is None
            return None if is_plain and node.value in _NULL else _text(node.value, self._name)
        if id(node) in self._above:
            raise _invalid(self._name, "an alias contains itself", node.start_mark.line + 1)
        self._above.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(each) for each in node.value]
            assert isinstance(node, yaml.MappingNode)
            return self._mapping(node.value)
        finally:
            self._above.discard(id(node))

    def _mapping(self, pairs: Sequence[tuple[Node, Node]]) -> Mapping[str, Value]:
        own: dict[str, Value] = {}
        merged: dict[str, Value] = {}
        for key, each in pairs:
            name = self.value(key)
            if not isinstance(name, str):
                continue
            if name == "<<":
                value = self.value(each)
                for part in [value] if isinstance(value, Mapping) else reversed(items_of(value)):
                    merged |= mapping_of(part)
            else:
                own[name] = self.value(each)
        return {**merged, **own}
