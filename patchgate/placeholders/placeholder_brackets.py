"""When a word such as TODO in brackets is a placeholder, and when a link, a subscript, a list, a usage line.

Decides it by what else stands in the brackets, and by what stands right before and after them. A text has
links; a program has subscripts and lists of names, and links in its comments.
"""

from __future__ import annotations

import re

from patchgate.placeholders.placeholder_places import ANOTHER
from patchgate.placeholders.text_kinds import NEAR, Kind, Language, opening, without_strings
from patchgate.policy.marker_forms import Marker

_SIGNS = (
    b":",
    b"-",
    b"!",
    b"?",
    b". ",
    b"..",
    b";",
    b"\xe2\x80\xa6",
    b"\xe2\x80\x93",
    b"\xe2\x80\x94",
    b"\xef\xbc\x9a",
)
# SQL in a usage line: a table, and perhaps what goes into it.
_INTO = re.compile(rb"[ \t]+INTO[ \t]+[\w.\"`]+[ \t]*(?:$|\(|VALUES\b|SELECT\b|SET\b)")
_NAMES = re.compile(rb"(?:,[ \t]*[\"']?[A-Z][A-Z0-9_]{1,40}[\"']?[ \t]*){1,40},?")
_LINK = re.compile(
    rb"\([ \t]*(?:<[^<>]{0,200}>|[^ \t()]{0,200}(?:\([^ \t()]{0,100}\)[^ \t()]{0,100})?)"
    rb"(?:[ \t]+[\"'(].{0,200})?[ \t]*\)"
)
_TARGET = re.compile(rb":[ \t]*(?:<[^<>]{0,200}>|(?P<bare>[^ \t]{1,500}))(?:[ \t]+[\"'(].{0,200})?[ \t\r]*")
_OF_ADDRESS = re.compile(rb"[/.#:][^ \t]")
_LISTED = re.compile(rb"(?:[=(,+|&?:]|\b(?:return|in|yield))[ \t]*$")
_AFTER_NAME = frozenset({b"", b",", b";", b")", b"]", b"}", b":", b"#", b"/", b"\r"})
_EXPRESSION = re.compile(rb"[ \t]+(?:for|if|and|or|not|in|is|as|else)\b")
# A name that is none of a text: `cache_of(x)`, `test_it::case`, `a.b`.
_CODE_ENDS = re.compile(rb"(?:_|::|->|\(\)|[A-Za-z0-9]\.[A-Za-z])[\w.:/()$>-]{0,60}$")
_NAME_ENDS = re.compile(rb"[A-Za-z0-9_)\]]$")


def bracket_in(line: bytes, language: Language, marker: Marker) -> bytes | None:
    """Find a placeholder in brackets on a line: what stands there from the first on; None if there is none.

    Args:
        line: as `placeholder_matches` reads it.
        language: of the file.
        marker: that of brackets.
    """
    for found in marker.expression.finditer(line):
        if _is_placeholder(found, language):
            return line[found.start() :]
    return None


def _is_placeholder(found: re.Match[bytes], language: Language) -> bool:
    rest = found["rest"].rstrip(b"\\ \t")
    if not _is_asked(found["word"], rest):
        return False
    line = found.string
    before, after = line[max(0, found.start() - NEAR) : found.start()], line[found.end() : found.end() + NEAR]
    if language.kind in {Kind.PROSE, Kind.TABLE, Kind.DATA} and not language.is_script:
        return _is_in_text(before, after)
    if language.kind is Kind.MARKUP and not language.is_jsx:
        return (
            not before.endswith(b"]") and not re.search(rb"[A-Za-z_]$", before) and _is_in_text(before, after)
        )
    return _is_in_program(before, after, rest, language, found.start() <= NEAR)


def _is_asked(word: bytes, rest: bytes) -> bool:
    """Tell whether what follows the word in its brackets leaves it a placeholder."""
    if not rest or rest == b"." or rest.startswith(_SIGNS):
        return True
    sign, more = rest[:1], rest.lstrip()
    if sign == b",":
        # Names in upper case make a list; TBD is no name.
        return word == b"TBD" or not _NAMES.fullmatch(rest)
    if more[:1] in {b"/", b"|"}:
        other = ANOTHER.match(more[1:].lstrip())
        return other is not None and _is_asked(word, more[1:].lstrip()[other.end() :])
    if sign == b"(":
        return True
    if sign not in {b" ", b"\t", b"\n"} or b"|" in rest:
        return False
    return not (word == b"INSERT" and _INTO.match(rest)) and more[:1] not in {b"=", b"&", b"+"}


def _is_in_text(before: bytes, after: bytes) -> bool:
    """Tell whether brackets are no link, and no code that is quoted."""
    if _NAME_ENDS.search(before) and (
        before.endswith(b"]") or before.count(b"`") % 2 or _CODE_ENDS.search(before)
    ):
        return False
    if after.startswith(b"("):
        return _LINK.match(after) is None
    if after.startswith(b"["):
        return ANOTHER.match(after[1:].lstrip()) is not None
    if after.startswith(b":") and not before.strip(b" \t>"):
        target = _TARGET.fullmatch(after)
        return target is None or (target["bare"] is not None and not _OF_ADDRESS.search(target["bare"]))
    return True


def _is_in_program(before: bytes, after: bytes, rest: bytes, language: Language, is_begun: bool) -> bool:
    """Tell the same in code, where a comment or a string holds text."""
    is_comment, _ = opening(before, language, is_begun, after)
    if is_comment or any(quote in without_strings(before) for quote in (b'"', b"'", b"`")):
        return not before.endswith(b"\\") and not _NAME_ENDS.search(before) and _is_in_text(before, after)
    if re.search(rb"[A-Za-z0-9_)\]\\$#!@]$", before) or after[:1] in {b"(", b"[", b":", b"{"}:
        return False
    if rest:
        return rest[:1] not in {b",", b".", b"(", b";", b"!", b"?"} and not _EXPRESSION.match(rest)
    return language.is_script or not (_LISTED.search(before) and after.lstrip()[:1] in _AFTER_NAME)
