"""The files that a proposal changes while it is read, and the faults that end the reading.

Each change applies to the result of the ones before it, as in the tools that invented the formats. A file
whose lines all end in CR LF is read with LF; its diff is adapted later like any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from patchgate.git.model import GITLINK, REGULAR, TREE_MODE
from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import printable
from patchgate.patches.file_diff import ProposedFile
from patchgate.patches.line_ends import LineEnds, detect_line_ends
from patchgate.patches.patch_model import Detail, Fault
from patchgate.patches.planning import Preimage
from patchgate.values import dataclass, field, replace

MAX_INPUT_BYTES = 64 * 1024 * 1024
"""The largest proposal in a format other than a unified diff."""
MAX_CHANGES = 10_000
# Each costs some questions to git.
_MOST_FILES = 500
# Each change looks through its whole file.
_MOST_READ = 2 << 30
_FENCE = re.compile(rb"^(`{3,}+|~{3,}+)([^\n`]*+)$", re.MULTILINE)
_DECORATION = re.compile(rb"(?:#{1,6} +|[*-] +)?(\*\*|__)?(`)?(.+?)(`)?(\*\*|__)?:?(?:\*\*|__)?")


class UnreadableProposalError(Exception):
    """A fault that ends the reading; never leaves `patches`. `path` is the file, if one is known."""

    def __init__(self, fault: Fault, path: RepoPath | None = None) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.path = path


class ForbiddenPathError(Exception):
    """A proposal names a file that no change may have; never leaves `patches`."""

    def __init__(self, path: RepoPath) -> None:
        super().__init__(path.quoted)
        self.path = path


def refuse(
    rule: str,
    line: int | None,
    message: str,
    hint: str,
    path: RepoPath | None = None,
    details: Mapping[str, Detail] | None = None,
) -> UnreadableProposalError:
    """Make the error of one fault; its line counts from 1 in the proposal."""
    return UnreadableProposalError(Fault(rule, line, message, hint=hint, details=details or {}), path)


def line_at(text: bytes, offset: int) -> int:
    """Return the number of the line at an offset, from 1."""
    return text.count(b"\n", 0, offset) + 1


@dataclass(frozen=True, slots=True)
class Fence:
    """One Markdown fence: where its opening line begins and its content, and what is written behind it.

    `line` counts from 1. `closing` is where its closing line begins, `end` the offset past that line; None if
    it is not closed.
    """

    start: int
    line: int
    content: int
    info: bytes
    closing: int | None
    end: int | None


def read_fences(text: bytes, start: int = 0, end: int | None = None) -> list[Fence]:
    """Read the fences that begin a line, as CommonMark does: the closing one is as long, and stands alone."""
    stop = len(text) if end is None else end
    found: list[Fence] = []
    mark = b""
    line = 1
    seen = 0
    for match in _FENCE.finditer(text, start, stop):
        below = min(match.end() + 1, stop)
        if not mark:
            line, seen = line + text.count(b"\n", seen, match.start()), match.start()
            found.append(Fence(match.start(), line, below, match[2].strip(), None, None))
            mark = match[1]
        elif match[1].startswith(mark) and not match[2].strip():
            found[-1] = replace(found[-1], closing=match.start(), end=below)
            mark = b""
    return found


def read_label(line: bytes) -> bytes:
    """Read the name of a file that stands alone on a line, without the Markdown around it."""
    match = _DECORATION.fullmatch(line.strip())
    return line.strip() if match is None else match[3]


@dataclass(slots=True)
class _WorkingFile:
    """A file while it is changed: as it was, and as it is by now (None: no file), with its own line ends."""

    mode: str
    raw: bytes | None
    old: bytes | None
    new: bytes | None
    ends: LineEnds
    source: RepoPath | None = None


@dataclass(slots=True)
class WorkingFiles:
    """The files of one proposal.

    `lookup` reads a file of the base; None if there is none. `root` is the folder of the working tree: names
    below it are names of the repository.
    """

    lookup: Callable[[RepoPath], Preimage | None]
    root: bytes | None = None
    adapted: bool = False
    _read: int = 0
    _files: dict[RepoPath, _WorkingFile] = field(default_factory=dict)
    _moved: set[RepoPath] = field(default_factory=set)

    def path_of(self, name: bytes, line: int | None) -> RepoPath:
        """Read the name of a file; a forbidden one ends the reading, and is never looked up."""
        if not name:
            hint = "name the file, relative to the repository's root"
            raise refuse("path-missing", line, "the name of a file is missing", hint)
        if self.root and name.startswith(self.root + b"/"):
            name = name[len(self.root) + 1 :]
        path = RepoPath.from_patch(name)
        if faults(path, from_text=True):
            raise ForbiddenPathError(path)
        if path in self._moved:
            message = f"{path.quoted} is moved, and changed elsewhere in the proposal too"
            raise refuse("duplicate-section", line, message, "put all changes of one file together", path)
        return path

    def content(self, path: RepoPath, line: int | None) -> bytes:
        """Return the text of a file that exists; its lines end in LF if all of them end in CR LF."""
        file = self._open(path, line)
        if file.new is None:
            hint = "name a file that exists; a new file is written in full"
            raise refuse("target-missing", line, f"{path.quoted} does not exist", hint, path)
        self.charge(len(file.new), line)
        return file.new

    def charge(self, size: int, line: int | None) -> None:
        """Count bytes that are read; many changes of large files would take hours."""
        self._read += size
        if self._read > _MOST_READ:
            hint = "send a unified diff, or several proposals"
            raise refuse("patch-too-large", line, "the proposal has too many changes of large files", hint)

    def exists(self, path: RepoPath, line: int | None) -> bool:
        """Return whether there is a file by now."""
        return self._open(path, line).new is not None

    def with_line_ends(self, path: RepoPath, old: bytes, new: bytes) -> tuple[bytes, bytes]:
        """Give two texts the line ends of a file that was read, if all of theirs are CR LF."""
        ends = self._files[path].ends
        both = old + new
        if ends is LineEnds.MIXED or b"\r\n" not in both or both.count(b"\n") != both.count(b"\r\n"):
            return old, new
        self.adapted |= ends is LineEnds.LF
        return old.replace(b"\r\n", b"\n"), new.replace(b"\r\n", b"\n")

    def change(self, path: RepoPath, content: bytes) -> None:
        """Give a file that was read another text."""
        self._files[path].new = content

    def add(self, path: RepoPath, content: bytes, line: int | None) -> None:
        """Add a file that does not exist."""
        file = self._open(path, line)
        if file.new is not None:
            hint = "change the existing file instead, or give the new one another name"
            raise refuse("already-exists", line, f"{path.quoted} already exists", hint, path)
        if b"\0" in content:
            message = f"the text of {path.quoted} contains a NUL byte"
            raise refuse("binary-payload", line, message, "leave binary files out", path)
        file.new = content

    def delete(self, path: RepoPath, line: int | None) -> None:
        """Delete a file that exists."""
        self.content(path, line)
        self._files[path].new = None

    def move(self, path: RepoPath, target: RepoPath, line: int | None) -> None:
        """Move a file, as it is by now, to a name that is free."""
        file = self._files[path]
        if path == target:
            hint = "leave out the line that moves it"
            raise refuse("input-invalid", line, f"{path.quoted} is moved to its own name", hint, path)
        if file.old is None or self.lookup(target) is not None or target in self._files:
            hint = "give it a name that is free"
            raise refuse("already-exists", line, f"{target.quoted} already exists", hint, target)
        self._files[target] = replace(file, source=path)
        del self._files[path]
        self._moved |= {path, target}

    def result(self) -> list[ProposedFile]:
        """List the files that differ, in the order in which they were named."""
        found: list[ProposedFile] = []
        for path, file in self._files.items():
            if file.source is None and file.old == file.new:
                continue
            old = file.raw if file.new is None else file.old
            found.append(ProposedFile(path, file.mode, old, file.new, file.source))
        return found

    def _open(self, path: RepoPath, line: int | None) -> _WorkingFile:
        if path in self._files:
            return self._files[path]
        if len(self._files) >= _MOST_FILES:
            message, hint = f"the proposal names more than {_MOST_FILES} files", "send a unified diff"
            raise refuse("patch-too-large", line, message, hint)
        found = self.lookup(path)
        if found is None:
            file = _WorkingFile(REGULAR, None, None, None, LineEnds.NONE)
        elif found.mode in {TREE_MODE, GITLINK}:
            what = "a folder" if found.mode == TREE_MODE else "a submodule"
            raise refuse("target-missing", line, f"{path.quoted} is {what}", "name a file", path)
        elif b"\0" in found.content:
            hint = "leave binary files out: a patch contains text only"
            raise refuse("binary-payload", line, f"{path.quoted} is a binary file", hint, path)
        else:
            raw = found.content
            ends = detect_line_ends(raw)
            text = raw.replace(b"\r\n", b"\n") if ends is LineEnds.CRLF else raw
            file = _WorkingFile(found.mode, raw, text, text, ends)
        self._files[path] = file
        return file


def shown(text: bytes, most: int = 60) -> str:
    """Show the beginning of a text in a message."""
    return printable(text.partition(b"\n")[0], most)
