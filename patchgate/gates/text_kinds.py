"""What kind of text a file holds by its name, and where its comments, headings, lists and cells begin.

Decides where on a line a word stands, for the words that can be marks. A kind stands for many languages, so
what begins a comment is taken generously; what a string hides is looked at in code alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

NEAR = 200
"""So many bytes on either side of a word are looked at."""


class Kind(Enum):
    """What kind of text a file holds."""

    PROSE = auto()
    DATA = auto()
    TABLE = auto()
    MARKUP = auto()
    CODE = auto()

    @property
    def is_program(self) -> bool:
        """Tell whether a bare word is a name there."""
        return self in {Kind.CODE, Kind.MARKUP}


@dataclass(frozen=True, slots=True)
class Around:
    """A line in its text: where it begins and ends."""

    text: bytes
    start: int
    end: int

    @property
    def before(self) -> bytes:
        """What ends the line before, without spaces at its ends; empty if there is none."""
        stop = max(0, self.start - 1)
        floor = max(0, stop - NEAR)
        return self.text[max(self.text.rfind(b"\n", floor, stop) + 1, floor) : stop].strip()

    @property
    def after(self) -> bytes:
        """What begins the line after, without spaces at its ends; empty if there is none."""
        begin = self.end + 1
        stop = self.text.find(b"\n", begin, begin + NEAR)
        return self.text[begin : stop if stop >= 0 else begin + NEAR].strip()


_SUFFIXES = {
    Kind.DATA: "json json5 jsonc jsonl ndjson yaml yml toml ini cfg conf env properties sh bash zsh fish ksh"
    " bat cmd ps1 tf hcl mk cmake dockerfile makefile gitignore desktop service editorconfig",
    Kind.TABLE: "csv tsv",
    Kind.MARKUP: "html htm xhtml xml svg vue svelte jsx tsx hbs ejs erb jinja j2 xsl xslt plist resx",
    Kind.CODE: "py pyi pyw js mjs cjs ts mts cts go rs java kt kts c h cc cpp cxx hh hpp hxx cs rb php swift"
    " scala sql lua hs css scss sass less dart pl pm r jl zig m mm groovy gradle ex exs erl clj cljs lisp el"
    " ml mli fs vb vbs bas asm s sol proto graphql v sv vhd vhdl f90 f95 nim d pas ada adb tcl awk cr",
}
_KINDS = {suffix.encode(): kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}


def suffix_of(name: bytes) -> bytes:
    """Give what follows the last dot of a path, or the whole last component, in lower case."""
    return name.rpartition(b"/")[2].rpartition(b".")[2].lower()


def kind_of(name: bytes) -> Kind:
    """Tell the kind of a file by its name; what is not known is prose."""
    return _KINDS.get(suffix_of(name), Kind.PROSE)


# What begins a comment as the first thing on a line, or follows another beginning.
_SHARED = rb"//+!?|/\*+!?|<!--+|[rRuU]?(?:\"\"\"|''')|\{#-?|\{\{!-*|\{\{/\*|\{/\*|<%--|<%#|<#--|@\*"
_COMMENTS = {
    Kind.PROSE: re.compile(_SHARED + rb"|%+|\.\.(?=[ \t])|\.?\\\""),
    Kind.DATA: re.compile(_SHARED + rb"|#+|;+|(?:REM|rem|Rem)(?=[ \t])|::"),
    Kind.TABLE: re.compile(_SHARED + rb"|#+"),
    Kind.MARKUP: re.compile(_SHARED + rb"|\*+/?|#+"),
    Kind.CODE: re.compile(
        _SHARED + rb"|#+[!|]?|\*+/?|--+(?:\[=*\[)?|;+|%+|\(\*+|\{-|(?:REM|rem|Rem)(?=[ \t])|=begin(?=[ \t])"
    ),
}
_OF_SUFFIX = {
    **dict.fromkeys((b"vb", b"vbs", b"bas"), re.compile(rb"'+")),
    **dict.fromkeys((b"f90", b"f95"), re.compile(rb"!+")),
}
# What may stand before the first word of a comment, a heading, a list element, a quotation, a cell.
_ELEMENT = re.compile(
    rb"[-+*>|=~#!]+|\xe2\x80[\xa2\x93\x94]|\xe2\x9a\xa0(?:\xef\xb8\x8f)?|[0-9]{1,4}[.):]|[A-Za-z][.)]"
    rb"|\([0-9A-Za-z]{1,3}\)|\[ ?\]|_{1,3}|<(?:p|li|td|th|h[1-6]|b|i|em|strong|div|span|dd|dt|br) ?/?>"
)
# What begins a comment behind something else.
_BEHIND = re.compile(
    rb"(?:^|(?<=[ \t;,)}\](\[{>]))(?:#+|//+|/\*+|<!--+|[rRuU]?\"\"\"|[rRuU]?'''|\{#-?|\(\*+|\{-(?![-}]))"
)
_BEHIND_OF_SUFFIX = {
    **dict.fromkeys((b"sql", b"lua", b"hs", b"ada", b"adb", b"vhd", b"vhdl"), re.compile(rb"--+")),
    **dict.fromkeys(
        (b"ini", b"cfg", b"conf", b"asm", b"s", b"lisp", b"el", b"clj", b"cljs"), re.compile(rb"(?<=[ \t]);+")
    ),
    **dict.fromkeys((b"tex", b"erl", b"m"), re.compile(rb"(?<!\\)%+")),
    **dict.fromkeys((b"vb", b"vbs", b"bas"), re.compile(rb"(?<=[ \t])'+")),
    **dict.fromkeys((b"f90", b"f95"), re.compile(rb"(?<=[ \t])!+")),
}
_STRING = re.compile(rb"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`")
_MOST_TOKENS = 12


def opening(before: bytes, kind: Kind, suffix: bytes, is_begun: bool) -> tuple[bool, bool]:
    """Tell whether what follows a piece of a line is in a comment, and whether it stands first.

    First is what only openers stand before: of a comment, in prose and data also of headings, lists, cells.

    Args:
        before: what stands before it on its line.
        kind: of the file.
        suffix: of the file, in lower case.
        is_begun: whether the piece begins with the line.
    """
    is_comment = False
    if is_begun:
        is_comment, is_first = _tokens(before, 0, kind, suffix)
        if is_first:
            return is_comment, True
    for expression in (_BEHIND, _BEHIND_OF_SUFFIX.get(suffix)):
        for found in expression.finditer(before) if expression is not None else ():
            if kind is Kind.CODE and b'"' in without_strings(before[: found.start()]):
                continue
            # In prose it may be a number or a heading's end.
            is_comment = is_comment or kind is not Kind.PROSE or before[found.start() : found.end()] != b"#"
            if _only_openers(before, found.end(), kind, suffix):
                return is_comment, True
    return is_comment, False


def without_strings(code: bytes) -> bytes:
    """Take the strings out of a line of code; one that is not closed stays."""
    return _STRING.sub(b"", code)


def _tokens(before: bytes, place: int, kind: Kind, suffix: bytes) -> tuple[bool, bool]:
    """Tell whether a line begins with a comment, and whether only openers stand before its end."""
    comments = (_COMMENTS[kind], _OF_SUFFIX.get(suffix))
    place = _skip(before, place)
    for expression in comments:
        if expression is not None and (found := expression.match(before, place)):
            return True, _only_openers(before, found.end(), kind, suffix)
    if kind is Kind.CODE or place == len(before):
        return False, False
    if (found := _ELEMENT.match(before, place)) is None:
        return False, False
    place = _skip(before, found.end())
    for expression in comments:
        if expression is not None and (found := expression.match(before, place)):
            return True, _only_openers(before, found.end(), kind, suffix)
    return False, _only_openers(before, place, kind, suffix)


def _only_openers(before: bytes, place: int, kind: Kind, suffix: bytes) -> bool:
    for _ in range(_MOST_TOKENS):
        place = _skip(before, place)
        if place == len(before):
            return True
        found = _COMMENTS[kind].match(before, place) or _ELEMENT.match(before, place)
        if found is None:
            return False
        place = found.end()
    return False


def _skip(text: bytes, place: int) -> int:
    while place < len(text) and text[place] in b" \t\f\v":
        place += 1
    return place
