"""What is wrong with one line of a patch that no section can hold.

Decides what such a line is: prose, a header without its section, a binary or a combined diff, a bad `@@`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from patchgate.git.quoting import printable
from patchgate.patches.patch_model import Fault, Mending, mend

ONLY_THE_DIFF = "send only the diff: no text, fences or mail headers before, between or after its sections"
_ELIDED = re.compile(rb"[ \t]*(?:\.{3,}|\[\.{3,}\]|\xe2\x80\xa6)[ \t\r]*")
# A list, a signature's dashes, the line above a diffstat; `- * x` is a comment that was removed.
_BULLET = re.compile(rb"--? ?\r?$|---\r?$|- [0-9A-Za-z`\"'(\[]")
_DIFFSTAT = re.compile(rb" (?:\S.* \| +(?:[0-9]|Bin)| *[0-9]+ files? changed|(?:create|delete) mode|rename )")
_MODE = re.compile(rb"\b(?:100[0-7]{3}|120000|160000)\b")
_LONG_NUMBER = re.compile(rb"@@ -[0-9,+ -]*[0-9]{10}")
_HEADERS = (
    *(b"--- ", b"+++ ", b"index ", b"old mode ", b"new mode ", b"new file mode ", b"deleted file mode "),
    *(
        b"similarity index ",
        b"rename from ",
        b"rename to ",
        b"copy from ",
        b"copy to ",
        b"dissimilarity index ",
    ),
)


@dataclass(frozen=True, slots=True)
class Place:
    """One line of the patch: its number from 1 and its bytes without LF."""

    number: int
    text: bytes


def lines_of(raw: bytes, start: int, end: int, line: int) -> Iterator[Place]:
    """Yield the lines between two offsets; the first is line `line`. Only LF ends a line."""
    while start < end:
        stop = raw.find(b"\n", start, end)
        stop = end if stop < 0 else stop
        yield Place(line, raw[start:stop])
        start, line = stop + 1, line + 1


def without_returns(raw: bytes) -> bytes:
    """Read a patch whose every line ends in CR LF, headers too, without the CR; any other stays as it is.

    git writes no CR behind a header, so all of them came on the way (an editor, mail); those of the files are
    given back where a file has them.
    """
    first = raw.find(b"\n")
    if raw[first - 1 : first] != b"\r" or raw.count(b"\n") != raw.count(b"\r\n"):
        return raw
    return raw.replace(b"\r\n", b"\n").removesuffix(b"\r")


def with_returns(fix: Mending | None) -> Mending | None:
    """Write a mending for a patch whose every line ends in CR LF."""
    if fix is None or fix.text is None:
        return fix
    text = fix.text.replace("\n", "\r\n")
    return Mending(fix.first, text if text.endswith("\n") else text + "\r", fix.last)


def explain_hunk_header(place: Place) -> Fault:
    """Say what is wrong with a line that begins with `@@` but is no hunk header."""
    text = printable(place.text, 80)
    if place.text.startswith(b"@@@"):
        return combined(place)
    if place.text.endswith(b"\r"):
        return carriage_return(place)
    if _LONG_NUMBER.match(place.text):
        return Fault(
            "range-invalid",
            place.number,
            f"a number in the hunk header has more than nine digits: {text}",
            "write the real line numbers",
        )
    return Fault(
        "range-invalid",
        place.number,
        f"the hunk header has no ranges that can be read: {text}",
        "write `@@ -START,COUNT +START,COUNT @@`: plain numbers, no signs, no leading zeroes",
    )


def carriage_return(place: Place) -> Fault:
    """Refuse a header line that ends in CR."""
    return Fault(
        "carriage-return-in-header",
        place.number,
        f"the header line ends in CR LF: {printable(place.text, 80)}",
        "end header lines with LF alone; a CR may only stand in the lines of a file",
        mend(place.number, place.text.rstrip(b"\r")),
    )


def combined(place: Place) -> Fault:
    """Refuse a combined diff, which only describes a merge."""
    return Fault(
        "combined-diff",
        place.number,
        "this is a combined diff of a merge; it cannot be applied",
        "send the difference to one parent: `git diff A B`",
    )


def foreign(place: Place) -> Fault:
    """Say what a line is that no hunk and no header can hold."""
    text = place.text
    if text.startswith((b"diff --cc ", b"diff --combined ", b"@@@")):
        return combined(place)
    if text.startswith((b"GIT binary patch", b"Binary files ")):
        return Fault(
            "binary-payload",
            place.number,
            "the patch changes a binary file",
            "leave binary files out; a patch holds text only",
        )
    if text.startswith(b"@@"):
        return explain_hunk_header(place)
    if text.startswith(_HEADERS):
        return Fault(
            "missing-file-header",
            place.number,
            "a file begins without its `diff --git` line",
            "begin each file's section with `diff --git a/… b/…`",
        )
    return prose(place)


def is_elided(text: bytes) -> bool:
    """Tell whether a line is an ellipsis, so that lines of the patch were left out."""
    return _ELIDED.fullmatch(text) is not None


def is_prose(text: bytes) -> bool:
    """Tell whether a line is text of a person or of mail, and surely none that a patch may have lost."""
    if text.startswith(b"-"):
        return _BULLET.match(text) is not None
    if text.startswith(b" "):
        return _DIFFSTAT.match(text) is not None
    is_header = text.startswith((b"diff ", *_HEADERS)) or _MODE.search(text)
    is_cut = text and any(header.startswith(text) for header in (b"diff --git ", *_HEADERS))
    return not (is_header or is_cut or text.startswith((b"+", b"@", b"\\")) or is_elided(text))


def elided(place: Place) -> Fault:
    """Refuse an ellipsis where lines of the patch should be."""
    return Fault(
        "patch-truncated",
        place.number,
        f"lines of the patch are missing from here on: {printable(place.text.strip(), 20)}",
        "send the whole patch again, with every line of it",
    )


def prose(place: Place) -> Fault:
    """Refuse a line that is no part of any section; an ellipsis means that lines were left out."""
    if is_elided(place.text):
        return elided(place)
    what = (
        f"this line is no part of a diff: {printable(place.text, 80)}"
        if place.text
        else "an empty line stands outside the hunks"
    )
    return Fault("prose-around-patch", place.number, what, ONLY_THE_DIFF)
