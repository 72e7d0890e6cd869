"""The kind of text in a file, by its name, and where its comments, headings, lists and cells begin.

One kind stands for many languages, so more signs begin a comment than in any one of them. Only in code does a
string hide the beginning of a comment.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache

from patchgate.values import dataclass

CONTEXT_BYTES = 200
"""The most bytes on either side of a word that are read."""


class TextKind(Enum):
    """The kind of text in a file."""

    PROSE = auto()
    DATA = auto()
    TABLE = auto()
    MARKUP = auto()
    CODE = auto()


class LineContext:
    """A line in its text, with its neighbours; the search moves one instance from line to line."""

    __slots__ = ("end", "start", "text")

    def __init__(self, text: bytes, start: int = 0, end: int = 0) -> None:
        self.text = text
        self.start = start
        self.end = end

    @property
    def before(self) -> bytes:
        """The end of the previous line, stripped; empty if there is none."""
        stop = max(0, self.start - 1)
        floor = max(0, stop - CONTEXT_BYTES)
        return self.text[max(self.text.rfind(b"\n", floor, stop) + 1, floor) : stop].strip()

    @property
    def after(self) -> bytes:
        """The beginning of the next line, stripped; empty if there is none."""
        begin = self.end + 1
        stop = self.text.find(b"\n", begin, begin + CONTEXT_BYTES)
        return self.text[begin : stop if stop >= 0 else begin + CONTEXT_BYTES].strip()


_SUFFIXES = {
    TextKind.DATA: "json json5 jsonc jsonl ndjson ipynb yaml yml toml ini cfg conf env properties sh bash zsh"
    " fish ksh bat cmd ps1 tf hcl mk cmake dockerfile makefile gitignore desktop service editorconfig",
    TextKind.TABLE: "csv tsv",
    TextKind.MARKUP: "html htm xhtml xml svg vue svelte jsx tsx hbs ejs erb jinja j2 xsl xslt plist resx",
    TextKind.CODE: "py pyi pyw js mjs cjs ts mts cts go rs java kt kts c h cc cpp cxx hh hpp hxx cs rb php"
    " swift scala sql lua hs css scss sass less dart pl pm r jl zig m mm groovy gradle ex exs erl clj cljs"
    " lisp el ml mli fs vb vbs bas asm s sol proto graphql v sv vhd vhdl f90 f95 nim d pas ada adb tcl awk"
    " cr",
}
_KINDS = {suffix.encode(): kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_SCRIPTS = frozenset(
    b"sh bash zsh fish ksh bat cmd ps1 tf hcl mk cmake dockerfile makefile gitignore".split()
)
_JSX = frozenset(b"jsx tsx vue svelte".split())
# What begins a comment at the start of a line, or directly after another beginning.
_SHARED = rb"//+!?|/\*+!?|<!--+|[rRuU]?(?:\"\"\"|''')|\{#-?|\{\{!-*|\{\{/\*|\{/\*|<%--|<%#|<#--|@\*"
_COMMENTS = {
    TextKind.PROSE: rb"%+|\.\.(?=[ \t])|\.?\\\"",
    TextKind.DATA: rb"#+|;+|(?:REM|rem|Rem)(?=[ \t])|::",
    TextKind.TABLE: rb"#+",
    TextKind.MARKUP: rb"\*+/?|#+",
    TextKind.CODE: rb"#+[!|:]?|\*+/?|--+(?:\[=*\[)?|;+|%+|\(\*+|\{-|(?:REM|rem|Rem)(?=[ \t])|=begin(?=[ \t])",
}
# What may precede the first word of a comment, a heading, a list element, a quotation, a cell: signs,
# numbers, bullets, boxes, emoji, tags.
_ELEMENT = (
    rb"[-+*>|=~#!]+|\xe2(?:\x80[\x90-\x97\xa0-\xa7]|[\x81-\xbf][\x80-\xbf])(?:\xef\xb8\x8f)?|\xc2\xb7"
    rb"|\xf0\x9f[\x80-\xbf]{2}|[0-9]{1,4}(?:\.[0-9]{1,4}){1,5}[.):]?|[0-9]{1,4}[.):]|[A-Za-z][.)]"
    rb"|[ivxlcIVXLC]{2,6}[.)]|\([0-9A-Za-z]{1,4}\)|\[[ xX]?\]|_{1,3}"
    rb"|<(?:p|li|td|th|h[1-6]|b|i|em|strong|div|span|dd|dt|br) ?/?>"
)
_DEFINITION = rb"|:(?=[ \t])"
_TEX = (
    rb"|\\(?:(?:sub){0,2}section|(?:sub)?paragraph|chapter|part|title|caption|item|footnote|textbf|textit|emph"
    rb"|underline|hl|textcolor\{[a-z]{1,20}\})\*?(?:\[[^\[\]]{0,40}\])?[ \t]*\{?"
)
# What begins a comment after other text.
_BEHIND = re.compile(
    rb"(?:^|(?<=[ \t;,)}\](\[{>]))(?:#+|//+|/\*+|<!--+|[rRuU]?\"\"\"|[rRuU]?'''|\{#-?|\(\*+|\{-(?![-}]))"
)
# What else begins a comment in some languages: at the start of a line, and after other text.
_OF_SUFFIX = {
    suffix: (first, re.compile(behind))
    for suffixes, first, behind in (
        (b"sql lua hs ada adb vhd vhdl", b"", rb"--+"),
        (b"ini cfg conf asm s lisp el clj cljs", b"", rb"(?<=[ \t]);+"),
        (b"tex erl m", b"", rb"(?<!\\)%+"),
        (b"vb vbs bas", rb"|'+", rb"(?<=[ \t])'+"),
        (b"f90 f95", rb"|!+", rb"(?<=[ \t])!+"),
    )
    for suffix in suffixes.split()
}
_STRING = re.compile(rb"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`")
_TRIPLE = re.compile(rb"\"\"\"|'''")
_MOST_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Language:
    """What is known about a file by its name.

    Args:
        kind: the kind of text.
        suffix: the part after the last dot of the path, or the last component, in lower case.
        comment: what begins a comment at the start of a line.
        opener: what may precede the first word of a comment, a heading, a list element, a cell.
        behind: what begins a comment after other text.
    """

    kind: TextKind
    suffix: bytes
    comment: re.Pattern[bytes]
    opener: re.Pattern[bytes]
    behind: tuple[re.Pattern[bytes], ...]

    @property
    def is_program(self) -> bool:
        """Whether a bare word is a name in it."""
        return self.kind is TextKind.CODE or self.kind is TextKind.MARKUP

    @property
    def is_script(self) -> bool:
        """Whether it is a program with the comment syntax of data."""
        return self.suffix in _SCRIPTS

    @property
    def is_jsx(self) -> bool:
        """Whether markup and code are mixed."""
        return self.suffix in _JSX

    @property
    def in_strings(self) -> Language:
        """The language of a string after a line break: prose; in a notebook also code."""
        return _language_of(b"yaml" if self.suffix == b"ipynb" else b"")


def language_of(name: bytes) -> Language:
    """Return the language of a file by its name; an unknown suffix is prose."""
    return _language_of(name.rpartition(b"/")[2].rpartition(b".")[2].lower()[:20])


@lru_cache(maxsize=1024)
def _language_of(suffix: bytes) -> Language:
    kind = _KINDS.get(suffix, TextKind.PROSE)
    first, behind = _OF_SUFFIX.get(suffix, (b"", None))
    comment = _SHARED + b"|" + _COMMENTS[kind] + first
    element = (
        _ELEMENT + (_DEFINITION if kind is TextKind.PROSE else b"") + (_TEX if suffix == b"tex" else b"")
    )
    return Language(
        kind=kind,
        suffix=suffix,
        comment=re.compile(comment),
        opener=re.compile(comment + b"|" + element),
        behind=(_BEHIND,) if behind is None else (_BEHIND, behind),
    )


def detect_comment(
    before: bytes, language: Language, has_line_start: bool, after: bytes
) -> tuple[bool, bool]:
    """Return whether a word is in a comment, and whether it is first.

    It is first if only openers precede it: those of a comment, in prose and data also of headings, lists,
    cells.

    Args:
        before: the text before the word on its line.
        language: that of the file.
        has_line_start: whether `before` starts at the beginning of the line.
        after: the text after the word.
    """
    is_comment = False
    if has_line_start:
        is_comment, is_first = _tokens(before, language)
        if is_first:
            return is_comment, True
    for expression in language.behind:
        for found in expression.finditer(before):
            if language.kind is TextKind.CODE and is_in_string(before[: found.start()], after):
                continue
            # In prose, `#` may precede a number or end a heading.
            is_comment = is_comment or language.kind is not TextKind.PROSE or found[0] != b"#"
            if _only_openers(before, found.end(), language):
                return is_comment, True
    return is_comment, False


def is_in_string(before: bytes, after: bytes) -> bool:
    """Return whether a word in a line of code is in a string of double quotes that closes after it.

    Where the quotes before do not pair and no other follows, they were something else: the end of a string
    that began above or before the visible part, or an expression that contains one.
    """
    is_possible = b'"' in before and b'"' in after
    return is_possible and b'"' in without_strings(before) and b'"' in without_strings(after)


def without_strings(code: bytes) -> bytes:
    """Remove the strings from a line of code; one that is not closed stays."""
    return _STRING.sub(b"", _TRIPLE.sub(b"", code))


def _tokens(before: bytes, language: Language) -> tuple[bool, bool]:
    """Return whether a line begins with a comment, and whether it has only openers."""
    place = _skip(before, 0)
    if found := language.comment.match(before, place):
        return True, _only_openers(before, found.end(), language)
    if language.kind is TextKind.CODE or place == len(before):
        return False, False
    if (found := language.opener.match(before, place)) is None:
        return False, False
    place = _skip(before, found.end())
    if found := language.comment.match(before, place):
        return True, _only_openers(before, found.end(), language)
    return False, _only_openers(before, place, language)


def _only_openers(before: bytes, place: int, language: Language) -> bool:
    for _ in range(_MOST_TOKENS):
        place = _skip(before, place)
        if place == len(before):
            return True
        found = language.opener.match(before, place)
        if found is None:
            return False
        place = found.end()
    return False


def _skip(text: bytes, place: int) -> int:
    return len(text) - len(text[place:].lstrip(b" \t"))
