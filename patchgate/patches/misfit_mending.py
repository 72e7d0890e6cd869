"""How a patch that does not meet its files is mended, where that is mechanical.

Decides which lines of one section to replace or to leave out, for a file as it is. Never which text was
meant: a line of context is taken from the file only where all that stands around it agrees.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.patches.header_mending import name_lines
from patchgate.patches.lines import FileLines, HunkLines
from patchgate.patches.patch_line_faults import is_elided
from patchgate.patches.patch_model import Hunk, Kind, Mending, Section, mend, range_text

_MOST_LINES = 200
_CR = b"\r"


def without_section(section: Section) -> Mending:
    """Leave a section out."""
    return Mending(section.line, None, _last_line(section))


def as_new_file(section: Section) -> Mending | None:
    """Write the headers that make a file of a section without old lines; None where it has some."""
    if section.kind is not Kind.MODIFY or len(section.rows) != 1:
        return None
    (hunk,) = section.hunks
    if hunk.old_count or hunk.new_start != 1:
        return None
    git_line = section.raw[section.start : section.raw.index(b"\n", section.start)]
    names = name_lines(section.path.raw, is_new=True, is_gone=False)
    header = b"@@ -0,0 +%b @@" % range_text(1, hunk.new_count)
    return mend(section.line, b"\n".join((git_line, b"new file mode 100644", *names, header)), hunk.line)


def with_mode(section: Section, mode: str) -> Mending | None:
    """Write the mode that the file has into the headers; say none where it is already the new one."""
    stop = section.rows[0][6] if section.rows else section.end
    texts = section.raw[section.start : stop].split(b"\n")[:-1]
    actual = mode.encode("ascii")
    for number, text in enumerate(texts, start=section.line):
        if text.startswith(b"deleted file mode "):
            return mend(number, b"deleted file mode " + actual)
        if text.startswith(b"old mode "):
            if section.new_mode != mode:
                return mend(number, b"old mode " + actual)
            return Mending(number, None, number + 1) if section.rows else without_section(section)
        if text.startswith(b"index ") and text.count(b" ") == 2:
            return mend(number, text.rpartition(b" ")[0] + b" " + actual)
    return None


def without_hunk(section: Section, hunk: Hunk) -> Mending:
    """Leave a hunk out, and its section where it has no other."""
    if section.n_hunks == 1:
        return without_section(section)
    return Mending(hunk.line, None, hunk.line + section.body(hunk).count(b"\n"))


def with_new_start(hunk: Hunk, shift: int) -> Mending | None:
    """Write the header of a hunk whose old line number is right: `shift` lines were added above it."""
    place = hunk.old_position + shift
    new_start = place + 1 if hunk.new_count else place
    if new_start < 0 or new_start == hunk.new_start:
        return None
    old = range_text(hunk.old_start, hunk.old_count)
    return mend(
        hunk.line, b"@@ -%b +%b @@%b" % (old, range_text(new_start, hunk.new_count), hunk.section_text)
    )


def with_context(
    section: Section, hunk: Hunk, lines: HunkLines, file: FileLines, index: int, patch_line: int
) -> Mending | None:
    """Take one line of context from the file, if every other old line stands where the hunk says.

    Args:
        index: which old line differs, from 0.
        patch_line: its line in the patch, from 1.
    """
    start = hunk.old_position
    have = file.lines[start : start + len(lines.old)]
    others = [each for each in range(len(lines.old)) if each != index]
    if (
        len(others) < 2
        or len(have) != len(lines.old)
        or any(have[each] != lines.old[each] for each in others)
    ):
        return None
    body = section.body(hunk).split(b"\n")
    text = body[patch_line - hunk.line - 1]
    if text != b" " + lines.old[index] or have[index] == lines.old[index]:
        return None
    # A removed or added line that lost its sign, or an ellipsis, is no context.
    if have[index] == b" " + lines.old[index] or is_elided(lines.old[index]):
        return None
    return mend(patch_line, b" " + have[index])


def with_line_ends(section: Section, hunk: Hunk, lines: HunkLines, file: FileLines) -> Mending | None:
    """Give a hunk's old lines the line ends of the file; added lines get those of the line above."""
    start = hunk.old_position
    have = file.lines[start : start + len(lines.old)]
    if len(have) != len(lines.old) or hunk.lines > _MOST_LINES or hunk.form & 3:
        return None
    if any(
        one.removesuffix(_CR) != other.removesuffix(_CR) for one, other in zip(have, lines.old, strict=True)
    ):
        return None
    texts = _with_ends(section.body(hunk).split(b"\n")[:-1], have)
    return mend(hunk.line + 1, b"\n".join(texts), hunk.line + hunk.lines)


def _with_ends(body: Sequence[bytes], have: Sequence[bytes]) -> list[bytes]:
    texts: list[bytes] = []
    seen = 0
    for text in body:
        if text.startswith(b"+"):
            end = _CR if have[max(seen - 1, 0)].endswith(_CR) else b""
            texts.append(text.removesuffix(_CR) + end)
        else:
            texts.append(text[:1] + have[seen])
            seen += 1
    return texts


def _last_line(section: Section) -> int:
    return section.line + section.raw.count(b"\n", section.start, section.end) - 1
