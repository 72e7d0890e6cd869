"""The markers of placeholders (TODO, FIXME, `<your name>` …), built-in and custom, and the search for them.

Finds candidate lines; `placeholders.placeholder_matches`, which sees the whole file, decides what is a
placeholder. Every expression is bounded: no line can make it slow. Literals are searched one by one: 1 ms
each in 2.5 MB. A single expression for all takes fifty times as long.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property, lru_cache, reduce
from itertools import accumulate
from operator import or_

from patchgate.errors import OutOfTimeError
from patchgate.policy.content_rules import NoLimit, TimeLimit, earned_by, too_slow
from patchgate.policy.regular_expressions import literals_of
from patchgate.policy.settings import MarkerSettings
from patchgate.values import dataclass

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
    """One kind of placeholder on a line: its name, its rule, its literals and its expression.

    Every match contains one of the literals (in lower case if `ignore_case`); without literals every line is
    a candidate. The expression of a word, a bracket or a body finds candidates only.
    """

    name: str
    rule: str
    literals: tuple[bytes, ...]
    expression: re.Pattern[bytes]
    ignore_case: bool = False

    def found_in(self, line: bytes) -> bool:
        """Check whether the expression matches in a line.

        A long line is searched in overlapping windows, so that no search takes long: 4 KiB for built-in
        expressions, 64 KiB with 4 KiB of overlap for custom ones. `^` is the real beginning of the line, `$`
        also the end of a window; a CR at the end is not part of the line.
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


# The text of a hole: not a tag, type, path or usage line; it may have parentheses.
_ASKED = rb"(?:[^<>\[\]{}()=|/\r\n\"]|\([^()<>\[\]{}\r\n\"]{0,60}\)"
_THING = _ASKED + rb"){1,80}"
# The same with slashes: `<your name/title>`, but not a self-closing tag.
_CHOICE = _ASKED + rb"|/(?![>/])){1,80}"
_LOUD_REST = rb"[A-Z0-9]{1,30}(?:[_-][A-Z0-9]{1,30}){0,6}(?![A-Za-z0-9_(-])"
_WORDS = rb"TBD|TODO|FIXME|XXX|PLACEHOLDER"


def _word(word: str) -> Marker:
    """Make the marker of a word; for three words also in the case used in comments.

    The text before the word is checked last: a search for letters is faster.
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
            # Part of a host name: https://api.YOUR_DOMAIN.
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
        # Not a file name, and not a text about lorem ipsum.
        rb"(?![a-z]|\.[a-z]{2,4}\b|[ \t](?:words?|texts?|generators?|filler)\b)"
    ),
    ignore_case=True,
)
# What models write in place of code that they leave out; a lone `...` is Python.
_ELIDED = Marker(
    "elided-code",
    FILLER,
    tuple(
        dots + space + word
        for dots in (b"...", b"\xe2\x80\xa6")
        for space in (b"", b" ", b" (", b"(", b" the ", b" your ")
        for word in (b"rest of", b"remaining", b"existing", b"previous", b"unchanged")
    ),
    re.compile(
        rb"(?i)^[ \t]{0,100}+(?:\#|//|--|;|%|/\*|\{/\*|<!--)[ \t]{0,4}(?:\.\.\.|\xe2\x80\xa6)[ \t]?\(?"
        rb"(?:the |your )?(?:rest of|remaining|existing|previous|unchanged)"
        rb"(?: (?:of|the|this|your|existing|other)){0,3}"
        rb" (?:code|file|class|implementation|methods?|functions?|module|component|logic|imports)"
        rb"(?: (?:here|above|below|as (?:is|before)|goes here|unchanged|(?:remains?|stays?|is|are)"
        rb"(?: (?:the same|unchanged|as is|here))?))?"
        rb"\)?[ \t]?(?:\.{1,3}|\xe2\x80\xa6)?[ \t]?(?:\*/\}?|-->)?[ \t\r]{0,8}$"
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
    _ELIDED,
    EMPTY_BODY,
    NOT_IMPLEMENTED,
)


def _needed(markers: Sequence[Marker]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """List the literals of markers, and those in lower case; without any that contains another."""
    small = {literal for marker in markers if marker.ignore_case for literal in marker.literals}
    small = {each for each in small if not any(other in each for other in small - {each})}
    texts = {literal for marker in markers if not marker.ignore_case for literal in marker.literals}
    texts = {
        each
        for each in texts
        if not any(other in each for other in texts - {each})
        and not any(other in each.lower() for other in small)
    }
    return tuple(sorted(texts)), tuple(sorted(small))


# Merges literals, so that there are fewer searches: lower case, one kind of bracket, of hyphen, and of the
# characters that can follow a statement.
_FOLD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ[{]}-\r#\t\f\\", b"abcdefghijklmnopqrstuvwxyz<<>>_;;;;;")


def _folded(markers: Sequence[Marker], among: Sequence[Marker]) -> tuple[tuple[bytes, int], ...]:
    """List the literals to search in a folded text, each with the bits of its markers.

    A literal that contains another is left out: the other is found too.

    Args:
        markers: the markers to search.
        among: all markers; the index of a marker is that of its bit.
    """
    bits: dict[bytes, int] = {}
    for marker in markers:
        for literal in marker.literals:
            folded = literal.translate(_FOLD)
            bits[folded] = bits.get(folded, 0) | 1 << among.index(marker)
    least = [each for each in bits if not any(other in each for other in bits if other != each)]
    return tuple(
        (each, reduce(or_, (bit for other, bit in bits.items() if each in other))) for each in sorted(least)
    )


@lru_cache(maxsize=8)
def _folded_of(markers: tuple[Marker, ...]) -> tuple[tuple[tuple[bytes, int], ...], ...]:
    """List the folded literals: of all markers, without empty bodies, without any bodies.

    Most policies have the same markers, and a push can have many policies.
    """
    left_out: tuple[tuple[Marker, ...], ...] = ((), (EMPTY_BODY,), (EMPTY_BODY, NOT_IMPLEMENTED))
    return tuple(_folded([marker for marker in markers if marker not in out], markers) for out in left_out)


class Bodies(IntEnum):
    """Which function bodies to search: all, those that say that they are not implemented, none."""

    ALL = 0
    SAID = 1
    NONE = 2


class Markers:
    """The built-in and the custom markers, in this order.

    Args:
        own: the markers of `[claims] markers`; their expressions compile.
        limit: the time limit of these; None: no limit.
    """

    def __init__(self, own: Sequence[MarkerSettings] = (), limit: TimeLimit | None = None) -> None:
        self.own = tuple(own)
        self._limit = limit or NoLimit()

    @cached_property
    def all(self) -> tuple[Marker, ...]:
        """Every marker, the custom ones last."""
        return (*MARKERS, *map(_own, self.own)) if self.own else MARKERS

    @cached_property
    def _literals(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        return _needed(self.all) if self.own else _BUILT_IN

    @cached_property
    def _parts(self) -> re.Pattern[bytes]:
        """Matches a part of each literal, in lower case; measured: 13 times faster than 130 of them."""
        small = {literal.lower() for texts in self._literals for literal in texts}
        rest = (each for each in small if not any(part in each for part in _PARTS))
        return re.compile(b"|".join(map(re.escape, sorted({*_PARTS, *rest}))))

    @cached_property
    def _folded(self) -> tuple[tuple[tuple[bytes, int], ...], ...]:
        return _folded_of(self.all)

    @cached_property
    def _blind(self) -> int:
        """The bits of the markers without literals."""
        return sum(1 << place for place, marker in enumerate(self.all) if not marker.literals)

    def literals_of_all(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]] | None:
        """List literals of which one is in every change with a placeholder, each line with its LF.

        Returns:
            The literals as they are, and those to search in lower case; None if a custom expression has
            none, so that every line is a candidate.
        """
        return None if self._blind else self._literals

    def own_in(self, marker: Marker, line: bytes) -> bool:
        """Check whether a custom marker is in a line.

        Raises:
            UndecidedError: its expression took too long.
        """
        try:
            name = marker.expression.pattern
            return self._limit.run(name, lambda: marker.found_in(line), earned_by(1, len(line)))
        except OutOfTimeError:
            raise too_slow(f"the marker {marker.name} of claims.markers", self._limit) from None

    def may_suspect(self, text: bytes, start: int, stop: int) -> bool:
        """Check quickly whether `suspects` can pick a line in a part of a text."""
        if self._blind:
            return True
        # The last line may have no LF.
        piece = text[start:stop] + b"\n"
        small = piece.lower()
        if self._parts.search(small) is None:
            return False
        texts, small_texts = self._literals
        return any(each in piece for each in texts) or any(each in small for each in small_texts)

    def suspects(self, lines: Sequence[bytes]) -> list[int]:
        """Return the positions of all lines that may contain a placeholder or a placeholder body."""
        if self._blind:
            return list(range(len(lines)))
        starts = self.lines_of(b"\n".join((*lines, b"")))
        if not starts:
            return []
        begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
        return [bisect_left(begins, start) for start in sorted(starts)]

    def lines_of(self, text: bytes, bodies: Bodies = Bodies.ALL) -> dict[int, int]:
        """Find the starts of the lines that contain a literal, with the bits of its possible markers.

        Args:
            text: any text.
            bodies: which literals of bodies count.

        Returns:
            In any order. A bit is the index of a marker in `all`; a marker whose bit is not set does not
            occur on the line.
        """
        folded = text.translate(_FOLD)
        found: dict[int, int] = {}
        for literal, bits in self._folded[bodies]:
            place = folded.find(literal)
            while place >= 0:
                start = folded.rfind(b"\n", 0, place) + 1
                found[start] = found.get(start, 0) | bits
                # Continue with the next line: a literal may end with the LF of this one.
                end = folded.find(b"\n", place)
                place = folded.find(literal, end + 1) if end >= 0 else -1
        if self._blind:
            for start in (0, *(feed.end() for feed in re.finditer(b"\n", text) if feed.end() < len(text))):
                found[start] = found.get(start, 0) | self._blind
        return found


FUNCTIONS = tuple(b"def" + sign for sign in (b" ", b"\t", b"\f", b"\\"))
"""The start of a Python function: git may align its body with an old one, so that it is not an added line."""


def is_python(name: bytes) -> bool:
    """Return whether a file is searched for empty Python functions."""
    return name.lower().endswith((b".py", b".pyw"))


_BUILT_IN = _needed(MARKERS)
# Nearly every literal contains one of these.
_PARTS = (
    *(b"...", b"\xe2\x80\xa6", b"pass", b"impleme", b"your", b"insert", b"missing", b"enter", b"fill"),
    *(b"placeholder", b"lorem", b"todo", b"tbd", b"xxx", b"fixme", b"here>", b"here]"),
)


def _own(settings: MarkerSettings) -> Marker:
    """Make a custom marker."""
    pattern = settings.pattern.encode("utf-8", "surrogateescape")
    literals = literals_of(pattern)
    texts = () if literals is None else tuple(sorted(literals.texts))
    ignore_case = literals is not None and literals.ignore_case
    return Marker(settings.name, OWN, texts, re.compile(pattern), ignore_case)
