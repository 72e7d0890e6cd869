"""Vague phrases: words that read like a reason and say nothing that can be checked.

The message gate and contracts decide which texts to search. Every expression is bounded, so no text can make
it slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

from patchgate.values import dataclass

MOST_PLACES = 100
HIDDEN_LINE, HIDDEN_SPAN = "\0", "\1"

_SPAN = re.compile(r"`[^`\n]{0,200}`|\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”")


@dataclass(frozen=True, slots=True)
class VaguePhrase:
    """A vague phrase: its name, a word that is in all its forms, and its expressions, in small letters.

    `expression` leaves out uses that are fine in prose; `anywhere` is for fields of a contract.
    """

    name: str
    word: str
    expression: re.Pattern[str]
    anywhere: re.Pattern[str]


@cache
def phrases() -> tuple[VaguePhrase, ...]:
    """Return all phrases; they are compiled at the first call."""
    # Between two words: blanks, or the end of a line that was wrapped.
    gap = r"(?:[ \t\xa0]+|[ \t]*\n[ \t]*)"
    # Not a part of a word, a path, an option or a name with a hyphen.
    before, after = r"(?<![\w/\\.@-])", r"(?![\w/\\-]|\.\w)"
    line_ends = r"\Z|\n[ \t]*(?:\n|\0|[-*+] |[0-9]{1,3}[.)] |\Z)"
    clause_ends = rf"(?=[ \t]*(?:[.!?;,:)\]…]|{line_ends}))"
    text_ends = rf"(?=[)\]]?[ \t]*(?:{line_ends}))"

    def phrase(
        name: str, word: str, expression: str, end: str = after, anywhere: str | None = None
    ) -> VaguePhrase:
        strict = re.compile(before + expression.replace("_", gap) + end)
        found = strict if anywhere is None else re.compile(before + anywhere.replace("_", gap) + after)
        return VaguePhrase(name, word, strict, found)

    return (
        phrase("entire class of", "entire", "entire_class(?:es)?_of"),
        phrase("best practice", "practice", "best_practices?"),
        phrase("industry standard", "industry", "industry(?:_|-)standards?"),
        phrase("works on my machine", "machine", "works_on_my_machine"),
        phrase("scalable and maintainable", "scalable", "scalable_and_maintainable"),
        phrase("robust and reliable", "robust", "robust_and_reliable"),
        phrase("clean architecture", "architecture", "clean_architecture"),
        phrase("properly handle", "properly", "properly_handl(?:es?|ed|ing)"),
        phrase("as needed", "needed", r"as_needed(?!_by\b)", anywhere="as_needed"),
        phrase("and more", "more", r"(?<!more )(?<![0-9] )and_more", clause_ends, "and_more"),
        phrase("etc.", "etc", r"etc(?:\.{1,3}|…)?", text_ends),
    )


def possible(raw: bytes) -> list[VaguePhrase]:
    """Pick the phrases whose word is in some bytes at all; most texts have none."""
    small = raw.lower()
    return [phrase for phrase in phrases() if phrase.word.encode("ascii") in small]


def shown(line: str) -> str:
    """Return a line in lower case, without quotes and code."""
    return _SPAN.sub(HIDDEN_SPAN, line.lower())


def places(text: str, among: list[VaguePhrase]) -> list[tuple[int, str, str]]:
    """Find some phrases in a text from `shown`: position, name, the words in the text."""
    return sorted(
        (match.start(), phrase.name, match[0])
        for phrase in among
        for match in islice(phrase.expression.finditer(text), MOST_PLACES)
    )


def vague_phrases(text: str) -> Iterator[tuple[int, str, str]]:
    """Find the vague phrases of a field, in its order: all of it is its author's own, what it quotes too."""
    among = possible(text.encode("utf-8", "surrogatepass"))
    if among:
        small = text.lower()
        yield from sorted(
            (match.start(), phrase.name, match[0])
            for phrase in among
            for match in islice(phrase.anywhere.finditer(small), MOST_PLACES)
        )
