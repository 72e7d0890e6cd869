"""SARIF 2.1.0 of a tool, read without trust: results in an order of their own, or why it tells nothing.

Decides which parts of a document and its runs are read, which of them make a run that tells nothing, and
what stands for the place of a finding when its line has moved (`mark`). A producer's fingerprints are not
read: one tool writes the same for all of its findings. Runs nothing and compares nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from patchgate.commands.analysis_results import AnalysisResult, Lines, TreeFiles
from patchgate.commands.json_stream import JsonObject, JsonStream, NotReadError, as_list, as_text
from patchgate.commands.sarif_results import (
    DRIVER,
    UNNAMED,
    SarifPaths,
    SarifResult,
    SarifRules,
    level_of,
    read_location,
    read_result,
)
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable

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
# A longer line was made by a program, and may be the place of a hundred thousand findings.
_MOST_LINE = 1 << 16
# Their lines are counted in cells, or in all cells together: never as they stand in the file.
_WITHOUT_LINES = b".ipynb"
_EXPECTED = (
    "let the command write SARIF 2.1.0 to its standard output, like `--output-format sarif` or `-f sarif`"
)
_NARROW = "narrow the folders that the command looks at, or its rules"
_FIX = "mend what it could not look at, or leave it out of what the command looks at"
_RELEVANT = frozenset({"tool", "results", "invocations", "originalUriBaseIds", "artifacts"})


class ToolFailedError(NotReadError):
    """The document can be read, and says that the run failed: a predicate of the run."""


class SarifFinding(NamedTuple):
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


class SarifBudget:
    """What the runs of one document may still take, and the texts that are held already.

    Raises:
        NotReadError: there are too many of a kind, or messages are too long together.
    """

    def __init__(self) -> None:
        self._left = dict(MOST)
        self._characters = MAX_MESSAGES
        self._held: dict[Any, Any] = {}

    def kept(self, value: Any) -> Any:
        """Give back an equal value that is held already."""
        return self._held.setdefault(value, value)

    def take(self, kind: str, count: int = 1) -> None:
        """Count what is kept."""
        self._left[kind] -= count
        if self._left[kind] < 0:
            raise NotReadError(f"it has more than {MOST[kind]:,} {kind}", _NARROW)

    def message(self, text: str) -> str:
        """Hold a message."""
        text = text[:MAX_MESSAGE]
        if text not in self._held:
            self._characters -= len(text)
            if self._characters < 0:
                limit = f"{MAX_MESSAGES:,}"
                raise NotReadError(f"its messages have more than {limit} characters together", _NARROW)
        return str(self.kept(text))


class SarifRun:
    """Reads one run.

    Args:
        root: the scratch tree.
        at: its place in the document, for refusals.
        has: tells whether the tree has a file.
    """

    def __init__(self, root: str, at: str, room: SarifBudget, has: Callable[[RepoPath], bool]) -> None:
        self._places = SarifPaths(root, has)
        self._at = at
        self._room = room
        self._tool: str | None = None
        self._rules = SarifRules(room.take)
        self._written: list[SarifResult] | None = None

    def read(self, stream: JsonStream) -> Iterator[SarifFinding]:
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
                    self._require_success(JsonObject(stream.value(), here))
            elif key == "originalUriBaseIds":
                for name in _members(stream, at):
                    self._room.take("bases of URIs")
                    self._places.bases[name] = read_location(JsonObject(stream.value(), f"a base of {at}"))
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
            artifact = JsonObject(stream.value(), here)
            if "location" in artifact:
                self._places.artifacts[number] = read_location(artifact.inner("location"))

    def _require_success(self, invocation: JsonObject) -> None:
        for kind in ("toolExecutionNotifications", "toolConfigurationNotifications"):
            for at, value in invocation.elements(kind):
                notification = JsonObject(value, at)
                if notification.get("level") == "error":
                    raise ToolFailedError(f"could not look at everything: {_said(notification)}", _FIX)
        if invocation.get("executionSuccessful", True) is not True:
            raise ToolFailedError("says of itself that it did not succeed (`executionSuccessful`)", _FIX)

    def _findings(self, tool: str, results: list[SarifResult]) -> Iterator[SarifFinding]:
        for written in results:
            rule = self._rules.rule_of(written)
            paths: dict[RepoPath, None] = {}
            line, is_whole_file = 0, False
            for location, at_line, is_whole in written.places:
                path = self._places.path_of(location)
                if path is None:
                    continue
                if not paths:
                    line, is_whole_file = at_line, is_whole
                paths[path] = None
            place = ""
            if not paths and written.places:
                named = self._places.written(written.places[0][0])
                place = self._places.without_root(f"{named.base or ''}:{named.uri or ''}")
            message = self._rules.message_of(written, rule)
            yield SarifFinding(
                first=next(iter(paths)).raw if paths else b"",
                line=line,
                rule=written.rule or rule.id or UNNAMED,
                message=self._room.message(self._places.without_root(message)),
                level=level_of(written, rule),
                tool=tool,
                paths=self._room.kept(tuple(paths)),
                place=place,
                is_whole_file=is_whole_file,
                is_suppressed=written.is_suppressed,
            )


def _said(notification: JsonObject) -> str:
    """Give what a notification says, and of what, safe to show."""
    text = printable(notification.inner("message").text("text") or "no reason given", 200)
    for at, value in notification.elements("locations"):
        physical = JsonObject(JsonObject(value, at).get("physicalLocation"), at)
        uri = JsonObject(physical.get("artifactLocation"), at).text("uri")
        if uri:
            return f"{text} ({printable(uri, 200)})"
    return text


def _members(stream: JsonStream, at: str) -> Iterator[str]:
    """Walk through an object; nothing where there is `null`."""
    if stream.kind == "object":
        yield from stream.members()
    else:
        JsonObject(stream.value(), at)


def _elements(stream: JsonStream, at: str) -> Iterator[str]:
    """Walk through a list, and tell the place of each element; nothing where there is `null`."""
    if stream.kind == "list":
        for number in stream.elements():
            yield f"{at}[{number}]"
    else:
        as_list(stream.value(), at)


def read_sarif(
    stream: BinaryIO, analysis: str, root: str, lines_of: Lines
) -> tuple[tuple[AnalysisResult, ...], tuple[AnalysisResult, ...]]:
    """Read the results of a document: those that count, and those that the tool leaves out by itself.

    Args:
        stream: its bytes.
        analysis: the name of the analysis.
        root: the scratch tree that the tool looked at.
        lines_of: gives the lines of a file of that tree, None where it has none: then no path names it.

    Raises:
        NotReadError: it is no SARIF 2.1.0, is too large, or says that it does not tell all.
    """
    files = TreeFiles(lines_of)
    found = _read_runs(JsonStream(stream), root, files)
    # From the last to the first, so that each is given up as it becomes a result.
    found.sort(reverse=True)
    marks = _Marks(files)
    results: list[AnalysisResult] = []
    suppressed: list[AnalysisResult] = []
    while found:
        each = found.pop()
        result = AnalysisResult(
            analysis=analysis,
            tool=each.tool,
            rule=each.rule,
            level=each.level,
            message=each.message,
            paths=each.paths,
            line=each.line or None,
            mark=marks.of(each),
        )
        (suppressed if each.is_suppressed else results).append(result)
    return tuple(results), tuple(suppressed)


def _read_runs(stream: JsonStream, root: str, files: TreeFiles) -> list[SarifFinding]:
    if stream.kind == "end":
        raise NotReadError("its standard output is empty", _EXPECTED)
    if stream.kind != "object":
        raise NotReadError("its standard output is no JSON object", _EXPECTED)
    found: list[SarifFinding] = []
    version: object = None
    count = -1
    room = SarifBudget()
    for key in stream.members():
        if key == "version":
            version = stream.value()
        elif key == "runs":
            if count >= 0:
                raise NotReadError("`runs` stands twice in it", _EXPECTED)
            count = 0
            for at in _runs(stream):
                found += SarifRun(root=root, at=at, room=room, has=files.has).read(stream)
                count += 1
    stream.end()
    if version != "2.1.0":
        told = f"version {printable(version, 20)}" if isinstance(version, str) else "no version of SARIF"
        raise NotReadError(f"it is of {told}, and only 2.1.0 is read", _EXPECTED)
    if count < 1:
        raise NotReadError("it has no runs, so nothing was looked at", "look at the log of the tool")
    return found


def _runs(stream: JsonStream) -> Iterator[str]:
    if stream.kind == "list":
        for number in stream.elements():
            yield f"runs[{number}]"
    elif stream.value() is not None:
        raise NotReadError("`runs` is no list", _EXPECTED)


class _Marks:
    """Stands for what is at the place of each finding; asked in the order of their paths.

    The path is no part of a mark, or a renamed file would lose its findings.
    """

    def __init__(self, files: TreeFiles) -> None:
        self._files = files
        self._path: RepoPath | None = None
        self._lines: Sequence[bytes] = ()
        self._known: dict[int, str] = {}

    def of(self, found: SarifFinding) -> str:
        """Give the mark of a finding: of the stripped text of its line, or of its message and its URI."""
        by_line = None if found.is_whole_file or not found.line else self._of_line(found)
        return by_line or _digest(b"message", f"{found.place}\0{found.message}".encode("utf-8", "replace"))

    def _of_line(self, found: SarifFinding) -> str | None:
        if self._path is None or found.first != self._path.raw:
            self._path, self._known = found.paths[0], {}
            is_notebook = found.first.lower().endswith(_WITHOUT_LINES)
            self._lines = () if is_notebook else self._files.lines(self._path)
        if found.line > len(self._lines):
            return None
        if found.line not in self._known:
            self._known[found.line] = _digest(b"line", self._lines[found.line - 1].strip()[:_MOST_LINE])
        return self._known[found.line]


def _digest(kind: bytes, text: bytes) -> str:
    return hashlib.sha256(kind + b"\0" + text).hexdigest()[:32]
