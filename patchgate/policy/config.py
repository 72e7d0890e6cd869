"""The config: bytes of `patchgate.toml` or `pyproject.toml` in, one strict frozen `Config` out.

Decides how a file is read, within limits that apply before tomllib parses it, and how its mistakes are
reported: all at once, in words derived from the annotations of the models. `settings` declares the keys and
their values; `policy` defines what a limit or a pattern means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from patchgate.errors import ConfigError, Mistake
from patchgate.git.quoting import printable
from patchgate.policy.config_models import ConfigDocument
from patchgate.policy.file_kinds import may_have_table
from patchgate.policy.settings import Config
from patchgate.policy.settings_loader import settings_from
from patchgate.policy.validators import TextError, check_repository_id

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from patchgate.policy.toml_lines import Key

MAX_BYTES = 64 * 1024
MAX_PYPROJECT_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_KEY_PARTS = 32
MAX_KEYS = 4000
# difflib takes 0.07 ms to look a name up among 30 rules; for 4,000 wrong names that would be 0.3 s.
MAX_SUGGESTIONS = 50
# Longer numbers are not shown: Python does not print more than 4,300 digits.
MAX_SHOWN = 2**63 - 1
# A larger limit is not worth showing.
MAX_SHOWN_LIMIT = 10**6

_KINDS = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    str: "a string",
    list: "a list",
    dict: "a table",
}


def parse(raw: bytes, file: str) -> Config:
    """Read a `patchgate.toml`.

    Args:
        raw: its bytes, at most 64 KiB.
        file: its name, for the mistakes.

    Raises:
        ConfigError: with every mistake in it.
    """
    return _config(_read(raw, file, MAX_BYTES), raw, file, ())


def parse_pyproject(raw: bytes, file: str) -> Config | None:
    """Read `[tool.patchgate]` of a `pyproject.toml`, at most 1 MiB; None if there is no such table.

    Raises:
        ConfigError: with every mistake in it; their keys begin with `tool.patchgate`.
    """
    # tomllib takes 17 ms.
    if not may_have_table(raw):
        return None
    tool = _read(raw, file, MAX_PYPROJECT_BYTES).get("tool")
    if not isinstance(tool, dict) or "patchgate" not in tool:
        return None
    return _config(tool["patchgate"], raw, file, ("tool", "patchgate"))


def id_of_unusable(raw: bytes, file: str) -> str | None:
    """Return the `[governance] id` of a config that cannot be used; None if it names none, or is no TOML.

    Another version of patchgate may have written it.
    """
    is_project = file == "pyproject.toml"
    try:
        table: object = _read(raw, file, MAX_PYPROJECT_BYTES if is_project else MAX_BYTES)
    except ConfigError:
        return None
    for key in (*(("tool", "patchgate") if is_project else ()), "governance", "id"):
        table = table.get(key) if isinstance(table, dict) else None
    try:
        return check_repository_id(table) if isinstance(table, str) else None
    except TextError:
        return None


def _read(raw: bytes, file: str, most: int) -> dict[str, Any]:
    """Parse TOML within the limits."""
    if len(raw) > most:
        message = f"the file has {len(raw):,} bytes; the limit is {most:,}"
        raise ConfigError((Mistake(file, None, "", message, "make it shorter"),))
    mistakes: list[Mistake] = []
    if raw.startswith(b"\xef\xbb\xbf"):
        mistakes.append(Mistake(file, 1, "", "the file begins with a byte-order mark", "save it without one"))
    if (position := raw.find(b"\0")) >= 0:
        line = raw.count(b"\n", 0, position) + 1
        mistakes.append(Mistake(file, line, "", "the file contains a NUL byte", "save it as UTF-8 text"))
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        mistakes.append(Mistake(file, line, "", "the file is not UTF-8", "save it as UTF-8 text"))
    if not mistakes and (fault := _cap_fault(text, file)):
        mistakes.append(fault)
    if mistakes:
        raise ConfigError(tuple(mistakes))
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        message, line = f"lists and tables are nested more than {MAX_DEPTH} deep", 0
    except ValueError as error:
        message, line = _syntax_fault(str(error), text)
    raise ConfigError((Mistake(file, line or None, "", message, "see https://toml.io for the syntax"),))


def _cap_fault(text: str, file: str) -> Mistake | None:
    """Find what tomllib must not parse: deep nesting, keys with many parts, too many keys."""
    # Counting takes microseconds and never counts too few, so most files need no closer check.
    brackets = text.count("[")
    longest = max(line.count(".") for line in text.split("\n")) + 1
    if (
        brackets + text.count("{") <= MAX_DEPTH
        and longest <= MAX_KEY_PARTS
        and brackets + text.count("=") <= MAX_KEYS
    ):
        return None
    from patchgate.policy.toml_lines import excess

    found = excess(text, MAX_DEPTH, MAX_KEY_PARTS, MAX_KEYS)
    return Mistake(file, found.line, "", found.message, "simplify the file") if found else None


def _syntax_fault(reason: str, text: str) -> tuple[str, int]:
    """Split a tomllib message, which ends with a position, into a message and a line (0: none)."""
    found = re.fullmatch(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", reason, re.DOTALL)
    if not found:
        # The one ValueError without a position: int() refuses more than 4,300 digits.
        number = re.search(r"[0-9_]{4300}", text)
        return "a number is too long", text.count("\n", 0, number.start()) + 1 if number else 0
    what = printable(found[1][:1].lower() + found[1][1:])
    if found[2]:
        return f"not valid TOML: {what} (column {found[3]})", int(found[2])
    return f"not valid TOML: {what} (at the end of the file)", text.rstrip("\n").count("\n") + 1


def _config(data: Any, raw: bytes, file: str, prefix: Key) -> Config:
    try:
        checked = ConfigDocument.model_validate(data)
        return settings_from(checked.model_dump(mode="json", exclude_unset=True))
    except ValidationError as error:
        details = error.errors(include_url=False)
    raise ConfigError(_mistakes(details, data, raw, file, prefix))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `patchgate.toml`."""
    schema = _without_null(ConfigDocument.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "patchgate.toml"}


def _without_null(node: Any) -> Any:
    """Remove null from a schema, because TOML has none: a key that may be null is an optional key.

    The default of a whole table is removed too; its keys have their own.
    """
    if isinstance(node, list):
        return [_without_null(element) for element in node if element != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    kept = {
        name: _without_null(value)
        for name, value in node.items()
        if name != "default" or not (value is None or isinstance(value, dict))
    }
    if len(kept.get("anyOf", ())) == 1:
        (only,) = kept.pop("anyOf")
        return {**only, **kept}
    return kept


def _mistakes(
    details: Sequence[ErrorDetails], data: Any, raw: bytes, file: str, prefix: Key
) -> tuple[Mistake, ...]:
    """Turn pydantic's errors about the table at `prefix` into mistakes, in the order of lines."""
    from patchgate.policy.toml_lines import line_of, lines

    places = lines(raw.decode())
    found: dict[tuple[Key, bool], Mistake] = {}
    for detail in details:
        location = detail["loc"]
        key, annotation, value = _follow(location, data)
        if detail["type"] in {"extra_forbidden", "missing"}:
            key = (*key, location[-1])
        # Errors for the branches of a union are one mistake; "[key]" is how pydantic marks a wrong name.
        identity = (key, location[-1:] == ("[key]",))
        if identity not in found:
            message, hint, choices = _words(detail, annotation, value)
            if hint is None and len(found) < MAX_SUGGESTIONS:
                name = value if detail["type"] == "literal_error" else key[-1] if key else ""
                hint = _did_you_mean(name, choices) if isinstance(name, str) else None
            if hint is None and detail["type"] == "extra_forbidden":
                hint = _belongs(str(key[-1])) or f"the keys of this table are {', '.join(choices)}"
            place = (*prefix, *key)
            hint = hint or "run `git patchgate schema config` to see what each key takes"
            found[identity] = Mistake(file, line_of(places, place), _dotted(place), message, hint)
    return tuple(sorted(found.values(), key=lambda mistake: mistake.line or 0))


def _follow(location: Sequence[int | str], data: Any) -> tuple[Key, Any, Any]:
    """Follow an error's location as far as it names keys (it also names branches of unions).

    Returns the key, what was expected there (an annotation), and the value.
    """
    key: Key = ()
    annotation: Any = ConfigDocument
    value = data
    for part in location:
        inner = _inner(annotation, part)
        if inner is None or not (part in value if isinstance(value, dict) else isinstance(value, list)):
            break
        key, annotation, value = (*key, part), inner, value[part]
    return key, annotation, value


def _inner(annotation: Any, part: int | str) -> Any:
    """Return what is expected below an annotation; None if it has nothing of that name."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _inner(arguments[0], part)
    if origin in {Union, UnionType}:
        branches = (_inner(branch, part) for branch in arguments)
        return next((branch for branch in branches if branch is not None), None)
    if isinstance(part, int):
        return arguments[0] if origin is tuple else None
    if origin is dict:
        return arguments[1]
    field = _fields(annotation).get(part)
    if field is None:
        return None
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def _fields(annotation: Any) -> Mapping[str, Any]:
    if get_origin(annotation) is Annotated:
        return _fields(get_args(annotation)[0])
    is_section = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation.model_fields if is_section else {}


def _words(detail: ErrorDetails, annotation: Any, value: Any) -> tuple[str, str | None, Sequence[str]]:
    """Return message and hint for one error, and the words that the author may have meant."""
    kind = detail["type"]
    name = str(detail["loc"][-1]) if detail["loc"] else ""
    fault = detail.get("ctx", {}).get("error")
    if isinstance(fault, TextError):
        return fault.message, fault.hint, fault.choices
    if kind == "extra_forbidden":
        return f"unknown key `{printable(name, 60)}`", None, tuple(_fields(annotation))
    if kind == "missing":
        return f"`{name}` is missing", f"it takes {_expected(_fields(annotation)[name].annotation)}", ()
    expected = _expected(annotation)
    if kind == "too_short":
        return "the list must not be empty", f"it takes {expected}, at least one", ()
    got = next((words for kind, words in _KINDS.items() if isinstance(value, kind)), "a date or time")
    hint = None
    if isinstance(value, str):
        is_bare = value in {"true", "false"} or (value.isascii() and value.isdecimal())
        hint = "write it without quotes" if is_bare and "list" not in expected else None
        got = f'"{printable(value, 40)}"' if '"' in expected else got
    elif isinstance(value, int) and kind in {"greater_than_equal", "less_than_equal"}:
        got = str(value) if abs(value) <= MAX_SHOWN else "a number beyond 64 bits"
    elif isinstance(value, dict) and expected == "a list of tables":
        hint = f"write [[{name}]] with two brackets"
    if expected.startswith("a list") and isinstance(value, str):
        hint = "put it in brackets, even if it is only one"
    return f"expected {expected}, got {got}", hint, tuple(_literals(annotation))


def _expected(annotation: Any) -> str:
    """Describe what an annotation takes: `a list of strings`."""
    return _either(list(dict.fromkeys(_kinds(annotation))))


def _either(choices: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))


def _kinds(annotation: Any) -> Iterator[str]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        least, most = (_bound(arguments[1:], name) for name in ("ge", "le"))
        if arguments[0] is int and least is not None and most is not None and most <= MAX_SHOWN_LIMIT:
            yield f"a whole number of {least} to {most}"
        else:
            yield from _kinds(arguments[0])
    elif origin in {Union, UnionType}:
        for branch in arguments:
            yield from _kinds(branch)
    elif origin is Literal:
        yield from (f'"{choice}"' for choice in arguments)
    elif origin is tuple:
        element = _expected(arguments[0])
        yield (
            f"a list of {element.removeprefix('a ')}s" if element.startswith("a ") else f"a list of {element}"
        )
    elif annotation is bool:
        yield from ("true", "false")
    elif annotation is not NoneType:
        plain = {int: "a whole number of 0 or more", float: "a number", str: "a string"}
        yield plain.get(annotation, "a table")


def _bound(metadata: Sequence[Any], name: str) -> int | None:
    """Find a bound in the metadata of a number; pydantic may nest it in another field."""
    inner = (part for each in metadata for part in (each, *getattr(each, "metadata", ())))
    return next((bound for part in inner if (bound := getattr(part, name, None)) is not None), None)


def _literals(annotation: Any) -> Iterator[str]:
    """Find the words that an annotation takes."""
    for argument in get_args(annotation):
        if get_origin(annotation) is Literal:
            yield argument
        else:
            yield from _literals(argument)


def _did_you_mean(word: str, choices: Sequence[str]) -> str | None:
    if not choices or len(word) > 60:
        return None
    from difflib import get_close_matches

    return next((f"did you mean `{match}`?" for match in get_close_matches(word, choices, n=1)), None)


def _belongs(name: str) -> str | None:
    """Name the tables that have a key, for a key in the wrong table."""
    tables: list[str] = []
    unread: list[tuple[str, type[BaseModel]]] = [("", ConfigDocument)]
    while unread:
        table, section = unread.pop()
        for field, below in section.model_fields.items():
            if field == name:
                tables.append(table or "the top of the file")
            inner = next(_sections(below.annotation), None)
            if inner:
                dots = f"{table.strip('[]')}.{field}".removeprefix(".")
                if get_origin(below.annotation) is dict:
                    unread.append((f"[{dots}.NAME]", inner))
                else:
                    unread.append((f"[{dots}]" if inner is below.annotation else f"[[{dots}]]", inner))
    return f"it belongs in {_either(sorted(tables, reverse=True))}" if tables else None


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """Find the models within an annotation."""
    if _fields(annotation):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections(argument)


def _dotted(key: Key) -> str:
    """Write a key as in TOML: `policy.deny[2]`; parts that are not bare keys are quoted."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_-]{1,100}", part) else f'"{printable(part, 100)}"'
            text += f".{name}" if text else name
    return text
