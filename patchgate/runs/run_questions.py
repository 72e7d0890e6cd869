"""The questions of a run: read from the index, answered before its first work, and shown to authors.

The file is that of `[run] questions`. Without a terminal nobody is asked and nothing waits, unless `[run]
least_confidence` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from patchgate.components.policy_tree import PolicyTree, index_tree
from patchgate.errors import ConfigError, Mistake, UsageError
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.policy.strict_json import MAX_BYTES
from patchgate.questions.assumptions import MOST_BYTES
from patchgate.questions.facts import repository_facts
from patchgate.questions.interview import InterviewInputs, InterviewResult, interview
from patchgate.questions.question import MOST_TEXT, Question, QuestionFileError, read_questions
from patchgate.questions.recorded_answers import (
    DOUBTFUL,
    AnswerSource,
    AuditedAnswer,
    newest_answers,
    record_answers,
)
from patchgate.report.json import json_line
from patchgate.report.schema import Schema, Shape, about, document_schema
from patchgate.report.wording import safe
from patchgate.storage.record import Json
from patchgate.values import dataclass, field

SCHEMA = "patchgate.answers/1"
_NAMED = 5
_HINT = "git patchgate schema questions shows what it may have"
Ask = Callable[[Question, str | None], str]


@dataclass(frozen=True, slots=True)
class RunQuestions:
    """The questions of the index, how they are answered now, and which of them wait for a person."""

    questions: tuple[Question, ...] = ()
    result: InterviewResult = field(default_factory=lambda: InterviewResult({}, (), ()))
    waiting: tuple[str, ...] = ()

    @property
    def doubtful(self) -> list[str]:
        """The ids of those that nobody has answered with some confidence."""
        return self.result.below(DOUBTFUL)


def questions_of(content: PolicyTree) -> tuple[Question, ...]:
    """Read the questions of a tree; none if its policy names no file.

    Raises:
        ConfigError: the file is missing, or cannot be used.
    """
    name = content.policy.config.run.questions
    if name is None:
        return ()
    entry = content.view.entry(name.encode("utf-8"))
    if entry is None or not entry.is_file:
        message = f"`[run] questions` names it, and {content.place} has no such file"
        raise ConfigError((Mistake(name, None, "", message, _HINT),))
    objects = content.view.objects
    try:
        if objects.sizes([entry.oid])[entry.oid] > MAX_BYTES:
            raise QuestionFileError(f"it has more than {MAX_BYTES >> 20} MiB")
        return read_questions(objects.read(entry.oid))
    except QuestionFileError as error:
        raise ConfigError((Mistake(name, error.line, "", error.message, _HINT),)) from error


def ask_questions(
    repository: Repository,
    *,
    assumptions: Sequence[str] = (),
    ask: Ask | None = None,
    records: bool = False,
    clock: Callable[[], float] = time.time,
) -> RunQuestions:
    """Answer the questions of the index, without a word to the ledger before the last one.

    Args:
        assumptions: what somebody assumes, in order.
        ask: asks a person; None: nobody is there.
        records: whether new answers are recorded.
        clock: seconds since the epoch.

    Raises:
        ConfigError: the policy or the file of questions cannot be used.
        UndecidedError: the ledger cannot be read or written.
    """
    with Objects(repository) as objects:
        content = index_tree(repository, objects)
        questions = questions_of(content)
    if not questions:
        return RunQuestions()
    inputs = InterviewInputs(
        known=newest_answers(repository.common_dir),
        facts=repository_facts(repository) if any(each.fact for each in questions) else {},
        assumptions=assumptions,
        ask=ask,
        least_confidence=content.policy.config.run.least_confidence,
    )
    result = interview(questions, inputs)
    if records:
        record_answers(repository.common_dir, result.fresh, clock)
    waiting = result.below(inputs.least_confidence)
    return RunQuestions(questions, result, tuple(waiting))


def answer_question(
    repository: Repository, name: str, said: str, source: AnswerSource, confidence: float
) -> str | None:
    """Record what a person answers by a command, or what a message elsewhere has answered.

    Returns:
        A warning if the question does not apply now, so that the answer has no effect yet.

    Raises:
        UsageError: there is no such question, or this is no answer to it.
        ConfigError: the policy or the file of questions cannot be used.
        UndecidedError: the ledger cannot be written.
    """
    asked = ask_questions(repository)
    question = next((each for each in asked.questions if each.id == name), None)
    if question is None:
        raise UsageError(f"there is no question {printable(name, 60)}", "git patchgate run answer lists them")
    try:
        answer = AuditedAnswer(name, question.text, question.read(said), source, confidence)
    except ValueError as error:
        message = f"{printable(said, 80)} is no answer to {name}: {error}"
        raise UsageError(message, "git patchgate run answer") from error
    record_answers(repository.common_dir, [answer])
    if name in asked.result.answers or name in asked.result.open:
        return None
    needed = f"{question.depends_on} is answered {printable(question.depends_value or '', 80)}"
    return f"{name} does not apply now: this answer counts when {needed}"


def read_assumptions(raw: bytes) -> tuple[str, ...]:
    """Read a file of assumptions: one in each line; blank lines do not count.

    Raises:
        UsageError: it is not UTF-8, or too large.
    """
    if len(raw) > MOST_BYTES:
        raise UsageError("the file of assumptions is too large", f"it may have {MOST_BYTES >> 20} MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("the file of assumptions is not UTF-8", "convert it: iconv -t UTF-8") from error
    if "\0" in text:
        raise UsageError("the file of assumptions has NUL bytes", "write one assumption in each line")
    lines = (line.strip() for line in text.split("\n"))
    return tuple(line.removeprefix("- ") for line in lines if line)


def waiting_reason(asked: RunQuestions) -> tuple[str, str]:
    """Say for which answers a run waits, and the next step."""
    named = first_of(asked.waiting, _NAMED)
    return f"waits for answers: {named}", f"git patchgate run answer {asked.waiting[0]} ANSWER"


def brief_lines(asked: RunQuestions) -> list[str]:
    """Write the answers for an author: one line for each."""
    lines = []
    for each in asked.result.answers.values():
        doubt = "" if each.confidence >= DOUBTFUL else " (not confirmed)"
        lines.append(f"- {safe(each.text, MOST_TEXT)} {safe(each.answer, MOST_TEXT)}{doubt}")
    return lines


def answers_text(asked: RunQuestions) -> list[str]:
    """Write questions and answers as lines, safe for a terminal."""
    if not asked.questions:
        return ["no questions: the policy names no file of them ([run] questions)"]
    lines = []
    for question in asked.questions:
        found = asked.result.answers.get(question.id)
        if found is None and question.id not in asked.result.open:
            continue
        choices = f" [{safe(question.choices, 200)}]" if question.choices else ""
        lines.append(f"{question.id}: {safe(question.text)}{choices}")
        if found is None:
            lines.append("  open")
            continue
        by = f"{found.source.value}, confidence {found.confidence:g}"
        of = f", of: {safe(found.matched, 200)}" if found.matched else ""
        lines.append(f"  {safe(found.answer)}  ({by}{of})")
    return lines


def answers_json(asked: RunQuestions) -> str:
    """Write questions and answers as a JSON document."""
    listed: list[Json] = []
    for question in asked.questions:
        found = asked.result.answers.get(question.id)
        if found is None and question.id not in asked.result.open:
            continue
        told: Mapping[str, Json] = {} if found is None else found.plain()
        keys = ("answer", "source", "confidence", "matched")
        listed.append(
            {
                "question": question.id,
                "text": question.text,
                **{key: told.get(key) for key in keys},
                "at": None if found is None or not found.at else found.at,
                "waits": question.id in asked.waiting,
            }
        )
    return json_line({"schema": SCHEMA, "answers": listed})


def answers_schema() -> Schema:
    """Return the schema of questions and answers."""
    answer: Shape = {
        "question": str,
        "text": str,
        "answer": about(str | None, "null: it is open"),
        "source": about(AnswerSource | None, "null: it is open"),
        "confidence": about(float | None, "from 0 to 1"),
        "matched": about(str | None, "the assumption or the fact that it was taken from"),
        "at": about(str | None, "null: it is not recorded yet"),
        "waits": about(bool, "whether a run waits for a person to answer it"),
    }
    return document_schema(SCHEMA, "The questions that apply, and their answers", {"answers": [answer]})
