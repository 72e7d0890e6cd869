"""The unified diff that structured edits stand for.

Decides where the changed lines are and which context they get; the diff then goes through the same gates as
any other. Lines at both ends of an edit that stay as they are do not count as changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchgate.git.patch_names import DEV_NULL, quote
from patchgate.patches.edit_anchors import mismatched
from patchgate.patches.edits import Edit, Edits
from patchgate.patches.line_ends import LineEnds, line_ends_of
from patchgate.patches.lines import FileLines
from patchgate.patches.patch_model import MARKER, Fault, range_text

_CONTEXT = 3


def to_patch(edits: Edits, preimage: bytes | None) -> bytes | tuple[Fault, ...]:
    """Write edits as a unified diff with three lines of context.

    Args:
        edits: the edits of one file.
        preimage: the file as it is; None where it does not exist. A file that wholly ends its lines in
            CR LF is written with LF: the diff is then adapted like any other (`line_ends`).

    Returns:
        The diff; or the faults `target-missing`, `range-invalid`, `encoding-unsupported`, `missing-hunk`,
        `anchor-mismatch`.
    """
    if preimage is None:
        return _print_new_file(edits)
    try:
        preimage.decode("utf-8")
    except UnicodeDecodeError:
        return _refuse(
            "encoding-unsupported", f"{edits.path} is not UTF-8", "send a unified diff for this file"
        )
    if b"\0" in preimage:
        return _refuse("binary-payload", f"{edits.path} is a binary file", "edits are for text files")
    ends = line_ends_of(preimage)
    file = FileLines(preimage.replace(b"\r\n", b"\n") if ends is LineEnds.CRLF else preimage)
    if edits.edits[-1].end > file.count or edits.edits[-1].start > file.count + 1:
        last = edits.edits[-1]
        return _refuse(
            "range-invalid",
            f"{edits.path} has {file.count} lines, but an edit names lines {last.start} to {last.end}",
            "read the file again and count its lines from 1",
        )
    faults = mismatched(edits, file, is_crlf=ends is LineEnds.CRLF, is_mixed=ends is LineEnds.MIXED)
    if faults:
        return faults
    replaced = [_shrink(edit, file, normalise=ends is not LineEnds.MIXED) for edit in edits.edits]
    changes = [change for change in replaced if change.start != change.stop or change.new]
    if not changes:
        return _refuse("missing-hunk", "the edits change nothing", "leave out what is already there")
    name = edits.path.raw
    old_name, new_name = quote(b"a/" + name, high=True), quote(b"b/" + name, high=True)
    tab = b"\t" if b" " in name else b""
    pieces = [b"diff --git %b %b\n--- %b%b\n+++ %b%b\n" % (old_name, new_name, old_name, tab, new_name, tab)]
    drift = 0
    for group in _group(changes):
        pieces.append(_print_hunk(group, file, drift))
        drift += sum(len(change.new) - (change.stop - change.start) for change in group)
    return b"".join(pieces)


def _refuse(rule: str, message: str, hint: str) -> tuple[Fault, ...]:
    return (Fault(rule, None, message, hint),)


@dataclass(frozen=True, slots=True)
class _Change:
    """Old lines `start` up to `stop` (from 0, exclusive) become `new` (lines without LF)."""

    start: int
    stop: int
    new: list[bytes]


def _shrink(edit: Edit, file: FileLines, *, normalise: bool) -> _Change:
    """Leave out the lines at both ends of an edit that stay as they are."""
    text = edit.new_text.replace(b"\r\n", b"\n") if normalise else edit.new_text
    new = text.split(b"\n")[:-1]
    start, stop = edit.start - 1, edit.end
    # The file's last line without newline is never the same as a new line, which has one.
    ended = file.count if file.is_complete else file.count - 1
    first = 0
    while start < min(stop, ended) and first < len(new) and file.lines[start] == new[first]:
        start, first = start + 1, first + 1
    last = len(new)
    while stop > start and stop <= ended and last > first and file.lines[stop - 1] == new[last - 1]:
        stop, last = stop - 1, last - 1
    if start == stop == file.count and not file.is_complete and last > first:
        # Appending gives the last line the newline that it lacks.
        return _Change(start - 1, stop, [file.lines[start - 1], *new[first:last]])
    return _Change(start, stop, new[first:last])


def _group(changes: Sequence[_Change]) -> list[list[_Change]]:
    """Join changes whose context would touch, and an appending one with one that ends where it begins."""
    groups: list[list[_Change]] = []
    for change in changes:
        if groups and change.start - groups[-1][-1].stop <= 2 * _CONTEXT:
            above = groups[-1][-1]
            if change.start < above.stop:
                new = above.new + change.new[above.stop - change.start :]
                groups[-1][-1] = _Change(above.start, max(above.stop, change.stop), new)
            else:
                groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _print_hunk(group: Sequence[_Change], file: FileLines, drift: int) -> bytes:
    begin = max(group[0].start - _CONTEXT, 0)
    end = min(group[-1].stop + _CONTEXT, file.count)
    body: list[bytes] = []
    position = begin
    for change in group:
        body += _print_lines(b" ", file, position, change.start)
        body += _print_lines(b"-", file, change.start, change.stop)
        body += [b"+" + line for line in change.new]
        position = change.stop
    body += _print_lines(b" ", file, position, end)
    old_count = end - begin
    new_count = old_count + sum(len(change.new) - (change.stop - change.start) for change in group)
    old = range_text(begin + bool(old_count), old_count)
    new = range_text(begin + drift + bool(new_count), new_count)
    return b"@@ -%b +%b @@\n%b\n" % (old, new, b"\n".join(body))


def _print_lines(kind: bytes, file: FileLines, start: int, stop: int) -> list[bytes]:
    lines = [kind + line for line in file.lines[start:stop]]
    if lines and stop == file.count and not file.is_complete:
        lines.append(MARKER)
    return lines


def _print_new_file(edits: Edits) -> bytes | tuple[Fault, ...]:
    first = edits.edits[0]
    if len(edits.edits) != 1 or (first.start, first.end) != (1, 0):
        return _refuse(
            "target-missing",
            f"{edits.path} does not exist",
            "to make a new file, send one edit with `start` 1 and `end` 0",
        )
    name = edits.path.raw
    quoted = quote(b"b/" + name, high=True)
    header = b"diff --git %b %b\nnew file mode 100644\n" % (quote(b"a/" + name, high=True), quoted)
    lines = first.new_text.split(b"\n")[:-1]
    if not lines:
        return header
    tab = b"\t" if b" " in name else b""
    ranges = range_text(1, len(lines))
    body = b"\n".join([b"+" + line for line in lines])
    return b"%b--- %b\n+++ %b%b\n@@ -0,0 +%b @@\n%b\n" % (header, DEV_NULL, quoted, tab, ranges, body)
