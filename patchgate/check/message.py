"""A commit's message: what of the file that git hands to a hook will stand in the commit.

Decides, by git's own rules, which lines git drops (comments, what lies below the scissors line, blank
space), so that nothing is judged that nobody will read. A hook sees neither `--cleanup` nor `-v`: where they
could differ from the config a line is kept, so that it is judged rather than missed; what a push judges is
the commit itself. A scissors line that the config does not explain counts where an editor was used and git's
explanation stands below it; a line above it that is no comment tells `--cleanup=scissors` from `-v`, whose
hints stand there.

Sources: git-commit (`--cleanup`, `--verbose`), git-stripspace, git-config (`core.commentChar`,
`core.commentString`); `cleanup_message`, `wt_status_locate_end` and `adjust_comment_line_char` in git itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

STRIP = "strip"
WHITESPACE = "whitespace"
VERBATIM = "verbatim"
SCISSORS = "scissors"
MODES = frozenset({STRIP, WHITESPACE, VERBATIM, SCISSORS})

CUT_LINE = b" ------------------------ >8 ------------------------\n"
# What git chooses from where `core.commentChar` is auto.
_CANDIDATES = b"#;@!$%^&|:"
# git's own hints begin with two lines of words, and then one with nothing but the comment character.
_HINT = re.compile(rb"^([#;@!$%^&|:]) [^\n]*\n\1 [^\n]*\n\1\r?$", re.MULTILINE)
_SIGN_OFF = b"Signed-off-by: "
# What git takes for space at a line's end: form feed and vertical tab are none.
SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Message:
    """The message of a commit, and the encoding that git was told it has (None: UTF-8)."""

    text: bytes
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What the config says about cleaning: the mode (None: git's default), the comment string (None: auto).

    `is_verbose` is `commit.verbose`.
    """

    mode: str | None = None
    comment: bytes | None = b"#"
    is_verbose: bool = False


def clean(raw: bytes, cleanup: Cleanup, *, edited: bool) -> bytes:
    """Give the text that git will make the commit's message of.

    Args:
        raw: the file of the message, as a commit-msg hook finds it.
        cleanup: what the config says.
        edited: whether git opened an editor for it; if not, git keeps comments.
    """
    comment = comment_of(raw, cleanup, edited=edited)
    mode = cleanup.mode or (STRIP if edited else WHITESPACE)
    if mode == SCISSORS and not edited:
        mode = WHITESPACE
    cut = None if comment is None else _find_cut(raw, comment)
    if cut is not None and comment is not None:
        is_told = cleanup.is_verbose or mode == SCISSORS
        if is_told or (edited and _is_gits(raw, cut, comment)):
            raw = raw[:cut]
            if mode == STRIP and not is_told and not _last_line(raw).startswith(comment):
                mode = SCISSORS
    if mode == VERBATIM:
        return raw
    return strip_space(raw, comment if mode == STRIP else None)


def comment_of(raw: bytes, cleanup: Cleanup, *, edited: bool) -> bytes | None:
    """Say what begins a comment in the file of a message; None where nobody can tell."""
    comment = cleanup.comment
    if comment is None or (edited and not _begins_a_line(raw, comment)):
        # `git -c core.commentChar=…` is not told to a hook; git's own hints tell it.
        comment = _written_comment(raw) or comment
    return comment


def strip_space(raw: bytes, comment: bytes | None = None) -> bytes:
    """Clean text as `git stripspace` does: no blank lines around it, no two in a row, no space at line ends.

    Lines that begin with `comment` are dropped, and are no blank lines.
    """
    kept: list[bytes] = []
    gap = False
    for line in raw.split(b"\n"):
        if comment is not None and line.startswith(comment):
            continue
        text = line.rstrip(SPACE)
        if not text:
            gap = True
            continue
        if gap and kept:
            kept.append(b"")
        gap = False
        kept.append(text)
    return b"\n".join(kept) + b"\n" if kept else b""


def is_abandoned(text: bytes) -> bool:
    """Tell whether git takes a cleaned message for empty, and ends the commit by itself."""
    return all(not line.strip(SPACE) or line.startswith(_SIGN_OFF) for line in text.split(b"\n"))


def message_of(commit: bytes) -> Message:
    """Take the message out of a commit object, with the encoding that its header names."""
    header, _, text = commit.partition(b"\n\n")
    for line in header.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name == b"encoding":
            return Message(text, value.decode("ascii", "replace"))
    return Message(text)


def _begins_a_line(raw: bytes, comment: bytes) -> bool:
    return raw.startswith(comment) or b"\n" + comment in raw


def _written_comment(raw: bytes) -> bytes | None:
    """Read from git's own hints in the text which comment character git chose; None where there are none."""
    end = raw.rfind(CUT_LINE)
    while end > 0:
        comment = raw[end - 1 : end]
        begins = raw[end - 2 : end - 1] in {b"", b"\n"}
        if begins and comment in _CANDIDATES and _is_gits(raw, end - 1, comment):
            return comment
        end = raw.rfind(CUT_LINE, 0, end)
    hints = _HINT.findall(raw)
    return hints[-1] if hints else None


def _find_cut(raw: bytes, comment: bytes) -> int | None:
    """Find where the scissors line begins; git looks no further than to a NUL."""
    end = raw.find(b"\0")
    text = raw if end < 0 else raw[:end]
    line = comment + CUT_LINE
    if text.startswith(line):
        return 0
    found = text.find(b"\n" + line)
    return None if found < 0 else found + 1


def _is_gits(raw: bytes, cut: int, comment: bytes) -> bool:
    """Tell whether git wrote a scissors line: it explains it right below."""
    return raw.startswith(comment + b" ", cut + len(comment) + len(CUT_LINE))


def _last_line(raw: bytes) -> bytes:
    return raw.removesuffix(b"\n").rpartition(b"\n")[2]
