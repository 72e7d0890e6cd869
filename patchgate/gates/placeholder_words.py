"""When a word such as TODO is a mark, and when it is prose.

Decides it by what stands before and after the word on its line, and by the kind of the file; of other lines
only the next ones are asked, and only where the word begins its line. A mark stands first in a comment, a
heading, a list element, a cell, or on a line; it is a whole value; or a colon follows. Everything else is
prose: "a TODO app". Where that cannot be told, it is a mark: a claim that is wrongly contradicted is worse
than one warning.

No expression here repeats what repeats, and none sees more than `NEAR` bytes on either side.
"""

from __future__ import annotations

import re

from patchgate.declared.markers import Marker
from patchgate.gates.text_kinds import NEAR, Around, Kind, kind_of, opening, suffix_of, without_strings

# A line with more of one word is a mark: that is nobody's prose.
_MOST = 500

_CLOSED = re.compile(
    rb"[*_~]{0,3}[ \t]*(?:[*_~]{1,3}[ \t]*)?(?:$|\*+/|--+>|\"\"\"|'''|#\}|%>|\*\)|-\}|\}\}"
    rb"|</[^<>]{1,40}>|<br ?/?>)"
)
_OWNER = rb"(?:\([^()\r\n]{0,80}\)|\[[^\[\]\r\n]{0,80}\]|<[^<>\r\n]{0,80}>)?"
_COLON = re.compile(rb"[*_~]{0,3}" + _OWNER + rb"[*_~]{0,3}(?::|\xef\xbc\x9a)(?![:/=])")
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
_LABEL = re.compile(
    rb"(?P<sign>:|=>|:=|=|\xef\xbc\x9a)[*_~]{0,3}(?P<space>[ \t]*)[*_~]{0,3}(?P<quote>[\"'`]?)[*_~]{0,3}$"
)
_COMPARED = re.compile(rb"[=!<>+*/|&%~^-]=$|::$|[?&][\w.-]{0,60}=$")
_VALUE_ENDS = re.compile(
    rb"[*_~]{0,3}[\"'`)\]}]{0,3}[*_~]{0,3}[ \t]*(?:$|[.!?][\"')*_]{0,3}(?:[ \t]|$)|[,;|<>}\])]|/>"
    rb"|[ \t](?:#|//|/\*|[-(])"
    rb"|\xe2\x80[\x93\x94]|\\n)"
)
_JSX = frozenset({b"jsx", b"tsx", b"vue", b"svelte"})
_LISTED = re.compile(rb"(?:[=(,+|&?:]|\b(?:return|in|yield))[ \t]*$")
_RETURNED = re.compile(rb"\breturn[ \t]+(?:[\"'`])$")
# Names whose values are words, not texts: `status = "TODO"`.
_WORDY = re.compile(
    rb"(?:status|state|stage|kind|type|label|tag|column|list|category|name|marker|keyword|word|prefix|token|todo"
    rb"|fixme|tbd|xxx|placeholder|key|value|level|pattern|section|heading|enum|default|class|id|for|href|rel)s?"
    rb"[\"'\]]{0,2}[ \t]*(?::[ \t]*[\w.\[\], ]{1,40})?[ \t]*(?:=>|:=|[:=])[ \t]*\{?[\"'`]?$",
    re.IGNORECASE,
)
_CELL = re.compile(rb"(?:^|[,;\t|])[ \t]*\"?$")
_CELL_ENDS = re.compile(rb"\"?[ \t]*(?:[,;\t|]|$)")
_BAR = re.compile(rb"\|[ \t]*[*_~]{0,3}(?P<quote>`?)$")
_BAR_ENDS = re.compile(rb"`?[*_~]{0,3}[.?!]?[ \t]*(?:\||$)")
_QUOTED = re.compile(rb"<(?:code|kbd|tt|samp)[^<>]{0,100}>$")
_TAG = re.compile(rb"<[A-Za-z/!][^<>]{0,150}>[ \t]*$")
_ASIDE = re.compile(rb"(?:^|[ \t*_\"'])\([ \t]*[*_~]{0,3}$")
_ASIDE_ENDS = re.compile(rb"[*_~]{0,3}[.?!]?[ \t]*\)")
_DASH = re.compile(rb"[^ \t][ \t]+(?:-{1,3}>?|=+>|\xe2\x80[\x93\x94]|\xe2\x86\x92)[ \t]+[*_~]{0,3}$")
_STILL = re.compile(rb"\b(?:is|are|still|remains?|currently|both|all)[ \t]+[\"'*_]{0,3}$", re.IGNORECASE)
_TITLE = re.compile(rb"[ \t]*(?:#{1,6}|[-*+]|[0-9]{1,3}[.)])[ \t]+(?:[^\s]+[ \t]+){1,5}$")
_DENIED = re.compile(
    rb"\b(?:no|not|without|never|a|an|any|the|of|as|or|and|like|use|than|word|mark|tag|write)[ \t]+$",
    re.IGNORECASE,
)

_ANOTHER = re.compile(rb"(?:TODO|FIXME|TBD|XXX|HACK|PLACEHOLDER|BUG|NOTE|WIP|OPTIMIZE)S?\b")
_JOINED = re.compile(rb"(?:and|or|vs\.?|&|\+)[ \t]+[\"'`]?[A-Z]{2,}\b|&&|\|\|")
# What makes a name of the word before it: a TODO app. Some are verbs as well, unless what follows says so.
_NOUN = re.compile(
    rb"(?:apps?|applications?|lists?|comments?|items?|markers?|marks?|tags?|entry|entries|trackers?|managers?"
    rb"|boards?|columns?|status(?:es)?|keywords?|words?|strings?|annotations?|labels?|highlight(?:s|ing|er)?"
    rb"|cards?|tickets?|plugins?|extensions?|mvc|api|cli|models?|components?|views?|controllers?|services?|schema"
    rb"|endpoints?|routes?|demo|tutorial|state|regex|patterns?|scanner|linter|checker|parser|bot|gate|rules?"
    rb"|lines?|files?|pages?|notes?|sections?|folders?|counts?|counters?|format|syntax|convention|policy|budget"
    rb"|is|are|was|were|means|counts|matches|stands)(?![\w(])",
    re.IGNORECASE,
)
_VERB = re.compile(
    rb"(?:list|comment|tag|file|note|page|mark|label|highlight|route|model|view|schema|count|format|string"
    rb"|state|rule|line|demo)[ \t]+(?:the|a|an|all|this|that|these|those|it|them|out|each|every"
    rb"|any|we|you|they|there|here|where|what|which|why|how|our|my|its|bugs?|issues?|up|next|users?)\b"
    rb"|(?:is|are|was|were)[ \t]+(?:this|that|these|those|it|there|they|we|the)\b",
    re.IGNORECASE,
)
_FREE = re.compile(rb"[.!?:;>|#*_=`)\]~-]$|^[-*+#>|]|^[0-9]{1,3}[.)]|^$|^<!--|^\xef\xbb\xbf$")
_CURLY = (b"\xe2\x80\x9c", b"\xe2\x80\x9d", b"\xe2\x80\x98", b"\xe2\x80\x99", b"\xc2\xab", b"\xc2\xbb")


def has_mark(line: bytes, around: Around, name: bytes, marker: Marker) -> bool:
    """Tell whether a word is a mark anywhere on a line.

    Args:
        line: without its LF.
        around: where it stands.
        name: of the file, whose suffix tells the kind.
        marker: that of the word.
    """
    if b"\xc2\xa0" in line:
        line = line.replace(b"\xc2\xa0", b" ")
    seen = 0
    # A lone CR ends a line for whoever wrote it.
    for part in line.split(b"\r"):
        for found in marker.expression.finditer(part):
            seen += 1
            if seen > _MOST or _Place(part, found.start(), found.end(), around, name).is_mark():
                return True
    return False


def is_name(before: bytes, after: bytes, name: bytes) -> bool:
    """Tell whether a word in brackets is a list of one name, in a program.

    Args:
        before: what stands before the brackets on their line.
        after: what stands after them.
        name: of the file.
    """
    if (
        (suffix_of(name) not in _JSX and kind_of(name) is not Kind.CODE)
        or not _LISTED.search(before)
        or without_strings(before).count(b'"') % 2
    ):
        return False
    is_comment, _ = opening(before[-NEAR:], kind_of(name), suffix_of(name), len(before) <= NEAR)
    return not is_comment and after.lstrip()[:1] in {
        b"",
        b",",
        b";",
        b")",
        b"]",
        b"}",
        b":",
        b"#",
        b"/",
        b"\r",
    }


class _Place:
    """One word on one line: what stands before and after it, no more than `NEAR` bytes of each."""

    def __init__(self, line: bytes, start: int, end: int, around: Around, name: bytes) -> None:
        self.word = line[start:end]
        self.is_loud = self.word.isupper()
        self.is_begun = start <= NEAR
        self.before = line[max(0, start - NEAR) : start]
        self.after = line[end : end + NEAR].rstrip()
        self.around = around
        self.kind = kind_of(name)
        self.suffix = suffix_of(name)
        self.is_comment = False

    def is_mark(self) -> bool:
        """Tell whether the word is a mark."""
        if self.before.endswith((b"@", b"\\")):
            return self._is_annotation()
        self.is_comment, is_first = opening(self.before, self.kind, self.suffix, self.is_begun)
        if self._is_mention():
            return self.word == b"TBD" and (self._is_value() or self._is_cell())
        if is_first and (self.is_loud or self.is_comment) and self._is_followed(self.after):
            return True
        return self.is_loud and (
            self._has_colon()
            or self._begins_line()
            or self._is_value()
            or self._is_cell()
            or self._is_text_of_tag()
            or self._is_aside()
            or self._ends_title()
        )

    def _is_annotation(self) -> bool:
        """Tell of `@todo` in a comment, and of LaTeX's `\\todo{…}`."""
        if self.before.endswith(b"\\"):
            return self.suffix == b"tex" and self.after[:1] in {b"{", b"["}
        is_comment, is_first = opening(self.before[:-1], self.kind, self.suffix, self.is_begun)
        return is_comment and is_first and self.kind is not Kind.PROSE and self.word.lower() == b"todo"

    def _is_mention(self) -> bool:
        """Tell whether the word is spoken of: in backticks, in a comment in quotes."""
        if self.kind is Kind.MARKUP and _QUOTED.search(self.before) and self.after.startswith(b"</"):
            return True
        if self.before.endswith(_CURLY) and self.after.lstrip(b":").startswith(_CURLY):
            return True
        if self.kind.is_program and not self.is_comment:
            return False
        if self.before.count(b"`") % 2 and b"`" in self.after and not self.before.endswith(b"```"):
            return True
        quote = self.before[-1:]
        is_quoted = quote in {b'"', b"'"} and self.after.lstrip(b":").startswith(quote)
        return (
            is_quoted and not self.before.endswith((b'"""', b"'''")) and (self.is_comment or self._is_prose())
        )

    def _is_prose(self) -> bool:
        return self.kind is Kind.PROSE and not _LABEL.search(self.before)

    def _is_followed(self, after: bytes) -> bool:
        """Tell whether what follows a word that stands first leaves it a mark."""
        if _CLOSED.match(after) or _COLON.match(after):
            return True
        after = after.lstrip(b"*_~")
        sign, rest = after[:1], after[1:]
        if sign in {b" ", b"\t"}:
            return self._is_followed_by(rest.lstrip())
        if sign == b":":
            # The directive of reStructuredText.
            return rest.startswith(b":") and self.before.rstrip().endswith(b"..")
        if sign == b".":
            return not rest or rest[:1] in b" \t."
        if sign in {b",", b";"}:
            return self.is_loud and not _ANOTHER.match(rest.lstrip(b" \t\"'`"))
        if sign in {b"/", b"|", b"+"} and (found := _ANOTHER.match(rest)):
            return self._is_followed(rest[found.end() :])
        if sign == b"-":
            return not rest[:1].isalnum() and rest[:1] not in {b"_", b">"}
        if sign == b"(":
            return self.is_loud or not rest.startswith(b")")
        if sign == b"|":
            return self._is_in_row()
        return sign in {b"!", b"?", b"#", b"["} or after.startswith(
            (b"\xe2\x80\x93", b"\xe2\x80\x94", b"\xe2\x80\xa6")
        )

    def _is_followed_by(self, rest: bytes) -> bool:
        """Tell whether a word stays a mark before other words."""
        if found := _ANOTHER.match(rest):
            return self._is_followed(rest[found.end() :])
        if _JOINED.match(rest):
            return False
        if self.word in {b"PLACEHOLDER", b"XXX"}:
            return rest[:1] not in {b"=", b"&", b"+", b"<", b"?"}
        if _NOUN.match(rest) and not _VERB.match(rest):
            return False
        return rest[:1].isalnum() or rest[:1] in b"-(#@[\"'`*_:~$<" or rest[:1] >= b"\x80"

    def _has_colon(self) -> bool:
        found = _COLON.match(self.after)
        if found is None and (self.is_comment or not self.kind.is_program):
            found = _COLON_APART.match(self.after)
        if found is None or (_NO_COLON_AFTER.search(self.before) and not _BOTH.search(self.before)):
            return False
        rest = self.after[found.end() :].strip()
        if rest[:1] in {b'"', b"'", b"`"} and self.before.endswith(rest[:1]):
            return False
        return not self.kind.is_program or self.is_comment or not self._is_key(rest)

    def _is_key(self, rest: bytes) -> bool:
        """Tell whether a word with a colon is a name in a program."""
        before = without_strings(self.before)
        if any(quote in before for quote in (b'"', b"'", b"`")):
            return False
        if _CODE_HEAD.match(before) or _UNFINISHED.search(before.rstrip()):
            return True
        return not before.strip() and _CODE_REST.fullmatch(rest) is not None

    def _begins_line(self) -> bool:
        if self.before.strip() or not self.is_begun:
            return False
        if _CLOSED.match(self.after) or self.after.strip(b"*_~.!?") == b"":
            # An element of an enumeration is a name.
            is_listed = _UNFINISHED.search(self.around.before) or self.around.after[:1] in {b"}", b"|", b"="}
            return not (self.kind.is_program and is_listed)
        if not self._is_followed(self.after):
            return False
        if self.kind.is_program:
            return self.after[:1] in {b" ", b"\t", b"-"} and self.after[-1:] not in {b";", b"{", b",", b"("}
        return self.kind is Kind.TABLE or _FREE.search(self.around.before) is not None

    def _is_value(self) -> bool:
        """Tell whether the word is all that is said: `Owner: TBD`, `"owner": "TBD"`."""
        if _RETURNED.search(self.before) and self.after.startswith(self.before[-1:]):
            return True
        label = _LABEL.search(self.before)
        if label is None or not _VALUE_ENDS.match(self.after):
            return False
        quote, signed = label["quote"], self.before[: label.end("sign")]
        if quote and not self.after.lstrip(b"*_~").startswith(quote):
            return False
        if _COMPARED.search(signed) or _ANOTHER.match(self.after.lstrip(b" \t,;/|\"'`")):
            return False
        if self.kind.is_program and not self.is_comment:
            return bool(quote) and not _WORDY.search(signed)
        is_apart = bool(label["space"] or quote) or (self.kind is Kind.DATA and label["sign"] == b"=")
        return is_apart and label.start() > 0

    def _is_in_row(self) -> bool:
        """Tell whether a bar begins the line; elsewhere it may begin a substitution: `|XXX|`."""
        return self.is_begun and self.before.lstrip(b" \t#*/").startswith(b"|")

    def _is_cell(self) -> bool:
        if self.kind is Kind.TABLE and _CELL.search(self.before):
            return _CELL_ENDS.match(self.after) is not None or self._is_followed(self.after)
        if self.kind.is_program and not self.is_comment:
            return False
        if self.before.endswith(b"|") and not self._is_in_row():
            return False
        return _BAR.search(self.before) is not None and _BAR_ENDS.match(self.after) is not None

    def _is_text_of_tag(self) -> bool:
        if self.kind not in {Kind.MARKUP, Kind.PROSE} and self.suffix not in {b"js", b"php"}:
            return False
        if not _TAG.search(self.before):
            return False
        return self.after.lstrip().startswith(b"<") or self._is_followed(self.after)

    def _is_aside(self) -> bool:
        """Tell of `Results (TODO)`, in prose and comments."""
        if (self.kind.is_program and not self.is_comment) or not _ASIDE.search(self.before):
            return False
        return _ASIDE_ENDS.match(self.after) is not None or (
            b")" in self.after and self._is_followed(self.after)
        )

    def _ends_title(self) -> bool:
        """Tell of `Phase 3 - TBD`, of `- Venue TBD`, and of "The date is TBD."."""
        if (self.kind.is_program and not self.is_comment) or not _VALUE_ENDS.match(self.after):
            return False
        if self.word == b"TBD" and _STILL.search(self.before):
            return True
        if self.after.strip(b"*_~.!? \t"):
            return False
        if _DASH.search(self.before):
            return True
        is_title = self.is_begun and _TITLE.match(self.before) is not None
        return is_title and self.word == b"TBD" and not _DENIED.search(self.before)
