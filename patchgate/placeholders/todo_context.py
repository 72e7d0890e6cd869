"""The text around a word such as TODO: whether it stays a mark, and whether it is the only content.

The words and signs on both sides decide: "TODO handle it" is a mark if it is first, "TODO app" is a name. A
word that is a whole value, cell, element or text of a tag is a mark. No expression here nests repetitions,
and none reads more than `CONTEXT_BYTES` on either side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from patchgate.placeholders.comment_syntax import (
    CONTEXT_BYTES,
    Language,
    LineContext,
    TextKind,
    detect_comment,
)

OTHER_MARK = re.compile(rb"(?:TODO|FIXME|TBD|XXX|HACK|PLACEHOLDER|BUG|NOTE|WIP|OPTIMIZE|MISSING)S?\b")
_ANOTHER_SMALL = re.compile(rb"(?:todo|fixme|tbd|xxx|hack|placeholder|bug|note|wip)s?\b", re.IGNORECASE)
CLOSED = re.compile(
    rb"[*_~]{0,3}[ \t]*(?:[*_~]{1,3}[ \t]*)?(?:$|\*+/|--+>|\"\"\"|'''|#\}|%>|\*\)|-\}|\}\}"
    rb"|</[^<>]{1,40}>|<br ?/?>)"
)
_OWNER = rb"(?:\([^()\r\n]{0,80}\)|\[[^\[\]\r\n]{0,80}\]|<[^<>\r\n]{0,80}>)?"
COLON = re.compile(rb"[*_~]{0,3}" + _OWNER + rb"[*_~]{0,3}(?::|\xef\xbc\x9a)(?![:/=])")
_DASHES = (b"\xe2\x80\x93", b"\xe2\x80\x94", b"\xe2\x80\xa6")
_JOINS = rb"(?:and|or|vs\.?|&|\+|/|\|)"
_JOINED = re.compile(_JOINS + rb"[ \t]+[\"'`]?[A-Z]{2,}\b|&&|\|\|")
_JOINED_MARK = re.compile(_JOINS + rb"[ \t]+[\"'`]?(?:" + OTHER_MARK.pattern + rb")|&&|\|\|")
_TICKET = re.compile(rb"[0-9]{1,8}(?:[: \t]|$)")
_SEPARATED = re.compile(rb"[/|][ \t]+")
_END = rb"(?=[ \t]*(?:$|[.!?;:)|\"'*_}<]|,$|-->))"
_WORD_END = rb"(?![\w(])"
# What makes the word before it a name, everywhere: a TODO app.
_THING = rb"(?:apps?|applications?|items?|comments?|trackers?|boards?|mvc)" + _WORD_END + rb"|lists?" + _END
_IN_COMMENT = re.compile(_THING, re.IGNORECASE)
# Words about marks; and nouns that TODO may name, where the sentence ends with them.
_MARKS = (
    rb"|(?:lists?|markers?|marks?|tags?|entry|entries|managers?|columns?|status(?:es)?|keywords?|words?|strings?"
    rb"|annotations?|highlight(?:s|ing|er)?|cards?|tickets?|plugins?|extensions?|scanner|linter|checker|bot|gate"
    rb"|syntax|convention|is|are|was|were|means|counts|matches|stands)"
)
_OTHERS = (
    rb"|(?:labels?|api|cli|models?|components?|views?|controllers?|services?|schema|endpoints?|routes?|demo"
    rb"|tutorial|state|regex|patterns?|parser|rules?|lines?|files?|pages?|notes?|sections?|folders?|counts?"
    rb"|counters?|format|policy|budget)"
)
_IN_PROSE = re.compile(_THING + _MARKS + _WORD_END + _OTHERS + _END, re.IGNORECASE)
_SMALL = re.compile(_THING + _MARKS + _WORD_END + _OTHERS + _WORD_END, re.IGNORECASE)
# Nouns that are also verbs, by what follows.
_VERB = re.compile(
    rb"(?:list|comment|tag|file|note|page|mark|label|highlight|route|model|view|schema|count|format|string"
    rb"|state|rule|line|demo)[ \t]+(?:the|a|an|all|this|that|these|those|it|them|out|each|every"
    rb"|any|we|you|they|there|here|where|what|which|why|how|our|my|its|bugs?|issues?|up|next|users?)\b"
    rb"|(?:is|are|was|were)[ \t]+(?:this|that|these|those|it|there|they|we|the)\b",
    re.IGNORECASE,
)


class LineSegment(NamedTuple):
    """The part of a line that has a word; whether a string continues after it, or contains it."""

    begin: int
    end: int
    is_cut: bool = False
    is_string: bool = False


class WordContext:
    """One word on one line, with `CONTEXT_BYTES` before and after it in its segment."""

    __slots__ = (
        *(
            "after",
            "line_context",
            "before",
            "has_line_start",
            "is_comment",
            "is_cut",
            "is_upper",
            "is_string_segment",
            "kind",
        ),
        *("language", "sign", "word"),
    )

    def __init__(
        self,
        *,
        line: bytes,
        start: int,
        end: int,
        segment: LineSegment,
        language: Language,
        line_context: LineContext,
    ) -> None:
        self.word = line[start:end]
        self.is_upper = self.word.isupper()
        self.has_line_start = start - segment.begin <= CONTEXT_BYTES
        self.before = line[max(segment.begin, start - CONTEXT_BYTES) : start]
        self.after = line[end : min(segment.end, end + CONTEXT_BYTES)].rstrip()
        self.line_context = (
            LineContext(line, segment.begin, segment.end) if segment.is_string else line_context
        )
        self.language = language.in_strings if segment.is_string else language
        self.kind = self.language.kind
        self.is_cut = segment.is_cut
        self.is_string_segment = segment.is_string
        self.is_comment = False
        # The last sign before the word, without quotes and emphasis.
        self.sign = self.before.rstrip(b" \t\"'`*_~")[-1:]

    @property
    def is_code(self) -> bool:
        """Whether a bare word is a name here."""
        return self.language.is_program and not self.is_comment

    def is_followed(self, after: bytes) -> bool:
        """Return whether a word that is first stays a mark before this text."""
        if CLOSED.match(after) or COLON.match(after):
            return True
        after = after.lstrip(b"*_~")
        sign, rest = after[:1], after[1:]
        if sign in {b"/", b"|", b"+"} and (found := OTHER_MARK.match(rest)):
            return self.is_followed(rest[found.end() :])
        leaves = _BEHIND.get(sign)
        return leaves(self, rest) if leaves is not None else after.startswith(_DASHES)

    def is_followed_by_words(self, rest: bytes) -> bool:
        """Return whether a word stays a mark before other words."""
        if found := OTHER_MARK.match(rest):
            return self.is_followed(rest[found.end() :])
        if (found := _SEPARATED.match(rest)) and (other := OTHER_MARK.match(rest, found.end())):
            return self.is_followed(rest[other.end() :])
        is_named = self.is_upper and self.is_comment
        if (_JOINED_MARK if is_named else _JOINED).match(rest):
            return False
        if self.word in {b"PLACEHOLDER", b"XXX"}:
            return rest[:1] not in {b"=", b"&", b"+", b"<", b"?"}
        nouns = _IN_COMMENT if is_named else _IN_PROSE if self.is_upper and self.before.strip() else _SMALL
        if nouns.match(rest) and not _VERB.match(rest):
            return False
        return is_named or rest[:1].isalnum() or rest[:1] in b"-(#@[\"'`*_:~$<" or rest[:1] >= b"\x80"

    def is_in_row(self) -> bool:
        """Return whether a bar begins the line; elsewhere it may begin a substitution: `|XXX|`."""
        return self.has_line_start and self.before.lstrip(b" \t#*/").startswith(b"|")


def _is_before_words(context: WordContext, rest: bytes) -> bool:
    return context.is_followed_by_words(rest.lstrip())


def _is_before_more(context: WordContext, rest: bytes) -> bool:
    """Match "TODO, then …", but not "TODO, FIXME"."""
    more = rest.lstrip(b" \t\"'`")
    if context.is_upper:
        return not OTHER_MARK.match(more)
    return context.is_comment and rest[:1] == b" " and not _ANOTHER_SMALL.match(more)


def _is_before_dash(context: WordContext, rest: bytes) -> bool:
    if context.is_upper and context.is_comment and _TICKET.match(rest):
        return True
    return not rest[:1].isalnum() and rest[:1] not in {b"_", b">"}


def _always(context: WordContext, rest: bytes) -> bool:
    return True


# Whether a word that is first stays a mark before each sign; besides these, only before dashes.
_BEHIND: Mapping[bytes, Callable[[WordContext, bytes], bool]] = {
    **dict.fromkeys((b" ", b"\t"), _is_before_words),
    # The directive of reStructuredText.
    b":": lambda context, rest: rest.startswith(b":") and context.before.rstrip().endswith(b".."),
    b".": lambda context, rest: rest[:1] in b" \t.\"'",
    **dict.fromkeys((b",", b";"), _is_before_more),
    b"-": _is_before_dash,
    b"(": lambda context, rest: context.is_upper or not rest.startswith(b")"),
    b"|": lambda context, rest: context.is_in_row(),
    b"}": lambda context, rest: context.language.suffix == b"tex",
    **dict.fromkeys((b"!", b"?", b"#", b"["), _always),
}


class _Sides(NamedTuple):
    """A pattern for the text before a word, and one for the text after it."""

    before: re.Pattern[bytes]
    after: re.Pattern[bytes]

    def fit(self, context: WordContext) -> bool:
        """Return whether both patterns match."""
        return self.before.search(context.before) is not None and self.after.match(context.after) is not None


_LABEL = re.compile(
    rb"(?P<sign>:|=>|:=|=|\xef\xbc\x9a)[*_~]{0,3}(?P<space>[ \t]*)(?:[!&][^ \t]{0,40}[ \t]+){0,2}"
    rb"[*_~]{0,3}(?P<quote>[\"'`]?)[*_~ ]{0,3}$"
)
_COMPARED = re.compile(rb"[=!<>+*/|&%~^-]=$|[?&][\w.-]{0,60}=$")
_PATH = re.compile(rb"::$")
_VALUE_ENDS = re.compile(
    rb"[*_~]{0,3}[\"'`)\]}]{0,3}[*_~]{0,3}[ \t]*(?:$|[.!?][\"')*_]{0,3}(?:[ \t]|$)|[,;|<>}\])]|/>"
    rb"|[ \t](?:#|//|/\*|[-(])"
    rb"|\xe2\x80[\x93\x94])"
)
_RETURNED = re.compile(rb"\breturn[ \t]+(?:[\"'`])$")
# Names whose values are words, not texts: `status = "TODO"`.
_WORDY = re.compile(
    rb"(?:status|state|stage|kind|type|label|tag|column|list|category|name|marker|keyword|word|prefix|token|todo"
    rb"|fixme|tbd|xxx|placeholder|key|value|level|pattern|section|heading|enum|default|class|id|for|href|rel)s?"
    rb"[\"'\]]{0,2}[ \t]*(?::[ \t]*[\w.\[\], ]{1,40})?[ \t]*(?:=>|:=|[:=])[ \t]*\{?[\"'`]?$",
    re.IGNORECASE,
)
_NAMED = re.compile(rb"[ \t]*(?:[-*+>][ \t]+){0,3}[A-Z][\w ]{0,40}:$")
_TEXT_ENDS = re.compile(rb"[ \t]*(?:</|<br\b)")
# `owner "TBD";`, in the config of a server.
_DIRECTIVE = _Sides(re.compile(rb"\A[ \t]*[\w.-]{1,60}[ \t]+[\"']?$"), re.compile(rb"[\"']?[ \t]*;?$"))
_CONFIGS = frozenset({b"conf", b"cfg"})
_VALUES = re.compile(rb"\bvalues\b|^[ \t]*\(", re.IGNORECASE)
_ROW = _Sides(re.compile(rb"[(,][ \t]*[\"']$"), re.compile(rb"[\"'][ \t]*[,)]"))
_CELL = re.compile(rb"(?:^|[,;\t|])[ \t]*[\"']?$")
_CELL_ENDS = re.compile(rb"[\"']?[ \t]*(?:[,;\t|]|$)")
_BAR = re.compile(rb"\|[ \t]*[*_~]{0,3}(?P<quote>`?)$")
_BAR_ENDS = re.compile(rb"`?[*_~]{0,3}[.?!]?[ \t]*(?:\||$)")
_TAG = re.compile(rb"<[A-Za-z/!][^<>]{0,150}>(?:[ \t]|&#?\w{1,8};){0,12}$")
_COMMAND = _Sides(
    re.compile(rb"\\(?:textbf|textit|emph|underline|hl|footnote|caption|textcolor\{[a-z]{1,20}\})\{[ \t]*$"),
    re.compile(rb"\}"),
)
_ASIDE = re.compile(rb"(?:^|[ \t*_\"'])\([ \t]*[*_~]{0,3}$")
_ASIDE_ENDS = re.compile(rb"[*_~]{0,3}[.?!]?[ \t]*\)")
_DASH = re.compile(rb"[^ \t][ \t]{1,8}(?:-{1,3}>?|=+>|\xe2\x80[\x93\x94]|\xe2\x86\x92)[ \t]+[*_~]{0,3}$")
_STILL = re.compile(rb"\b(?:is|are|still|remains?|currently|both|all)[ \t]+[\"'*_]{0,3}$", re.IGNORECASE)
_TITLE = re.compile(rb"[ \t]*(?:#{1,6}|[-*+]|[0-9]{1,3}[.)])[ \t]+(?:[^\s]+[ \t]+){1,5}$")
_DENIED = re.compile(
    rb"\b(?:no|not|without|never|a|an|any|the|of|as|or|and|like|use|than|word|mark|tag|write)[ \t]+$",
    re.IGNORECASE,
)
_WRAPPED = _Sides(
    re.compile(rb"\A(?:[ \t\"'{}()<>*_~]|\xe2\x80[\x98-\x9f]|\xc2[\xab\xbb]){0,12}\Z"),
    re.compile(rb"(?:[ \t\"'{}()<>*_~.!?]|\xe2\x80[\x98-\x9f]|\xc2[\xab\xbb]){0,12}\Z"),
)
_LISTED = re.compile(rb"(?P<mark>[\[,])[ \t]*(?P<quote>[\"']?)$")
_LIST_BEGINS = re.compile(rb"(?:^|[:=(\[{-])[ \t]*$")
_LISTED_ENDS = re.compile(rb"[\"']?[ \t]*(?:,|\]|$)")
_ONLY_ENDS = re.compile(rb"[\"']?[ \t]*\]")
_LINE_ENDS = re.compile(rb"[\"'][ \t]*,?")
_SIGNS_OF_VALUE = frozenset({b":", b"=", b">", b"\x9a"})
_SIGNS_OF_DASH = frozenset({b"-", b">", b"\x92", b"\x93", b"\x94"})


def is_alone(context: WordContext) -> bool:
    """Return whether a line of prose has only this word, quotes and brackets."""
    return (
        context.kind is TextKind.PROSE
        and not context.is_string_segment
        and len(context.before) <= 12
        and _WRAPPED.fit(context)
    )


def is_value(context: WordContext) -> bool:
    """Return whether a word is a value: `Owner: TBD`, `"owner": "TBD"`; in data also the beginning of one."""
    label = _LABEL.search(context.before)
    if label is None:
        return context.language.suffix in _CONFIGS and context.has_line_start and _DIRECTIVE.fit(context)
    quote, signed, after = label["quote"], context.before[: label.end("sign")], context.after
    if _COMPARED.search(signed) or (context.kind is not TextKind.PROSE and _PATH.search(signed)):
        return False
    if not _VALUE_ENDS.match(after):
        return _begins_value(context, quote) if label.start() else False
    if quote and not after.lstrip(b"*_~ ").startswith(quote):
        return _begins_value(context, quote) or (context.is_cut and not after)
    if OTHER_MARK.match(after.lstrip(b" \t,;/|\"'`")):
        return False
    if context.is_code:
        if quote:
            return context.word == b"TBD" or not _WORDY.search(signed)
        return label["sign"] == b":" and bool(label["space"]) and _TEXT_ENDS.match(after) is not None
    is_apart = bool(label["space"] or quote) or (context.kind is TextKind.DATA and label["sign"] == b"=")
    return label.start() > 0 and (is_apart or _is_named(context, signed))


def _is_named(context: WordContext, signed: bytes) -> bool:
    """Match `Owner:TBD`."""
    return (
        context.kind is TextKind.PROSE
        and not context.after.strip(b"*_~.!?")
        and (context.word == b"TBD" or (context.has_line_start and _NAMED.fullmatch(signed) is not None))
    )


def _begins_value(context: WordContext, quote: bytes) -> bool:
    """Match `owner: TODO ask Ann`, in data."""
    if context.kind is not TextKind.DATA or context.language.is_script or context.word == b"XXX":
        return False
    after = context.after
    if quote:
        after, closing, rest = after.partition(quote)
        if closing and rest.lstrip().startswith(b":"):
            return False
    return context.is_followed(after.rstrip(b"\\ "))


def is_element(context: WordContext) -> bool:
    """Match `["TBD"]`: TBD in any list, another word where it is the only element."""
    is_sure = context.word == b"TBD"
    if (found := _LISTED.search(context.before)) is None:
        return _is_line_of_list(context, is_sure)
    if not _LISTED_ENDS.match(context.after) and not (context.is_cut and not context.after):
        return False
    within = context.before[: found.start() + 1]
    if is_sure:
        begin = within.rfind(b"[")
        is_bare = begin > within.rfind(b"]") and _LIST_BEGINS.search(within[:begin]) is not None
        return bool(found["quote"]) or is_bare
    is_only = found["mark"] == b"[" and _ONLY_ENDS.match(context.after) is not None
    return is_only and not _WORDY.search(within[:-1])


def _is_line_of_list(context: WordContext, is_sure: bool) -> bool:
    """Match a line that is one element."""
    if context.before.strip() not in {b'"', b"'"} or not _LINE_ENDS.fullmatch(context.after):
        return False
    above = context.line_context.before
    if is_sure or not above.endswith(b"["):
        return is_sure
    return context.line_context.after.startswith(b"]") and not _WORDY.search(above[:-1])


def _begins_string(context: WordContext) -> bool:
    """Match `["TODO fix it"]` and `"# TODO fix it"`: what begins a text in a list of texts."""
    begin = context.before.rfind(b'"')
    within = context.before[begin + 1 :]
    if begin < 0 or within.lstrip()[:1] in {b",", b":", b"]", b"}"}:
        return False
    if context.has_line_start and (context.before.count(b'"') - context.before.count(b'\\"')) % 2 == 0:
        return False
    after, closing, rest = context.after.partition(b'"')
    if (closing and rest.lstrip().startswith(b":")) or context.word == b"XXX":
        return False
    after = after.rstrip(b"\\ ")
    if not within.strip():
        return after.strip(b".,!? ") != b"" and context.is_followed(after)
    return detect_comment(within, context.language.in_strings, True, b"")[1] and context.is_followed(after)


def is_cell(context: WordContext) -> bool:
    """Return whether a word is a cell of a table, or begins one."""
    if context.kind is TextKind.TABLE and _CELL.search(context.before):
        return _CELL_ENDS.match(context.after) is not None or context.is_followed(context.after)
    bar = _BAR.search(context.before)
    if context.is_code or bar is None or (context.before.endswith(b"|") and not context.is_in_row()):
        return False
    if _BAR_ENDS.match(context.after):
        return True
    cell, closing, _ = context.after.partition(b"|")
    return bool(closing) and not bar["quote"] and context.is_in_row() and context.is_followed(cell.rstrip())


def _is_in_values(context: WordContext) -> bool:
    """Match `VALUES (1, 'TODO')`; a row on a separate line may belong to an enumeration."""
    if context.language.suffix != b"sql" or not _ROW.fit(context):
        return False
    found = _VALUES.search(context.before)
    return found is not None and (context.word == b"TBD" or not found[0].endswith(b"("))


def _is_text_of_tag(context: WordContext) -> bool:
    suffix = context.language.suffix
    if suffix == b"tex":
        return _COMMAND.fit(context)
    is_marked_up = context.kind in {TextKind.MARKUP, TextKind.PROSE} or suffix in {b"js", b"php"}
    if not is_marked_up or not _TAG.search(context.before):
        return False
    return context.after.lstrip().startswith(b"<") or context.is_followed(context.after)


def _is_returned(context: WordContext) -> bool:
    is_quoted = context.before.endswith((b'"', b"'", b"`")) and context.after.startswith(context.before[-1:])
    return is_quoted and _RETURNED.search(context.before) is not None


def _is_aside(context: WordContext) -> bool:
    """Match `Results (TODO)`, in prose and comments."""
    if context.is_code or not _ASIDE.search(context.before):
        return False
    return _ASIDE_ENDS.match(context.after) is not None or (
        b")" in context.after and context.is_followed(context.after)
    )


def _ends_title(context: WordContext) -> bool:
    """Match `Phase 3 - TBD`, of `- Venue TBD`, and of "The date is TBD."."""
    is_sure = context.word == b"TBD"
    if not is_sure and context.sign not in _SIGNS_OF_DASH:
        return False
    if context.is_code or not _VALUE_ENDS.match(context.after):
        return False
    if is_sure and _STILL.search(context.before):
        return True
    if context.after.strip(b"*_~.!? \t"):
        return False
    if _DASH.search(context.before):
        return True
    is_title = is_sure and context.has_line_start and _TITLE.match(context.before) is not None
    return is_title and not _DENIED.search(context.before)


def _is_listed(context: WordContext) -> bool:
    return not context.language.is_script and (is_element(context) or _begins_string(context))


# The checks whether a word is the only content, each with the signs before it or the kinds of text where
# it applies. The kinds are tuples, because enumerations hash slowly.
_ONLY_CONTENT: tuple[tuple[frozenset[bytes], tuple[TextKind, ...], Callable[[WordContext], bool]], ...] = (
    (_SIGNS_OF_VALUE, (TextKind.DATA,), is_value),
    (frozenset(), (TextKind.DATA,), _is_listed),
    (frozenset({b"", b"|", b",", b";"}), (TextKind.TABLE,), is_cell),
    (frozenset({b"(", b","}), (), _is_in_values),
    (frozenset({b">", b";", b"{"}), (), _is_text_of_tag),
    (frozenset({b"("}), (), _is_aside),
    (frozenset(), tuple(TextKind), _is_returned),
    (frozenset(), tuple(TextKind), _ends_title),
)


def is_only_content(context: WordContext) -> bool:
    """Return whether a word in upper case is the only content of its value, cell, tag or aside."""
    return any(
        tells(context)
        for signs, kinds, tells in _ONLY_CONTENT
        if context.sign in signs or context.kind in kinds
    )
