"""Write structured edits as a unified diff, which goes through the same gates as any other.

Unchanged lines at both ends of an edit do not count as changed. An edit's anchors must match the lines that
it replaces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from patchgate.git.model import REGULAR
from patchgate.git.quoting import printable, quote
from patchgate.patches.edits import Edit, Edits
from patchgate.patches.file_diff import LineChange, ProposedFile, write_file_diff, write_hunks
from patchgate.patches.hunk_mismatch import find_places
from patchgate.patches.line_ends import FileLines, LineEnds, detect_line_ends
from patchgate.patches.patch_model import MAX_FAULTS, Detail, Fault

_SHOWN = 160


def find_anchor_mismatches(
    edits: Edits, file: FileLines, *, is_crlf: bool, is_mixed: bool
) -> tuple[Fault, ...]:
    """Find the anchors that do not match the file, which has all lines that the edits name.

    Args:
        file: the file, with LF line endings if all of them were CR LF.
        is_crlf: all its lines end in CR LF on disk; an anchor may use either.
        is_mixed: its line endings are mixed, so an anchor is compared byte for byte.
    """
    faults: list[Fault] = []
    for edit in edits.edits:
        lines = file.lines[edit.start - 1 : edit.end]
        text = b"\n".join(lines)
        given = edit.old_text if is_mixed or edit.old_text is None else edit.old_text.replace(b"\r\n", b"\n")
        # The newline of the last line is not compared.
        is_text = given is None or (given.removesuffix(b"\n") == text and bool(given) == bool(lines))
        if not (is_text and _has_digest(edit, lines, text, is_crlf=is_crlf)):
            faults.append(_mismatch(edits, edit, lines, file, given))
    return tuple(faults[:MAX_FAULTS])


def _has_digest(edit: Edit, lines: Sequence[bytes], text: bytes, *, is_crlf: bool) -> bool:
    if edit.old_sha256 is None:
        return True
    if not lines:
        return edit.old_sha256 == hashlib.sha256(b"").hexdigest()
    forms = [text, text.replace(b"\n", b"\r\n")] if is_crlf else [text]
    ended = [form + end for form, end in zip(forms, (b"\n", b"\r\n"), strict=False)]
    return edit.old_sha256 in {hashlib.sha256(form).hexdigest() for form in (*forms, *ended)}


def _mismatch(
    edits: Edits, edit: Edit, lines: Sequence[bytes], file: FileLines, given: bytes | None
) -> Fault:
    wanted = [] if given is None else given.removesuffix(b"\n").split(b"\n")
    places = [place + 1 for place in find_places(wanted, file)] if given else []
    details: dict[str, Detail] = {
        "file_line": edit.start,
        "expected": None if given is None else printable(wanted[0], _SHOWN),
        "actual": printable(lines[0], _SHOWN) if lines else None,
        "found_at": places,
    }
    which = "old_sha256" if given is None else "old_text"
    what = "no line" if not lines else f"`{printable(lines[0], 80)}`"
    where = f"line {edit.start}" if len(lines) < 2 else f"lines {edit.start} to {edit.end}"
    hint = "read the file again, and give the lines that contain this text"
    if places:
        hint = f"its text is at line {' and '.join(map(str, places[:3]))} now: give these lines"
    message = f"the edit of {where} in {edits.path} replaces {what}, which does not match its `{which}`"
    return Fault("anchor-mismatch", None, message, hint=hint, details=details)


def find_missing_anchors(edits: Edits, why: str) -> tuple[Fault, ...]:
    """Find the edits of an existing file that do not say what they replace, but must."""
    return tuple(
        Fault(
            "anchor-missing",
            None,
            f"the edit of line {edit.start} in {edits.path} does not say what it replaces, and {why}",
            hint="read the file again, and give `old_text`: the lines as they are"
            if edit.end >= edit.start
            else "replace a line next to the insertion with itself and the new lines, and give `old_text`",
            details={"file_line": edit.start},
        )
        for edit in edits.edits[:MAX_FAULTS]
        if not edit.is_anchored
    )


def edits_to_diff(edits: Edits, preimage: bytes | None) -> bytes | tuple[Fault, ...]:
    """Write edits as a unified diff with three lines of context.

    Args:
        preimage: the current file; None if it does not exist. The diff of a file whose lines all end in
            CR LF is written with LF, and adapted later like any other.

    Returns:
        The diff; or the faults `target-missing`, `range-invalid`, `encoding-unsupported`, `missing-hunk`,
        `anchor-mismatch`.
    """
    if preimage is None:
        return _print_new_file(edits)
    try:
        preimage.decode("utf-8")
    except UnicodeDecodeError:
        message = f"{edits.path} is not UTF-8"
        return _refuse("encoding-unsupported", message, "send a unified diff for this file")
    if b"\0" in preimage:
        return _refuse("binary-payload", f"{edits.path} is a binary file", "edits are for text files")
    ends = detect_line_ends(preimage)
    file = FileLines(preimage.replace(b"\r\n", b"\n") if ends is LineEnds.CRLF else preimage)
    if edits.edits[-1].end > file.count or edits.edits[-1].start > file.count + 1:
        last = edits.edits[-1]
        message = f"{edits.path} has {file.count} lines, but an edit names lines {last.start} to {last.end}"
        return _refuse("range-invalid", message, "read the file again and count its lines from 1")
    faults = find_anchor_mismatches(
        edits, file, is_crlf=ends is LineEnds.CRLF, is_mixed=ends is LineEnds.MIXED
    )
    if faults:
        return faults
    replaced = [_shrink(edit, file, normalise=ends is not LineEnds.MIXED) for edit in edits.edits]
    changes = [change for change in replaced if change.start != change.stop or change.new]
    if not changes:
        return _refuse("missing-hunk", "the edits change nothing", "leave out what is already there")
    name = edits.path.raw
    old_name, new_name = quote(b"a/" + name, high=True), quote(b"b/" + name, high=True)
    tab = b"\t" if b" " in name else b""
    names = b"diff --git %b %b\n--- %b%b\n+++ %b%b\n" % (old_name, new_name, old_name, tab, new_name, tab)
    return names + write_hunks(file, changes)


def _refuse(rule: str, message: str, hint: str) -> tuple[Fault, ...]:
    return (Fault(rule, None, message, hint=hint),)


def _shrink(edit: Edit, file: FileLines, *, normalise: bool) -> LineChange:
    """Leave out the unchanged lines at both ends of an edit."""
    text = edit.new_text.replace(b"\r\n", b"\n") if normalise else edit.new_text
    new = text.split(b"\n")[:-1]
    start, stop = edit.start - 1, edit.end
    # The file's last line without a newline never equals a new line, which has one.
    ended = file.count if file.is_complete else file.count - 1
    first = 0
    while start < min(stop, ended) and first < len(new) and file.lines[start] == new[first]:
        start, first = start + 1, first + 1
    last = len(new)
    while stop > start and stop <= ended and last > first and file.lines[stop - 1] == new[last - 1]:
        stop, last = stop - 1, last - 1
    if start == stop == file.count and not file.is_complete and last > first:
        # Appending adds the missing newline to the last line.
        return LineChange(start - 1, stop, [file.lines[start - 1], *new[first:last]])
    return LineChange(start, stop, new[first:last])


def _print_new_file(edits: Edits) -> bytes | tuple[Fault, ...]:
    first = edits.edits[0]
    if len(edits.edits) != 1 or (first.start, first.end) != (1, 0):
        hint = "to make a new file, send one edit with `start` 1 and `end` 0"
        return _refuse("target-missing", f"{edits.path} does not exist", hint)
    return write_file_diff(ProposedFile(edits.path, REGULAR, None, first.new_text))
