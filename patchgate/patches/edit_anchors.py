"""The anchors of structured edits: whether the lines that an edit replaces are those that it means.

Line numbers alone point at other lines as soon as the file changes above them. Decides whether a given anchor
fits, and what to say where one is missing; whether one is required is the policy's to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from patchgate.git.quoting import printable
from patchgate.patches.diagnosis import find_places
from patchgate.patches.edits import Edit, Edits
from patchgate.patches.lines import FileLines
from patchgate.patches.patch_model import MAX_FAULTS, Detail, Fault

_SHOWN = 160


def mismatched(edits: Edits, file: FileLines, *, is_crlf: bool, is_mixed: bool) -> tuple[Fault, ...]:
    """Say which anchors do not fit the file; all at once.

    Args:
        edits: edits of lines that the file has.
        file: the file, its line ends made LF where all of them are CR LF.
        is_crlf: all its lines end in CR LF on disk; an anchor may be written with either.
        is_mixed: its line ends are mixed, so that an anchor is compared byte for byte.
    """
    faults: list[Fault] = []
    for edit in edits.edits:
        lines = file.lines[edit.start - 1 : edit.end]
        text = b"\n".join(lines)
        given = edit.old_text if is_mixed or edit.old_text is None else edit.old_text.replace(b"\r\n", b"\n")
        # The newline of the last line is no part of what is compared.
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
    what = "nothing, it inserts" if not lines else f"`{printable(lines[0], 80)}`"
    where = f"line {edit.start}" if len(lines) < 2 else f"lines {edit.start} to {edit.end}"
    hint = "read the file again, and give the lines that hold this text"
    if places:
        hint = f"its text stands at line {' and '.join(map(str, places[:3]))} now: give these lines"
    return Fault(
        "anchor-mismatch",
        None,
        f"the edit of {where} of {edits.path} replaces {what}, which is not its `{which}`",
        hint,
        details=details,
    )


def missing(edits: Edits, why: str) -> tuple[Fault, ...]:
    """Say which edits of an existing file do not say what they replace, and why they have to."""
    return tuple(
        Fault(
            "anchor-missing",
            None,
            f"the edit of line {edit.start} of {edits.path} does not say what it replaces, and {why}",
            "read the file again, and give `old_text`: the lines as they are"
            if edit.end >= edit.start
            else "replace a line beside the insertion by itself and the new lines, and give its `old_text`",
            details={"file_line": edit.start},
        )
        for edit in edits.edits[:MAX_FAULTS]
        if not edit.is_anchored
    )
