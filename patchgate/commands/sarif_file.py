"""SARIF 2.1.0 of a tool, read without trust: results in, or the reason why it tells nothing.

Decides what a document says of the tree, and what stands for the place of a finding when its line has moved
(`mark`): the text of its line, but in a notebook, where the line is that of a cell. A producer's fingerprints
are not read: one tool writes the same for all of its findings. Results come out in an order of their own: by
path, line, rule, message. Runs nothing and compares nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from patchgate.commands.json_stream import JsonStream, NotReadError
from patchgate.commands.results import Result
from patchgate.commands.sarif_run import Finding, Room, Run
from patchgate.commands.tree_files import Lines, TreeFiles
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable

# A longer line was made by a program, and may be the place of a hundred thousand findings.
_MOST_LINE = 1 << 16
_WANTED = (
    "let the command write SARIF 2.1.0 to its standard output, like `--output-format sarif` or `-f sarif`"
)
# Their lines are counted in cells, or in all cells together: never as they stand in the file.
_WITHOUT_LINES = b".ipynb"


def read_sarif(
    stream: BinaryIO, analysis: str, root: str, lines_of: Lines
) -> tuple[tuple[Result, ...], tuple[Result, ...]]:
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
    found = _read(JsonStream(stream), root, files)
    # From the last to the first, so that each is given up as it becomes a result.
    found.sort(reverse=True)
    marks = _Marks(files)
    results: list[Result] = []
    suppressed: list[Result] = []
    while found:
        each = found.pop()
        line = each.line or None
        result = Result(
            analysis, each.tool, each.rule, each.level, each.message, each.paths, line, marks.of(each)
        )
        (suppressed if each.is_suppressed else results).append(result)
    return tuple(results), tuple(suppressed)


def _read(stream: JsonStream, root: str, files: TreeFiles) -> list[Finding]:
    if stream.kind == "end":
        raise NotReadError("its standard output is empty", _WANTED)
    if stream.kind != "object":
        raise NotReadError("its standard output is no JSON object", _WANTED)
    found: list[Finding] = []
    version: object = None
    count = -1
    room = Room()
    for key in stream.members():
        if key == "version":
            version = stream.value()
        elif key == "runs":
            if count >= 0:
                raise NotReadError("`runs` stands twice in it", _WANTED)
            count = 0
            for at in _runs(stream):
                found += Run(root, at, room, files.has).read(stream)
                count += 1
    stream.end()
    if version != "2.1.0":
        told = f"version {printable(version, 20)}" if isinstance(version, str) else "no version of SARIF"
        raise NotReadError(f"it is of {told}, and only 2.1.0 is read", _WANTED)
    if count < 1:
        raise NotReadError("it has no runs, so nothing was looked at", "look at the log of the tool")
    return found


def _runs(stream: JsonStream) -> Iterator[str]:
    if stream.kind == "list":
        for number in stream.elements():
            yield f"runs[{number}]"
    elif stream.value() is not None:
        raise NotReadError("`runs` is no list", _WANTED)


class _Marks:
    """Stands for what is at the place of each finding; asked in the order of their paths.

    The path is no part of a mark, or a renamed file would lose its findings.
    """

    def __init__(self, files: TreeFiles) -> None:
        self._files = files
        self._path: RepoPath | None = None
        self._lines: Sequence[bytes] = ()
        self._known: dict[int, str] = {}

    def of(self, found: Finding) -> str:
        """Give the mark of a finding: of the stripped text of its line, or of its message and its URI."""
        by_line = None if found.is_whole_file or not found.line else self._of_line(found)
        return by_line or _digest(b"message", f"{found.place}\0{found.message}".encode("utf-8", "replace"))

    def _of_line(self, found: Finding) -> str | None:
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
