"""Answers are events: append-only, the newest counts, and each says where it comes from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.ledger.ledger import Event, Ledger
from patchgate.questions.recorded_answers import (
    KIND,
    AnswerSource,
    AuditedAnswer,
    newest_answers,
    record_answers,
)
from patchgate.storage import hash_chain

SURE = AuditedAnswer("store", "Which database?", "SQLite", AnswerSource.USER, 1.0)
GUESS = AuditedAnswer("store", "Which database?", "Postgres", AnswerSource.ASSUMPTION, 0.7, "use Postgres")


def test_a_person_at_the_terminal_is_sure() -> None:
    with pytest.raises(ValueError, match="sure"):
        AuditedAnswer("a", "What?", "x", AnswerSource.USER, 0.9)


def test_an_answer_of_an_assumption_names_it() -> None:
    with pytest.raises(ValueError, match="names it"):
        AuditedAnswer("a", "What?", "x", AnswerSource.ASSUMPTION, 0.7)


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, math.inf])
def test_a_confidence_is_from_0_to_1(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        AuditedAnswer("a", "What?", "x", AnswerSource.SLACK, confidence)


def test_a_later_answer_counts_and_the_earlier_one_stays(tmp_path: Path) -> None:
    record_answers(str(tmp_path), [GUESS], lambda: 1000.0)
    record_answers(str(tmp_path), [SURE], lambda: 2000.0)
    newest = newest_answers(str(tmp_path))["store"]
    assert (newest.answer, newest.source, newest.at) == ("SQLite", AnswerSource.USER, "1970-01-01T00:33:20Z")
    told = [each.about["answer"] for each in Ledger(str(tmp_path)).find_events({KIND})]
    assert told == ["Postgres", "SQLite"]


def test_an_interrupt_between_two_answers_leaves_none(tmp_path: Path) -> None:
    def interrupted() -> Iterator[AuditedAnswer]:
        yield GUESS
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_answers(str(tmp_path), interrupted())
    assert newest_answers(str(tmp_path)) == {}


def test_all_answers_are_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hash_chain, "append", fail)
    record_answers(str(tmp_path), [GUESS, replace(SURE, question="other")])
    assert newest_answers(str(tmp_path)).keys() == {"store", "other"}


@pytest.mark.parametrize("source", AnswerSource)
def test_each_source_is_read_back(tmp_path: Path, source: AnswerSource) -> None:
    answer = AuditedAnswer("a", "What?", "x", source, 1.0, "of this")
    record_answers(str(tmp_path), [answer])
    assert newest_answers(str(tmp_path))["a"].source is source


@pytest.mark.parametrize(
    "about",
    [
        {},
        {**GUESS.plain(), "confidence": 7},
        {**GUESS.plain(), "confidence": True},
        {**GUESS.plain(), "source": "me"},
        {**GUESS.plain(), "answer": None},
        {**GUESS.plain(), "matched": 1},
    ],
)
def test_an_event_that_is_no_answer_is_left_out(about: dict[str, object]) -> None:
    assert AuditedAnswer.from_event(Event(KIND, about)) is None  # type: ignore[arg-type]
    assert AuditedAnswer.from_event(Event(KIND, GUESS.plain())) == GUESS
