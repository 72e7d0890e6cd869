"""Answers to questions, as events in the ledger: append-only, and the newest of a question counts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from patchgate.ledger.ledger import Event, Ledger, written_forms
from patchgate.storage.record import Json
from patchgate.values import dataclass, replace

KIND = "answer"
DOUBTFUL = 0.5
"""An answer with less confidence is told as a warning."""


class AnswerSource(StrEnum):
    """Who answered: a person at a terminal, an assumption, a person by a command, or a message elsewhere."""

    USER = "user_interactive"
    ASSUMPTION = "auto_assumption"
    APPROVED = "cli_approve"
    SLACK = "integration_slack"
    LINEAR = "integration_linear"


@dataclass(frozen=True, slots=True)
class AuditedAnswer:
    """One answer; a person at the terminal is sure.

    `text` is the question as it was asked. `matched` is the assumption or the fact that it was taken from.
    `at` is the time of the event, empty before it is recorded.

    Raises:
        ValueError: the confidence is not from 0 to 1, or not 1 for a person at a terminal; or an answer from
            an assumption does not say from which.
    """

    question: str
    text: str
    answer: str
    source: AnswerSource
    confidence: float
    matched: str | None = None
    at: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.confidence) and 0 <= self.confidence <= 1):
            raise ValueError("a confidence is from 0 to 1")
        if self.source is AnswerSource.USER and self.confidence != 1:
            raise ValueError("an answer at a terminal is sure")
        if self.source is AnswerSource.ASSUMPTION and not self.matched:
            raise ValueError("an answer from an assumption names it")

    def plain(self) -> dict[str, Json]:
        """Return it as plain JSON, as its event has it."""
        return {
            "question": self.question,
            "text": self.text,
            "answer": self.answer,
            "source": self.source.value,
            "confidence": self.confidence,
            "matched": self.matched,
        }

    @classmethod
    def from_event(cls, event: Event) -> AuditedAnswer | None:
        """Read an event; None if it is no answer."""
        told = event.about
        texts = [told.get(name) for name in ("question", "text", "answer", "source")]
        confidence, matched = told.get("confidence"), told.get("matched")
        is_right = event.kind == KIND and all(isinstance(each, str) for each in texts)
        if not is_right or type(confidence) not in {int, float} or not isinstance(matched, str | None):
            return None
        question, text, answer, source = map(str, texts)
        try:
            return cls(
                question, text, answer, AnswerSource(source), float(str(confidence)), matched, event.at
            )
        except ValueError:
            return None


def newest_answers(common_dir: str) -> dict[str, AuditedAnswer]:
    """Return the newest answer to each question, by its id.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    events = Ledger(common_dir).find_events({KIND}, strict=True)
    found = (AuditedAnswer.from_event(each) for each in events)
    return {each.question: each for each in found if each is not None}


def record_answers(
    common_dir: str, answers: Iterable[AuditedAnswer], clock: Callable[[], float] = time.time
) -> None:
    """Record answers, one event each: all of them or none.

    Raises:
        UndecidedError: the ledger cannot be written.
    """
    events = [form for each in answers for form in written_forms(KIND, each.plain(), clock())]
    if events:
        Ledger(common_dir, clock=clock).record_all(events)


def without_time(answer: AuditedAnswer) -> AuditedAnswer:
    """Return an answer as it was before it was recorded."""
    return replace(answer, at="")


def values_of(answers: Mapping[str, AuditedAnswer], ids: Sequence[str]) -> dict[str, str]:
    """Return the answers to some questions, as plain texts."""
    return {name: answers[name].answer for name in ids if name in answers}
