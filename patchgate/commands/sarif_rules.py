"""Which rule a SARIF result is of, and what its message says.

Decides how a result names its rule (by id, or by a position in the rules of the driver or of an extension),
which level that rule has where the result has none, and which words a message has that is named by its id.
Source: SARIF 2.1.0, 3.11 (messages and their arguments), 3.19.20 to 3.19.23, 3.27.5 to 3.27.10, 3.50, 3.52.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from patchgate.commands.sarif_results import DRIVER, MAX_TEMPLATE, Written, as_object, as_text

UNNAMED = "unnamed"
_OPEN_KINDS = frozenset({"open", "review"})
_LEVELS = frozenset({"error", "warning", "note", "none"})
_PIECE = re.compile(r"\{\{|\}\}|\{([0-9]{1,9})\}|[^{}]+|[{}]")


class Rule(NamedTuple):
    """A rule as a tool describes it; `messages` are its templates by their ids."""

    id: str | None
    level: str | None
    messages: dict[str, str]


_NONE = Rule(None, None, {})


class Rules:
    """All rules that the tool of one run describes, by the component that they are of.

    Args:
        take: counts what is kept, by its kind, and refuses what is too much.
    """

    def __init__(self, take: Callable[[str, int], None]) -> None:
        self._take = take
        self._rules: dict[int, list[Rule]] = {}
        self._by_id: dict[str, Rule] = {}
        self._names: dict[str, int] = {}
        self._messages: dict[int, dict[str, str]] = {}

    def add(self, component: int, value: object, at: str) -> None:
        """Take in the next rule of a component.

        Raises:
            NotReadError: something in it is not what the format says.
        """
        rule = as_object(value, at)
        settings = as_object(rule.get("defaultConfiguration"), f"{at}.defaultConfiguration")
        found = Rule(
            as_text(rule.get("id"), f"{at}.id"),
            as_text(settings.get("level"), f"{at}.defaultConfiguration.level"),
            _templates(rule.get("messageStrings"), f"{at}.messageStrings"),
        )
        self._take("rules", 1)
        self._take("templates of messages", len(found.messages))
        self._rules.setdefault(component, []).append(found)
        if found.id is not None:
            self._by_id.setdefault(found.id, found)

    def add_messages(self, component: int, value: object, at: str) -> None:
        """Take in the templates of a component that are of no rule of their own.

        Raises:
            NotReadError: something in it is not what the format says.
        """
        found = self._messages[component] = _templates(value, at)
        self._take("templates of messages", len(found))

    def name(self, component: int, name: str) -> None:
        """Take in what an extension is called."""
        self._names.setdefault(name, component)

    def rule_of(self, written: Written) -> Rule:
        """Find the description of a result's rule; one that says nothing where there is none."""
        rules = self._rules.get(self._component(written), [])
        if 0 <= written.rule_index < len(rules):
            found = rules[written.rule_index]
            if written.rule is None or found.id is None or f"{written.rule}/".startswith(f"{found.id}/"):
                return found
        name = written.rule or ""
        while name and name not in self._by_id:
            # `CA1000/1` is a kind of CA1000.
            name = name.rpartition("/")[0]
        return self._by_id.get(name, _NONE)

    def message_of(self, written: Written, rule: Rule) -> str:
        """Give the words of a result's message; nothing where it has none."""
        text = written.text
        if text is None and written.message is not None:
            common = self._messages.get(self._component(written), {})
            text = rule.messages.get(written.message, common.get(written.message))
        if text is None:
            return ""
        return _filled(text, written.arguments) if written.arguments else text

    def _component(self, written: Written) -> int:
        if written.component >= 0 or written.component_name is None:
            return written.component
        return self._names.get(written.component_name, DRIVER)


def level_of(written: Written, rule: Rule) -> str:
    """Give the level of a result: its own, else that of its rule, else warning."""
    if written.kind in _OPEN_KINDS:
        return "note"
    found = next((level for level in (written.level, rule.level) if level in _LEVELS), None)
    return found or "warning"


def _templates(value: object, at: str) -> dict[str, str]:
    found = {}
    for name, template in as_object(value, at).items():
        text = as_text(as_object(template, f"{at} of a message").get("text"), f"{at} of a message")
        if text is not None:
            found[name] = text[:MAX_TEMPLATE]
    return found


def _filled(template: str, arguments: tuple[str, ...]) -> str:
    """Put the arguments of a message in its places, as far as a message is read."""
    pieces: list[str] = []
    length = 0
    for piece in _PIECE.finditer(template):
        text = piece[0]
        if piece[1] is not None and int(piece[1]) < len(arguments):
            text = arguments[int(piece[1])]
        elif text in {"{{", "}}"}:
            text = text[0]
        pieces.append(text)
        length += len(text)
        if length >= MAX_TEMPLATE:
            break
    return "".join(pieces)[:MAX_TEMPLATE]
