"""Read the table `[claims]`: a value that cannot be used is replaced, with a warning.

Decides the bounds, the replacements, and which custom markers are usable. A mistake here must not stop an
adjudication, so nothing raises; an unknown key is a warning too. `placeholder_markers` decides what a marker
finds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from patchgate.git.quoting import printable
from patchgate.policy.regular_expressions import check_expression, inner_parts, parse
from patchgate.policy.settings import ClaimsSettings, ConfigWarning, MarkerSettings
from patchgate.policy.validators import (
    MARKER_NAME,
    MAX_EXAMPLE,
    MAX_MARKERS,
    MAX_NAME,
    MAX_SUFFIX,
    TextError,
    check_pattern,
)
from patchgate.values import replace

Key = tuple[str | int, ...]
TABLE = "claims"
BOUNDS: Mapping[str, tuple[int, int]] = {
    "contradiction_scan_max_files": (1, 1000),
    "contradiction_scan_max_total_bytes": (1024, 50_000_000),
    "contradiction_scan_max_file_bytes": (1, 10_000_000),
    "contradiction_scan_min_files_for_sufficiency": (1, 100),
    "contradiction_scan_timeout_seconds": (1, 30),
}
"""The bounds of each number, inclusive."""
# A config is read before it is trusted, and each expression is matched against its example. This bounds the
# number of ways to match: three unbounded repeats, one after another, are within it.
_MOST_WAYS = 5_000_000
_MOST_INTEGER = 2**63 - 1
_TOTAL, _FILE = "contradiction_scan_max_total_bytes", "contradiction_scan_max_file_bytes"
_SUFFIXES = "contradiction_scan_allowed_suffixes"
_FLAGS = ("contradiction_guard_enabled", "contradiction_guard_strict_coverage")
KEYS = (*_FLAGS, *BOUNDS, _SUFFIXES, "markers", "exclude")
"""The keys of the table; any other key is a warning."""


def parse_claims(written: Any) -> tuple[ClaimsSettings, tuple[ConfigWarning, ...]]:
    """Read the value of `[claims]`, of any type; return the settings and a warning for each replacement."""
    if not isinstance(written, Mapping):
        # It may have been meant to contain markers.
        message = (
            f"{_printable(written)} is not a table, so the defaults are used, and no claim is contradicted"
        )
        return ClaimsSettings(has_unusable_markers=True), (ConfigWarning((TABLE,), message),)
    warnings: list[ConfigWarning] = []
    values: dict[str, Any] = {}
    for name, usual in _defaults().items():
        # A default is lowered without a warning: it was not written.
        default = min(usual, values[_TOTAL]) if name == _FILE else usual
        if name not in written:
            values[name] = default
        elif name in _FLAGS:
            values[name] = _flag(name, written[name], default, warnings)
        elif name == _SUFFIXES:
            values[name] = _suffixes(written[name], default, warnings)
        else:
            total = values[_TOTAL] if name == _FILE else None
            values[name] = _number(name, written[name], default, total, warnings)
    markers, left_out = _markers(written.get("markers", ()), warnings)
    exclude = _patterns(written.get("exclude", ()), warnings)
    warnings += [_unknown(name) for name in written if name not in KEYS]
    made = replace(ClaimsSettings(**values), markers=markers, exclude=exclude, has_unusable_markers=left_out)
    return made, tuple(warnings)


def suffix_test(suffixes: Sequence[str]) -> Callable[[bytes], bool]:
    """Return a function that checks whether a path (bytes) has one of the suffixes.

    A suffix is the literal end of the file name, compared without case for ASCII letters. The empty suffix
    means names without one: without a dot, except for one at the start (`Makefile`, `.gitignore`).
    """
    ends = tuple(suffix.encode("utf-8", "surrogatepass").lower() for suffix in suffixes if suffix)
    takes_bare = "" in suffixes

    def is_allowed(name: bytes) -> bool:
        last = name[name.rfind(b"/") + 1 :].lower()
        return last.endswith(ends) or (takes_bare and b"." not in last[1:])

    return is_allowed


def _defaults() -> dict[str, Any]:
    """Return every key except the markers with its default, in the order of the warnings."""
    settings = ClaimsSettings()
    return {name: getattr(settings, name) for name in (*_FLAGS, *BOUNDS, _SUFFIXES)}


def _flag(name: str, value: Any, default: bool, warnings: list[ConfigWarning]) -> bool:
    if isinstance(value, bool):
        return value
    what = f"{_printable(value)} is neither true nor false, so {str(default).lower()} is used"
    warnings.append(ConfigWarning((TABLE, name), what))
    return default


def _number(name: str, value: Any, default: float, total: int | None, warnings: list[ConfigWarning]) -> float:
    is_whole = name != "contradiction_scan_timeout_seconds"
    kinds = int if is_whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not _is_finite(value):
        kind = "a whole number" if is_whole else "a number"
        warnings.append(
            ConfigWarning((TABLE, name), f"{_printable(value)} is not {kind}, so {default} is used")
        )
        return default
    least, most = BOUNDS[name]
    bound = str(most)
    if total is not None and total < most:
        most, bound = total, _TOTAL
    if least <= value <= most:
        return value
    used, side = (least, f"less than {least}") if value < least else (most, f"more than {bound}")
    warnings.append(ConfigWarning((TABLE, name), f"{_printable(value)} is {side}, so {used} is used"))
    return used


def _is_finite(value: float) -> bool:
    # `isfinite` raises for an integer beyond every float.
    return isinstance(value, int) or math.isfinite(value)


def _suffixes(value: Any, default: tuple[str, ...], warnings: list[ConfigWarning]) -> tuple[str, ...]:
    key: Key = (TABLE, _SUFFIXES)
    if not isinstance(value, list | tuple):
        warnings.append(
            ConfigWarning(key, f"{_printable(value)} is not a list of suffixes, so the default is used")
        )
        return default
    for index, each in enumerate(value):
        if not isinstance(each, str) or len(each) > MAX_SUFFIX or not {"/", "\0", "*"}.isdisjoint(each):
            what = f'{_printable(each)} is not a suffix like ".md", so the default list is used'
            warnings.append(ConfigWarning((*key, index), what))
            return default
    return tuple(dict.fromkeys(value))


def _patterns(value: Any, warnings: list[ConfigWarning]) -> tuple[str, ...]:
    """Read the patterns of excluded files; a pattern that cannot be used excludes nothing."""
    key: Key = (TABLE, "exclude")
    if not isinstance(value, list | tuple):
        warnings.append(
            ConfigWarning(key, f"{_printable(value)} is not a list of patterns, so nothing is excluded")
        )
        return ()
    found: list[str] = []
    for index, each in enumerate(value):
        fault = None if isinstance(each, str) else f"{_printable(each)} is not a string"
        if isinstance(each, str):
            try:
                check_pattern(each)
            except TextError as error:
                fault = _shorten(error.message, 300)
        if fault is None:
            found.append(each)
        else:
            warnings.append(ConfigWarning((*key, index), f"{fault}; it excludes nothing"))
    return tuple(found)


def _unknown(name: str) -> ConfigWarning:
    """Warn about an unknown key, and suggest the one that may be meant."""
    from difflib import get_close_matches

    near = get_close_matches(name[:60], KEYS, n=1)
    meant = f"; did you mean `{TABLE}.{near[0]}`?" if near else ""
    return ConfigWarning((TABLE, name), f"unknown key, which has no effect{meant}")


def _markers(value: Any, warnings: list[ConfigWarning]) -> tuple[tuple[MarkerSettings, ...], bool]:
    """Read the custom markers; also return whether one was left out."""
    key: Key = (TABLE, "markers")
    if not isinstance(value, list | tuple):
        warnings.append(
            ConfigWarning(key, f"{_printable(value)} is not a list of tables, so no claim is contradicted")
        )
        return (), True
    found: dict[str, MarkerSettings] = {}
    left_out = False
    for index, each in enumerate(value[:MAX_MARKERS]):
        part, fault = _marker_fault(each, found)
        if fault is None:
            found[each["name"]] = MarkerSettings(each["name"], each["pattern"], each["example"])
            continue
        left_out = True
        place: Key = (*key, index) if part is None else (*key, index, part)
        warnings.append(ConfigWarning(place, f"{fault}; it is ignored, and no claim is contradicted"))
    if len(value) > MAX_MARKERS:
        left_out = True
        what = (
            f"{len(value)} are more than {MAX_MARKERS}; the others are ignored, and no claim is contradicted"
        )
        warnings.append(ConfigWarning(key, what))
    return tuple(found.values()), left_out


def _marker_fault(marker: Any, others: Mapping[str, MarkerSettings]) -> tuple[str | None, str | None]:
    """Return the faulty key of a marker (None: the marker itself) and the reason (None: no fault)."""
    if not isinstance(marker, Mapping):
        return None, f"{_printable(marker)} is not a table"
    for unknown in marker:
        if unknown not in {"name", "pattern", "example"}:
            return None, f'unknown key "{_shorten(str(unknown), 40)}" (name, pattern and example are known)'
    for key in ("name", "pattern", "example"):
        if key not in marker:
            return None, f"`{key}` is missing"
        if not isinstance(marker[key], str):
            return key, f"{_printable(marker[key])} is not a string"
    name, pattern, example = marker["name"], marker["pattern"], marker["example"]
    if not re.fullmatch(MARKER_NAME, name) or len(name) > MAX_NAME:
        return "name", f"{_printable(name)} is not a name of lowercase letters, digits and hyphens"
    if name in others:
        return "name", f"{_printable(name)} is the name of another marker"
    if (fault := _expression_fault(pattern)) is not None:
        return "pattern", fault
    if not 0 < len(example) <= MAX_EXAMPLE or not {"\n", "\r"}.isdisjoint(example):
        return "example", f"an example must be one line of 1 to {MAX_EXAMPLE} characters"
    if not re.search(pattern.encode(), example.encode("utf-8", "surrogatepass")):
        return "example", f"{_printable(example)} is not matched by the pattern"
    return None, None


def _expression_fault(pattern: str) -> str | None:
    from patchgate.policy.validators import TextError

    try:
        check_expression(pattern)
        parsed = parse(pattern.encode())
        ways = _count_ways(parsed, type(parsed))
    except TextError as error:
        return _shorten(error.message, 300)
    except (ValueError, RecursionError):
        return "not a regular expression"
    if ways > _MOST_WAYS:
        return "its repeats can take too long (bound them, like {0,9})"
    if _asks_for_a_line_feed(parsed, type(parsed)):
        return "it contains a newline, but lines are searched one by one"
    if not pattern.isascii() and re.compile(pattern.encode()).flags & re.IGNORECASE:
        return "it ignores case, which works for ASCII letters only: write both cases, like (?:Ä|ä)"
    if re.search(pattern.encode(), b""):
        return "it matches an empty line, so it would match every line"
    return None


def _asks_for_a_line_feed(part: Any, kind: type) -> bool:
    """Check whether a parsed expression requires a newline; a set that contains one has other bytes too."""
    return any(
        (str(operation) == "LITERAL" and value == ord("\n"))
        or (
            str(operation) != "IN"
            and any(_asks_for_a_line_feed(each, kind) for each in inner_parts(value, kind))
        )
        for operation, value in part
    )


def _count_ways(part: Any, kind: type) -> float:
    """Return an upper bound for the ways in which an expression can match an example, from one position."""
    ways = 1.0
    for operation, value in part:
        name = str(operation)
        inner = 1.0
        choices = 0.0
        for each in inner_parts(value, kind):
            of_each = _count_ways(each, kind)
            inner, choices = min(inner * of_each, math.inf), choices + of_each
        if name == "BRANCH":
            inner = choices
        elif name.endswith("_REPEAT"):
            least, most = (min(int(times), MAX_EXAMPLE) for times in value[:2])
            inner = most - least + 1 if inner == 1 else _power(inner, most) * (most - least + 1)
        ways *= inner
        if ways > _MOST_WAYS:
            return math.inf
    return ways


def _power(base: float, times: int) -> float:
    return math.inf if times * math.log(max(base, 1)) > 600 else base**times


def _shorten(text: str, most: int) -> str:
    """Make a text safe for one line of a terminal; a tab, which `printable` keeps, is escaped."""
    return printable(text, most).replace("\t", "\\t")


def _printable(value: Any) -> str:
    """Describe a value, safe for a terminal."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if abs(value) <= _MOST_INTEGER else "a number beyond 64 bits"
    if isinstance(value, float):
        return str(value)
    if isinstance(value, str):
        return f'"{_shorten(value, 60)}"'
    return (
        "a table" if isinstance(value, Mapping) else "a list" if isinstance(value, list | tuple) else "this"
    )
