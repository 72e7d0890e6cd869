"""Line ends of a section and its file: LF or CR LF, and one made like the other.

Decides whether a section must be adapted: only where all its lines end one way and all of the file's the
other. Whatever is mixed is left as it is; if it then does not fit, `diagnosis` names the line (`eol-mixed`).
A last line without newline belongs to both kinds.
"""

from __future__ import annotations

from enum import Enum

from patchgate.patches.patch_model import Section


class LineEnds(Enum):
    """How the lines of a text end; `NONE` where no line ends at all."""

    NONE = "none"
    LF = "lf"
    CRLF = "crlf"
    MIXED = "mixed"

    @classmethod
    def of_counts(cls, lines: int, carriage_returns: int) -> LineEnds:
        """Judge by how many lines end in LF, and how many of these in CR LF."""
        if not lines:
            return cls.NONE
        if not carriage_returns:
            return cls.LF
        return cls.CRLF if carriage_returns == lines else cls.MIXED


def line_ends_of(text: bytes) -> LineEnds:
    """Tell how the lines of a file end."""
    if b"\r" not in text:
        return LineEnds.LF if b"\n" in text else LineEnds.NONE
    return LineEnds.of_counts(text.count(b"\n"), text.count(b"\r\n"))


def section_line_ends(section: Section) -> LineEnds:
    """Tell how the lines under a section's hunk headers end, markers and unfinished lines aside."""
    lines = carriage_returns = 0
    for hunk in section.hunks:
        body = section.body(hunk)
        if hunk.form & 3:
            texts = body.split(b"\n")[:-1]
            ended = [
                text for text, below in zip(texts, [*texts[1:], b""], strict=True) if _is_ended(text, below)
            ]
            lines += len(ended)
            carriage_returns += sum(text.endswith(b"\r") for text in ended)
        else:
            lines += hunk.lines
            carriage_returns += body.count(b"\r\n")
    return LineEnds.of_counts(lines, carriage_returns)


def adapt_line_ends(section: Section, preimage: bytes) -> bytes | None:
    """Write a section again with the line ends of its file; None where nothing is to be adapted.

    Args:
        section: a section of a parsed patch.
        preimage: the old file's bytes.

    Returns:
        The bytes of the whole section, headers included, to be parsed again in its place.
    """
    wanted = line_ends_of(preimage)
    if not section.rows or wanted not in {LineEnds.LF, LineEnds.CRLF}:
        return None
    if wanted is LineEnds.LF and section.raw.find(b"\r", section.start, section.end) < 0:
        return None
    given = section_line_ends(section)
    if given not in {LineEnds.LF, LineEnds.CRLF} or given is wanted:
        return None
    hunks = section.hunks
    pieces = [section.raw[section.start : hunks[0].start]]
    for hunk in hunks:
        pieces.append(section.raw[hunk.start : hunk.body])
        texts = section.body(hunk).split(b"\n")[:-1]
        for text, below in zip(texts, [*texts[1:], b""], strict=True):
            if not _is_ended(text, below):
                pieces.append(text)
            else:
                pieces.append(text + b"\r" if wanted is LineEnds.CRLF else text[:-1])
            pieces.append(b"\n")
    return b"".join(pieces)


def _is_ended(text: bytes, below: bytes) -> bool:
    """Tell whether a line of a hunk stands for a line of a file that has its newline."""
    return not text.startswith(b"\\") and not below.startswith(b"\\")
