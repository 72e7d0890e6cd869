"""One SARIF result, taken out of its JSON: what we read of it, and nothing else.

Decides which values of a result count, and refuses those that are of another kind than the format says
(`null` is as if it were not there). What the values stand for is not decided here: a result may stand before
the rules and the bases that it names. Sources: SARIF 2.1.0, 3.27 (result), 3.35 (suppression), 3.11
(message), 3.28 (location).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from patchgate.commands.json_stream import NotReadError
from patchgate.commands.sarif_places import Location

MAX_TEMPLATE = 4000
"""How much is read of a message with arguments, and of each argument."""
DRIVER = -1
_NO_FINDINGS = frozenset({"pass", "notApplicable", "informational"})
_MOST_ARGUMENTS = 100
_MAX_LINE = 1 << 31
_HALVES = re.compile("[\ud800-\udfff]")


class Written(NamedTuple):
    """A result as it is written; a number that it does not have is -1.

    `component` is the position of the extension that its rule is of, or `DRIVER`. `component_name` is that
    one's name where it is named so. `places` are `locations`, then `relatedLocations`: location, line (0:
    none), and whether it stands for the file as a whole.
    """

    rule: str | None
    rule_index: int
    component: int
    component_name: str | None
    level: str | None
    kind: str | None
    text: str | None
    message: str | None
    arguments: tuple[str, ...]
    places: tuple[tuple[Location, int, bool], ...]
    is_suppressed: bool


def read_result(value: object, at: str, kept: Callable[[Any], Any]) -> Written | None:
    """Take what we read out of a result; None where it is no finding.

    Args:
        value: the result.
        at: its place in the document, for a refusal.
        kept: gives back an equal text or place that is held already, so that each is held once.

    Raises:
        NotReadError: something in it is not what the format says.
    """
    result = as_object(value, at)
    kind = as_text(result.get("kind"), f"{at}.kind")
    if result.get("baselineState") == "absent" or kind in _NO_FINDINGS:
        return None
    rule = as_object(result.get("rule"), f"{at}.rule")
    component = as_object(rule.get("toolComponent"), f"{at}.rule.toolComponent")
    rule_id = as_text(result.get("ruleId"), f"{at}.ruleId") or as_text(rule.get("id"), f"{at}.rule.id")
    index = as_index(result.get("ruleIndex"))
    message = as_object(result.get("message"), f"{at}.message")
    text = as_text(message.get("text"), f"{at}.message.text")
    if text is None:
        text = as_text(message.get("markdown"), f"{at}.message.markdown")
    return Written(
        kept(rule_id),
        index if index >= 0 else as_index(rule.get("index")),
        as_index(component.get("index")),
        kept(as_text(component.get("name"), f"{at}.rule.toolComponent.name")),
        kept(as_text(result.get("level"), f"{at}.level")),
        kept(kind),
        kept(text),
        kept(as_text(message.get("id"), f"{at}.message.id")),
        tuple(_arguments(message, f"{at}.message")),
        tuple(kept(each) for each in _places(result, at)),
        _is_suppressed(result, at),
    )


def _arguments(message: dict[str, object], at: str) -> Iterator[str]:
    for number, value in enumerate(as_list(message.get("arguments"), f"{at}.arguments")[:_MOST_ARGUMENTS]):
        yield (as_text(value, f"{at}.arguments[{number}]") or "")[:MAX_TEMPLATE]


def _places(result: dict[str, object], at: str) -> Iterator[tuple[Location, int, bool]]:
    for key in ("locations", "relatedLocations"):
        for number, value in enumerate(as_list(result.get(key), f"{at}.{key}")):
            here = f"{at}.{key}[{number}]"
            location = as_object(value, here)
            physical = as_object(location.get("physicalLocation"), f"{here}.physicalLocation")
            artifact = physical.get("artifactLocation")
            if artifact is None:
                continue
            region = as_object(physical.get("region"), f"{here}.physicalLocation.region")
            line = as_index(region.get("startLine"))
            yield (
                read_location(artifact, f"{here}.physicalLocation.artifactLocation"),
                max(line, 0),
                _is_whole_file(region),
            )


def _is_whole_file(region: dict[str, object]) -> bool:
    """Tell whether a region is the empty one at the very beginning, which stands for the file.

    ruff tells so that a module has no docstring: the first line says nothing of that, and is another as soon
    as something is inserted above it.
    """
    corners = (region.get(key) for key in ("startLine", "startColumn", "endLine", "endColumn"))
    return tuple(corners) == (1, 1, 1, 1)


def _is_suppressed(result: dict[str, object], at: str) -> bool:
    suppressions = as_list(result.get("suppressions"), f"{at}.suppressions")
    states = [
        as_object(value, f"{at}.suppressions[{number}]").get("status")
        for number, value in enumerate(suppressions)
    ]
    return bool(states) and not any(state in ("underReview", "rejected") for state in states)


def read_location(value: object, at: str) -> Location:
    """Take an artifactLocation.

    Raises:
        NotReadError: something in it is not what the format says.
    """
    found = as_object(value, at)
    # Half of a surrogate pair stays: nothing may be made of it that could name a file.
    uri = _as_string(found.get("uri"), f"{at}.uri")
    return Location(uri, as_text(found.get("uriBaseId"), f"{at}.uriBaseId"), as_index(found.get("index")))


def as_object(value: object, at: str) -> dict[str, object]:
    """Give an object back; an empty one for `null`.

    Raises:
        NotReadError: it is none.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotReadError(f"{at} is no object")
    return value


def as_list(value: object, at: str) -> list[object]:
    """Give a list back; an empty one for `null`.

    Raises:
        NotReadError: it is none.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotReadError(f"{at} is no list")
    return value


def as_text(value: object, at: str) -> str | None:
    """Give a text back, without halves of surrogate pairs, which could not be written again.

    Raises:
        NotReadError: it is neither a text nor `null`.
    """
    text = _as_string(value, at)
    return text if text is None or text.isascii() else _HALVES.sub("\ufffd", text)


def _as_string(value: object, at: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise NotReadError(f"{at} is no string")
    return value


def as_index(value: object) -> int:
    """Give a position or a line back; -1 where it is none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_LINE:
        return value
    return -1
