"""Where the hunks of a diff are in a file of the base, and whether one ends in it: for repairs of a diff."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from patchgate.git.model import GITLINK, TREE_MODE
from patchgate.git.path import RepoPath, faults
from patchgate.patches.formats.anchors import find_lines
from patchgate.patches.line_ends import LineEnds, detect_line_ends
from patchgate.patches.patch_model import hunk_header
from patchgate.patches.planning import Preimage

Lookup = Callable[[RepoPath], Preimage | None]

# How much context git writes: a hunk with less may have been cut.
_CONTEXT = 3


def read_text(path: RepoPath, lookup: Lookup) -> bytes | None:
    """Read a file of the base, with LF if all its lines end in CR LF; None if it is no text file."""
    found = None if faults(path, from_text=True) else lookup(path)
    if found is None or found.mode in {TREE_MODE, GITLINK}:
        return None
    is_crlf = detect_line_ends(found.content) is LineEnds.CRLF
    return found.content.replace(b"\r\n", b"\n") if is_crlf else found.content


def place_hunks(text: bytes, hunks: Sequence[Sequence[bytes]]) -> list[bytes] | None:
    """Write hunks with the numbers of the only place of each; None if one has none, or several."""
    found: list[tuple[int, int, Sequence[bytes]]] = []
    for hunk in hunks:
        old, new = split_sides(hunk[1:])
        places = find_lines(text, old).places if old else ()
        if len(places) != 1:
            return None
        found.append((places[0], len(new), hunk))
    return list(_numbered(sorted(found, key=lambda each: each[0])))


def _numbered(found: Sequence[tuple[int, int, Sequence[bytes]]]) -> Iterator[bytes]:
    drift = 0
    for place, n_new, hunk in found:
        n_old = len(split_sides(hunk[1:])[0])
        new_start = place + drift + bool(n_new)
        yield hunk_header((place + 1, n_old), (new_start, n_new))
        yield from hunk[1:]
        drift += n_new - n_old


def ends_in_context(text: bytes, body: Sequence[bytes]) -> bool:
    """Return whether a hunk ends in three lines of context of its file, or in fewer up to the file's end.

    Then no line is missing below it.
    """
    texts = [each for each in body if not each.startswith(b"\\")]
    n_context = len(list(takewhile(lambda each: each.startswith(b" "), reversed(texts))))
    old, _ = split_sides(texts)
    places = find_lines(text, old).places if n_context else ()
    if not places or n_context >= _CONTEXT:
        return bool(places)
    n_lines = text.count(b"\n") + (not text.endswith(b"\n"))
    return len(places) == 1 and places[0] + len(old) == n_lines


def split_sides(body: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    old = [each[1:] for each in body if each.startswith((b" ", b"-"))]
    return old, [each[1:] for each in body if each.startswith((b" ", b"+"))]
