"""The questions of a run: who is asked, what authors get, when a run waits, and what is left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from patchgate.ledger.ledger import Ledger
from patchgate.questions.recorded_answers import KIND
from patchgate.runs.run_questions import answers_schema
from patchgate.runs.run_state import RunStatus
from tests.runs.test_runs import World
from tests.schemas import require_valid
from tests.signing import at_terminal

pytestmark = pytest.mark.turns(3)

QUESTIONS = [
    {
        "id": "store",
        "text": "Which database keeps the orders?",
        "type": "enum",
        "options": ["SQLite", "Postgres"],
    },
    {"id": "server", "text": "Is it a server?", "type": "boolean", "default": "no"},
    {
        "id": "port",
        "text": "Which port does it open?",
        "type": "numeric",
        "range_min": 1,
        "range_max": 65535,
        "depends_on": "server",
        "depends_value": "yes",
    },
    {"id": "branch", "text": "Which branch is released?", "fact": "default_branch"},
]


def world_with(folder: Path, *questions: object, more: str = "", **keys: Any) -> World:
    world = World.make(folder, **keys)
    text = (world.repo.path / "patchgate.toml").read_text()
    world.repo.commit({"questions.json": json.dumps({"questions": questions or QUESTIONS})})
    world.repo.policy(f'{text}[run]\nquestions = "questions.json"\n{more}')
    return world


def answers(world: World) -> dict[str, tuple[Any, Any]]:
    document = json.loads(world.repo.cli("run", "answer", "--format", "json").out)
    require_valid(document, answers_schema())
    return {each["question"]: (each["answer"], each["confidence"]) for each in document["answers"]}


def recorded(world: World) -> list[object]:
    return [each.about["question"] for each in Ledger(world.repo.common_dir).find_events({KIND})]


def test_without_a_terminal_nothing_waits_and_what_is_not_sure_is_told(tmp_path: Path) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    started = world.repo.cli("run", "start", "base")
    assert started.code == 0
    assert "answers that nobody has confirmed: server, store" in started.out
    assert answers(world) == {"store": (None, None), "server": ("no", 0.0), "branch": ("main", 0.9)}
    assert recorded(world) == ["server", "branch"]
    page = json.loads(world.repo.cli("status", "--format", "json").out)
    assert page["doubtful"] == ["server", "store"]
    assert "git patchgate run answer server ANSWER" in page["next"]
    # A second run has nothing new to record.
    world.repo.cli("run", "start", "base")
    assert recorded(world) == ["server", "branch"]


def test_assumptions_answer_by_words_and_the_rest_by_position(tmp_path: Path) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    (tmp_path / "assumptions").write_text(
        "- nothing of this\n- yes, it is one\n- The database keeps orders in Postgres\n"
    )
    assert world.repo.cli("run", "start", "base", "--assume", str(tmp_path / "assumptions")).code == 0
    found = answers(world)
    assert found["store"] == ("Postgres", pytest.approx(0.75))
    assert found["server"] == ("yes", 0.7)
    assert found["port"] == (None, None)


def test_a_run_may_wait_until_a_person_has_answered(tmp_path: Path) -> None:
    world = world_with(tmp_path, more="least_confidence = 0.5\n", has_author=False, has_code=True)
    state = world.start("base")
    assert (state.status, state.done) == (RunStatus.PAUSED, {})
    assert state.reason == "waits for answers: server, store"
    assert "git patchgate run answer server ANSWER" in (state.hint or "")
    assert world.repo.cli("run", "answer", "server", "maybe").code == 2
    assert world.repo.cli("run", "answer", "server", "Y").code == 0
    assert world.resume().reason == "waits for answers: store, port"
    for name, said in (("port", "8080"), ("store", "sqlite")):
        assert world.repo.cli("run", "answer", name, said).code == 0
    assert world.resume().status is RunStatus.COMPLETED
    assert answers(world) == {
        "store": ("SQLite", 1.0),
        "server": ("yes", 1.0),
        "port": ("8080", 1.0),
        "branch": ("main", 0.9),
    }


def test_authors_get_the_answers_in_their_brief(tmp_path: Path) -> None:
    world = world_with(tmp_path)
    script = tmp_path / "author.sh"
    script.write_text(f"tee {tmp_path}/brief | (\n{script.read_text()}\n)")
    world.repo.cli("run", "answer", "store", "postgres")
    assert world.start("base").status is RunStatus.COMPLETED
    brief = (tmp_path / "brief").read_text()
    assert (
        "## Answers\n\n- Which database keeps the orders? Postgres\n- Is it a server? no (not confirmed)\n"
        in brief
    )


def test_at_a_terminal_each_open_question_is_asked_and_a_wrong_answer_again(tmp_path: Path) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    answer = at_terminal(world.repo, "run", "start", "base", typed=b"mysql\nSQLITE\ny\n99999\n8080\n")
    assert answer.code == 0, answer.out
    assert answers(world) == {
        "store": ("SQLite", 1.0),
        "server": ("yes", 1.0),
        "port": ("8080", 1.0),
        "branch": ("main", 0.9),
    }


def test_an_interrupted_interview_leaves_nothing_behind(tmp_path: Path) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    before = world.repo.ask("status", "--porcelain")
    answer = at_terminal(world.repo, "run", "start", "base", typed=b"SQLite\ny\n\x04")
    assert answer.code == 130
    assert (recorded(world), world.repo.ask("status", "--porcelain")) == ([], before)
    assert json.loads(world.repo.cli("run", "list", "--format", "json").out)["runs"] == []


def test_a_message_elsewhere_may_answer_with_its_own_confidence(tmp_path: Path) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    words = ("--source", "integration_slack", "--confidence", "0.8")
    assert world.repo.cli("run", "answer", "store", "Postgres", *words).code == 0
    assert answers(world)["store"] == ("Postgres", 0.8)
    assert world.repo.cli("run", "answer", "store", "Postgres", "--confidence", "nan").code == 2
    assert world.repo.cli("run", "answer", "store").code == 2
    assert world.repo.cli("run", "answer", "nothing", "x").code == 2


def test_a_later_answer_of_a_person_replaces_a_fact_and_an_assumption(tmp_path: Path) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    (tmp_path / "assumptions").write_text("The database keeps orders in Postgres\n")
    world.repo.cli("run", "start", "base", "--assume", str(tmp_path / "assumptions"))
    for name, said in (("store", "SQLite"), ("branch", "stable")):
        assert world.repo.cli("run", "answer", name, said, "--confidence", "0.3").code == 0
    world.repo.cli("run", "start", "base", "--assume", str(tmp_path / "assumptions"))
    found = answers(world)
    assert (found["store"], found["branch"]) == (("SQLite", 0.3), ("stable", 0.3))


def test_an_answer_to_a_question_that_does_not_apply_is_recorded_and_told(tmp_path: Path) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    said = world.repo.cli("run", "answer", "port", "8080")
    assert (said.code, "server" in said.err, "yes" in said.err) == (0, True, True)
    assert recorded(world) == ["port"]
    assert "warning" not in world.repo.cli("run", "answer", "server", "y").err
    assert answers(world)["port"] == ("8080", 1.0)


def test_control_characters_of_an_answer_reach_nobody(tmp_path: Path) -> None:
    world = world_with(tmp_path, {"id": "why", "text": "Why is it there?"}, has_author=False, has_code=True)
    evil = "\x1b]0;evil\x07red"
    refused = world.repo.cli("run", "answer", "why", evil)
    assert (refused.code, "\x1b" in refused.err, recorded(world)) == (2, False, [])
    # An assumption with them is none, and neither is what an older version has recorded.
    (tmp_path / "assumptions").write_text(evil + "\n")
    ledger = Ledger(world.repo.common_dir)
    about = {"question": "why", "text": "Why is it there?", "answer": evil, "source": "cli_approve"}
    ledger.record(KIND, {**about, "confidence": 0.2, "matched": None})
    command = ("run", "start", "base", "--assume", str(tmp_path / "assumptions"))
    shown = at_terminal(world.repo, *command, typed=b"because\n")
    assert (shown.code, "\x1b]0" in shown.out, answers(world)) == (0, False, {"why": ("because", 1.0)})


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\xff\xfea\x00", "UTF-8"),
        ("naïve".encode("latin-1"), "UTF-8"),
        (b"a\0b", "NUL"),
        (b"x" * (5 << 20), "too large"),
    ],
)
def test_assumptions_that_cannot_be_read_start_nothing(tmp_path: Path, raw: bytes, said: str) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    (tmp_path / "assumptions").write_bytes(raw)
    answer = world.repo.cli("run", "start", "base", "--assume", str(tmp_path / "assumptions"))
    assert (answer.code, said in answer.err, recorded(world)) == (2, True, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "questions.json:1"),
        (
            json.dumps({"questions": [{"id": "a", "text": "x", "type": "enum", "options": ["one"]}]}),
            "2 to 50 options",
        ),
        (None, "no such file"),
    ],
)
def test_a_file_of_questions_that_cannot_be_used_starts_nothing(
    tmp_path: Path, text: str | None, said: str
) -> None:
    world = world_with(tmp_path, has_author=False, has_code=True)
    if text is None:
        world.repo.git("rm", "-q", "questions.json")
    else:
        world.repo.stage({"questions.json": text})
    answer = world.repo.cli("run", "start", "base")
    assert (answer.code, said in answer.err) == (2, True), answer.err
    page = world.repo.cli("status")
    assert (page.code, "not read: questions" in page.out) == (0, True)
