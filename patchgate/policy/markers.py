"""The markers of a policy, the built-in ones and its own, and which lines of a text are worth a look.

Decides which lines may hold a placeholder. What each expression finds stands in `marker_forms`; whether it is
one is decided where the whole file is seen (`placeholders.placeholder_matches`).

The searches for literals are plain ones, a millisecond for each in 2.5 MB; one expression for all of them
takes fifty times that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property, reduce
from itertools import accumulate
from operator import or_

from patchgate.errors import OutOfTimeError
from patchgate.policy.content import NoLimit, TimeLimit, earned_by, too_slow
from patchgate.policy.expressions import literals_of
from patchgate.policy.marker_forms import EMPTY_BODY, MARKERS, NOT_IMPLEMENTED, OWN, Marker
from patchgate.policy.settings import MarkerSettings


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
