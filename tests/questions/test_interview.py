"""Who answers what: facts, assumptions, persons, defaults; and what is left open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.questions.interview import AS_STATED, OF_FACT, InterviewInputs, interview
from patchgate.questions.question import Question, QuestionType, RepositoryFact
from patchgate.questions.recorded_answers import (
    AnswerSource,
    AuditedAnswer,
    newest_answers,
    record_answers,
)

TEXT = Question("text", "What is it for?")
LANGUAGE = Question("language", "Which language?", fact=RepositoryFact.LANGUAGES)
SERVER = Question("server", "Is it a server?", QuestionType.BOOLEAN, default="no")
PORT = Question(
    "port", "Which port?", QuestionType.NUMERIC, depends_on="server", depends_value="yes", range_min=1
)
ALL = (TEXT, LANGUAGE, SERVER, PORT)
FACTS = {RepositoryFact.LANGUAGES: ("Python", "Shell"), RepositoryFact.LOCK_FILES: ("uv.lock",)}


def test_a_fact_answers_first_and_is_not_asked() -> None:
    asked: list[str] = []

    def ask(question: Question, offered: str | None) -> str:
        asked.append(question.id)
        return offered or "80"

    found = interview(ALL[1:], InterviewInputs(facts=FACTS, ask=ask))
    answer = found.answers["language"]
    assert (answer.answer, answer.confidence, answer.matched) == (
        "Python, Shell",
        OF_FACT,
        "languages: Python, Shell",
    )
    assert asked == ["server"]


def test_a_fact_answers_each_type() -> None:
    locks = RepositoryFact.LOCK_FILES
    questions = (
        Question("any", "Are there lock files?", QuestionType.BOOLEAN, fact=locks),
        Question("many", "How many?", QuestionType.NUMERIC, fact=locks),
        Question("main", "Which?", QuestionType.ENUM, options=("Go", "shell"), fact=RepositoryFact.LANGUAGES),
    )
    found = interview(questions, InterviewInputs(facts=FACTS))
    assert {name: each.answer for name, each in found.answers.items()} == {
        "any": "yes",
        "many": "1",
        "main": "shell",
    }
    none = interview(questions, InterviewInputs(facts={locks: ()}))
    assert (none.answers["any"].answer, none.open) == ("no", ("main",))


def test_what_nobody_answers_is_accepted_as_stated_without_confidence() -> None:
    found = interview(ALL, InterviewInputs())
    assert {name: (each.answer, each.confidence) for name, each in found.answers.items()} == {
        "text": (AS_STATED, 0.0),
        "language": (AS_STATED, 0.0),
        "server": ("no", 0.0),
    }
    assert found.open == ()


def test_a_choice_or_a_number_without_a_default_stays_open() -> None:
    found = interview((SERVER, PORT), InterviewInputs(known={"server": sure("server", SERVER.text, "yes")}))
    assert (list(found.answers), found.open) == (["server"], ("port",))
    assert found.below(0.5) == ["port"]
    assert found.below(0.0) == []


def sure(name: str, text: str, answer: str) -> AuditedAnswer:
    return AuditedAnswer(name, text, answer, AnswerSource.USER, 1.0, at="2026-01-01T00:00:00Z")


def test_an_earlier_answer_of_a_person_is_kept_and_not_recorded_again() -> None:
    known = {"text": sure("text", TEXT.text, "orders")}
    found = interview((TEXT,), InterviewInputs(known=known, assumptions=["something else"]))
    assert (found.answers["text"].answer, found.fresh) == ("orders", ())


def test_an_earlier_answer_does_not_count_for_another_question_under_the_same_name() -> None:
    known = {"text": sure("text", "Who pays?", "orders")}
    assert interview((TEXT,), InterviewInputs(known=known)).answers["text"].confidence == 0
    narrowed = replace(TEXT, type=QuestionType.ENUM, options=("a", "b"))
    known = {"text": sure("text", TEXT.text, "orders")}
    assert interview((narrowed,), InterviewInputs(known=known)).open == ("text",)


def test_a_doubtful_answer_is_asked_again_with_itself_offered() -> None:
    doubtful = AuditedAnswer("text", TEXT.text, "maybe", AnswerSource.ASSUMPTION, 0.3, "an assumption")
    offers: list[str | None] = []

    def ask(question: Question, offered: str | None) -> str:
        offers.append(offered)
        return "orders"

    found = interview((TEXT,), InterviewInputs(known={"text": doubtful}, ask=ask))
    assert (offers, found.answers["text"].source) == (["maybe"], AnswerSource.USER)


def test_a_fact_that_has_changed_replaces_what_it_was() -> None:
    before = interview((LANGUAGE,), InterviewInputs(facts={RepositoryFact.LANGUAGES: ("Go",)})).answers
    after = interview((LANGUAGE,), InterviewInputs(known=before, facts=FACTS))
    assert [each.answer for each in after.fresh] == ["Python, Shell"]


def by_command(answer: str, confidence: float, source: AnswerSource = AnswerSource.SLACK) -> AuditedAnswer:
    return AuditedAnswer("server", SERVER.text, answer, source, confidence, at="2026-01-01T00:00:00Z")


@pytest.mark.parametrize("confidence", [0.0, 0.4, 0.6, 1.0])
def test_what_a_person_or_a_message_said_later_counts_whatever_its_confidence(
    tmp_path: Path, confidence: float
) -> None:
    question = replace(LANGUAGE, id="server", text=SERVER.text)
    place = str(tmp_path)
    guess = AuditedAnswer("server", SERVER.text, "Go", AnswerSource.ASSUMPTION, 0.9, "in Go")
    record_answers(place, [guess, by_command("Rust", 1.0), by_command("Zig", confidence)])
    found = interview(
        (question,),
        InterviewInputs(known=newest_answers(place), facts=FACTS, assumptions=["Is it a server in Perl?"]),
    )
    assert (found.answers["server"].answer, found.answers["server"].confidence) == ("Zig", confidence)
    assert found.fresh == ()


def test_of_assumptions_the_later_one_counts_and_stays() -> None:
    def said(text: str, known: dict[str, AuditedAnswer]) -> AuditedAnswer:
        return interview((TEXT,), InterviewInputs(known=known, assumptions=[text])).answers["text"]

    first = {"text": said("one", {})}
    assert said("another", first).answer == "another"
    sure_of = {"text": replace(first["text"], confidence=0.8)}
    assert said("another", sure_of).answer == "another"
    assert interview((TEXT,), InterviewInputs(known=sure_of)).answers["text"].answer == "one"


def test_a_default_that_has_changed_replaces_what_it_was() -> None:
    before = interview((SERVER,), InterviewInputs()).answers
    after = interview((replace(SERVER, default="yes"),), InterviewInputs(known=before))
    assert [each.answer for each in after.fresh] == ["yes"]


def test_what_is_less_sure_than_the_policy_needs_is_asked_at_a_terminal() -> None:
    def ask(question: Question, offered: str | None) -> str:
        return "Rust"

    inputs = InterviewInputs(facts=FACTS, ask=ask)
    assert interview((LANGUAGE,), inputs).answers["language"].answer == "Python, Shell"
    strict = replace(inputs, least_confidence=0.95)
    assert interview((LANGUAGE,), strict).answers["language"].answer == "Rust"
    # Also where the policy needs none at all, doubtful answers are asked.
    assert interview((SERVER,), replace(inputs, ask=lambda *_: "y")).answers["server"].answer == "yes"
