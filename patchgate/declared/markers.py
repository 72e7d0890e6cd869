"""What a placeholder looks like on a line: names, rules and expressions, the policy's own among them.

Decides which expressions there are and which lines are worth a look. Whether a function has a body is decided
where the whole file is seen (`gates.placeholder_text`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from patchgate.declared.settings import MarkerSettings


@dataclass(frozen=True, slots=True)
class Marker:
    """One kind of placeholder on a line: its name, the rule that tells of it, literals of which one is in
    every match (in lower case if `ignore_case`; none: every line is worth a look), and the expression."""

    name: str
    rule: str
    literals: tuple[bytes, ...]
    expression: re.Pattern[bytes]
    ignore_case: bool = False


MARKERS: tuple[Marker, ...] = ()


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
        return MARKERS

    def suspects(self, lines: Sequence[bytes]) -> list[int]:
        """Pick the positions of the lines that may hold a placeholder, or the body of one; none is missed."""
        return list(range(len(lines)))

    def may_suspect(self, text: bytes, start: int, stop: int) -> bool:
        """Tell whether `suspects` may pick a line between two places of a text, at a glance."""
        return True
