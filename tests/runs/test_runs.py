"""Whole runs: six components, scripted authors, a kill at any event, and what a user sees."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.repository import Repository
from patchgate.intents.actions import clear
from patchgate.intents.intent import reason_of_run
from patchgate.intents.intent_status import Caller, IntentOutcome
from patchgate.intents.stored_intents import StoredIntents
from patchgate.ledger.ledger import Ledger
from patchgate.runs import phase_intent, start
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult, PhaseTask, WorkEnvironment
from patchgate.runs.phase_work import perform
from patchgate.runs.phases import Phase, Scheduling, Work
from patchgate.runs.run_questions import RunQuestions, ask_questions
from patchgate.runs.run_record import (
    RunRecord,
    find_run,
    last_actions,
    list_runs,
    rebuild,
    runs_folder,
    unfinished_runs,
)
from patchgate.runs.run_state import RunAction, RunState, RunStatus
from patchgate.runs.triage import FaultKind
from patchgate.runs.worker import SILENT_SECONDS, Workers, do_work
from patchgate.storage import hash_chain
from patchgate.storage.filesystem import FaultPoints, write_all
from patchgate.storage.record import Json, Record, parse_line
from patchgate.values import asdict
from tests.component_world import contract, opened
from tests.intent_world import intent_of, keep
from tests.runs.phase_world import CHECK
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(4)

NAMES = ("base", "left", "right", "top", "other", "child")
NEEDS = {"left": ["base"], "right": ["base"], "top": ["left", "right"]}
ENDED = {"host": os.uname().nodename, "pid": 2**30, "boot_id": "", "started": ""}


class Killed(BaseException):
    """The process was killed: nothing after this runs."""


@dataclass
class World:
    """A repository with six components, of which each has a contract and tests, and lacks its code."""

    repo: Repo
    folder: Path

    @classmethod
    def make(
        cls, folder: Path, *, has_author: bool = True, has_code: bool = False, names: Sequence[str] = NAMES
    ) -> World:
        repo = Repo.create(folder)
        # It answers with a patch that adds the file that the brief's component lacks.
        author = """name=$(sed -n 's/^- component: //p')
file=src/$name/code.txt
printf '%s\\n' "diff --git a/$file b/$file" 'new file mode 100644' '--- /dev/null' "+++ b/$file" \\
    '@@ -0,0 +1 @@' '+right'
"""
        tables = [table(name) for name in names]
        if has_author:
            tables.append(
                '[commands.writer]\nkind = "author"\nrole = "code_author"\nphase = "implementation"\n'
                f'command = ["sh", {json.dumps(str(folder / "author.sh"))}]\n'
            )
        (folder / "author.sh").write_text(author)
        repo.policy("\n".join(tables))
        files: dict[str, str | bytes] = {"README.md": "hello\n"}
        for name in names:
            needs = [each for each in NEEDS.get(name, ()) if each in names]
            files[f"contracts/{name}/interface.json"] = contract(name, *needs)
            files[f"tests/{name}/check.sh"] = CHECK.replace("calc", name)
            if has_code:
                files[f"src/{name}/code.txt"] = "right\n"
        repo.commit(files)
        return cls(repo, folder)

    def environment(self) -> start.RunEnvironment:
        """Do the works here, one after another: a process for each would take 200 ms more."""

        def do(task: PhaseTask) -> PhaseResult:
            place = WorkEnvironment(self.repo.env, str(self.folder / "cache"))
            return perform(opened(self.repo), task, place)

        return start.RunEnvironment(self.repo.env, perform=do)

    def start(self, *ids: str, **options: object) -> RunState:
        request = start.RunRequest(ids=ids, jobs=1, **options)  # type: ignore[arg-type]
        state = start.start_run(opened(self.repo), request, self.environment())
        assert state is not None
        return state

    def resume(self, from_phase: Phase | None = None) -> RunState:
        return start.resume_run(opened(self.repo), None, from_phase, self.environment())

    def tree(self) -> str:
        """Everything in the working tree that a run may change."""
        self.repo.git("add", "-A")
        return self.repo.ask("ls-files", "--stage", "--", "src", "tests", "contracts", ".patchgate")

    def actions(self) -> list[str]:
        events = Ledger(self.repo.common_dir).find_events({"run"})
        return [str(event.about["action"]) for event in events]


def table(name: str) -> str:
    command = json.dumps(["sh", f"tests/{name}/check.sh"])
    parent = 'parent = "top"\n' if name == "child" else ""
    return (
        f'[components.{name}]\ncontract = "contracts/{name}/interface.json"\ntests = ["tests/{name}/**"]\n'
        f'implementation = ["src/{name}/**"]\n{parent}test_command = {command}\n'
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """The tree of a run that nothing disturbs, and the number of events that its loop has written."""
    world = World.make(tmp_path_factory.mktemp("undisturbed"))
    assert world.start().status is RunStatus.COMPLETED
    return world.tree(), sum(each != RunAction.SPENT for each in world.actions())


def test_a_run_brings_in_what_its_authors_write_and_records_each_component(
    undisturbed: tuple[str, int], tmp_path: Path
) -> None:
    world = World.make(tmp_path)
    state = world.start()
    assert state.completed_components == sorted(NAMES)
    assert state.plan.phases["top"][-1] is Phase.INTEGRATION
    for name in NAMES:
        assert (world.repo.path / f".patchgate/baselines/{name}.json").is_file()
        assert (world.repo.path / f"src/{name}/code.txt").read_text() == "right\n"
    order = [work.component for work in state.done if work.phase is Phase.IMPLEMENTATION]
    assert order.index("base") < order.index("left") < order.index("top")
    assert world.tree() == undisturbed[0]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("boundary", range(1, 40))
def test_a_run_that_is_killed_after_any_event_ends_in_the_same_tree(
    undisturbed: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boundary: int
) -> None:
    tree, events = undisturbed
    assert events == 40
    world = World.make(tmp_path)
    written: list[RunAction] = []
    write = RunRecord.write

    def write_or_die(self: RunRecord, action: RunAction, about: dict[str, Json]) -> RunState:
        state = write(self, action, about)
        written.append(action)
        if len(written) == boundary:
            raise Killed
        return state

    with monkeypatch.context() as patched:
        patched.setattr(RunRecord, "write", write_or_die)
        patched.setattr(start, "this_process", lambda: dict(ENDED))
        with pytest.raises(Killed):
            world.start()
    (state,) = list_runs(opened(world.repo))[0]
    assert state.status is RunStatus.ACTIVE
    assert world.resume().status is RunStatus.COMPLETED
    assert world.tree() == tree


def test_without_an_author_a_run_verifies_a_repository_on_its_first_day(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    assert world.start().status is RunStatus.COMPLETED
    assert world.actions().count("finished") == 19
    nothing = world.repo.run("run", "start", "--changed")
    assert (nothing.code, "nothing to do" in nothing.out) == (0, True), nothing.err
    world.repo.stage({"src/left/more.txt": "x\n"})
    state = world.start(changed=True)
    assert (state.status, list(state.plan.phases)) == (RunStatus.COMPLETED, ["left"])


def random_world(folder: Path, seed: int) -> World:
    """Make components that need each other at random, some of whose authors answer what never passes."""
    chance = random.Random(seed)
    world = World.make(folder)
    names = [f"c{number}" for number in range(6)]
    needs = {name: chance.sample(names[:at], chance.randint(0, min(at, 2))) for at, name in enumerate(names)}
    wrong = chance.sample(names, 2)
    script = folder / "author.sh"
    script.write_text(
        script.read_text()
        .replace("'+right'", '"+$text"')
        .replace("file=src", f"case $name in {'|'.join(wrong)}) text=wrong;; *) text=right;; esac\nfile=src")
    )
    author = (world.repo.path / "patchgate.toml").read_text().partition("[commands")[2]
    limits = "[apply]\nmax_attempts = 1\n[run]\nsystemic_threshold = 99\n"
    world.repo.policy("".join(map(table, names)) + f"[commands{author}\n{limits}")
    files: dict[str, str | bytes] = {}
    for name in names:
        files[f"contracts/{name}/interface.json"] = contract(name, *needs[name])
        files[f"tests/{name}/check.sh"] = CHECK.replace("calc", name)
    world.repo.commit(files)
    return world


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", range(8))
def test_phased_and_wavefront_end_in_the_same_files_and_verdicts(tmp_path: Path, seed: int) -> None:
    ends = []
    for scheduling in Scheduling:
        place = tmp_path / scheduling.value
        place.mkdir()
        world = random_world(place, seed)
        state = world.start(scheduling=scheduling)
        verdicts = {work: each.outcome for work, each in state.trouble.items()}
        ends.append((state.status, set(state.done), verdicts, world.tree()))
    assert ends[0] == ends[1]
    assert ends[0][2]


def test_a_component_that_fails_is_done_after_its_repair_and_nothing_else_again(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/left/code.txt": "wrong\n"})
    state = world.start()
    assert (state.status, state.reason) == (
        RunStatus.PAUSED,
        "not done: left (implementation); 1 component cannot go on without them",
    )
    world.repo.stage({"src/left/code.txt": "right\n"})
    before = len(world.actions())
    assert world.resume().status is RunStatus.COMPLETED
    events = Ledger(world.repo.common_dir).find_events({"run"})
    again = {str(event.about.get("component")) for event in list(events)[before + 1 :]} - {"None"}
    assert again == {"left", "top"}


def test_a_run_of_this_process_is_active_and_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    write = RunRecord.write

    def die(self: RunRecord, action: RunAction, about: dict[str, Json]) -> RunState:
        state = write(self, action, about)
        if action is RunAction.FINISHED:
            raise Killed
        return state

    with monkeypatch.context() as patched:
        patched.setattr(RunRecord, "write", die)
        with pytest.raises(Killed):
            world.start()
    with pytest.raises(UsageError, match="is active"):
        world.resume()


def test_components_in_a_circle_are_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    world.repo.commit({"contracts/base/interface.json": contract("base", "top")})
    with pytest.raises(UsageError, match="base -> "):
        world.start()
    assert world.actions() == []


def test_what_the_environment_lacks_is_told_before_the_first_component(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    config = (world.repo.path / "patchgate.toml").read_text()
    world.repo.policy(config + '[environment]\nrequired_tools = ["no-such-tool"]\n')
    with pytest.raises(UndecidedError, match="no-such-tool"):
        world.start()
    assert world.actions() == []


def test_where_the_ledger_cannot_be_written_no_run_starts(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    (Path(world.repo.common_dir) / "patchgate" / "events.jsonl").mkdir(parents=True)
    with pytest.raises(UndecidedError):
        world.start()
    assert not runs_folder(opened(world.repo)).exists()


# The record.


@pytest.fixture
def done(tmp_path: Path) -> World:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base", until=Phase.TESTS)
    return world


def test_the_cache_is_never_believed_over_the_ledger(done: World) -> None:
    repository = opened(done.repo)
    state = find_run(repository, None)
    cache = runs_folder(repository) / f"{state.id}.json"
    assert json.loads(cache.read_text())["status"] == "completed"
    assert rebuild(repository, None, is_dry_run=False).differs is False
    cache.write_text('{"status": "failed"}\n')
    assert find_run(repository, None).status is RunStatus.COMPLETED
    shown = rebuild(repository, None, is_dry_run=True)
    assert (shown.differs, shown.is_written, cache.read_text()) == (True, False, '{"status": "failed"}\n')
    assert rebuild(repository, None, is_dry_run=False).is_written
    assert rebuild(repository, None, is_dry_run=False).differs is False


def test_a_damaged_ledger_gives_a_partial_state_with_warnings(done: World) -> None:
    repository = opened(done.repo)
    ledger = Ledger(done.repo.common_dir).path
    lines = ledger.read_bytes().splitlines(keepends=True)
    damaged = [line for line in lines if b'"action":"finished"' in line and b'"phase":"contract"' in line]
    ledger.write_bytes(b"".join(line if line not in damaged else b"{torn\n" for line in lines))
    found = rebuild(repository, None, is_dry_run=True)
    assert found.state.done.keys() == {work for work in found.state.plan.works if work.phase is Phase.TESTS}
    assert any("damaged" in warning for warning in found.state.warnings)


def test_a_run_is_found_by_the_beginning_of_its_id(done: World) -> None:
    repository = opened(done.repo)
    known = find_run(repository, None).id
    assert find_run(repository, known[:6]).id == known
    for name, said in (("r-zz", "no run"), ("", "")):
        if said:
            with pytest.raises(UsageError, match=said):
                find_run(repository, name)


# What a user types.


def test_a_user_starts_resumes_lists_and_shows_runs(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/other/code.txt": "wrong\n"})
    cli = world.repo.cli
    none = cli("run", "list")
    assert (none.code, "git patchgate run start" in none.out) == (0, True)
    first = cli("run", "start", "base", "other", "--jobs", "2")
    assert first.code == 1
    assert re.search(r"^run r-[0-9a-f]{12}: paused$", first.out, re.MULTILINE)
    assert "other: implementation failed" in first.out
    shown = cli("run", "show", "--format", "json")
    assert json.loads(shown.out)["trouble"]["other:implementation"]["outcome"] == "failed"
    world.repo.stage({"src/other/code.txt": "right\n"})
    again = cli("run", "resume")
    assert (again.code, "completed" in again.out) == (0, True)
    assert "done already: base" in again.out
    assert "completed" in cli("run", "list").out
    assert cli("run", "resume").code == 2
    assert cli("run", "rebuild", "--dry-run").code == 0
    assert cli("run", "start", "nobody").code == 2


def test_where_no_component_is_declared_nothing_is_started_and_it_says_so(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy("[policy]\n")
    answer = repo.cli("run", "start")
    assert (answer.code, "declared in the index" in answer.err) == (2, True)


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_a_worker_ends_when_its_run_is_gone(
    looks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is killed before the worker looks for it, after its first look, and while its tests run."""
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"tests/base/check.sh": "sleep 60\n"})
    parents = iter([7] * looks)
    monkeypatch.setattr("patchgate.runs.worker.os.getppid", lambda: next(parents, 1))
    said: list[str] = []
    task = PhaseTask("r-1", "base", Phase.IMPLEMENTATION, seconds=50, stall=50)
    asked = json.dumps({"runner": 7, "task": asdict(task)}).encode()
    do_work(opened(world.repo), asked, said.append, world.repo.env, str(tmp_path / "cache"))
    result = json.loads(said[-1])["result"]
    assert (result["outcome"], "has ended" in result["reason"]) == ("fault", True)
    assert not (world.repo.path / ".patchgate").exists()


@pytest.mark.parametrize("asked", [b"", b"{}", b"[]", b"1"])
def test_a_worker_without_a_task_is_a_mistake_of_its_user(asked: bytes, tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    with pytest.raises(UsageError):
        do_work(opened(repo), asked, pytest.fail, repo.env, str(tmp_path / "cache"))


def test_a_worker_that_dies_is_a_fault_of_its_work_alone(tmp_path: Path) -> None:
    def task_of(work: Work) -> PhaseTask:
        return PhaseTask("r-1", work.component, work.phase, seconds=5, stall=5)

    for script, said in (("kill -9 $$", "code -9"), ("exit 3", "code 3"), ("true", "no result")):
        workers = Workers(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, task_of)
        result = workers.perform(Work("a", Phase.TESTS))
        assert (result.outcome.value, said in result.reason) == ("fault", True)
        # It says nothing about the component: it is tried again. What it cost is not known.
        assert (result.kind, result.cost) == (FaultKind.TEMPORARY, None)


def test_a_worker_that_writes_nothing_for_long_is_ended_and_tried_again() -> None:
    now, ready = [0.0], threading.Event()
    script = """echo '{"what": "x", "seconds": 0}'; exec sleep 600"""
    workers = Workers(
        ["sh", "-c", script],
        {"PATH": "/usr/bin:/bin"},
        lambda work: PhaseTask("r-1", work.component, work.phase, seconds=5, stall=5),
        report=lambda what, seconds: ready.set(),
        clock=lambda: now[0],
    )
    with ThreadPoolExecutor() as pool:
        result = pool.submit(workers.perform, Work("a", Phase.TESTS))
        ready.wait()
        now[0] = SILENT_SECONDS - 1
        workers.end_idle()
        assert not result.done()
        now[0] = SILENT_SECONDS + 1
        workers.end_idle()
        assert result.result().kind is FaultKind.TIME_OUT


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ("", (300, 600)),
        ("role_timeouts = { code_author = 1200 }", (1200, 1200)),
        ('impatience = "patient"', (600, 1200)),
        ('impatience = "impatient"', (150, 300)),
    ],
)
def test_the_role_and_the_impatience_limit_the_time_of_an_author(
    settings: str, limits: tuple[float, float], tmp_path: Path
) -> None:
    world = World.make(tmp_path)
    text = (world.repo.path / "patchgate.toml").read_text()
    world.repo.policy(f"{text}[run]\n{settings}\n")
    found = []

    def note(task: PhaseTask) -> PhaseResult:
        found.append(task)
        return PhaseResult(PhaseOutcome.PASSED, "done")

    environment = replace(world.environment(), perform=note)
    start.start_run(opened(world.repo), start.RunRequest(ids=("base",), jobs=1), environment)
    (task,) = [each for each in found if each.phase is Phase.IMPLEMENTATION]
    assert (task.stall, task.author_seconds) == limits


def test_the_quick_look_at_the_ledger_finds_the_same_runs_as_reading_every_event(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    ledger = Ledger(repo.common_dir)
    traps = ['"kind":"run","run":"r-ffffffff"', 'x\n{"event":{"action":"completed","kind":"run"', "completed"]
    for number in range(6):
        run = f"r-0000000{number}"
        phases: Json = {"run": ["contract"], "r-ffffffff": ["contract"], "kind": ["contract"]}
        plan: dict[str, Json] = {"phases": phases, "scheduling": "phased", "jobs": 1}
        ledger.record("run", {"run": run, "action": "started", "work_tree": traps[1], **plan})
        if number % 2:
            ledger.record("run", {"run": run, "action": "paused", "reason": traps[number // 2], "hint": None})
        else:
            ledger.record("run", {"run": run, "action": "completed"})
        if number == 4:
            # A run may go on after its end only in a ledger that somebody wrote by hand.
            ledger.record("run", {"run": run, "action": "aborted", "reason": traps[0], "hint": None})
    every = list_runs(opened(repo))[0]
    found = unfinished_runs(opened(repo))
    assert [state.id for state in every] == [
        each for each in last_actions(opened(repo)) if "e" not in each[2:]
    ]
    assert list(found.runs) == [state for state in every if state.status is not RunStatus.COMPLETED]
    assert (found.completed, found.overtaken) == (2, frozenset(each.id for each in every[:5]))
    assert [find_run(opened(repo), state.id) for state in every] == every


def test_many_runs_that_are_left_are_found_in_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path)
    ledger = Ledger(repo.common_dir)
    for number in range(6):
        ledger.record("run", {"run": f"r-0000000{number}", "action": "paused", "reason": "x", "hint": None})
    content, read = Ledger(repo.common_dir).content(), list[bool]()

    def note(self: Ledger, *, strict: bool = False) -> bytes:
        read.append(strict)
        return content

    monkeypatch.setattr(Ledger, "content", note)
    assert (len(unfinished_runs(opened(repo)).runs), read) == (6, [True])


def test_a_rebuild_reads_the_events_of_no_other_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo.create(tmp_path)
    ledger = Ledger(repo.common_dir)
    for number in range(6):
        ledger.record("run", {"run": f"r-0000000{number}", "action": "paused", "reason": "x", "hint": None})
    parsed: list[bytes] = []

    def note(line: bytes) -> Record:
        parsed.append(line)
        return parse_line(line)

    monkeypatch.setattr(hash_chain, "parse_line", note)
    assert rebuild(opened(repo), "r-00000003", is_dry_run=True).state.id == "r-00000003"
    assert len(parsed) == 1


@pytest.mark.sweep(1)
@pytest.mark.parametrize("full_from", range(1, 72, 5))
def test_a_disk_that_is_full_stops_a_run_which_then_ends_in_the_same_tree(
    undisturbed: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_from: int
) -> None:
    world = World.make(tmp_path)
    written = [0]

    def write_or_fail(descriptor: int, content: bytes, faults: FaultPoints) -> None:
        written[0] += 1
        if written[0] >= full_from:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_all(descriptor, content, faults)

    with monkeypatch.context() as patched:
        patched.setattr(hash_chain, "write_all", write_or_fail)
        patched.setattr(start, "this_process", lambda: dict(ENDED))
        with contextlib.suppress(UndecidedError):
            assert world.start().status is not RunStatus.COMPLETED
    assert written[0] >= full_from
    state = world.resume() if list_runs(opened(world.repo))[0] else world.start()
    assert state.status is RunStatus.COMPLETED
    assert world.tree() == undisturbed[0]


def test_a_clock_that_jumps_changes_neither_a_run_nor_its_resume(
    undisturbed: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.make(tmp_path)
    chance = random.Random(7)
    environment = replace(world.environment(), clock=lambda: 1_700_000_000 + chance.uniform(-1e6, 1e6))
    write, seen = RunRecord.write, [0]

    def write_or_die(self: RunRecord, action: RunAction, about: dict[str, Json]) -> RunState:
        seen[0] += 1
        if seen[0] == 20:
            raise Killed
        return write(self, action, about)

    with monkeypatch.context() as patched:
        patched.setattr(RunRecord, "write", write_or_die)
        patched.setattr(start, "this_process", lambda: dict(ENDED))
        with pytest.raises(Killed):
            start.start_run(opened(world.repo), start.RunRequest(jobs=1), environment)
    state = start.resume_run(opened(world.repo), None, None, environment)
    assert (state.status, state.warnings) == (RunStatus.COMPLETED, [])
    assert world.tree() == undisturbed[0]


def meet(world: World, monkeypatch: pytest.MonkeyPatch, number: int) -> start.RunEnvironment:
    """Let so many begin at the same moment: each has read the runs when the last of them writes the first."""
    barrier, ask = threading.Barrier(number), ask_questions

    def ask_when_all_are_here(*words: Any, **options: Any) -> RunQuestions:
        barrier.wait(timeout=10)
        return ask(*words, **options)

    monkeypatch.setattr(start, "ask_questions", ask_when_all_are_here)
    return replace(world.environment(), perform=lambda task: PhaseResult(PhaseOutcome.PASSED, "done"))


def outcomes(number: int, begin: Callable[[], RunState | None]) -> tuple[list[RunStatus], list[str]]:
    """Begin at once as often; return the status of those that began, and how the others were refused."""
    with ThreadPoolExecutor(number) as pool:
        futures = [pool.submit(begin) for _ in range(number)]
    errors = [each.exception() for each in futures]
    assert all(each is None or isinstance(each, UsageError) for each in errors), errors
    states = [each.result() for each, error in zip(futures, errors, strict=True) if error is None]
    return [each.status for each in states if each], [str(each) for each in errors if each is not None]


def test_of_several_starts_at_once_on_a_component_all_but_one_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    environment, request = meet(world, monkeypatch, 3), start.RunRequest(("base",), jobs=1)
    hold = threading.Event()

    def perform(task: PhaseTask) -> PhaseResult:
        hold.wait(timeout=10)
        return PhaseResult(PhaseOutcome.PASSED, "done")

    refused: list[str] = []

    def begin() -> RunState | None:
        try:
            return start.start_run(opened(world.repo), request, replace(environment, perform=perform))
        except UsageError as error:
            refused.append(str(error))
            if len(refused) == 2:
                hold.set()
            raise

    began, said = outcomes(3, begin)
    assert (began, world.actions().count("started")) == ([RunStatus.COMPLETED], 1)
    (run,) = list_runs(opened(world.repo))[0]
    assert all(run.id in each and "is active" in each for each in said)


def test_of_two_resumes_at_once_the_second_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/base/code.txt": "wrong\n"})
    paused = world.start("base")
    environment = meet(world, monkeypatch, 2)
    began, said = outcomes(2, lambda: start.resume_run(opened(world.repo), None, None, environment))
    assert (began, world.actions().count("resumed")) == ([RunStatus.COMPLETED], 1)
    assert paused.id in said[0]


def test_a_component_of_an_active_run_is_not_started_a_second_time(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    asked, go = tmp_path / "asked", tmp_path / "go"
    script = tmp_path / "author.sh"
    script.write_text(
        f"touch {shlex.quote(str(asked))}\n"
        f"until [ -e {shlex.quote(str(go))} ]; do sleep 0.05; done\n{script.read_text()}"
    )
    words = [str(EXECUTABLE), "run", "start", "base"]
    with subprocess.Popen(words, cwd=world.repo.path, env=world.repo.env, stdout=subprocess.PIPE) as first:
        while not asked.exists() and first.poll() is None:
            time.sleep(0.02)
        (run,) = [each.id for each in list_runs(opened(world.repo))[0]]
        second = world.repo.run("run", "start", "base", "left")
        third = world.repo.run("run", "resume", run)
        go.touch()
        first.communicate()
    assert first.returncode == 0
    assert (second.code, run in second.err, "`base`" in second.err) == (2, True, True), second.err
    assert (third.code, run in third.err) == (2, True), third.err
    assert (world.repo.path / "src/base/code.txt").read_text() == "right\n"


def test_an_intent_that_is_gone_already_does_not_stop_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/base/code.txt": "wrong\n"})
    run = world.start("base").id
    left = replace(intent_of(world.repo, "src/base/"), reason=reason_of_run(run, "implementation of base"))
    keep(world.repo, left)

    def clear_when_it_is_gone(repository: Repository, name: str, caller: Caller) -> IntentOutcome:
        clear(repository, name, caller)
        return clear(repository, name, caller)

    monkeypatch.setattr(phase_intent, "clear", clear_when_it_is_gone)
    assert phase_intent.clear_intents_of(opened(world.repo), run, world.repo.env) == ()
    assert StoredIntents(world.repo.common_dir).all() == ()


def test_where_the_lock_of_a_beginning_cannot_be_made_nothing_is_recorded(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    place = runs_folder(opened(world.repo))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("")
    answer = world.repo.cli("run", "start", "base")
    assert (answer.code, "begin.lock" in answer.err) == (3, True), answer.err
    assert world.actions() == []


def test_a_run_is_resumed_in_the_working_tree_where_it_began(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    other = world.repo.at(tmp_path / "other")
    world.repo.git("worktree", "add", "-q", str(other.path))
    other.stage({"src/base/code.txt": "wrong\n"})
    assert other.cli("run", "start", "base").code == 1
    answer = world.repo.cli("run", "resume")
    assert (answer.code, f"-C {other.path} patchgate run resume" in answer.err) == (2, True)
    other.stage({"src/base/code.txt": "right\n"})
    assert other.cli("run", "resume").code == 0


def test_a_lock_of_git_that_is_held_is_no_fault_of_the_component(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    (Path(world.repo.git_dir) / "index.lock").touch()
    task = PhaseTask("r-1", "base", Phase.IMPLEMENTATION, seconds=50, stall=50)
    perform_here = world.environment().perform
    assert perform_here is not None
    assert perform_here(task).kind is FaultKind.LOCKED
