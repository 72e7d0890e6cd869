"""The message gate, how git cleans a message, and the check of a reason.

A hook sees neither `--cleanup` nor `-v`: where they could differ from the config, a line is kept and judged.
Sources: git-commit, git-stripspace, git-config, git-interpret-trailers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

from patchgate.check import vague_phrases
from patchgate.check.case import find
from patchgate.errors import UsageError
from patchgate.git.quoting import is_printable, printable
from patchgate.policy.content_rules import ContentRules
from patchgate.report.rules import RULES
from patchgate.report.verdict import Finding, Json
from patchgate.values import dataclass

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
    """The message of a commit, and its encoding by git's config (None: UTF-8)."""

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
    """Return the text that git will turn into the commit's message.

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
    """Find what begins a comment in the file of a message; None if it is not known."""
    comment = cleanup.comment
    if comment is None or (edited and not _begins_a_line(raw, comment)):
        # A hook does not see `git -c core.commentChar=…`; git's own hints show it.
        comment = _written_comment(raw) or comment
    return comment


def strip_space(raw: bytes, comment: bytes | None = None) -> bytes:
    """Clean text as `git stripspace` does: no blank lines around it, no two in a row, no space at line ends.

    Lines that begin with `comment` are dropped, and do not count as blank lines.
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
    """Return whether git treats a cleaned message as empty, and stops the commit."""
    return all(not line.strip(SPACE) or line.startswith(_SIGN_OFF) for line in text.split(b"\n"))


def message_of(commit: bytes) -> Message:
    """Read the message of a commit object, with the encoding of its header."""
    header, _, text = commit.partition(b"\n\n")
    for line in header.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name == b"encoding":
            return Message(text, value.decode("ascii", "replace"))
    return Message(text)


def _begins_a_line(raw: bytes, comment: bytes) -> bool:
    return raw.startswith(comment) or b"\n" + comment in raw


def _written_comment(raw: bytes) -> bytes | None:
    """Read from git's own hints in the text which comment character git chose; None if there are none."""
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
    """Find the scissors line; git stops at a NUL."""
    end = raw.find(b"\0")
    text = raw if end < 0 else raw[:end]
    line = comment + CUT_LINE
    if text.startswith(line):
        return 0
    found = text.find(b"\n" + line)
    return None if found < 0 else found + 1


def _is_gits(raw: bytes, cut: int, comment: bytes) -> bool:
    """Return whether git wrote a scissors line: it explains it right below.

    A scissors line that the config does not explain counts only so, and where an editor was used
    (`cleanup_message` and `wt_status_locate_end` in git). A line above it that is not a comment shows
    `--cleanup=scissors` from `-v`.
    """
    return raw.startswith(comment + b" ", cut + len(comment) + len(CUT_LINE))


def _last_line(raw: bytes) -> bytes:
    return raw.removesuffix(b"\n").rpartition(b"\n")[2]


MOST_CHARACTERS = 72
_EXCERPT = 500

_MADE_BY_GIT = (
    b"Merge ",
    b"Merged in ",
    b"Merged PR ",
    b'Revert "',
    b'Reapply "',
    b"fixup! ",
    b"squash! ",
    b"amend! ",
)
_NUMBER = re.compile(r" \((?:[#!]|GH-)[0-9]{1,9}\)$")
_ABBREVIATIONS = frozenset({"etc", "inc", "ltd", "co", "corp", "jr", "sr", "vs", "al"})
_SINGLE_BYTE = re.compile(r"(?i)(iso-?8859-?\d{1,2}|latin-?\d|windows-?125\d|cp125\d|koi8-?[ru]|us-ascii)")
_WIDE = re.compile(r"(?i)(shift[_-]?jis|sjis|cp932|euc-?(jp|kr|cn)|gbk?|gb2312|gb18030|cp936|cp949|big5)")

_TRAILER = re.compile(rb"[A-Za-z0-9-]{1,100}[ \t]{0,10}:")
_OF_GIT = (b"Signed-off-by: ", b"(cherry picked from commit ")


def examine(message: Message) -> Iterator[Finding]:
    """Find what breaks a message rule.

    What git writes, quotations, code, comments and trailers do not count: the author must be able to fix a
    finding. Every expression is bounded.

    Lines are counted from 1 in the text that was given.
    """
    if is_abandoned(message.text):
        yield _find("message-subject-missing", "the commit has no message", None, b"")
        return
    lines = message.text.split(b"\n")
    at = next(index for index, line in enumerate(lines) if line.strip(SPACE))
    is_made = lines[at].startswith(_MADE_BY_GIT)
    if not is_made:
        yield from _subject(lines, at, message.encoding)
    yield from islice(_vague(message, lines, at, is_made), vague_phrases.MOST_PLACES)


def _subject(lines: Sequence[bytes], at: int, encoding: str | None) -> Iterator[Finding]:
    raw = lines[at].strip(SPACE)
    text = _decoded(raw, encoding)
    length = _length(text)
    if length > MOST_CHARACTERS:
        yield _find(
            "message-subject-too-long",
            f"the subject has {length} characters; the limit is {MOST_CHARACTERS}",
            at,
            raw,
            {"limit": MOST_CHARACTERS, "actual": length},
        )
    if _ends_with_period(text):
        yield _find("message-subject-period", "the subject ends with a period", at, raw)
    if at + 1 < len(lines) and lines[at + 1].strip(SPACE):
        message = "the line after the subject is not blank, so git reads it as part of the subject"
        yield _find("message-blank-line-missing", message, at + 1, lines[at + 1])


def _decoded(raw: bytes, encoding: str | None) -> str:
    """Decode the subject to count its characters; in an unknown encoding each byte counts as one."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    # Only encodings that are known to be harmless: some codecs of Python take quadratic time.
    known = encoding is not None and (_SINGLE_BYTE.fullmatch(encoding) or _WIDE.fullmatch(encoding))
    try:
        return raw.decode(encoding if encoding and known else "latin-1", "replace")
    except LookupError:
        return raw.decode("latin-1")


def _length(text: str) -> int:
    """Count the characters that take a place, without the number of a request at the end."""
    if len(text) <= MOST_CHARACTERS:
        return len(text)
    text = text[:-20] + _NUMBER.sub("", text[-20:])
    from unicodedata import category

    # A combining accent or a joiner takes no column.
    return len(text) - sum(category(character) in {"Mn", "Me", "Cf"} for character in text[:1000])


def _ends_with_period(text: str) -> bool:
    if not text.endswith(".") or text.endswith(".."):
        return False
    word = text[-100:-1].rpartition(" ")[2].lower().lstrip("(")
    return "." not in word and word not in _ABBREVIATIONS


def _vague(message: Message, lines: Sequence[bytes], at: int, is_made: bool) -> Iterator[Finding]:
    """Find vague phrases in the order of the text."""
    phrases = vague_phrases.possible(message.text)
    if not phrases:
        return
    shown = _judged_text(lines, at, is_made)
    starts = [0, *accumulate(len(line) + 1 for line in shown)]
    text = "\n".join(shown)
    for position, name, words in vague_phrases.places(text, phrases):
        index = bisect_right(starts, position) - 1
        said = f'the message says "{" ".join(words.split())}", which cannot be checked'
        yield _find("message-vague", said, index, lines[index], {"pattern": name})


def _judged_text(lines: Sequence[bytes], at: int, is_made: bool) -> list[str]:
    """Return every line in lower case, without the lines and words that the author did not write."""
    first_trailer = _trailers(lines, at)
    shown: list[str] = []
    fenced = is_code = False
    was_blank = True
    for index, line in enumerate(lines):
        is_blank = not line.strip(SPACE)
        is_indented = line.startswith((b"\t", b"    "))
        # As in Markdown: an indented line is code unless it continues a paragraph.
        is_code = is_indented and (was_blank or is_code)
        is_fence = line.lstrip(b" ").startswith((b"```", b"~~~"))
        fenced ^= is_fence
        hidden = is_fence or fenced or is_code or index >= first_trailer
        if index == at:
            hidden = is_made
        elif not is_blank:
            hidden |= line.startswith((b"#", b">", b" >", b"  >"))
            # The list of commits that `merge.log` puts into a merge.
            hidden |= is_made and line.startswith(b"  ")
        if hidden:
            shown.append(vague_phrases.HIDDEN_LINE)
        else:
            shown.append(vague_phrases.shown(line.decode("utf-8", "replace")).rstrip("\r"))
        was_blank = is_blank
    return shown


def _trailers(lines: Sequence[bytes], at: int) -> int:
    """Find where the trailers begin: the last paragraph, if all of it is trailers or one of them is git's."""
    end = len(lines)
    while end > at and not lines[end - 1].strip(SPACE):
        end -= 1
    start = end
    while start > at and lines[start - 1].strip(SPACE):
        start -= 1
    own = [line for line in lines[start:end] if not line.startswith((b" ", b"\t"))]
    is_block = bool(own) and all(_TRAILER.match(line) or line.startswith(_OF_GIT) for line in own)
    has_gits = any(line.startswith(_OF_GIT) for line in own)
    return start if start > at and (is_block or has_gits) else len(lines)


def _find(
    rule: str, message: str, index: int | None, line: bytes, details: dict[str, Json] | None = None
) -> Finding:
    hint = RULES[rule].hint
    excerpt = line.strip(SPACE)[:_EXCERPT] or None
    # A line with a secret is never shown, whichever rule reports it.
    if ContentRules(True, False, ()).secret_in(line) is not None:
        excerpt = None
    number = None if index is None else index + 1
    return find(rule, message, None, hint, line=number, excerpt=excerpt, details=details)


MOST_REASON = 1000

_REASON_HINT = 'say what makes this change right: --reason "vendored from upstream 2.1, not edited"'
_REASON_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W_]+)*")
# A reason made of these alone would fit every change.
_FILLERS = """
    a about above again agreed all allow allowed an and any approve approved approval as asked because
    below bug bugfix but by change changed changes commit done discussed do exception false fine fix
    fixed fixes for force good hotfix i in is issue it just later lgtm looks make makes me meeting merge
    minor misc must my necessary need needed needs no none normal not now of ok okay on only our per
    please pr quick reason refactor request requested required review reviewed see sgtm ship should
    small so some stuff such team temp temporary test testing that the them these thing things this tmp
    to todo trust try unblock update updated updates urgent us want wanted was we why will wip with work
    works yes you
"""
_EMPTY_WORDS = frozenset(_FILLERS.split())


def check_reason(text: str, what: str = "an approval", hint: str = _REASON_HINT) -> str:
    """Return a reason without space around it.

    Args:
        text: the reason.
        what: it is for.
        hint: the next step, where it says nothing.

    Raises:
        UsageError: it says nothing that would not fit every change, or it cannot be printed.
    """
    reason = text.strip()
    if not reason:
        raise UsageError(f"{what} needs a reason", hint)
    if len(reason) > MOST_REASON:
        raise UsageError(f"the reason has more than {MOST_REASON} characters", "use fewer words")
    if not all(map(is_printable, reason)):
        raise UsageError("the reason has unprintable characters, or more than one line", "write one line")
    words = [word.casefold() for word in _REASON_WORD.findall(reason)]
    # Some scripts put no spaces between words: there one run of letters may be a sentence.
    if len(words) < 2 and not (words and not words[0].isascii() and len(words[0]) >= 5):
        raise UsageError(f'"{printable(reason, 60)}" is not a reason: one word is not enough', hint)
    if _EMPTY_WORDS.issuperset(words):
        raise UsageError(f'"{printable(reason, 60)}" is not a reason: it would fit every change', hint)
    for finding in examine(Message(b"Approve\n\n" + reason.encode("utf-8") + b"\n")):
        if finding.rule == "message-vague":
            phrase = finding.details.get("pattern")
            raise UsageError(f'the reason says "{phrase}", which cannot be checked', hint)
    return reason
