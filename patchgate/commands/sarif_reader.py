"""Read SARIF 2.1.0 of a tool, without trusting it: sorted results, or why it cannot be used.

Decides which parts of a document are read, which of them make a run unusable, and what identifies a finding
when its line has moved (`mark`). Fingerprints of the tool are not used: one tool writes the same for all of
its findings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from patchgate.commands.analysis_results import AnalysisResult, Lines, TreeFiles
from patchgate.commands.json_stream import JsonObject, JsonStream, NotReadError, as_list, as_text
from patchgate.commands.sarif_result import (
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
"""The most of each kind in one document; each is kept until its run has been read."""
MAX_MESSAGE = 2000
MAX_MESSAGES = 128 << 20
# A longer line was generated, and may have a hundred thousand findings.
_MOST_LINE = 1 << 16
# Their line numbers count in cells, not in the file.
_WITHOUT_LINES = b".ipynb"
_EXPECTED = "make the command write SARIF 2.1.0 to standard output: `--output-format sarif` or `-f sarif`"
_NARROW = "limit the folders or the rules of the command"
_FIX = "fix what it could not check, or exclude it from the command"
_RELEVANT = frozenset({"tool", "results", "invocations", "originalUriBaseIds", "artifacts"})


class ToolFailedError(NotReadError):
    """The document is valid and says that the run failed; the message is a predicate of the run."""


class SarifFinding(NamedTuple):
    """A finding; the order of its fields is the sort order.

    `first` is its path (empty: none), `line` is 0 if there is none. `place` is its URI if it has no path.
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
    """The limits of one document, and the shared texts.

    Raises:
        NotReadError: there are too many of a kind, or the messages are too long in total.
    """

    def __init__(self) -> None:
        self._left = dict(MOST)
        self._characters = MAX_MESSAGES
        self._held: dict[Any, Any] = {}

    def kept(self, value: Any) -> Any:
        """Return the shared copy of a value."""
        return self._held.setdefault(value, value)

    def take(self, kind: str, count: int = 1) -> None:
        """Count values of a kind."""
        self._left[kind] -= count
        if self._left[kind] < 0:
            raise NotReadError(f"it has more than {MOST[kind]:,} {kind}", _NARROW)

    def message(self, text: str) -> str:
        """Return the shared copy of a message, shortened."""
        text = text[:MAX_MESSAGE]
        if text not in self._held:
            self._characters -= len(text)
            if self._characters < 0:
                limit = f"{MAX_MESSAGES:,}"
                raise NotReadError(f"its messages have more than {limit} characters in total", _NARROW)
        return str(self.kept(text))


class SarifRun:
    """Reads one run.

    Args:
        places: resolves its locations.
        at: its path in the document, for errors.
    """

    def __init__(self, places: SarifPaths, at: str, room: SarifBudget) -> None:
        self._places = places
        self._at = at
        self._room = room
        self._tool: str | None = None
        self._rules = SarifRules(room.take)
        self._written: list[SarifResult] | None = None

    def read(self, stream: JsonStream) -> Iterator[SarifFinding]:
        """Read the run, then return its findings in document order.

        Raises:
            NotReadError: it cannot be used.
        """
        seen = set[str]()
        for key in _members(stream, self._at):
            at = f"{self._at}.{key}"
            if key not in _RELEVANT:
                continue
            if key in seen:
                raise NotReadError(f"it has {at} twice")
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
            raise NotReadError(f"{self._at}.tool.driver.name is missing")
        if self._written is None:
            raise NotReadError(
                f"{self._at}.results is missing, which means that nothing was checked",
                "check the log of the tool; a clean run has an empty list",
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
                    raise ToolFailedError(f"could not check everything: {_said(notification)}", _FIX)
        if invocation.get("executionSuccessful", True) is not True:
            raise ToolFailedError("reports that it did not succeed (`executionSuccessful`)", _FIX)

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
    """Return the text of a notification and its file, safe to show."""
    text = printable(notification.inner("message").text("text") or "no reason given", 200)
    for at, value in notification.elements("locations"):
        physical = JsonObject(JsonObject(value, at).get("physicalLocation"), at)
        uri = JsonObject(physical.get("artifactLocation"), at).text("uri")
        if uri:
            return f"{text} ({printable(uri, 200)})"
    return text


def _members(stream: JsonStream, at: str) -> Iterator[str]:
    """Iterate over the keys of an object; none for `null`."""
    if stream.kind == "object":
        yield from stream.members()
    else:
        JsonObject(stream.value(), at)


def _elements(stream: JsonStream, at: str) -> Iterator[str]:
    """Iterate over the paths of the elements of a list; none for `null`."""
    if stream.kind == "list":
        for number in stream.elements():
            yield f"{at}[{number}]"
    else:
        as_list(stream.value(), at)


def read_sarif(
    stream: BinaryIO, analysis: str, root: str, lines_of: Lines, folder: str = ""
) -> tuple[tuple[AnalysisResult, ...], tuple[AnalysisResult, ...]]:
    """Read the results of a document: those that count, and those that the tool suppressed.

    Args:
        stream: its bytes.
        analysis: the name of the analysis.
        root: the scratch tree that the tool checked.
        lines_of: gives the lines of a file of that tree, None if there is no such file.
        folder: the folder of the tree in which the tool ran.

    Raises:
        NotReadError: it is not SARIF 2.1.0, is too large, or says that it is incomplete.
    """
    files = TreeFiles(lines_of)
    found = _read_runs(JsonStream(stream), root, files, folder)
    # From last to first, so that each is freed when it becomes a result.
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


def _read_runs(stream: JsonStream, root: str, files: TreeFiles, folder: str) -> list[SarifFinding]:
    if stream.kind == "end":
        raise NotReadError("its standard output is empty", _EXPECTED)
    if stream.kind != "object":
        raise NotReadError("its standard output is not a JSON object", _EXPECTED)
    found: list[SarifFinding] = []
    version: object = None
    count = -1
    room = SarifBudget()
    for key in stream.members():
        if key == "version":
            version = stream.value()
        elif key == "runs":
            if count >= 0:
                raise NotReadError("it has `runs` twice", _EXPECTED)
            count = 0
            for at in _runs(stream):
                places = SarifPaths(root, files.has, folder)
                found += SarifRun(places, at=at, room=room).read(stream)
                count += 1
    stream.end()
    if version != "2.1.0":
        found_version = (
            f"version {printable(version, 20)}" if isinstance(version, str) else "no SARIF version"
        )
        raise NotReadError(f"it has {found_version}; only 2.1.0 is supported", _EXPECTED)
    if count < 1:
        raise NotReadError("it has no runs, so nothing was checked", "check the log of the tool")
    return found


def _runs(stream: JsonStream) -> Iterator[str]:
    if stream.kind == "list":
        for number in stream.elements():
            yield f"runs[{number}]"
    elif stream.value() is not None:
        raise NotReadError("`runs` is not a list", _EXPECTED)


class _Marks:
    """Makes the mark that identifies each finding; call it in the order of paths.

    The path is not part of a mark, or a renamed file would lose its findings.
    """

    def __init__(self, files: TreeFiles) -> None:
        self._files = files
        self._path: RepoPath | None = None
        self._lines: Sequence[bytes] = ()
        self._known: dict[int, str] = {}

    def of(self, found: SarifFinding) -> str:
        """Return the mark of a finding: a digest of its stripped line, or of its message and URI."""
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
