"""Decides when a word such as TODO is a mark, and when it is prose.

It depends on the position of the word and on the kind of file. A mark is first in a comment, a heading, a
list element, a cell, or on a line; or a whole value (`todo_context`); or before a colon. All else is prose:
"a TODO app". If unsure, it is a mark: a claim that is wrongly contradicted is worse than a false report.
"""

from __future__ import annotations

import re
from sys import maxsize

from patchgate.placeholders.comment_syntax import (
    CONTEXT_BYTES,
    Language,
    LineContext,
    TextKind,
    detect_comment,
    without_strings,
)
from patchgate.placeholders.todo_context import (
    CLOSED,
    COLON,
    LineSegment,
    WordContext,
    is_alone,
    is_cell,
    is_only_content,
    is_value,
)
from patchgate.policy.placeholder_markers import Marker

# With more of one word on a line it is a mark: prose has fewer.
_MOST = 500
_WHOLE_LINE = LineSegment(0, maxsize)

_COLON_APART = re.compile(rb" :(?![:/=])")
_NO_COLON_AFTER = re.compile(rb"[-/@<&?#%+=|~^]$|\b(?:case|goto|default)[ \t]+$")
_BOTH = re.compile(rb"\b(?:TODO|FIXME|TBD|XXX|HACK|NOTE|BUG)[ \t]?[/|][ \t]?$")
_CODE_HEAD = re.compile(
    rb"[ \t]*[})]?[ \t]*(?:if|elif|else|for|while|case|with|match|except|class|when|def|switch)\b"
)
_UNFINISHED = re.compile(rb"[({\[,|&=<>!+*/?]$")
_CODE_REST = re.compile(
    rb"[\"'`\d\[({&].*|[A-Za-z_][\w.]*(?:[<\[].*)?[ \t]*=.*|.*[,;{(\[=]"
    rb"|(?:None|True|False|null|true|false|str|int|float|bool|bytes|string|number|boolean|any|object|auto)\b.*"
)
_ELEMENT = re.compile(rb"[ \t]*(?:[-*+]|[0-9]{1,3}[.)])[ \t]+")
_QUOTED = re.compile(rb"<(?:code|kbd|tt|samp)[^<>]{0,100}>$")
_CURLY = (b"\xe2\x80\x9c", b"\xe2\x80\x9d", b"\xe2\x80\x98", b"\xe2\x80\x99", b"\xc2\xab", b"\xc2\xbb")
# The end of a line after which something new begins.
_FREE = re.compile(rb"[.!?:;>|#*_=`)\]~-]$|^[-*+#>|]|^[0-9]{1,3}[.)]|^$|^<!--|^\xef\xbb\xbf$")
# The end of a line, and the beginning of the next, where a sentence continues.
_GOES_ON = re.compile(
    rb"(?:,|&|/|\b(?:a|an|the|of|no|any|each|every|this|that|these|those|and|or|nor|not|with|without|for|in|on|to"
    rb"|from|by|as|at|like|such|our|their|its|his|her|my|your|all|some|than|into|called|word|words|is|are|was"
    rb"|were|be|been|has|have|had|find|finds|found|says?|said))$",
    re.IGNORECASE,
)
_CONTINUES = re.compile(
    rb"(?:and|or|nor|is|are|was|were|in|of|on|at|for|to|with|as|from|by|has|have|had|can|will|must|should)\b"
)
# A word in lower case after one of these is not first; `rem` and `begin` open comments.
_WITHIN = frozenset(bytes([each]) for each in b"abcdefghijklopqrstuvwxyzABCDEFGHIJKLOPQRSTUVWXYZ0123456789,")
_CLOSING = {
    TextKind.DATA: re.compile(rb"(?<!\\)\""),
    TextKind.CODE: re.compile(rb"(?<!\\)(?:\"|['`](?![A-Za-z]))"),
    TextKind.MARKUP: re.compile(rb"(?<!\\)(?:\"|['`](?![A-Za-z]))"),
}
_STRING_ENDS = re.compile(rb"[\"'`][ \t]*,?[ \t]*$")
_SIGNS = (b":", b"=", b"=>", b"\xef\xbc\x9a")


def find_todo(line: bytes, line_context: LineContext, language: Language, marker: Marker) -> bytes | None:
    """Find the first word that is a mark on a line; return the line from there on, or None.

    Args:
        line: as `placeholder_matches` reads it: an LF stands for a line break inside a string.
        line_context: the line in its text.
        language: that of the file.
        marker: that of the word.
    """
    if language.suffix == b"ipynb" and line.lstrip().startswith(b'"'):
        # In a notebook, a line of a cell is a string.
        line, language = _STRING_ENDS.sub(b"", line.lstrip()[1:]), language.in_strings
    whole = None if b"\n" in line or b"\r" in line else _WHOLE_LINE
    for seen, found in enumerate(marker.expression.finditer(line)):
        start, end = found.span()
        segment = whole or _segment_of(line, start, end, language)
        context = WordContext(
            line=line, start=start, end=end, segment=segment, language=language, line_context=line_context
        )
        if seen == _MOST or _is_mark(context):
            return line[start:]
    return None


def _segment_of(line: bytes, start: int, end: int, language: Language) -> LineSegment:
    """Find the segment of a line that contains a word.

    A lone CR also ends a line. An escaped line break in a string begins a text, up to the end of the string.
    """
    floor = max(0, start - CONTEXT_BYTES - 1)
    begin = max(line.rfind(b"\n", floor, start), line.rfind(b"\r", floor, start)) + 1
    ends = [stop for sign in (b"\n", b"\r") if (stop := line.find(sign, end, end + CONTEXT_BYTES)) >= 0]
    stop = min(ends, default=len(line))
    is_cut = line[stop : stop + 1] == b"\n"
    is_string = line[max(0, begin - 1) : begin] == b"\n"
    closing = _CLOSING.get(language.kind) if is_string else None
    if closing is not None and (found := closing.search(line, begin, start)):
        return LineSegment(found.end(), stop, is_cut)
    if closing is not None and (found := closing.search(line, end, min(stop, end + CONTEXT_BYTES))):
        return LineSegment(begin, found.start(), is_string=True)
    return LineSegment(begin, stop, is_cut=is_cut, is_string=is_string)


def _is_mark(context: WordContext) -> bool:
    """Return whether a word is a mark."""
    if not context.is_upper and context.sign in _WITHIN:
        return False
    if context.before.endswith((b"@", b"\\")):
        return _is_annotation(context)
    if context.after.startswith(b"_") and context.language.is_program:
        # A name, or, rarely, emphasis in a comment.
        return False
    # A string that continues is closed later.
    after = context.after + b'"' if context.is_cut else context.after
    context.is_comment, is_first = detect_comment(
        context.before, context.language, context.has_line_start, after
    )
    if context.is_upper and is_alone(context):
        return True
    if _is_mention(context):
        return context.word == b"TBD" and (is_value(context) or is_cell(context))
    if is_first and (context.is_upper or context.is_comment) and context.is_followed(context.after):
        return True
    return context.is_upper and (_has_colon(context) or _begins_line(context) or is_only_content(context))


def _is_text(context: WordContext) -> bool:
    """Return whether words follow that are not code."""
    is_apart = context.after[:1] in {b" ", b"\t", b"-"} and context.after[-1:] not in {b";", b"{", b",", b"("}
    return is_apart and context.is_followed(context.after)


def _is_annotation(context: WordContext) -> bool:
    """Match `@todo` in a comment, and LaTeX's `\\todo{…}`."""
    if context.before.endswith(b"\\"):
        return context.language.suffix == b"tex" and context.after[:1] in {b"{", b"["}
    is_comment, is_first = detect_comment(
        context.before[:-1], context.language, context.has_line_start, context.after
    )
    return is_comment and is_first and context.kind is not TextKind.PROSE and context.word.lower() == b"todo"


def _is_mention(context: WordContext) -> bool:
    """Return whether the word is only mentioned: in backticks, or in a comment in quotes."""
    before, after = context.before, context.after
    if context.kind is TextKind.MARKUP and after.startswith(b"</") and _QUOTED.search(before):
        return True
    if before.endswith(_CURLY) and after.lstrip(b":").startswith(_CURLY):
        return True
    if context.is_code:
        return False
    if b"`" in after and before.count(b"`") % 2 and not before.endswith(b"```"):
        return True
    quote = before[-1:]
    is_quoted = quote in {b'"', b"'"} and after.lstrip(b":").startswith(quote)
    if not is_quoted or before.endswith((b'"""', b"'''")):
        return False
    return context.is_comment or (
        context.kind is TextKind.PROSE and not before.rstrip(b"\"'*_~ \t").endswith(_SIGNS)
    )


def _has_colon(context: WordContext) -> bool:
    found = COLON.match(context.after)
    if found is None and not context.is_code:
        found = _COLON_APART.match(context.after)
    if found is None or (_NO_COLON_AFTER.search(context.before) and not _BOTH.search(context.before)):
        return False
    rest = context.after[found.end() :].strip()
    if rest[:1] in {b'"', b"'", b"`"} and context.before.endswith(rest[:1]):
        return False
    return not context.is_code or not _is_key(context, rest)


def _is_key(context: WordContext, rest: bytes) -> bool:
    """Return whether a word with a colon is a name in a program."""
    before = without_strings(context.before)
    if any(quote in before for quote in (b'"', b"'", b"`")):
        return False
    if _CODE_HEAD.match(before) or _UNFINISHED.search(before.rstrip()):
        return True
    return not before.strip() and _CODE_REST.fullmatch(rest) is not None


def _begins_line(context: WordContext) -> bool:
    if not context.has_line_start:
        return False
    is_program = context.language.is_program
    if context.before.strip():
        # An element of a list in a text that begins above.
        is_element = is_program and _ELEMENT.fullmatch(context.before) is not None
        return is_element and context.after.lstrip()[:1].isalpha() and _is_text(context)
    if CLOSED.match(context.after) or context.after.strip(b"*_~.!?") == b"":
        # An element of an enumeration is a name; the tag above does not belong to it.
        above = context.line_context.before
        is_text = context.kind is TextKind.MARKUP and above.endswith(b">") and not above.endswith(b"=>")
        is_listed = _UNFINISHED.search(above) and not is_text
        return not (is_program and (is_listed or context.line_context.after[:1] in {b"}", b"|", b"="}))
    if not context.is_followed(context.after):
        return False
    if is_program:
        return _is_text(context)
    if context.kind is TextKind.TABLE or context.after[:1] not in {b" ", b"\t"}:
        return True
    if context.after.startswith((b"  ", b"\t")):
        # In a column of names.
        return _FREE.search(context.line_context.before) is not None
    above = context.line_context.before
    return _FREE.search(above) is not None or not (
        _GOES_ON.search(above) or _CONTINUES.match(context.after.lstrip())
    )
