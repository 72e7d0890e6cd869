"""The built-in markers: the expressions of what a placeholder looks like on a line.

Decides what each expression finds. Whether a word in brackets or alone is a mark or prose, and whether a
function has a body, is decided where the whole file is seen (`placeholders.placeholder_matches`); which
lines are searched, in `markers`. Every expression is bounded: no line can make it slow. Each begins with
what it finds, and looks behind afterwards: a search for letters is faster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WORD, BRACKET, HOLE, FILLER, BODY, OWN = (
    "placeholder-word",
    "placeholder-bracket",
    "placeholder-hole",
    "placeholder-filler",
    "placeholder-body",
    "placeholder-marker",
)
_WINDOW, _OVERLAP = 4096, 512
_OWN_WINDOW, _OWN_OVERLAP = 1 << 16, 4096


@dataclass(frozen=True, slots=True)
class Marker:
    """One kind of placeholder on a line: its name, the rule that tells of it, literals of which one is in
    every match (in lower case if `ignore_case`; none: every line is worth a look), and the expression.

    An expression of a word, a bracket or a body finds what may be one."""

    name: str
    rule: str
    literals: tuple[bytes, ...]
    expression: re.Pattern[bytes]
    ignore_case: bool = False

    def found_in(self, line: bytes) -> bool:
        """Tell whether the expression finds anything in a line.

        A long line is searched in overlapping windows, so that no expression can take long: 4 KiB for the
        built-in ones, 64 KiB with 4 KiB of overlap for the policy's own. `^` is the line's real beginning,
        `$` also the end of a window; the CR at the end of a line is none of it.
        """
        if self.rule != OWN:
            window, overlap = _WINDOW, _OVERLAP
        else:
            window, overlap = _OWN_WINDOW, _OWN_OVERLAP
            line = line.removesuffix(b"\r")
        if len(line) <= window:
            return self.expression.search(line) is not None
        for start in range(0, len(line) - overlap, window - overlap):
            if self.expression.search(line, start, start + window):
                return True
        return False


# What a hole asks for: no tag, no type, no path, no usage line; in parentheses more about it.
_ASKED = rb"(?:[^<>\[\]{}()=|/\r\n\"]|\([^()<>\[\]{}\r\n\"]{0,60}\)"
_THING = _ASKED + rb"){1,80}"
# The same of what is asked by name: `<your name/title>`, but no tag that closes itself.
_CHOICE = _ASKED + rb"|/(?![>/])){1,80}"
_LOUD_REST = rb"[A-Z0-9]{1,30}(?:[_-][A-Z0-9]{1,30}){0,6}(?![A-Za-z0-9_(-])"
_WORDS = rb"TBD|TODO|FIXME|XXX|PLACEHOLDER"


def _word(word: str) -> Marker:
    """Make the expression that finds a word; of three of them also as they are written in comments.

    What stands before is looked at last: a search for letters is faster.
    """
    is_any_case = word in {"TODO", "FIXME", "TBD"}
    forms = [form.encode() for form in ((word, word.lower(), word.title()) if is_any_case else (word,))]
    expression = b"|".join(
        form
        + rb"(?:(?![A-Za-z0-9_])(?<![A-Za-z0-9_$.]"
        + form
        + rb")"
        # With emphasis, as Markdown writes it.
        + rb"|(?=_(?![A-Za-z0-9_]))(?<=_"
        + form
        + rb")(?<![A-Za-z0-9_$.]_"
        + form
        + rb"))"
        for form in forms
    )
    literal = forms[1] if is_any_case else forms[0]
    return Marker(word.lower(), WORD, (literal,), re.compile(expression), is_any_case)


_BRACKET = Marker(
    "bracket",
    BRACKET,
    tuple(
        opening + word
        for word in (b"TBD", b"TODO", b"INSERT", b"PLACEHOLDER", b"MISSING")
        for opening in (b"[", b"[ ")
    ),
    re.compile(
        rb"\[ ?(?P<word>TBD|TODO|INSERT|PLACEHOLDER|MISSING)(?![A-Za-z0-9_])"
        rb"(?P<rest>(?:[^\[\]\r]|\[[^\[\]\r]{0,80}\]){0,200})\]"
    ),
)
_HOLES = (
    Marker(
        "angle-hole",
        HOLE,
        (
            *(b"<tbd", b"<todo", b"<fixme", b"<xxx", b"<placeholder", b"<your", b"<insert", b"<enter"),
            *(b"<fill", b"<replace", b"<add", b"here>"),
        ),
        re.compile(
            rb"<(?<![A-Za-z0-9_\\]<)(?:"
            rb"(?:" + _WORDS + rb")(?:[ \t:_-]" + _THING + rb")?"
            rb"|(?:tbd|todo|fixme|placeholder|Placeholder)(?:[ \t:]" + _THING + rb")?"
            rb"|(?:[Yy]our|YOUR)[ \t_-]" + _CHOICE + rb""
            rb"|(?:[Ii]nsert[ \t_]|INSERT[ \t_-]"
            rb"|(?:[Ee]nter|ENTER|[Ff]ill|FILL|[Rr]eplace|REPLACE|[Aa]dd|ADD)[ \t])"
            + _CHOICE
            + rb"|[A-Za-z]"
            + _THING
            + rb"[ \t_-](?:here|HERE))>"
        ),
        ignore_case=True,
    ),
    Marker(
        "square-hole",
        HOLE,
        (b"[your", b"[insert", b"[enter", b"[fill in", b"here]"),
        re.compile(
            rb"\[(?<![A-Za-z0-9_)\]\\$#!@]\[)(?:(?:[Yy]our|YOUR)[ \t_-]" + _CHOICE + rb""
            rb"|(?:[Ii]nsert|[Ee]nter|[Ff]ill[ \t]in)[ \t]"
            + _CHOICE
            + rb"|[A-Za-z]"
            + _THING
            + rb"(?:[ \t](?:here|Here)|[ \t_]HERE))\](?![(\[:{])"
        ),
        ignore_case=True,
    ),
    Marker(
        "brace-hole",
        HOLE,
        (
            *(b"tbd", b"todo", b"fixme", b"xxx", b"placeholder"),
            *(b"{your", b"{ your", b"{insert", b"{ insert", b"your_", b"your-"),
        ),
        re.compile(
            rb"\{\{(?<!\$\{\{) {0,2}(?:(?:" + _WORDS + rb"|INSERT)(?:[ :_-][A-Za-z0-9 _:,.-]{1,80})?"
            rb"|(?:[Yy]our|YOUR|[Ii]nsert)[ _-][A-Za-z0-9 _-]{1,60}?) {0,2}\}\}"
            rb"|\$\{(?:" + _WORDS + rb"|YOUR_[A-Z0-9_]{1,60})\}"
            rb"|%(?<![A-Za-z0-9_%]%)(?:TBD|TODO|FIXME|PLACEHOLDER)%(?![A-Za-z0-9_%])"
            rb"|__(?<![A-Za-z0-9_]__)(?:TBD|TODO|FIXME|PLACEHOLDER)__(?![A-Za-z0-9_])"
        ),
        ignore_case=True,
    ),
    Marker(
        "your-value",
        HOLE,
        (b"your_", b"your-"),
        re.compile(
            rb"YOUR[_-](?:(?<![A-Za-z0-9_$.-]YOUR.)|(?<=[a-z][_-]YOUR.))"
            + _LOUD_REST
            # A part of a host's name: https://api.YOUR_DOMAIN.
            + rb"|://[A-Za-z0-9.-]{1,60}\.YOUR[_-]"
            + _LOUD_REST
            + rb"|your[_-](?<![A-Za-z0-9_$.-]your.)[a-z0-9]{1,30}(?:[_-][a-z0-9]{1,30}){0,6}(?<=[_-]here)"
            rb"(?![A-Za-z0-9_(-])"
            rb"|[:=(,][ \t]{0,4}([\"'])your[_-](?:[a-z0-9]{1,30}[_-]){0,5}(?:key|token|secret|password"
            rb"|username|domain|bucket|email|url|host|org|organization|company|project|id)\1"
        ),
        ignore_case=True,
    ),
)
_LOREM = Marker(
    "lorem-ipsum",
    FILLER,
    (b"lorem ipsum", b"lorem  ipsum", b"lorem\tipsum"),
    re.compile(
        rb"(?i)lorem(?<![a-z]lorem)[ \t]{1,2}ipsum"
        # No name of a file, no talk of it.
        rb"(?![a-z]|\.[a-z]{2,4}\b|[ \t](?:words?|texts?|generators?|filler)\b)"
    ),
    ignore_case=True,
)
_STATEMENT_ENDS = (b"\n", b"\r", b";", b"#", b"\t", b"\f", b"\\")
EMPTY_BODY = Marker(
    "empty-body",
    BODY,
    tuple(
        word + space + end
        for word in (b"pass", b"...")
        for space, ends in ((b"", _STATEMENT_ENDS), (b" ", (*_STATEMENT_ENDS, b" ")))
        for end in ends
    ),
    re.compile(rb"(?:^|[:;\r])[ \t\f]*(?:pass|\.\.\.)[ \t\f]*(?:[;#\\\r]|$)"),
)
NOT_IMPLEMENTED = Marker(
    "not-implemented",
    BODY,
    (
        *(b"todo", b"fixme", b"tbd", b"not implemented", b"notimplemented", b"not_implemented"),
        *(b"not-implemented", b"unimplemented", b"yet implemented", b"been implemented"),
        b"implement me",
    ),
    re.compile(
        rb"(?<![A-Za-z0-9_])(?:todo|unimplemented)![ \t]{0,4}[(\[{]"
        rb"|(?i:not(?: yet)?(?: been)?[ _-]?implemented|unimplemented)"
        rb"|(?<![A-Za-z0-9_.])TODO\(|[(\"'`](?:TODO|FIXME|TBD)\b"
    ),
    ignore_case=True,
)
MARKERS: tuple[Marker, ...] = (
    *(_word(word) for word in ("TODO", "FIXME", "TBD", "XXX", "PLACEHOLDER")),
    _BRACKET,
    *_HOLES,
    _LOREM,
    EMPTY_BODY,
    NOT_IMPLEMENTED,
)
