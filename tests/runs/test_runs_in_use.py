"""What people met who used runs: trials side by side, equal answers, signals, and what is gone or damaged."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from patchgate.apply.attempt_records import records
from patchgate.ledger.ledger import Ledger
from patchgate.runs.run_record import find_run
from patchgate.runs.run_state import RunStatus
from tests.component_world import opened
from tests.runs.phase_world import new_file
from tests.runs.test_runs import World
from tests.world import EXECUTABLE

pytestmark = pytest.mark.turns(3)


def with_policy(world: World, more: str) -> None:
    world.repo.policy((world.repo.path / "patchgate.toml").read_text() + more)


def test_answers_are_tried_beside_each_other(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    marks = tmp_path / "marks"
    marks.mkdir()
    # It passes when two of it have run at once.
    script = tmp_path / "lint.sh"
    script.write_text(
        f"cd {shlex.quote(str(marks))} && touch $$ && for i in $(seq 200); do\n"
        "[ $(ls | wc -l) -ge 2 ] && exit 0; sleep 0.1; done; exit 1\n"
    )
    with_policy(world, f'[commands.meet]\nkind = "lint"\ncommand = ["sh", {json.dumps(str(script))}]\n')
    answer = world.repo.run("run", "start", "base", "other", "--jobs", "2")
    assert answer.code == 0, answer.out + answer.err
    assert (world.repo.path / "src/base/code.txt").read_text() == "right\n"
    assert (world.repo.path / "src/other/code.txt").read_text() == "right\n"
    line, *alone = [each for each in answer.out.splitlines() if "Patchgate-Run" in each]
    said = r'what it made is staged: git commit --trailer "(Patchgate-Run: r-[0-9a-f]+)"'
    trailer = re.fullmatch(said, line)
    assert trailer is not None
    assert [each.partition(" -- ")[2] for each in alone] == [
        f"src/{name}/code.txt .patchgate/baselines/{name}.json" for name in ("base", "other")
    ]
    for command in alone:
        world.repo.git(*shlex.split(command)[1:-3], "-q", "-m", "Add code", *shlex.split(command)[-3:])
        assert world.repo.check("HEAD").change["profile"] == "agent"
    assert world.repo.ask("diff", "--cached", "--name-only") == ""
    world.repo.git("reset", "-q", "--soft", "HEAD~2")
    world.repo.git("commit", "-q", "-m", "Add code", "--trailer", trailer[1])
    assert world.repo.check("HEAD").change["profile"] == "agent"


def test_equal_answers_of_two_components_are_two_chains(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    (tmp_path / "author.sh").write_text("cat " + shlex.quote(str(tmp_path / "answer")))
    (tmp_path / "answer").write_bytes(new_file("notes.txt", "the same\n"))
    with_policy(world, "[apply]\nmax_attempts = 2\n")
    state = world.start("base", "other")
    assert {each.outcome for each in state.trouble.values()} == {"waiting"}
    refused = [each for each in records(Ledger(world.repo.common_dir)) if each.counts]
    assert [each.run and each.run.split("/")[1] for each in refused] == ["base", "base", "other", "other"]
    assert len({each.chain for each in refused}) == 2
    assert "attempts reset" in (state.trouble[min(state.trouble)].hint or "")
    page = json.loads(world.repo.cli("status", "--format", "json").out)
    assert [each["refused"] for each in page["chains"]] == [2, 2]
    # A run that is resumed before both are reset waits for them again.
    assert ["reset" in step for step in page["next"]] == [True, True, False]
    assert state.id in page["next"][2]


def commit_of_something_else(world: World) -> str:
    """Check a file that no component has, while an author works; return what is said."""
    world.repo.stage({"elsewhere.txt": "x\n"})
    return world.repo.cli("check").out


@pytest.mark.parametrize("quiet", [(), ("-q",)], ids=["in full", "quiet"])
def test_a_signal_pauses_a_run_and_nothing_is_under_way_any_more(
    tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    world = World.make(tmp_path)
    asked = tmp_path / "asked"
    (tmp_path / "author.sh").write_text(f"touch {shlex.quote(str(asked))}; sleep 60\n")
    words = [str(EXECUTABLE), "run", "start", "base", *quiet]
    with subprocess.Popen(
        words, cwd=world.repo.path, env=world.repo.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        while not asked.exists() and run.poll() is None:
            time.sleep(0.02)
        refused = commit_of_something_else(world)
        run.terminate()
        said, _ = run.communicate(timeout=60)
    state = find_run(opened(world.repo), None)
    assert (state.status, state.reason) == (RunStatus.PAUSED, "stopped by a signal")
    assert run.returncode == 143
    assert f"help: git patchgate run resume {state.id}" in said.decode()
    assert "scope-unexpected" in refused
    assert f"git patchgate run show {state.id}" in refused
    shown = world.repo.cli("run", "show").out
    assert "implementation interrupted" in shown
    assert "under way" not in shown


def test_a_component_that_is_gone_is_left_out_of_the_run(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/other/code.txt": "wrong\n"})
    assert world.start("base", "other").status is RunStatus.PAUSED
    text = (world.repo.path / "patchgate.toml").read_text()
    world.repo.policy(text.replace("[components.other]", "[components.another]"))
    answer = world.repo.cli("run", "resume")
    assert (answer.code, "left out" in answer.out) == (0, True), answer.out + answer.err
    state = find_run(opened(world.repo), None)
    assert (state.status, state.completed_components) == (RunStatus.COMPLETED, ["base"])


def test_without_its_first_event_a_run_is_started_anew_and_says_why(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base")
    ledger = Ledger(world.repo.common_dir).path
    lines = ledger.read_bytes().splitlines(keepends=True)
    torn = [b"{torn\n" if b'"action":"started"' in line else line for line in lines[:-1]]
    ledger.write_bytes(b"".join(torn))
    shown = json.loads(world.repo.cli("run", "show", "--format", "json").out)
    assert shown["hint"].startswith("git patchgate run start")
    (missing, damaged) = shown["warnings"]
    assert "damaged" in damaged
    assert "what it had to do is not known" in missing
    headline = world.repo.cli("run", "show").out.splitlines()[0]
    assert "of 0 phases" not in headline
    assert "not known" in headline
    assert any(
        each.startswith("git patchgate run start")
        for each in json.loads(world.repo.cli("status", "--format", "json").out)["next"]
    )


def test_a_run_is_shown_while_the_policy_on_disk_is_broken(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base")
    world.repo.write("patchgate.toml", "[policy\n")
    answer = world.repo.cli("run", "show", "--format", "json")
    assert answer.code == 0
    shown = json.loads(answer.out)
    assert shown["status"] == "completed"
    assert any("cannot be read" in each for each in shown["warnings"])


def test_a_broken_policy_on_disk_refuses_start_and_resume_alike(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/base/code.txt": "wrong\n"})
    world.start("base")
    world.repo.write("patchgate.toml", "[policy\n")
    said = [world.repo.cli("run", *words) for words in (("start", "other"), ("resume",))]
    assert [each.code for each in said] == [2, 2]
    assert said[0].err == said[1].err
    assert "patchgate.toml" in said[0].err


def test_files_that_are_not_staged_are_named(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.write("src/base/code.txt", "wrong\n")
    world.repo.write("src/base/more.txt")
    world.repo.write("notes.txt")
    answer = world.repo.cli("run", "start", "base")
    (line,) = [line for line in answer.out.splitlines() if line.startswith("warning: ")]
    assert "src/base/code.txt" in line
    assert "src/base/more.txt" in line
    assert "notes.txt" not in line


def test_a_worker_imports_nothing_of_the_repository(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    trap = 'raise SystemExit("imported")\n'
    world.repo.commit({"click.py": trap, "patchgate/__init__.py": trap, "json.py": trap})
    done = world.repo.run("run", "start", "base", "--phase", "contract")
    assert (done.code, "imported" in done.out + done.err) == (0, False), done.out + done.err


def test_a_failed_work_shows_the_end_of_its_output(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"tests/base/check.sh": "echo what went wrong; exit 1\n"})
    answer = world.repo.cli("run", "start", "base")
    assert "| what went wrong" in answer.out
    shown = world.repo.cli("run", "show").out
    assert "| what went wrong" in shown
    assert "capture again" not in shown


def test_a_baseline_whose_objects_are_gone_is_made_again(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base")
    place = world.repo.path / ".patchgate/baselines/base.json"
    text = place.read_text()
    oid = world.repo.ask("rev-parse", "HEAD:src/base/code.txt").strip()
    assert oid in text
    place.write_text(text.replace(oid, "1" * 40))
    state = world.start("base")
    assert state.status is RunStatus.COMPLETED, state
    assert oid in place.read_text()
