"""One run of a SARIF document: walked through result by result, put together at its end.

Decides which parts of a run are read, and which of them make it a run that tells nothing: no list of results,
an invocation that failed, a notification of level error. Results may stand before the tool and the bases that
they name, so they are kept as they are written until all of the run is known.

Which rule a SARIF result is of, and what its message says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from patchgate.commands.json_stream import JsonStream, NotReadError
from patchgate.commands.sarif_places import Location, Places
from patchgate.commands.sarif_results import (
    DRIVER,
    MAX_TEMPLATE,
    Written,
    as_list,
    as_object,
    as_text,
    read_location,
    read_result,
)
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable

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


MOST = {
    "results": 250_000,
    "artifacts": 250_000,
    "rules": 100_000,
    "templates of messages": 100_000,
    "extensions": 1000,
    "bases of URIs": 1000,
}
"""How many of each are read of one document; each is kept until its run has been read."""
MAX_MESSAGE = 2000
MAX_MESSAGES = 128 << 20
_NARROWER = "narrow the folders that the command looks at, or its rules"
_MEND = "mend what it could not look at, or leave it out of what the command looks at"
_RELEVANT = frozenset({"tool", "results", "invocations", "originalUriBaseIds", "artifacts"})


class FailedError(NotReadError):
    """The document can be read, and says that the run failed: a predicate of the run."""


class Finding(NamedTuple):
    """A result that is a finding; its fields in the order in which findings come out.

    `first` is the path where it is (empty: none), `line` is 0 where there is none. `place` is its URI where
    it has no path.
    """

    first: bytes
    line: int
    rule: str
    message: str
    level: str
    tool: str
    paths: tuple[RepoPath, ...]
    place: str
    is_whole_file: bool
    is_suppressed: bool


class Room:
    """What the runs of one document may still take, and the texts that are held already."""

    def __init__(self) -> None:
        self._left = dict(MOST)
        self._characters = MAX_MESSAGES
        self._held: dict[Any, Any] = {}

    def kept(self, value: Any) -> Any:
        """Give back an equal value that is held already."""
        return self._held.setdefault(value, value)

    def take(self, kind: str, count: int = 1) -> None:
        """Count what is kept.

        Raises:
            NotReadError: there are too many of that kind.
        """
        self._left[kind] -= count
        if self._left[kind] < 0:
            raise NotReadError(f"it has more than {MOST[kind]:,} {kind}", _NARROWER)

    def message(self, text: str) -> str:
        """Hold a message.

        Raises:
            NotReadError: they are too long together.
        """
        text = text[:MAX_MESSAGE]
        if text not in self._held:
            self._characters -= len(text)
            if self._characters < 0:
                limit = f"{MAX_MESSAGES:,}"
                raise NotReadError(f"its messages have more than {limit} characters together", _NARROWER)
        return str(self.kept(text))


class Run:
    """Reads one run.

    Args:
        root: the scratch tree.
        at: its place in the document, for refusals.
        has: tells whether the tree has a file.
    """

    def __init__(self, root: str, at: str, room: Room, has: Callable[[RepoPath], bool]) -> None:
        self._root = root
        self._has = has
        self._at = at
        self._room = room
        self._tool: str | None = None
        self._rules = Rules(room.take)
        self._written: list[Written] | None = None
        self._bases: dict[str, Location] = {}
        self._artifacts: dict[int, Location] = {}

    def read(self, stream: JsonStream) -> Iterator[Finding]:
        """Read it to its end, then give its findings in the order in which they stand there.

        Raises:
            NotReadError: it tells nothing that can be relied on.
        """
        seen = set[str]()
        for key in _members(stream, self._at):
            at = f"{self._at}.{key}"
            if key not in _RELEVANT:
                continue
            if key in seen:
                raise NotReadError(f"{at} stands twice in it")
            seen.add(key)
            if key == "tool":
                self._read_tool(stream, at)
            elif key == "results":
                self._read_results(stream, at)
            elif key == "invocations":
                for here in _elements(stream, at):
                    self._require_success(stream.value(), here)
            elif key == "originalUriBaseIds":
                for name in _members(stream, at):
                    self._room.take("bases of URIs")
                    self._bases[name] = read_location(stream.value(), f"a base of {at}")
            else:
                self._read_artifacts(stream, at)
        if self._tool is None:
            raise NotReadError(f"{self._at}.tool.driver.name, which names the tool, is not there")
        if self._written is None:
            raise NotReadError(
                f"{self._at}.results is not there, which says that nothing was looked at",
                "look at what the tool says of itself in its log; a clean run has an empty list",
            )
        return self._findings(self._tool, self._written)

    def _read_tool(self, stream: JsonStream, at: str) -> None:
        for key in _members(stream, at):
            if key == "driver":
                self._tool = self._component(stream, f"{at}.driver", DRIVER)
            elif key == "extensions":
                for number, here in enumerate(_elements(stream, f"{at}.extensions")):
                    self._room.take("extensions")
                    name = self._component(stream, here, number)
                    if name is not None:
                        self._rules.name(number, name)

    def _component(self, stream: JsonStream, at: str, number: int) -> str | None:
        name = None
        for key in _members(stream, at):
            if key == "name":
                name = as_text(stream.value(), f"{at}.name")
            elif key == "rules":
                for here in _elements(stream, f"{at}.rules"):
                    self._rules.add(number, stream.value(), here)
            elif key == "globalMessageStrings":
                self._rules.add_messages(number, stream.value(), f"{at}.globalMessageStrings")
        return name

    def _read_results(self, stream: JsonStream, at: str) -> None:
        if stream.kind == "list":
            self._written = []
        for here in _elements(stream, at):
            self._room.take("results")
            written = read_result(stream.value(), here, self._room.kept)
            if written is not None and self._written is not None:
                self._written.append(written)

    def _read_artifacts(self, stream: JsonStream, at: str) -> None:
        for number, here in enumerate(_elements(stream, at)):
            self._room.take("artifacts")
            location = as_object(stream.value(), here).get("location")
            if location is not None:
                self._artifacts[number] = read_location(location, f"{here}.location")

    def _require_success(self, value: object, at: str) -> None:
        invocation = as_object(value, at)
        for kind in ("toolExecutionNotifications", "toolConfigurationNotifications"):
            for number, each in enumerate(as_list(invocation.get(kind), f"{at}.{kind}")):
                here = f"{at}.{kind}[{number}]"
                notification = as_object(each, here)
                if notification.get("level") == "error":
                    raise FailedError(f"could not look at everything: {_said(notification, here)}", _MEND)
        if invocation.get("executionSuccessful", True) is not True:
            raise FailedError("says of itself that it did not succeed (`executionSuccessful`)", _MEND)

    def _findings(self, tool: str, results: list[Written]) -> Iterator[Finding]:
        places = Places(self._root, self._bases, self._artifacts, self._has)
        for written in results:
            rule = self._rules.rule_of(written)
            paths: dict[RepoPath, None] = {}
            line, is_whole_file = 0, False
            for location, at_line, is_whole in written.places:
                path = places.path_of(location)
                if path is None:
                    continue
                if not paths:
                    line, is_whole_file = at_line, is_whole
                paths[path] = None
            place = ""
            if not paths and written.places:
                first = places.written(written.places[0][0])
                place = places.without_root(f"{first.base or ''}:{first.uri or ''}")
            message = self._rules.message_of(written, rule)
            yield Finding(
                next(iter(paths)).raw if paths else b"",
                line,
                written.rule or rule.id or UNNAMED,
                self._room.message(places.without_root(message)),
                level_of(written, rule),
                tool,
                self._room.kept(tuple(paths)),
                place,
                is_whole_file,
                written.is_suppressed,
            )


def _said(notification: dict[str, object], at: str) -> str:
    """Give what a notification says, and of what, safe to show."""
    message = as_object(notification.get("message"), f"{at}.message")
    text = printable(as_text(message.get("text"), f"{at}.message.text") or "no reason given", 200)
    for number, each in enumerate(as_list(notification.get("locations"), f"{at}.locations")):
        here = f"{at}.locations[{number}]"
        physical = as_object(as_object(each, here).get("physicalLocation"), here)
        artifact = as_object(physical.get("artifactLocation"), here)
        uri = as_text(artifact.get("uri"), f"{here}.uri")
        if uri:
            return f"{text} ({printable(uri, 200)})"
    return text


def _members(stream: JsonStream, at: str) -> Iterator[str]:
    """Walk through an object; nothing where there is `null`."""
    if stream.kind == "object":
        yield from stream.members()
    else:
        as_object(stream.value(), at)


def _elements(stream: JsonStream, at: str) -> Iterator[str]:
    """Walk through a list, and tell the place of each element; nothing where there is `null`."""
    if stream.kind == "list":
        for number in stream.elements():
            yield f"{at}[{number}]"
    else:
        as_list(stream.value(), at)
