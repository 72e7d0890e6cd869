"""Pairs assumptions with questions: by the words that they share, else by their position.

Pure. Source: Pact 3.3. An assumption that matches nothing answers nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchgate.questions.question import InvalidAnswerError, Question, QuestionType
from patchgate.values import dataclass

BY_POSITION = 0.7
"""The confidence where only the position pairs them."""
LEAST_SHARED = 3
MOST_BYTES = 4 << 20
_WORD = re.compile(r"[^\W_]+(?:\.[0-9]+)?")
# With what is glued to it: `10k` and `1.2.3` are numbers too, that nobody can read.
_NUMBER = re.compile(r"(?<![\w.])-?[0-9](?:\w|\.(?=\w))*")
_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
# Groups of three digits, dates, times and ranges.
_OF_SEVERAL = re.compile(
    r"[0-9][,'’\s][0-9]{3}(?![0-9])|[0-9]\s*[-‐‑‒–—/]\s*[0-9]|[0-9](?::|\.\.+|…)\s*[0-9]"
)
# A sentence with “no” or “yes” elsewhere mostly says something about another thing.
_VERDICT = re.compile(r"(?:^|:)\s*(yes|no|true|false)\s*(?:[.,:;!?–—]|$)", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nor|neither|without|cannot|except|avoid\w*|instead|rather|forbid\w*)\b|n['’]t\b",
    re.IGNORECASE,
)
_STOP_WORDS = frozenset(
    re.findall(
        r"[a-z]+",
        """
        a about above after again against all also am an and any are as at be because been before being below
        between both but by can could did do does doing down during each few for from further had has have
        having he her here hers him his how i if in into is it its itself just me more most my no nor not now
        of off on once only or other our out over own same she should so some such than that the their them
        then there these they this those through to too under until up use used uses using very was we were
        what when where which while who whom why will with would yes you your
        """,
    )
)


@dataclass(frozen=True, slots=True)
class AssumptionMatch:
    """The answer that an assumption gives to a question, and how sure that is, from 0 to 1."""

    answer: str
    confidence: float
    assumption: str


def significant_words(text: str) -> frozenset[str]:
    """Return the words of a text in small letters, without stop words."""
    return frozenset(_WORD.findall(text.casefold())) - _STOP_WORDS


def match_assumptions(
    questions: Sequence[Question], assumptions: Sequence[str]
) -> dict[str, AssumptionMatch]:
    """Pair questions, in the order of their file, with the assumptions that answer them.

    A question without one is left out.
    At least three shared words pair them, with the overlap by the longer of both as confidence. Else the
    position does, unless that assumption matches another question by its words.
    """
    words = [significant_words(each) for each in assumptions]
    places: dict[str, list[int]] = {}
    for number, each in enumerate(words):
        for word in each:
            places.setdefault(word, []).append(number)
    found: dict[str, AssumptionMatch] = {}
    taken: set[int] = set()
    for question in questions:
        best = _best_by_words(question, assumptions, words, places)
        if best is not None:
            number, found[question.id] = best
            taken.add(number)
    for number, question in enumerate(questions):
        if question.id not in found and number < len(assumptions) and number not in taken:
            answer = _answer(question, assumptions[number])
            if answer is not None:
                found[question.id] = AssumptionMatch(answer, BY_POSITION, assumptions[number])
    return found


def _best_by_words(
    question: Question,
    assumptions: Sequence[str],
    words: Sequence[frozenset[str]],
    places: dict[str, list[int]],
) -> tuple[int, AssumptionMatch] | None:
    own = significant_words(question.text)
    shared: dict[int, int] = {}
    for word in own:
        for number in places.get(word, ()):
            shared[number] = shared.get(number, 0) + 1
    ranked = sorted(
        (-times / max(len(own), len(words[number])), number)
        for number, times in shared.items()
        if times >= LEAST_SHARED
    )
    for overlap, number in ranked:
        answer = _answer(question, assumptions[number])
        if answer is not None:
            return number, AssumptionMatch(answer, round(-overlap, 4), assumptions[number])
    return None


def _answer(question: Question, assumption: str) -> str | None:
    """Read in an assumption the one answer to a question that it has; None if it has none, or several.

    What it denies is no answer, and which other option or number it means nobody knows.
    """
    if question.type is QuestionType.FREETEXT:
        texts = [assumption]
    elif question.type is QuestionType.BOOLEAN:
        texts = _VERDICT.findall(assumption)
    elif question.type is QuestionType.NUMERIC:
        texts = _numbers(assumption)
    else:
        texts = _options(question, assumption.casefold())
    found = set()
    for text in texts:
        try:
            found.add(question.read(text))
        except InvalidAnswerError:
            continue
    return found.pop() if len(found) == 1 else None


def _numbers(assumption: str) -> list[str]:
    """Find the number of an assumption that has one alone, and denies nothing."""
    if _NEGATION.search(assumption) or _OF_SEVERAL.search(assumption):
        return []
    found = set(_NUMBER.findall(assumption))
    return [each for each in found if len(found) == 1 and _PLAIN_NUMBER.fullmatch(each)]


def _options(question: Question, assumption: str) -> list[str]:
    """Find the options that an assumption names, unless it denies something besides."""
    found, rest = [], assumption
    for option in question.options:
        pattern = rf"(?<!\w){re.escape(option.casefold())}(?!\w)"
        if re.search(pattern, assumption):
            found.append(option)
            rest = re.sub(pattern, " ", rest)
    return [] if _NEGATION.search(rest) else found
