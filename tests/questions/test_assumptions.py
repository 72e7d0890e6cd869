"""Which assumption answers which question, and how sure that is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.questions.assumptions import BY_POSITION, match_assumptions, significant_words
from patchgate.questions.interview import InterviewInputs, interview
from patchgate.questions.question import Question, QuestionType, read_questions

RETRY = Question("retry", "How many times does the payment service retry a failed request?")
STORE = Question(
    "store", "Which database keeps the orders?", QuestionType.ENUM, options=("SQLite", "Postgres")
)
SERVER = Question("server", "Does the report service open a network port?", QuestionType.BOOLEAN)
LIMITS = Question("limits", "Do users of the public API have limits?", QuestionType.BOOLEAN)
WITHOUT = Question(
    "copies",
    "Does the database keep copies of orders?",
    QuestionType.ENUM,
    options=("No copies", "Two copies"),
)
TIMES = Question("times", RETRY.text, QuestionType.NUMERIC, range_min=0, range_max=10)


def plain(number: int) -> Question:
    return Question(f"q{number}", f"Question {number}?")


def test_without_shared_words_the_position_pairs_them() -> None:
    found = match_assumptions([plain(0)], ["Use UTC everywhere"])
    assert (found["q0"].answer, found["q0"].confidence) == ("Use UTC everywhere", BY_POSITION)


def test_three_shared_words_beat_the_position_with_the_overlap_by_the_longer() -> None:
    right = "A failed payment request is tried again by the payment service three times"
    found = match_assumptions([plain(0), RETRY], ["Use UTC everywhere", "Nothing", right])
    words = [significant_words(each) for each in (RETRY.text, right)]
    shared = words[0] & words[1]
    assert len(shared) >= 3
    assert found["retry"].assumption == right
    assert found["retry"].confidence == pytest.approx(len(shared) / max(map(len, words)), abs=1e-4)


def test_two_shared_words_are_not_enough() -> None:
    found = match_assumptions([plain(0), RETRY], ["The payment service is in Go"])
    assert "retry" not in found


def test_the_position_is_the_one_in_the_file_whatever_depends_on_what() -> None:
    server = {"id": "server", "text": "Is it a server?", "type": "boolean"}
    depends = {"depends_on": "server", "depends_value": "yes"}
    port = {"id": "port", "text": "Which port?", "type": "numeric", **depends}
    workers = {"id": "workers", "text": "How many workers?", "type": "numeric"}
    for listed, lines in (
        ((server, port, workers), ["yes", "8080", "4"]),
        ((port, workers, server), ["8080", "4", "yes"]),
    ):
        questions = read_questions(json.dumps({"questions": listed}).encode())
        found = interview(questions, InterviewInputs(assumptions=lines)).answers
        assert {name: each.answer for name, each in found.items()} == {
            "server": "yes",
            "port": "8080",
            "workers": "4",
        }


def test_stop_words_do_not_count() -> None:
    assert significant_words("What is the port that it will use?") == {"port"}
    question = Question("a", "What is it that this does to them, and when will it be done?")
    assert match_assumptions(
        [plain(0), question], ["This is what it does to them when it is done"]
    ).keys() == {"q0"}


def test_five_questions_and_two_assumptions_are_at_most_two_matches() -> None:
    found = match_assumptions([plain(number) for number in range(5)], ["one", "two"])
    assert {name: each.answer for name, each in found.items()} == {"q0": "one", "q1": "two"}


def test_an_assumption_answers_several_questions_only_where_it_matches_each() -> None:
    text = "The payment service never retries a failed request"
    other = Question("other", "Is a failed payment request told to the customer of the service?")
    both = match_assumptions([plain(0), RETRY, other], [text])
    assert both.keys() == {"retry", "other"}
    assert "q0" not in both


@pytest.mark.parametrize(
    ("question", "assumption", "answer"),
    [
        (STORE, "the orders database keeps is postgres", "Postgres"),
        (STORE, "the orders database keeps SQLite and Postgres", None),
        (STORE, "the orders database keeps MySQL", None),
        (STORE, "SQLite is no database that keeps the orders", None),
        (STORE, "the orders database keeps is not SQLite", None),
        (STORE, "the orders are never in Postgres, which keeps no database", None),
        (STORE, "the database that keeps the orders isn't Postgres", None),
        (STORE, "the database keeps orders without Postgres", None),
        (WITHOUT, "the orders database keeps no copies", "No copies"),
        (LIMITS, "The API is public, all users have no limits", None),
        (LIMITS, "limits of users of the public API: yes", "yes"),
        (LIMITS, "Yes, users of the public API have no limits but one", "yes"),
        (TIMES, "the payment service does not try a failed request 3 times", None),
        (SERVER, "no: the report service opens no network port", "no"),
        (SERVER, "the report service may open a network port", None),
        (SERVER, "yes or no: the report service network port", None),
        (TIMES, "the payment service does 3 times a failed request", "3"),
        (TIMES, "the payment service does 30 times a failed request", None),
        (TIMES, "the payment service does 3 or 4 times a failed request", None),
        (TIMES, "a failed request of the payment service: times 3.", "3"),
        (TIMES, "the payment service does 3 or 30 times a failed request", None),
        (TIMES, "the payment service does 3-4 times a failed request", None),
        (TIMES, "the payment service does 3 – 4 times a failed request", None),
        (TIMES, "the payment service does 3..4 times a failed request", None),
        (TIMES, "the payment service does 1,000 times a failed request", None),
        (TIMES, "the payment service does 1'000 times a failed request", None),
        (TIMES, "the payment service does 1 000 times a failed request", None),
        (TIMES, "since 4/5 the payment service does times a failed request", None),
        (TIMES, "since 2026-01-02 the payment service does times a failed request", None),
        (TIMES, "the payment service 1.2.3 does times a failed request", None),
        (TIMES, "the payment service does 10k times, or 3, a failed request", None),
        (TIMES, "the payment service avoids to try a failed request 3 times", None),
        (STORE, "the orders database keeps: everything except SQLite", None),
        (STORE, "the database that keeps orders, rather another than Postgres", None),
        (STORE, "forbidden is SQLite as a database that keeps the orders", None),
        (STORE, "instead of SQLite another database keeps the orders", None),
        (STORE, "the database that keeps the orders should avoid Postgres", None),
        (LIMITS, "No limits of users are in the public API", None),
        (LIMITS, "Limits of users of the public API: no idea", None),
        (LIMITS, "Limits of users of the public API: no.", "no"),
    ],
)
def test_a_typed_question_takes_only_the_one_answer_that_an_assumption_has(
    question: Question, assumption: str, answer: str | None
) -> None:
    found = match_assumptions([question], [assumption]).get(question.id)
    assert (None if found is None else found.answer) == answer


def test_ten_thousand_assumptions_are_matched_at_once() -> None:
    questions = [
        Question(f"q{number}", f"alpha{number} beta{number} gamma{number} delta?") for number in range(200)
    ]
    assumptions = [f"alpha{number} beta{number} gamma{number} delta words" for number in range(10_000)]
    found = match_assumptions(questions, assumptions)
    assert [each.assumption for each in found.values()] == assumptions[:200]


@given(st.lists(st.text(max_size=40), max_size=8), st.lists(st.text(max_size=40), max_size=8))
def test_nothing_is_matched_by_position_beyond_the_assumptions(
    texts: list[str], assumptions: list[str]
) -> None:
    questions = [Question(f"q{number}", text) for number, text in enumerate(texts)]
    found = match_assumptions(questions, assumptions)
    for name, each in found.items():
        assert 0 < each.confidence <= 1
        assert each.assumption in assumptions
        if each.confidence == BY_POSITION and not significant_words(each.assumption):
            assert int(name[1:]) < len(assumptions)
