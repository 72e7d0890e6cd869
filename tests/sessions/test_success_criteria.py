"""The success criteria of the requirements of components and runs (section D), one test each."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from patchgate.ledger.ledger import Ledger
from patchgate.runs.phase_task import PhaseTask
from patchgate.runs.phases import Phase, Work
from patchgate.runs.run_state import RunStatus
from patchgate.runs.triage import FaultKind
from patchgate.runs.worker import SILENT_SECONDS, Workers
from tests.component_world import contract, declared, files
from tests.hooks.doctor import test_doctor_environment as doctor
from tests.runs import test_phases as phases
from tests.runs.phase_world import new_file
from tests.runs.test_runs import World
from tests.test_promises import COMPONENTS, REQUIREMENTS, ROOT, is_there
from tests.world import Repo

pytestmark = pytest.mark.turns(2)


def works(repo: Repo, action: str) -> list[tuple[str, str]]:
    """List component and phase of the events of runs with this action, oldest first."""
    found = [event.about for event in Ledger(repo.common_dir).find_events({"run"})]
    return [(str(each["component"]), str(each["phase"])) for each in found if each["action"] == action]


def test_a_stopped_run_is_resumed_without_editing_its_state(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/left/code.txt": "wrong\n"})
    assert world.start("base", "left").status is RunStatus.PAUSED
    world.repo.commit({"src/left/code.txt": "right\n"})
    before = works(world.repo, "finished")
    assert world.resume().status is RunStatus.COMPLETED
    again = works(world.repo, "finished")[len(before) :]
    assert {component for component, _ in again} == {"left"}


def test_a_call_that_is_active_is_never_idle(tmp_path: Path) -> None:
    now, said = [0.0], threading.Semaphore(0)
    # A worker that waits for an author writes about once a second: here, whenever the test does.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = f"""while read -r line; do echo '{{"what": "waits", "seconds": 1}}'; done <'{pipe}'"""
    workers = Workers(
        ["sh", "-c", script],
        {"PATH": "/usr/bin:/bin"},
        lambda work: PhaseTask("r-1", work.component, work.phase, seconds=5, stall=5),
        report=lambda what, seconds: said.release(),
        clock=lambda: now[0],
    )
    with ThreadPoolExecutor() as pool:
        result = pool.submit(workers.perform, Work("a", Phase.IMPLEMENTATION))
        with pipe.open("w", buffering=1) as caller:
            for _ in range(5):
                now[0] += SILENT_SECONDS - 1
                caller.write("goes on\n")
                assert said.acquire(timeout=60)
                workers.end_idle()
        assert result.result().kind is FaultKind.TEMPORARY


def test_two_components_that_collect_nothing_pause_the_run(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    text = (world.repo.path / "patchgate.toml").read_text()
    world.repo.policy(text.replace('["sh", "tests', '["no-such-tool", "tests'))
    state = world.start("base", "child", "other")
    assert state.status is RunStatus.PAUSED
    assert "no-such-tool is not on the PATH" in str(state.reason)
    assert works(world.repo, "faulted") == [("base", "implementation"), ("child", "implementation")]


@pytest.mark.parametrize("text", [None, "def help(): pass\n"], ids=["no test files", "no test functions"])
def test_two_components_whose_tests_are_none_pause_the_run(tmp_path: Path, text: str | None) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    names = ("base", "child", "other")
    policy = (world.repo.path / "patchgate.toml").read_text()
    for name in names:
        world.repo.git("rm", "-rq", f"tests/{name}")
        if text is not None:
            world.repo.stage({f"tests/{name}/test_it.py": text})
        command = json.dumps([sys.executable, "-m", "pytest", f"tests/{name}"])
        policy = policy.replace(f'["sh", "tests/{name}/check.sh"]', command)
    world.repo.policy(policy)
    state = world.start(*names)
    assert state.status is RunStatus.PAUSED
    assert str(state.reason).startswith("2 of 2 collected no tests")
    assert works(world.repo, "faulted") == [("base", "tests"), ("child", "tests")]


def test_an_external_dependency_on_a_module_that_exists_passes(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(declared("shaping"))
    known = files("shaping", external_dependencies=["tools.paths", "vendor/lib"])
    repo.commit({**known, "tools/paths.py": "", "vendor/lib/code.c": ""})
    assert repo.cli("component", "validate").code == 0
    repo.stage(files("shaping", external_dependencies=["tools.missing"]))
    refused = repo.cli("check", "--format", "json")
    assert (refused.code, refused.errors) == (1, ["external-missing"])


def test_a_mistake_in_a_contract_is_found_before_the_next_contract_is_written(tmp_path: Path) -> None:
    answers, calls = tmp_path / "answers", tmp_path / "calls"
    answers.mkdir()
    calls.touch()
    for name, texts in {"base": ("{}\n", contract("base")), "top": (contract("top", "base"),)}.items():
        for number, text in enumerate(texts):
            answer = new_file(f"contracts/{name}/interface.json", text)
            (answers / f"{name}-{number}").write_bytes(answer)
    author = f"""name=$(sed -n 's/^- component: //p')
    cat '{answers}'/$name-$(grep -c "^$name$" '{calls}')
    echo $name >>'{calls}'"""
    repo = Repo.create(tmp_path)
    table = {
        "kind": "author",
        "role": "contract_author",
        "phase": "contract",
        "command": ["sh", "-c", author],
    }
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in table.items()]
    repo.policy("".join([declared("base", "top"), "\n[commands.writer]\n", *lines]))
    repo.commit({f"tests/{name}/test_it.py": "def test_it(): pass\n" for name in ("base", "top")})
    done = repo.cli("run", "start", "--phase", "contract", "--jobs", "1")
    assert done.code == 0, done.out + done.err
    assert calls.read_text().split() == ["base", "base", "top"]


def test_doctor_checks_the_environment_and_lists_missing_tools_and_every_integration(tmp_path: Path) -> None:
    doctor.test_doctor_validates_the_environment_lists_missing_tools_and_every_integration(tmp_path)


def test_wavefront_takes_30_percent_less_time_with_five_independent_leaves() -> None:
    phases.test_wavefront_saves_at_least_30_percent_on_five_independent_leaves()


def test_each_requirement_of_components_and_runs_names_tests_that_are_there() -> None:
    for identity in COMPONENTS:
        (row,) = re.findall(rf"^\| {identity} \|.*$", REQUIREMENTS, re.MULTILINE)
        names = re.findall(r"`([\w/]+\.py::\w+)`", row)
        assert names, identity
        assert all(map(is_there, names)), identity


def test_no_test_is_expected_to_fail_or_left_out_for_good() -> None:
    """No regression: what passed before is run before every landing, by the command that the README has."""
    (command,) = re.findall(r"in-venv\.sh '\.\[dev\]' (pytest[^\n`|&]*)", (ROOT / "README.md").read_text())
    assert f"in-venv.sh '.[dev]' {command.strip()}" in (ROOT / ".ci/run").read_text()
    for place in (ROOT / "tests").rglob("test_*.py"):
        if "xfail" not in (text := place.read_text(encoding="utf-8")) and "mark.skip" not in text:
            continue
        marks = [
            ast.unparse(mark)
            for each in ast.walk(ast.parse(text))
            if isinstance(each, ast.FunctionDef | ast.ClassDef)
            for mark in each.decorator_list
        ]
        assert [mark for mark in marks if re.match(r"pytest\.mark\.(xfail|skip)\b", mark)] == [], place
