"""What a placeholder looks like on a line: names, rules and expressions, the policy's own among them.

Decides which expressions there are and which lines are worth a look. Whether a word is a mark or prose, and
whether a function has a body, is decided where the whole file is seen (`gates.placeholder_text`). Every
expression here is bounded: no line can make it slow.

The searches for literals are plain ones, a millisecond for each in 2.5 MB; one expression for all of them
takes fifty times that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import accumulate

from patchgate.declared.literals import literals_of
from patchgate.declared.settings import MarkerSettings

WORD, BRACKET, HOLE, FILLER, BODY, OWN = (
    "placeholder-word",
    "placeholder-bracket",
    "placeholder-hole",
    "placeholder-filler",
    "placeholder-body",
    "placeholder-marker",
)
_WINDOW = 4096
_OVERLAP = 512


@dataclass(frozen=True, slots=True)
class Marker:
    """One kind of placeholder on a line: its name, the rule that tells of it, literals of which one is in
    every match (in lower case if `ignore_case`; none: every line is worth a look), and the expression.

    An expression of `placeholder-word` and `placeholder-body` finds what may be one."""

    name: str
    rule: str
    literals: tuple[bytes, ...]
    expression: re.Pattern[bytes]
    ignore_case: bool = False

    def found_in(self, line: bytes) -> bool:
        """Tell whether the expression finds anything in a line.

        A long line is searched in overlapping windows of 4 KiB, so that no expression can take long; `^` is
        its real beginning, `$` also the end of a window.
        """
        for start in range(0, max(1, len(line) - _OVERLAP), _WINDOW - _OVERLAP):
            if self.expression.search(line, start, start + _WINDOW):
                return True
        return False


_AFTER = rb"(?![A-Za-z0-9_])"
_NOT_AFTER = rb"(?<![A-Za-z0-9_$.])"
# What a hole asks for: no tag, no type, no path, no usage line.
_THING = rb"[^<>\[\]{}()=|/\r\n\"]{1,80}"
_WORDS = rb"TBD|TODO|FIXME|XXX|PLACEHOLDER"


def _word(word: str) -> Marker:
    """Make the expression that finds a word; of two of them also as they are written in comments."""
    if word in {"TODO", "FIXME"}:
        forms = f"{word}|{word.lower()}|{word.title()}".encode()
        expression = re.compile(_NOT_AFTER + rb"(?:" + forms + rb")" + _AFTER)
        return Marker(word.lower(), WORD, (word.lower().encode(),), expression, ignore_case=True)
    text = word.encode()
    return Marker(word.lower(), WORD, (text,), re.compile(_NOT_AFTER + text + _AFTER))


_BRACKET = Marker(
    "bracket",
    BRACKET,
    (b"[TBD", b"[TODO", b"[INSERT", b"[PLACEHOLDER", b"[MISSING"),
    re.compile(
        # No subscript, no link, no escape; inside, no list and no alternatives of a usage line.
        rb"(?<![A-Za-z0-9_)\]\\$#!@])\[(?:TBD|TODO|INSERT(?![ \t]+INTO\b)|PLACEHOLDER|MISSING)"
        rb"(?:[ \t]?[:-][^\[\]|\r\n]{0,200}|[ \t][^\[\]|,=\r\n]{0,200})?\](?![(\[:{])"
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
            rb"(?<![A-Za-z0-9_>\\])<(?:"
            rb"(?:" + _WORDS + rb")(?:[ \t:_-]" + _THING + rb")?"
            rb"|(?:tbd|todo|fixme|placeholder|Placeholder)(?:[ \t:]" + _THING + rb")?"
            rb"|(?:[Yy]our|YOUR)[ \t_-]" + _THING + rb""
            rb"|(?:[Ii]nsert[ \t_]|INSERT[ \t_-]"
            rb"|(?:[Ee]nter|ENTER|[Ff]ill|FILL|[Rr]eplace|REPLACE|[Aa]dd|ADD)[ \t])"
            + _THING
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
            rb"(?<![A-Za-z0-9_)\]\\$#!@])\[(?:(?:[Yy]our|YOUR)[ \t_-]" + _THING + rb""
            rb"|(?:[Ii]nsert|[Ee]nter|[Ff]ill[ \t]in)[ \t]"
            + _THING
            + rb"|[A-Za-z]"
            + _THING
            + rb"(?:[ \t](?:here|Here)|[ \t_]HERE))\](?![(\[:{])"
        ),
        ignore_case=True,
    ),
    Marker(
        "brace-hole",
        HOLE,
        (b"tbd", b"todo", b"fixme", b"xxx", b"placeholder", b"{your", b"{ your", b"{insert", b"{ insert"),
        re.compile(
            rb"(?<!\$)\{\{ ?(?:(?:" + _WORDS + rb"|INSERT)(?:[ :_-][A-Za-z0-9 _:,.-]{1,80})?"
            rb"|(?:[Yy]our|YOUR|[Ii]nsert)[ _-][A-Za-z0-9 _-]{1,60}?) ?\}\}"
            rb"|\$\{(?:" + _WORDS + rb"|YOUR_[A-Z0-9_]{1,60})\}"
            rb"|(?<![A-Za-z0-9_%])%(?:TBD|TODO|FIXME|PLACEHOLDER)%(?![A-Za-z0-9_%])"
            rb"|(?<![A-Za-z0-9_])__(?:TBD|TODO|FIXME|PLACEHOLDER)__(?![A-Za-z0-9_])"
        ),
        ignore_case=True,
    ),
    Marker(
        "your-value",
        HOLE,
        (b"your_", b"your-"),
        re.compile(
            rb"(?<![A-Za-z0-9_$.-])YOUR[_-][A-Z0-9]{1,30}(?:[_-][A-Z0-9]{1,30}){0,6}(?![A-Za-z0-9_(-])"
            rb"|(?<![A-Za-z0-9_$.-])your[_-][a-z0-9]{1,30}(?:[_-][a-z0-9]{1,30}){0,6}(?<=[_-]here)"
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
        rb"(?i)(?<![a-z])lorem[ \t]{1,2}ipsum"
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


def _folded(markers: Sequence[Marker]) -> tuple[bytes, ...]:
    folded = {literal.translate(_FOLD) for marker in markers for literal in marker.literals}
    return tuple(sorted(each for each in folded if not any(other in each for other in folded - {each})))


class Bodies(IntEnum):
    """Which bodies of functions are asked for: all, those that say that they are not implemented, none."""

    ALL = 0
    SAID = 1
    NONE = 2


class Markers:
    """The built-in markers and the policy's own, in this order.

    Args:
        own: those of `[claims] markers`, whose expressions compile.
    """

    def __init__(self, own: Sequence[MarkerSettings] = ()) -> None:
        self.own = tuple(own)

    @cached_property
    def all(self) -> tuple[Marker, ...]:
        """Every marker, the policy's own last."""
        return (*MARKERS, *map(_own, self.own)) if self.own else MARKERS

    @cached_property
    def _literals(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        return _needed(self.all) if self.own else _BUILT_IN

    @cached_property
    def _folded(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[bytes, ...]]:
        """The literals as `_FOLD` makes them: of all, without empty bodies, without any bodies."""
        bodies = (EMPTY_BODY, NOT_IMPLEMENTED)
        return (
            _folded(self.all),
            _folded([marker for marker in self.all if marker is not EMPTY_BODY]),
            _folded([marker for marker in self.all if marker not in bodies]),
        )

    @cached_property
    def _is_blind(self) -> bool:
        return any(not marker.literals for marker in self.all)

    def literals_of_all(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]] | None:
        """List literals of which one is in every change that holds a placeholder, each line with its LF.

        Returns:
            Those that stand there as they are, and those that stand there in lower case; None if an
            expression of the policy has none, so that every line is suspicious.
        """
        return None if self._is_blind else self._literals

    def may_suspect(self, text: bytes, start: int, stop: int) -> bool:
        """Tell whether `suspects` may pick a line between two places of a text, at a glance."""
        if self._is_blind:
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
        if self._is_blind:
            return list(range(len(lines)))
        starts = self.line_starts(b"\n".join((*lines, b"")))
        if not starts:
            return []
        begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
        return [bisect_left(begins, start) for start in starts]

    def line_starts(self, text: bytes, bodies: Bodies = Bodies.ALL) -> list[int]:
        """Find where the lines begin that hold a literal, in ascending order.

        Args:
            text: any.
            bodies: without the others, lines that hold only literals of bodies are left out.
        """
        if self._is_blind:
            return [0, *(found.end() for found in re.finditer(b"\n", text) if found.end() < len(text))]
        folded = text.translate(_FOLD)
        found: set[int] = set()
        for literal in self._folded[bodies]:
            place = folded.find(literal)
            while place >= 0:
                found.add(folded.rfind(b"\n", 0, place) + 1)
                # On to the next line: a literal may end with this one's LF.
                end = folded.find(b"\n", place)
                place = folded.find(literal, end + 1) if end >= 0 else -1
        return sorted(found)


EXTENDED_EXPRESSION = (
    r"(^|[^A-Za-z0-9_$.])(TODO|FIXME|TBD|XXX|PLACEHOLDER|[Tt]odo|[Ff]ixme)($|[^A-Za-z0-9_])"
    r"|\[(TBD|TODO|INSERT|PLACEHOLDER|MISSING)([] :-])"
    r"|[<[{] ?([Yy]our|YOUR|[Ii]nsert|INSERT|[Ee]nter|[Ff]ill|[Rr]eplace|[Aa]dd|TBD|PLACEHOLDER)[ _-]"
    r"[^]<>{}]*[]>}]"
    r"|[ _-](here|HERE)[]>]|<[Pp]laceholder>|(YOUR|your)[_-][A-Za-z0-9_-]+"
    r"|[Ll][Oo][Rr][Ee][Mm][ \t]+[Ii][Pp][Ss][Uu][Mm]"
    r"|(^|[:;])[ \t]*(pass|\.\.\.)[ \t]*([;#]|$)"
    r"|[Nn]ot([ ]yet)?[ _-]?[Ii]mplemented|[Uu]nimplemented"
)
"""As near as one expression of `grep -E` comes: to search the same by it is a measure of speed."""


_BUILT_IN = _needed(MARKERS)


def _own(settings: MarkerSettings) -> Marker:
    """Make a marker of the policy's own."""
    pattern = settings.pattern.encode("utf-8", "surrogateescape")
    literals = literals_of(pattern)
    texts = () if literals is None else tuple(sorted(literals.texts))
    ignore_case = literals is not None and literals.ignore_case
    return Marker(settings.name, OWN, texts, re.compile(pattern), ignore_case)
