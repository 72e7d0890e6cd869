"""One gitignore pattern as a `pathspec.Pattern`: a regular expression that takes linear time.

pathspec's own gitignore expressions are not used: there `x[!a]y` matches `x/y`, `*.pem` matches `k.pem\\n`,
and three `**/` take seconds on a long path (`docs/decisions/pathspec.md`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pathspec.pattern import Pattern

from patchgate.policy.glob_syntax import Segment, Single, Star


class GitignorePattern(Pattern):
    """Matches what one pattern names, and everything below a folder that it names.

    Args:
        readings: the components of the pattern, once for each way to read it (`glob_syntax.readings`).
        is_exact: git's answer and no match more; else a component also matches its own text.
    """

    __slots__ = ("_is_exact", "_readings", "_regex")

    def __init__(self, readings: list[list[Segment]], *, is_exact: bool) -> None:
        super().__init__(include=True)
        self._readings = readings
        self._is_exact = is_exact
        self._regex: re.Pattern[str] | None = None

    def match_file(self, file: str) -> re.Match[str] | None:
        """Match a path from the root of the repository; compiles the expression at the first call."""
        if self._regex is None:
            alternatives = ("".join(_expression(each, self._is_exact)) for each in self._readings)
            self._regex = re.compile(f"(?:{'|'.join(alternatives)})(?:/|\\Z)", re.DOTALL)
        return self._regex.match(file)


def _expression(segments: list[Segment], is_exact: bool) -> Iterator[str]:
    """Write components as one expression.

    A run of components behind `**/` is matched only at its first fit: a match at a later fit is
    also a match at the first. The atomic group keeps the time linear.
    """
    is_open = False
    for segment in segments[:-1]:
        if segment.is_any_depth:
            yield ")(?>(?:[^/]*/)*?" if is_open else "(?>(?:[^/]*/)*?"
            is_open = True
        else:
            yield _component(segment, is_exact) + "/"
    yield _component(segments[-1], is_exact)
    if is_open:
        yield r"(?=/|\Z))"


def _component(segment: Segment, is_exact: bool) -> str:
    """Write one component; it keeps the first fit of every `*` but the last, and ends where the name ends."""
    chunks = [""]
    for piece in segment.pieces:
        if isinstance(piece, Star):
            chunks.append("")
        else:
            chunks[-1] += f"(?!/){piece.expression}" if isinstance(piece, Single) else re.escape(piece)
    body = chunks[0]
    if len(chunks) > 1:
        inner = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1])
        body += f"{inner}[^/]*{chunks[-1]}"
    if segment.plain == segment.written or (is_exact and segment.plain is not None):
        return body
    own = "" if is_exact else re.escape(segment.written) + "|"
    return f"(?>(?:{own}{body})(?=/|\\Z))"
