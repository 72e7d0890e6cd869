"""What is wrong with the headers of a section that `patch_headers` did not take as a whole.

Decides which line is the first that is no header, is out of git's order, or holds a bad value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from patchgate.git.quoting import printable
from patchgate.patches.patch_line_faults import Place, carriage_return, foreign
from patchgate.patches.patch_model import Fault

_ORDER = (
    b"old mode ",
    b"new mode ",
    b"new file mode ",
    b"deleted file mode ",
    b"similarity index ",
    b"copy from ",
    b"copy to ",
    b"rename from ",
    b"rename to ",
    b"dissimilarity index ",
    b"index ",
    b"--- ",
    b"+++ ",
)
_MODE = re.compile(rb"(?:100644|100755|120000|160000)")
_PER_CENT = re.compile(rb"(?:0|[1-9][0-9]?|100)%")
_INDEX = re.compile(rb"[0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: (?:100644|100755|120000|160000))?")


def explain_headers(places: Iterable[Place]) -> Fault:
    """Say which header line is the first at fault; the first place is the `diff --git` line."""
    seen: set[bytes] = set()
    last = -1
    first: Place | None = None
    for place in places:
        if place.text.endswith(b"\r"):
            return carriage_return(place)
        if first is None:
            first = place
            continue
        header = next((prefix for prefix in _ORDER if place.text.startswith(prefix)), None)
        if header is None:
            return _explain_foreign(place, follows_names=b"+++ " in seen)
        fault = _value_fault(place, header)
        if fault:
            return fault
        if header in seen or _ORDER.index(header) < last:
            return Fault(
                "invalid-unified-diff",
                place.number,
                f"the header line is repeated or out of order: {printable(place.text, 80)}",
                "write each header once, in the order in which git writes them",
            )
        seen.add(header)
        last = _ORDER.index(header)
    return _explain_pairs(seen, first.number if first else 1)


def _explain_foreign(place: Place, *, follows_names: bool) -> Fault:
    if follows_names and place.text[:1] in {b" ", b"+", b"-"}:
        return Fault(
            "missing-hunk",
            place.number,
            "the lines of a hunk begin without their `@@` header",
            "write `@@ -START,COUNT +START,COUNT @@` above them",
        )
    if place.text in {b"---", b"+++"}:
        return Fault(
            "path-missing", place.number, "a header names no file", "name the file after `a/` and `b/`"
        )
    return foreign(place)


def _value_fault(place: Place, header: bytes) -> Fault | None:
    value = place.text[len(header) :]
    shown = printable(value, 60)
    if header.endswith(b"mode ") and not _MODE.fullmatch(value):
        return Fault(
            "invalid-unified-diff",
            place.number,
            f"{shown} is not a mode that a patch may set",
            "use mode 100644, or 100755 for a program",
        )
    if header == b"index " and not _INDEX.fullmatch(value):
        return Fault(
            "invalid-unified-diff",
            place.number,
            f"the index line holds no object ids: {shown}",
            "leave the `index` line out, or copy it from `git diff`",
        )
    if header.endswith(b"similarity index ") and not _PER_CENT.fullmatch(value):
        return Fault(
            "invalid-unified-diff",
            place.number,
            f"{shown} is no percentage",
            "write a number from 0 to 100 and `%`",
        )
    if not value:
        return Fault(
            "path-missing", place.number, "a header names no file", "name the file after `a/` and `b/`"
        )
    return None


def _explain_pairs(seen: set[bytes], line: int) -> Fault:
    """Say which header lacks its partner, where each is right by itself."""
    for one, other in (
        (b"--- ", b"+++ "),
        (b"old mode ", b"new mode "),
        (b"rename from ", b"rename to "),
        (b"copy from ", b"copy to "),
    ):
        for present, absent in ((one, other), (other, one)):
            if present in seen and absent not in seen:
                rule = "missing-file-header" if present in {b"--- ", b"+++ "} else "invalid-unified-diff"
                return Fault(
                    rule,
                    line,
                    f"`{present.decode().strip()}` stands without `{absent.decode().strip()}`",
                    "write both lines of the pair",
                )
    return Fault(
        "invalid-unified-diff",
        line,
        "the headers of the section contradict each other",
        "send the headers exactly as `git diff` writes them",
    )
