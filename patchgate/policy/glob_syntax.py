"""Parse one gitignore pattern into components and their pieces.

Refuses patterns that can match nothing or use an unsupported feature; `glob_matching` matches paths.
Sources: gitignore(5), and git's wildmatch.c and dir.c, which say more: `***` is `**`, a `/` inside a class
anchors, `[z-a]` is `[z]`. If they contradict each other, the code decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import TypeAlias

from patchgate.values import dataclass

_SPECIAL = re.compile(r"[*?\[\\]")
_STARRED = re.compile(r"[^*?\[\\]+\*\*+")
# The time per name grows with its depth and with the number of components of a pattern.
_MOST_SEGMENTS = 128
_TOKEN = re.compile(
    r"(?P<end>/|\\/)|(?P<star>\*+)|(?P<any>\?)|(?P<class>\[[!^]?+(?:\\.|[^\\])(?:\\.|[^\]\\])*\])"
    r"|\\(?P<escaped>.)|(?P<text>[^*?\[\\/]+)",
    re.DOTALL,
)


Fold: TypeAlias = Callable[[bytes], str]


class PatternError(ValueError):
    """A pattern that can match nothing, or that uses an unsupported feature.

    The message is one sentence for its author; `position` is its index in the list.
    """

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


class Star:
    """A run of `*` inside a component."""


@dataclass(frozen=True, slots=True)
class Single:
    """A `?` or a class: a regular expression for exactly one character."""

    expression: str


STAR = Star()
Piece = str | Single | Star


@dataclass(frozen=True, slots=True)
class Segment:
    """One component of a pattern: its text and its pieces."""

    written: str
    pieces: tuple[Piece, ...]

    @property
    def is_any_depth(self) -> bool:
        """Whether this is `**`: any number of folders (wildmatch treats more stars the same)."""
        return len(self.written) > 1 and not self.written.strip("*")

    @property
    def plain(self) -> str | None:
        """The one name that the pieces match; None if there are wildcards."""
        texts = [piece for piece in self.pieces if isinstance(piece, str)]
        return "".join(texts) if len(texts) == len(self.pieces) else None


def readings(pattern: str, fold: Fold | None, is_exact: bool = False) -> list[list[Segment]]:
    """Split a pattern into components, once per way to match it: `a**/b` is `a*/**/b` or `ab`.

    Args:
        pattern: the pattern.
        fold: how texts are compared without case and normal forms; None: as they are.
        is_exact: a pattern that ends with a slash matches the content of such a folder, but no file.

    Raises:
        PatternError: it can match nothing, or uses an unsupported feature.
    """
    segments = parse(pattern, fold)
    inside = [Segment("*", (STAR,))] if is_exact and pattern.rstrip(" ").endswith("/") else []
    first = next((at for at, each in enumerate(segments) if _SPECIAL.search(each.written)), len(segments))
    rest = segments[first + 1 :]
    if not rest or not _STARRED.fullmatch(segments[first].written):
        return [[*segments, *inside]]
    while len(rest) > 1 and rest[0].is_any_depth:
        del rest[0]
    deep = [*segments[: first + 1], Segment("**", (STAR,)), *rest, *inside]
    joined = _joined(segments[first].written.rstrip("*"), rest[0], fold)
    return [deep, [*segments[:first], joined, *rest[1:], *inside]]


def _joined(beginning: str, segment: Segment, fold: Fold | None) -> Segment:
    """Put a literal text before a component."""
    head, *others = segment.pieces
    pieces: tuple[Piece, ...] = (
        (beginning + head, *others) if isinstance(head, str) else (beginning, head, *others)
    )
    if fold is None:
        return Segment(beginning + segment.written, pieces)
    # Characters can combine where two texts meet.
    again = (_compared(each, fold) if isinstance(each, str) else each for each in pieces)
    return Segment(_compared(beginning + segment.written, fold), tuple(again))


def parse(pattern: str, fold: Fold | None) -> list[Segment]:
    """Split a pattern into components, from the root; raise PatternError for one that can match nothing."""
    if fold is not None:
        pattern = unicodedata.normalize("NFC", pattern)
    body = pattern.rstrip(" ")
    if len(body) < len(pattern) and (len(body) - len(body.rstrip("\\"))) % 2:
        body += " "  # gitignore(5): a backslash keeps a trailing space
    if not body.strip("/"):
        raise PatternError("the pattern is empty; name a file or a folder")
    if body[0] == "#":
        raise PatternError(r"a pattern that begins with # is a comment; write \# for such a name")
    if body[0] == "!":
        raise PatternError(r"negation is not supported here; write \! for a name that begins with !")
    body = body.removesuffix("/")
    is_anchored = "/" in body
    segments = list(_segments(body.removeprefix("/"), fold))
    if not all(segment.pieces for segment in segments):
        raise PatternError("an empty component matches nothing; write one / between names")
    if not is_anchored and not segments[0].is_any_depth:
        segments.insert(0, Segment("**", (STAR,)))
    if len(segments) > _MOST_SEGMENTS:
        raise PatternError(f"a pattern may have at most {_MOST_SEGMENTS} components")
    if segments[-1].is_any_depth:
        segments.append(Segment("*", (STAR,)))
    return segments


def _segments(body: str, fold: Fold | None) -> Iterator[Segment]:
    """Yield the components of a pattern without its outer slashes."""
    if not _SPECIAL.search(body):
        for name in _compared(body, fold).split("/"):
            yield Segment(name, (name,) if name else ())
        return
    pieces: list[Piece] = []
    text = ""
    start = position = 0
    while position < len(body):
        token = _TOKEN.match(body, position)
        if token is None:
            fault = "[ is never closed" if body[position] == "[" else "\\ at the end escapes nothing"
            raise PatternError(f"a {fault}; write \\{body[position]} for the character itself")
        position = token.end()
        if token.lastgroup in {"text", "escaped"}:
            text += token[token.lastgroup]
            continue
        if compared := _compared(text, fold):
            pieces.append(compared)
        text = ""
        if token.lastgroup == "end":
            yield Segment(_compared(body[start : token.start()], fold), tuple(pieces))
            pieces, start = [], position
        elif token.lastgroup == "star":
            pieces.append(STAR)
        else:
            pieces.append(Single("." if token.lastgroup == "any" else _class(token[0], fold is not None)))
    if compared := _compared(text, fold):
        pieces.append(compared)
    yield Segment(_compared(body[start:], fold), tuple(pieces))


def _compared(text: str, fold: Fold | None) -> str:
    return text if fold is None else fold(text.encode("utf-8", "surrogateescape"))


def _class(written: str, folded: bool) -> str:
    """Translate `[a-z]` as wildmatch.c does: `[z-a]` is only z, and an escaped `-` is not a range."""
    if "[:" in written:
        raise PatternError("[[:class:]] is not supported; write the characters, as in [a-z]")
    inner = written[1:-1]
    is_negated = inner[0] in "!^"
    elements = re.findall(r"(\\?)(.)", inner[is_negated:], re.DOTALL)
    ranges: list[tuple[str, str]] = []
    position = 0
    while position < len(elements):
        low = high = elements[position][1]
        position += 1
        if elements[position : position + 1] == [("", "-")] and position + 1 < len(elements):
            high = elements[position + 1][1]
            position += 2
        ranges.append((low, max(low, high)))
    inside = "".join(f"\\U{ord(low):08x}-\\U{ord(high):08x}" for low, high in ranges)
    # Folding the ends of a range changes it: [Z-a] contains a, and [z-a] only z.
    return f"{'(?i:' if folded else '(?:'}[{'^' if is_negated else ''}{inside}])"
