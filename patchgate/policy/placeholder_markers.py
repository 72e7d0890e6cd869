"""The markers of placeholders, built in and the policy's own, and which lines of a text are worth a look.

Whether what an expression finds is a placeholder is decided where the whole file is seen
(`placeholders.placeholder_matches`). Every expression is bounded: no line can make it slow. The searches for
literals are plain ones, a millisecond for each in 2.5 MB; one expression for all takes fifty times that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, reduce
from itertools import accumulate
from operator import or_

from patchgate.errors import OutOfTimeError
from patchgate.policy.content_rules import NoLimit, TimeLimit, earned_by, too_slow
from patchgate.policy.regular_expressions import literals_of
from patchgate.policy.settings import MarkerSettings

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


def _needed(markers: Sequence[Marker]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """List the literals of markers, and those that stand in text of lower case; none that holds another."""
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


# Makes one literal of many, so that there are fewer to search: small letters, one kind of bracket, of hyphen,
# and of what may follow a statement.
_FOLD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ[{]}-\r#\t\f\\", b"abcdefghijklmnopqrstuvwxyz<<>>_;;;;;")


def _folded(markers: Sequence[Marker], among: Sequence[Marker]) -> tuple[tuple[bytes, int], ...]:
    """List what is searched in a folded text, each with the bits of the markers that it may stand for.

    A text that holds another one is left out: where it stands the other does, too.

    Args:
        markers: those that are searched.
        among: all of them; the place of a marker there is that of its bit.
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


class Bodies(IntEnum):
    """Which bodies of functions are asked for: all, those that say that they are not implemented, none."""

    ALL = 0
    SAID = 1
    NONE = 2


class Markers:
    """The built-in markers and the policy's own, in this order.

    Args:
        own: those of `[claims] markers`, whose expressions compile.
        limit: the time that these have; None: any.
    """

    def __init__(self, own: Sequence[MarkerSettings] = (), limit: TimeLimit | None = None) -> None:
        self.own = tuple(own)
        self._limit = limit or NoLimit()

    @cached_property
    def all(self) -> tuple[Marker, ...]:
        """Every marker, the policy's own last."""
        return (*MARKERS, *map(_own, self.own)) if self.own else MARKERS

    @cached_property
    def _literals(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        return _needed(self.all) if self.own else _BUILT_IN

    @cached_property
    def _folded(self) -> tuple[tuple[tuple[bytes, int], ...], ...]:
        """The literals as `_FOLD` makes them: of all, without empty bodies, without any bodies."""
        left_out: tuple[tuple[Marker, ...], ...] = ((), (EMPTY_BODY,), (EMPTY_BODY, NOT_IMPLEMENTED))
        return tuple(
            _folded([marker for marker in self.all if marker not in out], self.all) for out in left_out
        )

    @cached_property
    def _blind(self) -> int:
        """The bits of the markers without literals."""
        return sum(1 << place for place, marker in enumerate(self.all) if not marker.literals)

    def literals_of_all(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]] | None:
        """List literals of which one is in every change that holds a placeholder, each line with its LF.

        Returns:
            Those that stand there as they are, and those that stand there in lower case; None if an
            expression of the policy has none, so that every line is suspicious.
        """
        return None if self._blind else self._literals

    def own_in(self, marker: Marker, line: bytes) -> bool:
        """Tell whether a marker of the policy's own is in a line.

        Raises:
            UndecidedError: its expression took too long.
        """
        try:
            name = marker.expression.pattern
            return self._limit.run(name, lambda: marker.found_in(line), earned_by(1, len(line)))
        except OutOfTimeError:
            raise too_slow(f"the marker {marker.name} of claims.markers", self._limit) from None

    def may_suspect(self, text: bytes, start: int, stop: int) -> bool:
        """Tell whether `suspects` may pick a line between two places of a text, at a glance."""
        if self._blind:
            return True
        texts, small_texts = self._literals
        # The last line may have no LF.
        piece = text[start:stop] + b"\n"
        if any(literal in piece for literal in texts):
            return True
        small = piece.lower()
        return any(literal in small for literal in small_texts)

    def suspects(self, lines: Sequence[bytes]) -> list[int]:
        """Pick the positions of the lines that may hold a placeholder, or the body of one; none is missed."""
        if self._blind:
            return list(range(len(lines)))
        starts = self.lines_of(b"\n".join((*lines, b"")))
        if not starts:
            return []
        begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
        return [bisect_left(begins, start) for start in sorted(starts)]

    def lines_of(self, text: bytes, bodies: Bodies = Bodies.ALL) -> dict[int, int]:
        """Find where the lines begin that hold a literal, each with the bits of the markers it may be of.

        Args:
            text: any.
            bodies: without the others, lines that hold only literals of bodies are left out.

        Returns:
            In any order. A bit is the place of a marker in `all`; a marker whose bit is not set has nothing
            on the line.
        """
        folded = text.translate(_FOLD)
        found: dict[int, int] = {}
        for literal, bits in self._folded[bodies]:
            place = folded.find(literal)
            while place >= 0:
                start = folded.rfind(b"\n", 0, place) + 1
                found[start] = found.get(start, 0) | bits
                # On to the next line: a literal may end with this one's LF.
                end = folded.find(b"\n", place)
                place = folded.find(literal, end + 1) if end >= 0 else -1
        if self._blind:
            for start in (0, *(feed.end() for feed in re.finditer(b"\n", text) if feed.end() < len(text))):
                found[start] = found.get(start, 0) | self._blind
        return found


FUNCTIONS = tuple(b"def" + sign for sign in (b" ", b"\t", b"\f", b"\\"))
"""Where a function of Python begins: its body is no added line where git aligns it with an old one."""

_BUILT_IN = _needed(MARKERS)


def _own(settings: MarkerSettings) -> Marker:
    """Make a marker of the policy's own."""
    pattern = settings.pattern.encode("utf-8", "surrogateescape")
    literals = literals_of(pattern)
    texts = () if literals is None else tuple(sorted(literals.texts))
    ignore_case = literals is not None and literals.ignore_case
    return Marker(settings.name, OWN, texts, re.compile(pattern), ignore_case)
