"""Where a word such as TODO stands, and whether what follows it leaves it a mark.

Decides by the words and signs behind it: "TODO handle it" is a mark where it stands first, "TODO app" is the
name of a thing. Where it has to stand, is decided in `placeholder_words` and `placeholder_values`.

Choice: first in a comment, in upper case, only what TODO is usual for makes a name of it (an app, a list, an
item, a comment, a tracker, a board). Elsewhere more words do: those that speak of marks always, others where
they end the sentence. In lower case, where it may be the name of a variable, and at the beginning of a
line of prose, all of them. Price: now and then
one warning too many; a claim that is wrongly contradicted is worse.

No expression here repeats what repeats, and none sees more than `NEAR` bytes on either side.
"""

from __future__ import annotations

import re

from patchgate.placeholders.text_kinds import NEAR, Around, Language

ANOTHER = re.compile(rb"(?:TODO|FIXME|TBD|XXX|HACK|PLACEHOLDER|BUG|NOTE|WIP|OPTIMIZE|MISSING)S?\b")
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
_JOINED_MARK = re.compile(_JOINS + rb"[ \t]+[\"'`]?(?:" + ANOTHER.pattern + rb")|&&|\|\|")
_TICKET = re.compile(rb"[0-9]{1,8}(?:[: \t]|$)")
_SEPARATED = re.compile(rb"[/|][ \t]+")
_END = rb"(?=[ \t]*(?:$|[.!?;:)|\"'*_}<]|,$|-->))"
_WORD_END = rb"(?![\w(])"
# What makes a name of the word before it, wherever it stands: a TODO app.
_THING = rb"(?:apps?|applications?|items?|comments?|trackers?|boards?|mvc)" + _WORD_END + rb"|lists?" + _END
_IN_COMMENT = re.compile(_THING, re.IGNORECASE)
# What speaks of marks, and what TODO may be the name of where the sentence ends with it.
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
# Nouns that are verbs as well, by what follows.
_VERB = re.compile(
    rb"(?:list|comment|tag|file|note|page|mark|label|highlight|route|model|view|schema|count|format|string"
    rb"|state|rule|line|demo)[ \t]+(?:the|a|an|all|this|that|these|those|it|them|out|each|every"
    rb"|any|we|you|they|there|here|where|what|which|why|how|our|my|its|bugs?|issues?|up|next|users?)\b"
    rb"|(?:is|are|was|were)[ \t]+(?:this|that|these|those|it|there|they|we|the)\b",
    re.IGNORECASE,
)


class Place:
    """One word on one line: what stands before and after it, no more than `NEAR` bytes of each."""

    __slots__ = (
        *("after", "around", "before", "is_begun", "is_comment", "is_cut", "is_loud", "is_piece", "kind"),
        *("language", "sign", "word"),
    )

    def __init__(
        self,
        line: bytes,
        begin: int,
        start: int,
        end: int,
        stop: int,
        language: Language,
        around: Around,
        is_cut: bool = False,
        is_piece: bool = False,
    ) -> None:
        """Place the word between `start` and `end` in the piece of a line between `begin` and `stop`."""
        self.word = line[start:end]
        self.is_loud = self.word.isupper()
        self.is_begun = start - begin <= NEAR
        self.before = line[max(begin, start - NEAR) : start]
        self.after = line[end : min(stop, end + NEAR)].rstrip()
        self.around = around
        self.language = language
        self.kind = language.kind
        # Whether a string goes on behind the piece; whether it begins in one.
        self.is_cut = is_cut
        self.is_piece = is_piece
        self.is_comment = False
        # What the word depends on, behind quotes and emphasis.
        self.sign = self.before.rstrip(b" \t\"'`*_~")[-1:]

    @property
    def is_code(self) -> bool:
        """Tell whether a bare word is a name here."""
        return self.language.is_program and not self.is_comment

    def is_followed(self, after: bytes) -> bool:
        """Tell whether what follows a word that stands first leaves it a mark."""
        if CLOSED.match(after) or COLON.match(after):
            return True
        after = after.lstrip(b"*_~")
        sign, rest = after[:1], after[1:]
        if sign in {b" ", b"\t"}:
            return self._is_followed_by(rest.lstrip())
        if sign == b":":
            # The directive of reStructuredText.
            return rest.startswith(b":") and self.before.rstrip().endswith(b"..")
        if sign == b".":
            return not rest or rest[:1] in b" \t.\"'"
        if sign in {b",", b";"}:
            if self.is_loud:
                return not ANOTHER.match(rest.lstrip(b" \t\"'`"))
            return self.is_comment and rest[:1] == b" " and not _ANOTHER_SMALL.match(rest.lstrip(b" \t\"'`"))
        if sign in {b"/", b"|", b"+"} and (found := ANOTHER.match(rest)):
            return self.is_followed(rest[found.end() :])
        if sign == b"-":
            if self.is_loud and self.is_comment and _TICKET.match(rest):
                return True
            return not rest[:1].isalnum() and rest[:1] not in {b"_", b">"}
        if sign == b"(":
            return self.is_loud or not rest.startswith(b")")
        if sign == b"|":
            return self.is_in_row()
        if sign == b"}":
            return self.language.suffix == b"tex"
        return sign in {b"!", b"?", b"#", b"["} or after.startswith(_DASHES)

    def _is_followed_by(self, rest: bytes) -> bool:
        """Tell whether a word stays a mark before other words."""
        if found := ANOTHER.match(rest):
            return self.is_followed(rest[found.end() :])
        if (found := _SEPARATED.match(rest)) and (other := ANOTHER.match(rest, found.end())):
            return self.is_followed(rest[other.end() :])
        is_named = self.is_loud and self.is_comment
        if (_JOINED_MARK if is_named else _JOINED).match(rest):
            return False
        if self.word in {b"PLACEHOLDER", b"XXX"}:
            return rest[:1] not in {b"=", b"&", b"+", b"<", b"?"}
        nouns = _IN_COMMENT if is_named else _IN_PROSE if self.is_loud and self.before.strip() else _SMALL
        if nouns.match(rest) and not _VERB.match(rest):
            return False
        return is_named or rest[:1].isalnum() or rest[:1] in b"-(#@[\"'`*_:~$<" or rest[:1] >= b"\x80"

    def is_in_row(self) -> bool:
        """Tell whether a bar begins the line; elsewhere it may begin a substitution: `|XXX|`."""
        return self.is_begun and self.before.lstrip(b" \t#*/").startswith(b"|")
