"""What a question takes for an answer, and which files of questions are refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.questions.question import (
    InvalidAnswerError,
    Question,
    QuestionFileError,
    QuestionType,
    in_order,
    is_asked,
    questions_schema,
    read_questions,
)

STORE = {"id": "store", "text": "Where is data kept?", "type": "enum", "options": ["SQLite", "Postgres"]}
PORT = {"id": "port", "text": "Which port?", "type": "numeric", "range_min": 1, "range_max": 65535}
SERVER = {"id": "server", "text": "Is it a server?", "type": "boolean"}


def file_of(*questions: object) -> bytes:
    return json.dumps({"questions": questions}).encode()


def one(**keys: Any) -> Question:
    (found,) = read_questions(file_of({"id": "a", "text": "What?", **keys}))
    return found


@pytest.mark.parametrize(("said", "answer"), [("y", "yes"), ("TRUE", "yes"), (" No ", "no"), ("false", "no")])
def test_a_boolean_takes_yes_no_true_and_false(said: str, answer: str) -> None:
    assert one(type="boolean").read(said) == answer


@pytest.mark.parametrize("said", ["", "maybe", "1", "yess"])
def test_a_boolean_takes_nothing_else(said: str) -> None:
    with pytest.raises(InvalidAnswerError):
        one(type="boolean").read(said)


def test_a_choice_takes_an_option_in_any_case_and_nothing_else() -> None:
    (store,) = read_questions(file_of(STORE))
    assert (store.read("sqlite"), store.read(" POSTGRES")) == ("SQLite", "Postgres")
    with pytest.raises(InvalidAnswerError, match="SQLite, Postgres"):
        store.read("MySQL")


def test_a_number_is_finite_and_in_its_range_with_both_ends() -> None:
    (port,) = read_questions(file_of(PORT))
    assert (port.read("1"), port.read("65535"), port.read("80.0")) == ("1", "65535", "80")
    for said in ("0", "65536", "nan", "inf", "-inf", "eighty", "1e999", "8_0", "８０", "0x50", "80 00", "."):
        with pytest.raises(InvalidAnswerError):
            port.read(said)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("9007199254740991", "9007199254740991"),
        ("+9007199254740993.00", "9007199254740993"),
        ("-0.0", "0"),
        ("0.1", "0.1"),
        ("0.12345678901234568", "0.12345678901234568"),
        ("1e3", "1000"),
        ("2.5e-7", "2.5e-07"),
        ("1" * 400, "1" * 400),
    ],
)
def test_a_number_is_kept_as_it_was_said(said: str, answer: str) -> None:
    question = one(type="numeric")
    assert (question.read(said), question.read(answer)) == (answer, answer)


def test_the_limits_of_a_range_are_exact() -> None:
    question = one(type="numeric", range_max=9007199254740992)
    with pytest.raises(InvalidAnswerError, match="up to 9007199254740992"):
        question.read("9007199254740993")
    assert question.read("9007199254740992") == "9007199254740992"


@pytest.mark.parametrize(
    "said", ["", "   ", "\t\n", "a\0b", "x" * 2001, "\x1b]0;evil\x07red", "a\nb", "\u202ea"]
)
def test_a_text_is_not_empty(said: str) -> None:
    with pytest.raises(InvalidAnswerError):
        one().read(said)
    assert one().read(" some text\tin columns ") == "some text\tin columns"


def test_a_question_is_skipped_where_it_does_not_apply() -> None:
    nested = {**PORT, "id": "tls-port", "depends_on": "port", "depends_value": "443"}
    listed = read_questions(file_of({**PORT, "depends_on": "server", "depends_value": "y"}, SERVER, nested))
    by_id = {each.id: each for each in listed}
    assert [each.id for each in listed] == ["port", "server", "tls-port"]
    assert [each.id for each in in_order(listed)] == ["server", "port", "tls-port"]
    assert by_id["port"].depends_value == "yes"
    assert not is_asked(by_id["port"], {}, by_id)
    assert not is_asked(by_id["port"], {"server": "no"}, by_id)
    assert is_asked(by_id["port"], {"server": "yes"}, by_id)
    # What depends on a question that does not apply does not apply either.
    assert not is_asked(by_id["tls-port"], {"server": "no", "port": "443"}, by_id)


def test_a_default_is_kept_in_its_one_form() -> None:
    assert one(type="boolean", default="TRUE").default == "yes"
    assert one(type="numeric", default="5.0").default == "5"
    assert one().type is QuestionType.FREETEXT


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({**STORE, "options": ["one"]}, "2 to 50 options"),
        ({**STORE, "options": ["a", "A"]}, "2 to 50 options"),
        ({**STORE, "options": ["a", " b"]}, "space"),
        ({**PORT, "range_min": 9, "range_max": 1}, "above"),
        ({**PORT, "default": "0"}, "default"),
        ({**SERVER, "default": "maybe"}, "default"),
        ({**SERVER, "options": ["a", "b"]}, "enum"),
        ({**SERVER, "range_min": 1}, "numeric"),
        ({**SERVER, "depends_on": "port"}, "belong together"),
        ({**SERVER, "depends_on": "nothing", "depends_value": "x"}, "not there"),
        ({**SERVER, "type": "date"}, "freetext, boolean"),
        ({**SERVER, "fact": "weather"}, "languages"),
        ({**SERVER, "text": "  "}, "text"),
        ({**SERVER, "id": "Big"}, "small letters"),
        ({**SERVER, "more": 1}, "more"),
        ({**SERVER, "text": 1}, "wrong type"),
        ({"id": "a"}, "`text` is missing"),
        ("text", "no object"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_with_its_line(question: object, said: str) -> None:
    with pytest.raises(QuestionFileError, match=r"question") as caught:
        read_questions(b'{"questions": [\n' + json.dumps(question).encode() + b"]}")
    assert said in caught.value.message
    assert caught.value.line in {2, None}


def test_a_circle_of_questions_is_refused_with_its_path() -> None:
    a, b = (
        {**SERVER, "id": each, "depends_on": other, "depends_value": "yes"}
        for each, other in (("a", "b"), ("b", "a"))
    )
    with pytest.raises(QuestionFileError, match=r"circle: `[ab]` -> `[ab]` -> `[ab]`"):
        read_questions(file_of(a, b))
    with pytest.raises(QuestionFileError, match="circle"):
        read_questions(file_of({**SERVER, "depends_on": "server", "depends_value": "yes"}))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"questions": {}}',
        b'{"questions": [], "other": 1}',
        b'{"questions": [], "questions": []}',
        b'{"schema": "patchgate.questions/9", "questions": []}',
        b"[" * 100_000,
        file_of(*({**SERVER, "id": f"q{number}"} for number in range(201))),
        file_of(SERVER, SERVER),
    ],
)
def test_a_file_that_is_none_is_one_sentence(raw: bytes) -> None:
    with pytest.raises(QuestionFileError) as caught:
        read_questions(raw)
    assert "\n" not in caught.value.message


def test_a_value_that_depends_is_an_answer_to_the_other_question() -> None:
    with pytest.raises(QuestionFileError, match="depends_value"):
        read_questions(file_of(STORE, {**SERVER, "depends_on": "store", "depends_value": "MySQL"}))


@given(
    st.dictionaries(
        st.sampled_from([*STORE, *PORT, "default", "fact", "depends_on"]), st.text() | st.integers()
    )
)
def test_whatever_a_question_has_it_is_read_or_refused(keys: dict[str, Any]) -> None:
    try:
        (found,) = read_questions(file_of({**SERVER, **keys}))
    except QuestionFileError:
        return
    assert found.id


def test_the_schema_accepts_what_is_read() -> None:
    document = {"schema": "patchgate.questions/1", "questions": [STORE, PORT, SERVER]}
    jsonschema.Draft202012Validator(questions_schema()).validate(document)
    assert len(read_questions(json.dumps(document).encode())) == 3
