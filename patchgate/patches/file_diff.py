"""Write the change of one file as a unified diff with three lines of context, as git writes it.

`edit_diff` knows which lines are replaced; other formats give the file before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchgate.git.path import RepoPath
from patchgate.git.quoting import DEV_NULL, quote
from patchgate.patches.line_ends import FileLines
from patchgate.patches.line_matching import match_lines
from patchgate.patches.patch_model import MARKER, hunk_header
from patchgate.values import dataclass

_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class LineChange:
    """Old lines `start` up to `stop` (from 0, exclusive) become `new` (lines without LF).

    `is_unended`: the last of the new lines ends the file without a newline.
    """

    start: int
    stop: int
    new: list[bytes]
    is_unended: bool = False


@dataclass(frozen=True, slots=True)
class ProposedFile:
    """One file before and after; None: no file. `mode` is its mode, `source` its old name if it is moved."""

    path: RepoPath
    mode: str
    old: bytes | None
    new: bytes | None
    source: RepoPath | None = None


def write_file_diff(file: ProposedFile) -> bytes:
    """Write the section of one file; its mode never changes."""
    before = FileLines(file.old or b"")
    changes = list(_list_changes(before, FileLines(file.new or b"")))
    mode, name = file.mode.encode("ascii"), file.path.raw
    old_name = name if file.source is None else file.source.raw
    pieces = [b"diff --git %b %b\n" % (_side(b"a/", old_name), _side(b"b/", name))]
    if file.old is None:
        pieces.append(b"new file mode %b\n" % mode)
    elif file.new is None:
        pieces.append(b"deleted file mode %b\n" % mode)
    elif file.source is not None:
        pieces += [b"rename from %b\n" % _side(b"", old_name), b"rename to %b\n" % _side(b"", name)]
    if changes:
        old_line = DEV_NULL if file.old is None else _side(b"a/", old_name) + _tab(old_name)
        new_line = DEV_NULL if file.new is None else _side(b"b/", name) + _tab(name)
        pieces += [b"--- %b\n+++ %b\n" % (old_line, new_line), write_hunks(before, changes)]
    return b"".join(pieces)


def _side(prefix: bytes, name: bytes) -> bytes:
    return quote(prefix + name, high=True)


def _tab(name: bytes) -> bytes:
    return b"\t" if b" " in name else b""


def _list_changes(before: FileLines, after: FileLines) -> Iterator[LineChange]:
    """List the replaced stretches; a last line without a newline equals no other."""
    old, new = _with_ends(before), _with_ends(after)
    start = first = 0
    for number, source in (*sorted(match_lines(old, new).items()), (after.count, before.count)):
        if start < source or first < number:
            is_unended = first < number == after.count and not after.is_complete
            yield LineChange(start, source, after.lines[first:number], is_unended)
        start, first = source + 1, number + 1


def _with_ends(file: FileLines) -> list[bytes]:
    """Mark a last line without a newline by an LF, which no line contains."""
    if file.is_complete:
        return file.lines
    return [*file.lines[:-1], file.lines[-1] + b"\n"]


def write_hunks(file: FileLines, changes: Sequence[LineChange]) -> bytes:
    """Write the hunks of a file.

    Args:
        file: the file before.
        changes: its changes, sorted and not overlapping.
    """
    pieces: list[bytes] = []
    drift = 0
    for group in _group(changes):
        pieces.append(_print_hunk(group, file, drift))
        drift += sum(len(change.new) - (change.stop - change.start) for change in group)
    return b"".join(pieces)


def _group(changes: Sequence[LineChange]) -> list[list[LineChange]]:
    """Join changes whose context would touch, and an append with a change that ends where it begins."""
    groups: list[list[LineChange]] = []
    for change in changes:
        if groups and change.start - groups[-1][-1].stop <= 2 * _CONTEXT:
            above = groups[-1][-1]
            if change.start < above.stop:
                new = above.new + change.new[above.stop - change.start :]
                groups[-1][-1] = LineChange(above.start, max(above.stop, change.stop), new)
            else:
                groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _print_hunk(group: Sequence[LineChange], file: FileLines, drift: int) -> bytes:
    begin = max(group[0].start - _CONTEXT, 0)
    end = min(group[-1].stop + _CONTEXT, file.count)
    body: list[bytes] = []
    position = begin
    for change in group:
        body += _print_lines(b" ", file, position, change.start)
        body += _print_lines(b"-", file, change.start, change.stop)
        body += [b"+" + line for line in change.new]
        body += [MARKER] if change.is_unended else []
        position = change.stop
    body += _print_lines(b" ", file, position, end)
    old_count = end - begin
    new_count = old_count + sum(len(change.new) - (change.stop - change.start) for change in group)
    old, new = (begin + bool(old_count), old_count), (begin + drift + bool(new_count), new_count)
    return b"%b\n%b\n" % (hunk_header(old, new), b"\n".join(body))


def _print_lines(kind: bytes, file: FileLines, start: int, stop: int) -> list[bytes]:
    lines = [kind + line for line in file.lines[start:stop]]
    if lines and stop == file.count and not file.is_complete:
        lines.append(MARKER)
    return lines
