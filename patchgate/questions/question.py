"""A typed question: which answers it takes, when it applies, and the JSON file that lists questions.

Pure. Source of the types and of their rules: Pact 3.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from patchgate.git.quoting import is_printable, printable
from patchgate.policy.strict_json import JsonFault, read_json
from patchgate.report.schema import Schema, Shape, about, document_schema
from patchgate.values import dataclass, replace

SCHEMA = "patchgate.questions/1"
MOST_QUESTIONS = 200
MOST_TEXT = 2000
_MOST_OPTIONS = 50
_ID = re.compile(r"[a-z][a-z0-9-]{0,59}")
_INTEGER = re.compile(r"([+-]?[0-9]+)(?:\.0*)?")
_REAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_YES = {"yes": "yes", "y": "yes", "true": "yes", "no": "no", "n": "no", "false": "no"}


class QuestionType(StrEnum):
    """What an answer may be: any text, yes or no, one of some options, or a number in a range."""

    FREETEXT = "freetext"
    BOOLEAN = "boolean"
    ENUM = "enum"
    NUMERIC = "numeric"


class RepositoryFact(StrEnum):
    """What the repository itself may answer."""

    LANGUAGES = "languages"
    LOCK_FILES = "lock_files"
    DEFAULT_BRANCH = "default_branch"


class InvalidAnswerError(ValueError):
    """A text is no answer to a question; the message says what it may be."""


class QuestionFileError(ValueError):
    """Questions cannot be used: what is wrong, and in which line (None: in the file as a whole)."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    `options` belong to `enum`, the range (None: without that limit) to `numeric`. It applies only where the
    answer to `depends_on` is `depends_value`. `fact` is what of the repository answers it.
    """

    id: str
    text: str
    type: QuestionType = QuestionType.FREETEXT
    options: tuple[str, ...] = ()
    default: str | None = None
    range_min: float | None = None
    range_max: float | None = None
    depends_on: str | None = None
    depends_value: str | None = None
    fact: RepositoryFact | None = None

    def read(self, text: str) -> str:
        """Return an answer in its one form: `yes` or `no`, the option as it is written, a plain number.

        Raises:
            InvalidAnswerError: it is none.
        """
        said = text.strip()
        if not said or len(said) > MOST_TEXT:
            raise InvalidAnswerError(f"an answer has 1 to {MOST_TEXT:,} characters")
        if not all(each == "\t" or is_printable(each) for each in said):
            raise InvalidAnswerError("an answer is one line without control characters")
        if self.type is QuestionType.BOOLEAN:
            if (found := _YES.get(said.lower())) is None:
                raise InvalidAnswerError("answer yes or no")
            return found
        if self.type is QuestionType.ENUM:
            for option in self.options:
                if option.casefold() == said.casefold():
                    return option
            raise InvalidAnswerError(f"answer one of {', '.join(self.options)}")
        return self._read_number(said) if self.type is QuestionType.NUMERIC else said

    def _read_number(self, said: str) -> str:
        """Read a number; an integer stays one, because a float would alter a long one."""
        value: float = math.nan
        if (whole := _INTEGER.fullmatch(said)) is not None:
            value = int(whole[1])
        elif _REAL.fullmatch(said):
            value = float(said)
        low, high = self.range_min, self.range_max
        is_in = (low is None or value >= low) and (high is None or value <= high)
        if not (is_in and _is_finite(value)):
            raise InvalidAnswerError(f"answer a number{_range(low, high)}")
        return _plain_number(value)

    @property
    def choices(self) -> str:
        """Say in brackets what may be answered; empty for text."""
        if self.type is QuestionType.BOOLEAN:
            return "yes/no"
        if self.type is QuestionType.ENUM:
            return "/".join(self.options)
        return (
            f"a number{_range(self.range_min, self.range_max)}" if self.type is QuestionType.NUMERIC else ""
        )


def _is_finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _plain_number(value: float) -> str:
    return repr(value).removesuffix(".0")


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {_plain_number(low)} to {_plain_number(high)}"
    if low is not None:
        return f" from {_plain_number(low)} on"
    return "" if high is None else f" up to {_plain_number(high)}"


def is_asked(question: Question, answers: Mapping[str, str], questions: Mapping[str, Question]) -> bool:
    """Return whether a question applies: what it depends on does, and was answered as it needs.

    Args:
        answers: the answers so far, by id.
        questions: all questions, by id.
    """
    if question.depends_on is None:
        return True
    other = questions[question.depends_on]
    return answers.get(other.id) == question.depends_value and is_asked(other, answers, questions)


def in_order(questions: Iterable[Question]) -> list[Question]:
    """Return questions in their order, but a question that another depends on before that one."""
    by_id = {each.id: each for each in questions}
    found: dict[str, Question] = {}
    for question in by_id.values():
        chain = [question]
        while (other := chain[-1].depends_on) is not None and other not in found:
            chain.append(by_id[other])
        found |= {each.id: each for each in reversed(chain)}
    return list(found.values())


def read_questions(raw: bytes) -> tuple[Question, ...]:
    """Read a file of questions, in the order of the file.

    Raises:
        QuestionFileError: it cannot be used.
    """
    read = read_json(raw)
    if isinstance(read, JsonFault):
        raise QuestionFileError(read.message, read.line)
    if read.doubled:
        path, again = read.doubled[0]
        raise QuestionFileError(f"the key {printable(str(path[-1]), 60)} is there twice", again)
    listed = read.value.get("questions") if isinstance(read.value, dict) else None
    if not isinstance(listed, list) or {*read.value} - {"schema", "questions"}:
        raise QuestionFileError('it is no object with the key "questions", a list')
    if read.value.get("schema", SCHEMA) != SCHEMA:
        raise QuestionFileError(f'`schema` is not "{SCHEMA}"')
    if len(listed) > MOST_QUESTIONS:
        raise QuestionFileError(f"it has more than {MOST_QUESTIONS} questions")
    found: dict[str, Question] = {}
    for number, each in enumerate(listed):
        line = read.lines.get(("questions", number))
        try:
            question = _question(each)
            if question.id in found:
                raise ValueError("there are two with this id")
            found[question.id] = _checked(question)
        except ValueError as error:
            name = each.get("id") if isinstance(each, dict) else None
            shown = f"`{printable(name, 60)}`" if isinstance(name, str) else f"number {number + 1}"
            raise QuestionFileError(f"the question {shown}: {error}", line) from error
    return _related(found)


_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "text": str,
    "type": str,
    "options": list,
    "default": str,
    "range_min": (int, float),
    "range_max": (int, float),
    "depends_on": str,
    "depends_value": str,
    "fact": str,
}


def _question(value: object) -> Question:
    """Read one question, without its relations to others."""
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    if unknown := [name for name in value if name not in _KEYS]:
        raise ValueError(f"the key {printable(unknown[0], 60)} is not known")
    if missing := [name for name in ("id", "text") if name not in value]:
        raise ValueError(f"`{missing[0]}` is missing")
    kept: dict[str, Any] = {name: each for name, each in value.items() if each is not None}
    for name, each in kept.items():
        if not isinstance(each, _KEYS[name]) or isinstance(each, bool):
            raise ValueError(f"`{name}` has the wrong type")
    options = kept.get("options", [])
    if not all(isinstance(each, str) for each in options):
        raise ValueError("`options` are not all texts")
    kept["options"] = tuple(options)
    for name, kinds in (("type", QuestionType), ("fact", RepositoryFact)):
        if name in kept:
            if kept[name] not in [each.value for each in kinds]:
                raise ValueError(f"`{name}` is not one of {', '.join(kinds)}")
            kept[name] = kinds(kept[name])
    return Question(**kept)


def _checked(question: Question) -> Question:
    """Check one question by itself, and write its default in its one form."""
    if not _ID.fullmatch(question.id):
        raise ValueError("`id` is not like data-store: small letters, digits and hyphens, at most 60")
    if not question.text.strip() or len(question.text) > MOST_TEXT:
        raise ValueError(f"`text` has not 1 to {MOST_TEXT:,} characters")
    is_choice, is_number = question.type is QuestionType.ENUM, question.type is QuestionType.NUMERIC
    different = {each.casefold() for each in question.options}
    if is_choice and not 1 < len(question.options) == len(different) <= _MOST_OPTIONS:
        raise ValueError(f"a choice has 2 to {_MOST_OPTIONS} options, no two of them alike")
    if any(not each.strip() or each != each.strip() for each in question.options):
        raise ValueError("an option is empty, or begins or ends with a space")
    if question.options and not is_choice:
        raise ValueError("`options` belong to the type enum")
    low, high = question.range_min, question.range_max
    if (low is not None or high is not None) and not is_number:
        raise ValueError("a range belongs to the type numeric")
    if any(each is not None and not _is_finite(each) for each in (low, high)):
        raise ValueError("a limit of the range is not finite")
    if low is not None and high is not None and low > high:
        raise ValueError("`range_min` is above `range_max`")
    if (question.depends_on is None) != (question.depends_value is None):
        raise ValueError("`depends_on` and `depends_value` belong together")
    return replace(question, default=_read_as("default", question.default, question))


def _read_as(name: str, value: str | None, question: Question) -> str | None:
    """Write a value that must be an answer to a question in its one form."""
    try:
        return None if value is None else question.read(value)
    except InvalidAnswerError as error:
        raise ValueError(f"`{name}` is no answer of the type {question.type.value}: {error}") from error


def _related(found: Mapping[str, Question]) -> tuple[Question, ...]:
    """Check what questions depend on, and write the answers that they need in their one form."""
    whole: dict[str, Question] = {}
    for name, question in found.items():
        if question.depends_on is not None and question.depends_on not in found:
            other = printable(question.depends_on, 60)
            raise QuestionFileError(f"the question `{name}` depends on `{other}`, which is not there")
        try:
            by = question if question.depends_on is None else found[question.depends_on]
            value = _read_as("depends_value", question.depends_value, by)
            whole[name] = replace(question, depends_value=value)
        except ValueError as error:
            raise QuestionFileError(f"the question `{name}`: {error}") from error
    graph = {name: [each.depends_on] if each.depends_on else [] for name, each in whole.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " -> ".join(f"`{each}`" for each in error.args[1])
        raise QuestionFileError(f"questions depend on each other in a circle: {circle}") from error
    return tuple(whole.values())


def questions_schema() -> Schema:
    """Return the schema of a file of questions."""
    question: Shape = {
        "id": Schema(type="string", pattern=f"^{_ID.pattern}$"),
        "text": Schema(type="string", minLength=1, maxLength=MOST_TEXT),
        "type?": about(QuestionType, "freetext if it is left out"),
        "options?": about([str], "of enum: at least two", minItems=2, maxItems=_MOST_OPTIONS),
        "default?": str,
        "range_min?": float,
        "range_max?": float,
        "depends_on?": about(str, "the id of another question"),
        "depends_value?": about(str, "the answer to it with which this question applies"),
        "fact?": about(RepositoryFact, "what of the repository answers it"),
    }
    return document_schema(
        SCHEMA, "Questions that a run asks", {"questions": about([question], maxItems=MOST_QUESTIONS)}
    )
