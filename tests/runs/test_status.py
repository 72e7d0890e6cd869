"""`status` is one page of what other commands record, and of what a person has to do next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchgate.runs.phases import Phase
from patchgate.runs.run_output import list_schema, run_schema
from patchgate.runs.run_state import RunStatus
from patchgate.runs.status import status_schema
from tests.runs.test_runs import World
from tests.schemas import require_valid

pytestmark = pytest.mark.turns(3)


def test_an_empty_repository_has_an_empty_page(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False)
    page = world.repo.cli("status")
    assert page.code == 0
    assert page.out.startswith("runs: 0\ncomponents: 6; 0 drifted")


def test_the_page_names_what_is_open_and_the_next_step(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/left/code.txt": "wrong\n"})
    state = world.start("base", "left")
    world.repo.commit(message="Record")
    world.repo.commit({"src/base/more.txt": "x\n"})
    world.repo.cli("intent", "declare", "--allow", "src/base/", "-m", "rework the base of the others")
    world.repo.cli("apply", "-", "--run-dir", str(tmp_path / "evidence"))
    page = world.repo.cli("status")
    assert page.code == 0
    assert f"{state.id} paused: not done: left (implementation)" in page.out
    assert "  base: drifted" in page.out
    assert "rework the base" in page.out
    assert "next: git patchgate baseline capture base" in page.out
    document = json.loads(world.repo.cli("status", "--format", "json").out)
    require_valid(document, status_schema())
    assert document["schema"] == "patchgate.status/1"
    assert [run["status"] for run in document["runs"]] == ["paused"]
    assert [each["id"] for each in document["components"] if each["has_drifted"]] == ["base"]
    assert any(f"run resume {state.id}" in step for step in document["next"])


def test_what_cannot_be_read_hides_nothing_else(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base")
    intents = Path(world.repo.common_dir) / "patchgate" / "intents"
    intents.mkdir(parents=True, exist_ok=True)
    (intents / "i-01234567.json").write_text("{")
    page = world.repo.cli("status")
    assert "runs: 1; 1 completed" in page.out
    assert "not read: intents" in page.out


def test_a_baseline_that_is_not_committed_is_a_next_step(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base")
    assert world.repo.ask("diff", "--cached", "--name-only") == ".patchgate/baselines/base.json"
    step = (
        "next: git add .patchgate/baselines && git commit, because these baselines are not committed: base\n"
    )
    assert step in world.repo.cli("status").out
    world.repo.commit(message="Record")
    assert step not in world.repo.cli("status").out


def test_the_documents_of_runs_are_as_their_schemas_say(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/left/code.txt": "wrong\n"})
    world.start("base", "left")
    for words, schema in (("list", list_schema()), ("show", run_schema()), ("rebuild", run_schema())):
        require_valid(json.loads(world.repo.cli("run", words, "--format", "json").out), schema)
    shown = json.loads(world.repo.cli("run", "show", "--format", "json").out)
    assert list(shown["trouble"]) == ["left:implementation"]


def test_a_paused_run_whose_components_a_later_run_took_up_is_no_next_step(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/left/code.txt": "wrong\n"})
    paused = world.start("left")
    assert f"run resume {paused.id}" in world.repo.cli("status").out
    world.repo.commit({"src/left/code.txt": "right\n"})
    assert world.start("left", "base").status is RunStatus.COMPLETED
    page = world.repo.cli("status").out
    assert (f"{paused.id} paused" in page, f"run resume {paused.id}" in page) == (True, False)


def test_a_later_run_of_fewer_phases_leaves_a_paused_one_among_the_next_steps(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/left/code.txt": "wrong\n"})
    paused = world.start("left")
    shorter = world.start("left", until=Phase.TESTS)
    assert (paused.status, shorter.status) == (RunStatus.PAUSED, RunStatus.COMPLETED)
    assert f"run resume {paused.id}" in world.repo.cli("status").out
    world.repo.stage({"src/left/code.txt": "right\n"})
    resumed = world.resume()
    assert (resumed.id, resumed.status) == (paused.id, RunStatus.COMPLETED)


def test_the_page_is_no_next_step_of_itself(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    (tmp_path / "author.sh").write_text("echo prose\n")
    world.repo.policy((world.repo.path / "patchgate.toml").read_text() + "[apply]\nmax_attempts = 1\n")
    state = world.start("base", "other", "child")
    assert "git patchgate status" in str(state.hint)
    steps = json.loads(world.repo.cli("status", "--format", "json").out)["next"]
    assert not any("patchgate status" in each for each in steps), steps
    assert steps[-1] == f"git patchgate run resume {state.id}"


def test_a_damaged_ledger_is_named_where_runs_are_listed_and_resumed(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/base/code.txt": "wrong\n"})
    world.start("base")
    ledger = Path(world.repo.common_dir) / "patchgate" / "events.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join([lines[0], b"x" + lines[1], *lines[2:]]))
    page = world.repo.cli("status")
    assert (page.code, "not read: ledger: line 2 is damaged" in page.out) == (0, True), page.out
    for words, code in ((("list",), 0), (("resume", "-q"), 1)):
        answer = world.repo.cli("run", *words)
        assert (answer.code, "line 2 of the ledger is damaged" in answer.err) == (code, True)
