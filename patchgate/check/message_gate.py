"""The message gate: what a commit's message should be like.

Decides which subjects and which phrases are told of, each with its line. It gets the text as it stands in
the commit (`check.message` takes off what git will drop), and knows no repository. What git writes by
itself, what is quoted, code, comments and trailers are not judged: a finding must be something that its
author can mend.
Every expression here is bounded, so that no message can make it slow.

Source of what a trailer is: git-interpret-trailers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

from patchgate.check import vague
from patchgate.check.case import find
from patchgate.check.message import SPACE, Message, is_abandoned
from patchgate.policy.content import ContentRules
from patchgate.report.rules import RULES
from patchgate.report.verdict import Finding, Json

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
    """Find what a reader of the message would stumble over.

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
    yield from islice(_vague(message, lines, at, is_made), vague.MOST_PLACES)


def _subject(lines: Sequence[bytes], at: int, encoding: str | None) -> Iterator[Finding]:
    raw = lines[at].strip(SPACE)
    text = _decoded(raw, encoding)
    length = _length(text)
    if length > MOST_CHARACTERS:
        yield _find(
            "message-subject-too-long",
            f"the subject has {length} characters, and {MOST_CHARACTERS} are shown",
            at,
            raw,
            {"limit": MOST_CHARACTERS, "actual": length},
        )
    if _ends_with_period(text):
        yield _find("message-subject-period", "the subject ends with a period", at, raw)
    if at + 1 < len(lines) and lines[at + 1].strip(SPACE):
        message = "the line after the subject is not blank, so git takes it for a part of the subject"
        yield _find("message-blank-line-missing", message, at + 1, lines[at + 1])


def _decoded(raw: bytes, encoding: str | None) -> str:
    """Turn the subject into characters, to count them; of what is not known each byte is one."""
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

    # An accent that stands alone, or a joiner, takes no place of its own.
    return len(text) - sum(category(character) in {"Mn", "Me", "Cf"} for character in text[:1000])


def _ends_with_period(text: str) -> bool:
    if not text.endswith(".") or text.endswith(".."):
        return False
    word = text[-100:-1].rpartition(" ")[2].lower().lstrip("(")
    return "." not in word and word not in _ABBREVIATIONS


def _vague(message: Message, lines: Sequence[bytes], at: int, is_made: bool) -> Iterator[Finding]:
    """Find vague phrases in the order of the text."""
    phrases = vague.possible(message.text)
    if not phrases:
        return
    shown = _judged_text(lines, at, is_made)
    starts = [0, *accumulate(len(line) + 1 for line in shown)]
    text = "\n".join(shown)
    for position, name, words in vague.places(text, phrases):
        index = bisect_right(starts, position) - 1
        said = f'the message says "{" ".join(words.split())}", and nobody can check what that means'
        yield _find("message-vague", said, index, lines[index], {"pattern": name})


def _judged_text(lines: Sequence[bytes], at: int, is_made: bool) -> list[str]:
    """Give every line in small letters, with the lines and words that are nobody's own hidden."""
    first_trailer = _trailers(lines, at)
    shown: list[str] = []
    fenced = is_code = False
    was_blank = True
    for index, line in enumerate(lines):
        is_blank = not line.strip(SPACE)
        is_indented = line.startswith((b"\t", b"    "))
        # As in Markdown: an indented line is code unless it goes on with a paragraph.
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
            shown.append(vague.HIDDEN_LINE)
        else:
            shown.append(vague.shown(line.decode("utf-8", "replace")).rstrip("\r"))
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
    fix = RULES[rule].fix
    hint = fix[0].lower() + fix[1:].removesuffix(".")
    excerpt = line.strip(SPACE)[:_EXCERPT] or None
    # A line that holds a secret is never shown, whatever it is told for.
    if ContentRules(True, False, ()).secret_in(line) is not None:
        excerpt = None
    number = None if index is None else index + 1
    return find(rule, message, None, hint, line=number, excerpt=excerpt, details=details)
