"""The config: bytes of `patchgate.toml` or `pyproject.toml` in, one strict frozen `Config` out.

Decides how a file is read, within caps that hold before tomllib sees the text; all mistakes are told at once.
Which keys exist and what each may hold is in `config_tables`, what a limit or a pattern means in `policy`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from patchgate.errors import ConfigError, Mistake
from patchgate.git.quoting import printable
from patchgate.policy.config_tables import ConfigDocument
from patchgate.policy.loader import settings_from
from patchgate.policy.settings import Config
from patchgate.policy.texts import check_pattern, version_satisfies

if TYPE_CHECKING:
    from patchgate.policy.toml_lines import Key


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of `patchgate.toml`."""
    schema = _without_null(ConfigDocument.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "patchgate.toml"}


def _without_null(node: Any) -> Any:
    """Take null out of a schema, since TOML has none: a key that may be null is one that may be absent.

    The default of a whole table goes too; its keys have theirs.
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


__all__ = [
    "Config",
    "check_pattern",
    "parse",
    "parse_pyproject",
    "version_satisfies",
    "written",
]

MAX_BYTES = 64 * 1024
MAX_PYPROJECT_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_KEY_PARTS = 32
MAX_KEYS = 4000


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
    """Read `[tool.patchgate]` of a `pyproject.toml`, at most 1 MiB; None where there is no such table.

    Raises:
        ConfigError: with every mistake in it; their keys begin with `tool.patchgate`.
    """
    # Without the word, or an escape that could spell it, there is no table, and no need for tomllib (17 ms).
    if b"patchgate" not in raw and b"\\" not in raw:
        return None
    tool = _read(raw, file, MAX_PYPROJECT_BYTES).get("tool")
    if not isinstance(tool, dict) or "patchgate" not in tool:
        return None
    return _config(tool["patchgate"], raw, file, ("tool", "patchgate"))


def written(config: Config) -> dict[str, Any]:
    """Give the keys as the user wrote them, without defaults, ready for JSON: what a digest is made of."""
    return dict(config.written)


def _read(raw: bytes, file: str, most: int) -> dict[str, Any]:
    """Read TOML within the caps."""
    if len(raw) > most:
        message = f"the file has {len(raw):,} bytes, and at most {most:,} are read"
        raise ConfigError((Mistake(file, None, "", message, "make it shorter"),))
    mistakes: list[Mistake] = []
    if raw.startswith(b"\xef\xbb\xbf"):
        mistakes.append(Mistake(file, 1, "", "the file begins with a byte-order mark", "save it without one"))
    if (position := raw.find(b"\0")) >= 0:
        line = raw.count(b"\n", 0, position) + 1
        mistakes.append(Mistake(file, line, "", "the file holds a NUL byte", "save it as UTF-8 text"))
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
        message, line = f"lists and tables may be nested at most {MAX_DEPTH} deep", 0
    except ValueError as error:
        message, line = _syntax_fault(str(error), text)
    raise ConfigError((Mistake(file, line or None, "", message, "see https://toml.io for the syntax"),))


def _cap_fault(text: str, file: str) -> Mistake | None:
    """Find what tomllib must not see: too deep, keys of too many parts, too many keys."""
    # Counting costs microseconds and is never too low, so most files need no closer look.
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
    return Mistake(file, found.line, "", found.message, "make the file plainer") if found else None


def _syntax_fault(reason: str, text: str) -> tuple[str, int]:
    """Turn the message of tomllib, which ends in a place, into a message and a line (0: none)."""
    found = re.fullmatch(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", reason, re.DOTALL)
    if not found:
        # The one ValueError without a place: int() refuses more than 4,300 digits.
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
    from patchgate.policy.mistakes import tell

    raise ConfigError(tell(details, ConfigDocument, data, raw, file, prefix))
