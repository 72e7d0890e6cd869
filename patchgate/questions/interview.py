"""Decides who answers a question: a person, a fact, an assumption, or the default.

What people or messages answer counts until a later answer; facts and assumptions compete by confidence, of
assumptions the later counts. Nothing is recorded here: the caller gets all answers at once, so an interview
that is interrupted leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from patchgate.questions.assumptions import AssumptionMatch, match_assumptions
from patchgate.questions.question import (
    InvalidAnswerError,
    Question,
    QuestionType,
    RepositoryFact,
    in_order,
    is_asked,
)
from patchgate.questions.recorded_answers import DOUBTFUL, AnswerSource, AuditedAnswer, without_time
from patchgate.values import dataclass, field

OF_FACT = 0.9
"""The confidence of an answer that the repository gives."""
AS_STATED = "Accepted as stated"
"""What an answer is taken from that nobody gave: a default, or nothing."""


@dataclass(frozen=True, slots=True)
class InterviewInputs:
    """What may answer.

    Args:
        known: the newest recorded answers, by question.
        facts: what the repository says; none where it says nothing.
        assumptions: what somebody assumes, in order.
        ask: asks a person, with the answer that counts if nothing is typed; None: nobody is there.
        least_confidence: a person is asked for what has less, and for what is doubtful.
    """

    known: Mapping[str, AuditedAnswer] = field(default_factory=dict)
    facts: Mapping[RepositoryFact, Sequence[str]] = field(default_factory=dict)
    assumptions: Sequence[str] = ()
    ask: Callable[[Question, str | None], str] | None = None
    least_confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class InterviewResult:
    """How questions are answered.

    `answers` has the applicable questions that have an answer, `fresh` those of them that are not recorded
    yet, `open` the ids of applicable questions without any.
    """

    answers: Mapping[str, AuditedAnswer]
    fresh: tuple[AuditedAnswer, ...]
    open: tuple[str, ...]

    def below(self, confidence: float) -> list[str]:
        """Return the ids of the questions that are open, or answered with less confidence."""
        doubtful = [name for name, each in self.answers.items() if each.confidence < confidence]
        return [*doubtful, *(self.open if confidence > 0 else ())]


def interview(questions: Sequence[Question], inputs: InterviewInputs) -> InterviewResult:
    """Find an answer to each question that applies.

    Args:
        questions: in the order of their file, which is that of assumptions.
        inputs: what may answer.
    """
    by_id = {each.id: each for each in questions}
    matches = match_assumptions(questions, inputs.assumptions)
    answers: dict[str, AuditedAnswer] = {}
    fresh: list[AuditedAnswer] = []
    unanswered: list[str] = []
    for question in in_order(questions):
        values = {name: each.answer for name, each in answers.items()}
        if not is_asked(question, values, by_id):
            continue
        found = _answer_of(question, inputs, matches.get(question.id))
        if found is None:
            unanswered.append(question.id)
            continue
        known = inputs.known.get(question.id)
        if known is not None and without_time(known) == without_time(found):
            found = known
        else:
            fresh.append(found)
        answers[question.id] = found
    return InterviewResult(answers, tuple(fresh), tuple(unanswered))


def _answer_of(
    question: Question, inputs: InterviewInputs, match: AssumptionMatch | None
) -> AuditedAnswer | None:
    best = known = _still_valid(question, inputs.known.get(question.id))
    if known is None or known.source is AnswerSource.ASSUMPTION:
        # What is assumed now supersedes what was. Of equal confidence the first counts.
        found = [_of_fact(question, inputs.facts), _of_match(question, match) or known]
        best = max(filter(None, found), key=lambda each: each.confidence, default=None)
    is_settled = best is not None and best.confidence >= max(DOUBTFUL, inputs.least_confidence)
    if not is_settled and inputs.ask is not None:
        offered = best.answer if best is not None else question.default
        said = question.read(inputs.ask(question, offered))
        return AuditedAnswer(question.id, question.text, said, AnswerSource.USER, 1.0)
    return best if best is not None else _as_stated(question)


def _still_valid(question: Question, known: AuditedAnswer | None) -> AuditedAnswer | None:
    """Keep a recorded answer while the question takes it and asks the same; defaults are taken anew."""
    if known is None or known.text != question.text or known.matched == AS_STATED:
        return None
    try:
        return known if question.read(known.answer) == known.answer else None
    except InvalidAnswerError:
        return None


def _of_fact(question: Question, facts: Mapping[RepositoryFact, Sequence[str]]) -> AuditedAnswer | None:
    said = None if question.fact is None else facts.get(question.fact)
    if question.fact is None or said is None:
        return None
    texts = [", ".join(said)]
    if question.type is QuestionType.BOOLEAN:
        texts = ["yes" if said else "no"]
    elif question.type is QuestionType.NUMERIC:
        texts = [str(len(said))]
    elif question.type is QuestionType.ENUM:
        texts = list(said)
    for text in texts:
        try:
            answer = question.read(text)
        except InvalidAnswerError:
            continue
        matched = f"{question.fact.value}: {', '.join(said) or 'none'}"
        return AuditedAnswer(question.id, question.text, answer, AnswerSource.ASSUMPTION, OF_FACT, matched)
    return None


def _of_match(question: Question, match: AssumptionMatch | None) -> AuditedAnswer | None:
    if match is None:
        return None
    return AuditedAnswer(
        question.id,
        question.text,
        match.answer,
        AnswerSource.ASSUMPTION,
        match.confidence,
        match.assumption,
    )


def _as_stated(question: Question) -> AuditedAnswer | None:
    """Take the default, or for text the question itself; a choice or a number without one stays open."""
    answer = question.default
    if answer is None and question.type is QuestionType.FREETEXT:
        answer = AS_STATED
    if answer is None:
        return None
    return AuditedAnswer(question.id, question.text, answer, AnswerSource.ASSUMPTION, 0.0, AS_STATED)
