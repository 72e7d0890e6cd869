"""Gitignore patterns as a `pathspec.PathSpec`: regular expressions that take linear time, and a limit of it.

pathspec's own gitignore expressions are not used: there `x[!a]y` matches `x/y`, `*.pem` matches `k.pem\\n`,
and three `**/` take seconds on a long path (`docs/decisions/pathspec.md`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

from pathspec import PathSpec
from pathspec.pattern import Pattern

from patchgate.errors import UndecidedError
from patchgate.policy.glob_syntax import Segment, Single, Star

# Seconds of processor time that the patterns of a process may take, and what each character of a path adds.
# An ordinary path takes some 10 microseconds; a thousand patterns `a*????[b]`, a second for 4,000 characters.
_MOST_SECONDS = 10.0
_EARNED = 3e-6


class TimedPatterns:
    """Some patterns, asked in turn; the last one that matches counts.

    Args:
        patterns: the readings of each pattern.
        is_exact: as for `GitignorePattern`.
    """

    __slots__ = ("_spec",)
    overdrawn: ClassVar[float] = 0.0
    """Seconds that the patterns of this process have taken, less what their paths earned; never below 0."""

    def __init__(self, patterns: Sequence[list[list[Segment]]], *, is_exact: bool) -> None:
        made = [GitignorePattern(each, is_exact=is_exact) for each in patterns]
        self._spec = PathSpec(made, backend="simple")

    def find(self, path: str) -> int | None:
        """Return the index of the last pattern that matches; None if none does.

        Raises:
            UndecidedError: the patterns of this process have taken too long.
        """
        if TimedPatterns.overdrawn > _MOST_SECONDS:
            raise UndecidedError(
                f"the path patterns of the policy took more than {_MOST_SECONDS:g} s: "
                "write fewer wildcards in one pattern",
            )
        began = time.thread_time()
        # pathspec removes this slash and nothing else: a name in a hostile tree may begin with `./`.
        found = self._spec.check_file("/" + path, ()).index
        spent = time.thread_time() - began - _EARNED * len(path)
        TimedPatterns.overdrawn = max(0.0, TimedPatterns.overdrawn + spent)
        return found


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
