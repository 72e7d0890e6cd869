"""Parse one SARIF result: its fields, the file of the tree that it names, its rule and its message.

Refuses values of a wrong type (`null` counts as missing). Sources: SARIF 2.1.0, 3.27 (result), 3.35
(suppression), 3.11 (message), 3.28 (location), 3.4 (artifactLocation), 3.14.14 (originalUriBaseIds); RFC
8089.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from patchgate.commands.json_stream import JsonObject, as_text
from patchgate.git.path import RepoPath

UNNAMED = "unnamed"
MAX_TEMPLATE = 4000
"""The most characters of a message template, and of each argument."""
DRIVER = -1
_OPEN_KINDS = frozenset({"open", "review"})
_LEVELS = frozenset({"error", "warning", "note", "none"})
_NO_FINDINGS = frozenset({"pass", "notApplicable", "informational"})
_MOST_ARGUMENTS = 100
_PIECE = re.compile(r"\{\{|\}\}|\{([0-9]{1,9})\}|[^{}]+|[{}]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_MOST_BASES = 32


class SarifLocation(NamedTuple):
    """An artifactLocation as written; `artifact` is -1 if it has no index in the run."""

    uri: str | None
    base: str | None
    artifact: int


class SarifPaths:
    """Resolves the locations of one run to paths of the tree.

    Args:
        root: the scratch tree; a tool may use the given path or the real path.
        has: whether the tree has a file.
        folder: the folder of the tree in which the tool ran.

    `bases` are `originalUriBaseIds`: a missing base, or one without a URI, is the root. `artifacts` are the
    locations of the artifacts of the run. Both are filled while the run is read.
    """

    def __init__(self, root: str, has: Callable[[RepoPath], bool], folder: str = "") -> None:
        self.bases: dict[str, SarifLocation] = {}
        self.artifacts: dict[int, SarifLocation] = {}
        named = os.fsencode(os.path.normpath(root))
        # A location without a base is relative to the working directory.
        self._root = _prefix(named) + folder.encode() if folder else named
        self._prefixes = tuple(dict.fromkeys(_prefix(each) for each in (named, os.path.realpath(named))))
        self._plain = tuple(os.fsdecode(prefix) for prefix in self._prefixes)
        self._has = has
        self._known: dict[SarifLocation, RepoPath | None] = {}

    def path_of(self, location: SarifLocation) -> RepoPath | None:
        """Return the path of the tree that a location names; None if it names none.

        None for a location outside the root, that ends in `/`, or that has a query or a fragment (a name that
        was not encoded would lose its end), and if the tree has no such file: a tool that was started
        elsewhere, or cannot write the name, would report findings in files that no intent declares.
        """
        if location in self._known:
            return self._known[location]
        absolute = self._absolute(self.written(location), 0)
        found = self._below_root(absolute) if absolute is not None else None
        if found is not None and not self._has(found):
            found = None
        self._known[location] = found
        return found

    def written(self, location: SarifLocation) -> SarifLocation:
        """Replace a location that has only the index of an artifact by the location of that artifact."""
        return self.artifacts.get(location.artifact, location) if location.uri is None else location

    def without_root(self, text: str) -> str:
        """Remove the path of the scratch tree from a text; it differs from run to run."""
        for prefix in self._plain:
            if prefix in text:
                text = text.replace(prefix, "")
        return text

    def _absolute(self, location: SarifLocation, steps: int) -> bytes | None:
        """Resolve a location to the absolute path of a file, or of a folder (then it ends with `/`)."""
        uri = location.uri or ""
        scheme = _SCHEME.match(uri)
        if "?" in uri or "#" in uri:
            return None
        if scheme is None and not uri.startswith("/"):
            above = self._base(location.base, steps)
            inner = _decoded(uri)
            return None if above is None or inner is None else _prefix(above) + inner
        if scheme is not None:
            if scheme[1].lower() != "file":
                return None
            uri = uri[scheme.end() :]
            if uri.startswith("//"):
                host, _, rest = uri[2:].partition("/")
                if host.lower() not in {"", "localhost"}:
                    return None
                uri = f"/{rest}"
        return None if not uri.startswith("/") or uri.startswith("//") else _decoded(uri)

    def _base(self, name: str | None, steps: int) -> bytes | None:
        """Resolve a base to its absolute folder; None if it refers to itself."""
        base = self.bases.get(name) if name is not None else None
        if base is None or (base.uri is None and base.base is None):
            return self._root
        return None if steps >= _MOST_BASES else self._absolute(base, steps + 1)

    def _below_root(self, absolute: bytes) -> RepoPath | None:
        if absolute.endswith((b"/", b"/.", b"/..")):
            return None
        parts: list[bytes] = []
        for part in absolute.split(b"/"):
            if part == b"..":
                del parts[-1:]
            elif part not in {b"", b"."}:
                parts.append(part)
        plain = b"/" + b"/".join(parts)
        for prefix in self._prefixes:
            if plain.startswith(prefix):
                return RepoPath(plain[len(prefix) :])
        return None


def _prefix(folder: bytes) -> bytes:
    return folder.rstrip(b"/") + b"/"


def _decoded(uri: str) -> bytes | None:
    """Decode percent-encoding; the rest is UTF-8. None if no file can have this name."""
    try:
        raw = unquote_to_bytes(uri)
    except UnicodeEncodeError:
        return None
    return None if b"\0" in raw else raw


class SarifResult(NamedTuple):
    """A result as written; a missing number is -1.

    `component` is the index of the extension of its rule, or `DRIVER`; `component_name` is its name, if
    given. `places` are `locations`, then `relatedLocations`: location, line (0: none), and whether it means
    the whole file.
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
    places: tuple[tuple[SarifLocation, int, bool], ...]
    is_suppressed: bool


def read_result(value: object, at: str, kept: Callable[[Any], Any]) -> SarifResult | None:
    """Parse a result; None if it is not a finding.

    Args:
        value: the result.
        at: its path in the document, for errors.
        kept: returns the shared copy of a value.

    Raises:
        NotReadError: a value has the wrong type.
    """
    result = JsonObject(value, at)
    kind = result.text("kind")
    if result.get("baselineState") == "absent" or kind in _NO_FINDINGS:
        return None
    rule = result.inner("rule")
    component = rule.inner("toolComponent")
    rule_id = result.text("ruleId") or rule.text("id")
    index = result.index("ruleIndex")
    message = result.inner("message")
    text = message.text("text")
    if text is None:
        text = message.text("markdown")
    arguments = islice(message.elements("arguments"), _MOST_ARGUMENTS)
    return SarifResult(
        rule=kept(rule_id),
        rule_index=index if index >= 0 else rule.index("index"),
        component=component.index("index"),
        component_name=kept(component.text("name")),
        level=kept(result.text("level")),
        kind=kept(kind),
        text=kept(text),
        message=kept(message.text("id")),
        arguments=tuple((as_text(each, place) or "")[:MAX_TEMPLATE] for place, each in arguments),
        places=tuple(map(kept, _places(result))),
        is_suppressed=_is_suppressed(result),
    )


def _places(result: JsonObject) -> Iterator[tuple[SarifLocation, int, bool]]:
    for key in ("locations", "relatedLocations"):
        for at, value in result.elements(key):
            physical = JsonObject(value, at).inner("physicalLocation")
            if "artifactLocation" in physical:
                region = physical.inner("region")
                line = max(region.index("startLine"), 0)
                yield read_location(physical.inner("artifactLocation")), line, _is_whole_file(region)


def _is_whole_file(region: JsonObject) -> bool:
    """Check whether a region is the empty one at the start, which means the whole file.

    ruff uses it for a module without a docstring: the text of the first line does not matter there, and
    changes when something is inserted above it.
    """
    corners = ("startLine", "startColumn", "endLine", "endColumn")
    return all(region.get(corner) == 1 for corner in corners)


def _is_suppressed(result: JsonObject) -> bool:
    states = [JsonObject(value, at).get("status") for at, value in result.elements("suppressions")]
    return bool(states) and not any(state in ("underReview", "rejected") for state in states)


def read_location(found: JsonObject) -> SarifLocation:
    """Parse an artifactLocation.

    Raises:
        NotReadError: a value has the wrong type.
    """
    # An unpaired surrogate is kept: a replacement could name another file.
    return SarifLocation(found.written("uri"), found.text("uriBaseId"), found.index("index"))


class SarifRule(NamedTuple):
    """A rule as the tool describes it; `messages` are its templates by id."""

    id: str | None
    level: str | None
    messages: dict[str, str]


_NO_RULE = SarifRule(None, None, {})


class SarifRules:
    """The rules of one run, by component.

    Args:
        take: counts values of a kind, and refuses too many.

    Raises:
        NotReadError: a value has the wrong type.
    """

    def __init__(self, take: Callable[[str, int], None]) -> None:
        self._take = take
        self._rules: dict[int, list[SarifRule]] = {}
        self._by_id: dict[str, SarifRule] = {}
        self._names: dict[str, int] = {}
        self._messages: dict[int, dict[str, str]] = {}

    def add(self, component: int, value: object, at: str) -> None:
        """Add the next rule of a component."""
        rule = JsonObject(value, at)
        settings = rule.inner("defaultConfiguration")
        templates = _templates(rule.get("messageStrings"), f"{at}.messageStrings")
        found = SarifRule(rule.text("id"), settings.text("level"), templates)
        self._take("rules", 1)
        self._take("templates of messages", len(found.messages))
        self._rules.setdefault(component, []).append(found)
        if found.id is not None:
            self._by_id.setdefault(found.id, found)

    def add_messages(self, component: int, value: object, at: str) -> None:
        """Add the global templates of a component."""
        found = self._messages[component] = _templates(value, at)
        self._take("templates of messages", len(found))

    def name(self, component: int, name: str) -> None:
        """Add the name of an extension."""
        self._names.setdefault(name, component)

    def rule_of(self, written: SarifResult) -> SarifRule:
        """Return the rule of a result; an empty rule if it is not described."""
        rules = self._rules.get(self._component(written), [])
        if 0 <= written.rule_index < len(rules):
            found = rules[written.rule_index]
            if written.rule is None or found.id is None or f"{written.rule}/".startswith(f"{found.id}/"):
                return found
        name = written.rule or ""
        while name and name not in self._by_id:
            # `CA1000/1` is a kind of CA1000.
            name = name.rpartition("/")[0]
        return self._by_id.get(name, _NO_RULE)

    def message_of(self, written: SarifResult, rule: SarifRule) -> str:
        """Return the message of a result; empty if it has none."""
        text = written.text
        if text is None and written.message is not None:
            common = self._messages.get(self._component(written), {})
            text = rule.messages.get(written.message, common.get(written.message))
        if text is None:
            return ""
        return _filled(text, written.arguments) if written.arguments else text

    def _component(self, written: SarifResult) -> int:
        if written.component >= 0 or written.component_name is None:
            return written.component
        return self._names.get(written.component_name, DRIVER)


def level_of(written: SarifResult, rule: SarifRule) -> str:
    """Return the level of a result: its own, else that of its rule, else warning."""
    if written.kind in _OPEN_KINDS:
        return "note"
    found = next((level for level in (written.level, rule.level) if level in _LEVELS), None)
    return found or "warning"


def _templates(value: object, at: str) -> dict[str, str]:
    found = {}
    for name, template in JsonObject(value, at).items():
        text = as_text(JsonObject(template, f"{at} of a message").get("text"), f"{at} of a message")
        if text is not None:
            found[name] = text[:MAX_TEMPLATE]
    return found


def _filled(template: str, arguments: tuple[str, ...]) -> str:
    """Insert the arguments into a message template, up to the size limit."""
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
