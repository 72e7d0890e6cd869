"""A brief for an agent: what it must know for a component, an intent or some paths, in a number of tokens.

The first part is never cut; the second is shortened to the room that is left, section by section; the third
is only there when it is asked for. What was left out is said at the end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from patchgate.agents.brief_parts import BriefSection, find_subjects, research, surroundings
from patchgate.git.quoting import first_of, neutral
from patchgate.git.repository import Repository
from patchgate.runs.brief_text import RULES_TEXT
from patchgate.values import dataclass, field

DEFAULT_TOKENS = 8000
_BYTES = 4
_COUNTED = "Tokens are counted as bytes of UTF-8 divided by 4, rounded up."
_WHOLE = "git patchgate agent brief"


def count_tokens(text: str) -> int:
    """Count the tokens of a text: its bytes in UTF-8 divided by 4, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES)


@dataclass(frozen=True, slots=True)
class Brief:
    """A brief: its text, how many tokens it has, and what was left out of it; one sentence for each."""

    text: str
    tokens: int
    left_out: tuple[str, ...]


def make_brief(
    repository: Repository,
    names: Sequence[str] = (),
    *,
    max_tokens: int = DEFAULT_TOKENS,
    with_research: bool = False,
    now: float | None = None,
) -> Brief:
    """Write the brief for components, intents or paths; without any, for the intents of this worktree.

    Args:
        names: ids or paths, as typed.
        max_tokens: how long it may be; the first part is whole even if it alone is longer.
        with_research: whether history and earlier attempts belong to it.
        now: seconds since the epoch.

    Raises:
        UsageError: a name is that of nothing here, or the first part would be too large to print.
        ConfigError: the policy of the index cannot be used.
        UndecidedError: something of the first part cannot be read.
    """
    now = time.time() if now is None else now
    subjects = find_subjects(repository, names)
    rest = surroundings(repository, now)
    unasked = []
    if with_research:
        rest += research(repository, subjects, now)
    else:
        unasked = ["History and earlier attempts: add --research"]
    page = _BriefPage(max_tokens, [RULES_TEXT, *(block for each in subjects for block in each.blocks)])
    return page.filled(rest, unasked)


def brief_text(repository: Repository, max_tokens: int) -> str:
    """Write the brief for the start of a session: never longer than `max_tokens`.

    A first part that does not fit is replaced by its titles, and the command that prints it.

    Raises:
        PatchgateError: as for `make_brief`.
    """
    now = time.time()
    brief = make_brief(repository, max_tokens=max_tokens, now=now)
    if brief.tokens <= max_tokens:
        return brief.text
    subjects = find_subjects(repository, ())
    titles = [each.title for each in subjects]
    text = f"{RULES_TEXT}\n\nRead all of it first: `{_WHOLE}` prints {first_of(titles, 20)}\n"
    lines = text.encode("utf-8", "replace")[: max_tokens * _BYTES].decode("utf-8", "ignore").split("\n")
    return "\n".join(lines[: max(1, len(lines) - 1)]) + "\n" if count_tokens(text) > max_tokens else text


@dataclass(slots=True)
class _BriefPage:
    """A brief while it is filled; the first blocks stay whole."""

    max_tokens: int
    blocks: list[str]
    left_out: list[str] = field(default_factory=list)

    def filled(self, rest: Sequence[BriefSection], unasked: Sequence[str]) -> Brief:
        """Add as much of each section as there is room for, the most important first."""
        longest = [each.left_out(max(0, len(each.lines) - 1)) for each in rest]
        own = count_tokens(_joined(self.blocks))
        room = self.max_tokens * _BYTES - _size(self.blocks) - _size([self._closing([*longest, *unasked])])
        for section in rest:
            room -= self._add(section, room)
        self.left_out += unasked
        text = _joined([*self.blocks, self._closing(self.left_out)])
        if own > self.max_tokens:
            note = f"The first part is never cut: it has {own:,} tokens of {self.max_tokens:,}."
            text = _joined([*self.blocks, self._closing(self.left_out), note])
        text = neutral(text.encode("utf-8", "replace")).decode("utf-8", "replace")
        return Brief(text, count_tokens(text), tuple(self.left_out))

    def _add(self, section: BriefSection, room: int) -> int:
        """Add the lines of a section that fit; return how many bytes they take."""
        if not section.lines:
            self.left_out += [section.fault] if section.fault else []
            return 0
        used = _size([section.title]) + 1
        fitting = 0
        for line in section.lines:
            if used + len(line.encode("utf-8", "replace")) + 1 > room:
                break
            used += len(line.encode("utf-8", "replace")) + 1
            fitting += 1
        if fitting < len(section.lines):
            self.left_out.append(section.left_out(fitting))
        if not fitting:
            return 0
        self.blocks.append("\n".join([section.title, "", *section.lines[:fitting]]))
        return used

    def _closing(self, left_out: Sequence[str]) -> str:
        lines = [f"- {each}" for each in left_out] or ["- nothing"]
        limit = f"{_COUNTED} The limit is {self.max_tokens:,}."
        return "\n".join(["## Left out of this brief", "", *lines, "", limit])


def _joined(blocks: Sequence[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def _size(blocks: Sequence[str]) -> int:
    """Count the bytes of blocks, each with the two line feeds that separate it."""
    return sum(len(each.encode("utf-8", "replace")) + 2 for each in blocks)
