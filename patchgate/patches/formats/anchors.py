"""Find the one place of a text in its file, byte for byte; several places, or none, are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.patches.formats.proposal import UnreadableProposalError, refuse
from patchgate.patches.hunk_mismatch import MAX_PLACES, find_longest_run
from patchgate.patches.line_ends import FileLines
from patchgate.patches.patch_hunks import is_ellipsis
from patchgate.patches.patch_model import Detail
from patchgate.values import dataclass, replace

_SHOWN = 160
# A text of one repeated byte would otherwise be found once for each byte, and compared each time.
_MOST_FOUND = 10_000
_MOST_COMPARED = 64 << 20


@dataclass(frozen=True, slots=True)
class FoundPlaces:
    """Where a text is in a file, ascending and overlapping places included; `is_complete`: those are all."""

    places: tuple[int, ...]
    is_complete: bool = True


def find_offsets(content: bytes, wanted: bytes) -> FoundPlaces:
    """Find the offsets where a text begins in a file: all, or at least two."""
    found: list[int] = []
    place = content.find(wanted)
    while place >= 0:
        found.append(place)
        if len(found) >= 2 and (len(found) == _MOST_FOUND or len(found) * len(wanted) > _MOST_COMPARED):
            return FoundPlaces(tuple(found), is_complete=False)
        place = content.find(wanted, place + 1)
    return FoundPlaces(tuple(found))


def find_lines(content: bytes, wanted: Sequence[bytes]) -> FoundPlaces:
    """Find the lines, from 0, where whole lines begin in a file; a last one may lack its newline there."""
    text = b"\n" + content + (b"" if content.endswith(b"\n") else b"\n")
    offsets = find_offsets(text, b"\n" + b"\n".join(wanted) + b"\n")
    return replace(offsets, places=tuple(lines_at(text, offsets.places)))


def lines_at(text: bytes, offsets: Sequence[int]) -> Iterator[int]:
    """Count the lines, from 0, of ascending offsets."""
    line = seen = 0
    for place in offsets:
        line, seen = line + text.count(b"\n", seen, place), place
        yield line


def refuse_place(
    path: RepoPath,
    content: bytes,
    wanted: Sequence[bytes],
    lines: Sequence[int],
    at: int | None,
    what: str,
) -> UnreadableProposalError:
    """Refuse a text that is not in its file exactly once.

    Args:
        wanted: its lines.
        lines: the lines of the file, from 0, where it was found.
        at: its line in the proposal, from 1.
        what: what the text is, for the message.
    """
    if lines:
        places = [line + 1 for line in lines[:MAX_PLACES]]
        named = " and ".join(map(str, places[:3])) + (" and others" if len(lines) > 3 else "")
        details: dict[str, Detail] = {"patch_line": at, "found_at": places, "found_lines": len(wanted)}
        message = f"{what} is in {path.quoted} more than once: at line {named}"
        hint = "add lines around it until it is there only once"
        return refuse("hunk-ambiguous", at, message, hint, path, details)
    if any(is_ellipsis(line) for line in wanted):
        message = f"{what} is not in {path.quoted}: an ellipsis replaces lines of it"
        return refuse("patch-truncated", at, message, "send it again, with every line of it", path)
    file = FileLines(content)
    run = find_longest_run(wanted, file)
    details = {"patch_line": at, "found_at": [place + 1 for place in run.places], "found_lines": run.length}
    message = f"{what} is not in {path.quoted}"
    hint = "read the file again, and copy its lines exactly"
    after = run.first + run.length
    if run.length and after < len(wanted):
        place = run.places[0] + run.length
        actual = None if place >= file.count else printable(file.lines[place], _SHOWN)
        details |= {"file_line": place + 1, "expected": printable(wanted[after], _SHOWN), "actual": actual}
        if at is not None:
            details["patch_line"] = at + after
    if run.length and run.length < len(wanted):
        where = " and ".join(str(place + 1) for place in run.places[:3])
        hint = (
            f"{run.length} of its {len(wanted)} lines are at line {where}: copy the lines of the file exactly"
        )
    return refuse("hunk-mismatch", at, message, hint, path, details)
