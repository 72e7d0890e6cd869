"""Runs on several machines: jobs in clones of their own, and what `run merge` takes and refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from patchgate.errors import UndecidedError, UsageError
from patchgate.ledger.ledger import Ledger
from patchgate.runs import run_record, start
from patchgate.runs.ci_pipelines import FOLDER, MERGE
from patchgate.runs.merge import MergedRuns, in_order, merge_runs
from patchgate.runs.run_events import MOST_BYTES, OriginalEvent, RepositoryName, events_of, events_text
from patchgate.runs.run_record import RunRecord, find_run, last_actions, nobody_else_begins, this_process
from patchgate.runs.run_state import RunAction, RunState, RunStatus
from patchgate.storage.record import START, Json, canonical_event, hash_of, line_of, parse_line
from tests.component_world import opened
from tests.runs.test_runs import World
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

RUN = "r-0123456789ab"


def cloned(world: World, name: str, *options: str) -> World:
    """Clone the repository of a world into a folder of its own."""
    path = world.folder / name
    world.repo.git("clone", "-q", *options, world.repo.path.as_uri(), str(path))
    return World(world.repo.at(path), world.folder)


def shown(repo: Repo) -> dict[str, Any]:
    """Return what `run show` says of the newest run, without times, ids and places."""
    document: dict[str, Any] = json.loads(repo.run("run", "show", "--format", "json").out)
    keys = ("status", "in_flight", "trouble", "completed_components", "phase", "reason", "hint", "warnings")
    return {
        **{key: document[key] for key in keys},
        "phases": document["plan"]["phases"],
        "done": sorted(document["done"]),
    }


# Three workers.


def run_job(worker: Repo, job: dict[str, Any], received: Iterable[Path]) -> None:
    """Do what a runner does: check out, fetch the artifacts of the jobs that came before, run the script."""
    worker.git("reset", "-q", "--hard")
    worker.git("clean", "-fdxq")
    folder = worker.path / FOLDER
    for artifacts in received:
        shutil.copytree(artifacts, folder, dirs_exist_ok=True)
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(job["script"])],
        cwd=worker.path,
        env=worker.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_three_workers_in_clones_end_in_the_same_state_as_one_machine(tmp_path: Path) -> None:
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    names = ("base", "left", "top", "child")
    one, many = World.make(tmp_path / "one", names=names), World.make(tmp_path / "many", names=names)
    assert one.start().status is RunStatus.COMPLETED

    plan = json.loads(many.repo.run("component", "graph", "--format", "json").out)["jobs"]
    pipeline = json.loads(many.repo.run("component", "graph", "--format", "gitlab").out)
    workers = [cloned(many, f"worker-{number}").repo for number in range(3)]
    artifacts: dict[str, Path] = {}
    jobs = [name for name in pipeline if name not in {"stages", MERGE}]
    assert jobs == sorted(jobs, key=lambda name: pipeline["stages"].index(pipeline[name]["stage"]))
    for number, name in enumerate(jobs):
        worker = workers[number % len(workers)]
        run_job(worker, pipeline[name], [artifacts[need] for need in pipeline[name]["needs"]])
        artifacts[name] = tmp_path / "artifacts" / name.replace(":", "-")
        shutil.copytree(worker.path / FOLDER, artifacts[name])
    assert all(list(last_actions(opened(each))) == [plan["run"]] for each in workers)
    run_job(many.repo, pipeline[MERGE], artifacts.values())
    files = [str(each) for each in sorted((many.repo.path / FOLDER).glob("*.jsonl"))]

    assert shown(many.repo) == shown(one.repo)
    assert shown(many.repo)["status"] == "completed"
    assert many.tree() == one.tree()
    assert many.repo.run("baseline", "status").code == one.repo.run("baseline", "status").code
    size = Ledger(many.repo.common_dir).size()
    again = many.repo.run("run", "merge", *files)
    assert (again.code, "0 events merged" in again.out) == (0, True), again.err
    assert Ledger(many.repo.common_dir).size() == size
    assert many.repo.run("log", "--verify").code == 0
    assert many.repo.run("run", "show", "--format", "in-toto").code == 0


# What is merged, and in which order.


@pytest.fixture
def verified(tmp_path: Path) -> World:
    """A repository in which every component passes."""
    return World.make(tmp_path, has_author=False, has_code=True, names=("base", "left"))


def exported(world: World, name: str, run: str = RUN) -> str:
    """Write the events of a run to a file, and return its name."""
    place = world.folder / name
    repository = opened(world.repo)
    place.write_text(events_text(repository, find_run(repository, run)))
    return str(place)


def merged(world: World, *files: str) -> MergedRuns:
    return merge_runs(opened(world.repo), files, str(world.folder))


def test_jobs_of_one_run_are_one_run_after_the_merge(verified: World) -> None:
    files = []
    for name in ("base", "left"):
        worker = cloned(verified, f"worker-{name}")
        worker.start(name, run=RUN)
        files.append(exported(worker, f"{name}.jsonl"))
    (found,) = merged(verified, *files).runs
    assert (found.added, found.known) == (16, 0)
    assert found.state.status is RunStatus.COMPLETED
    assert found.state.completed_components == ["base", "left"]
    assert found.state.work_tree == str(verified.repo.path)
    # No file was brought here, and the disk decides.
    warnings = merged(verified, *files).warnings
    assert "base: implementation is done, but its baseline does not match its files" in warnings


def test_runs_with_names_of_their_own_stay_apart(verified: World) -> None:
    files = []
    for number, name in enumerate(("base", "left")):
        worker = cloned(verified, f"worker-{name}")
        worker.start(name, run=f"r-0000000{number}")
        files.append(exported(worker, f"{name}.jsonl", f"r-0000000{number}"))
    assert [each.state.id for each in merged(verified, *files).runs] == ["r-00000000", "r-00000001"]


def test_the_same_file_twice_changes_nothing(verified: World) -> None:
    worker = cloned(verified, "worker")
    worker.start("base", run=RUN)
    file = exported(worker, "events.jsonl")
    (first,) = merged(verified, file, file).runs
    assert (first.added, first.known) == (8, 8)
    size = Ledger(verified.repo.common_dir).size()
    (second,) = merged(verified, file).runs
    assert (second.added, second.known) == (0, 8)
    # Nor does it where the events come from.
    assert merged(worker, file).runs[0].added == 0
    assert Ledger(verified.repo.common_dir).size() == size


def test_a_job_that_failed_leaves_the_run_paused_whatever_the_others_say(verified: World) -> None:
    bad, good = cloned(verified, "bad"), cloned(verified, "good")
    bad.repo.stage({"src/base/code.txt": "wrong\n"})
    bad.start("base", run=RUN)
    good.start("left", run=RUN)
    files = [exported(bad, "bad.jsonl"), exported(good, "good.jsonl")]
    (found,) = merged(verified, *files).runs
    assert (found.state.status, found.state.reason) == (RunStatus.PAUSED, "not done: base (implementation)")
    assert verified.repo.run("run", "merge", *files).code == 1
    assert verified.resume().status is RunStatus.COMPLETED


def test_a_job_that_passes_does_not_complete_a_run_in_which_another_failed(verified: World) -> None:
    verified.repo.stage({"src/base/code.txt": "wrong\n"})
    assert verified.start("base", run=RUN).status is RunStatus.PAUSED
    state = verified.start("left", run=RUN)
    assert (state.status, state.reason) == (RunStatus.PAUSED, "not done: base (implementation)")


def test_a_fork_with_an_id_of_its_own_is_another_repository() -> None:
    upstream, fork = RepositoryName("a", ("1",)), RepositoryName("b", ("1",))
    assert not upstream.is_same(fork)
    assert upstream.is_same(RepositoryName("a", ()))
    assert upstream.is_same(RepositoryName(None, ("0", "1")))
    assert not upstream.is_same(RepositoryName(None, ("2",)))
    assert not RepositoryName(None, ()).is_same(RepositoryName(None, ()))


def test_what_a_tool_printed_may_be_any_bytes(verified: World) -> None:
    worker = cloned(verified, "worker")
    worker.repo.stage({"tests/base/check.sh": "printf '\\377 is wrong\\n'; exit 1\n"})
    worker.start("base", run=RUN)
    (found,) = merged(verified, exported(worker, "bytes.jsonl")).runs
    ((_, trouble),) = found.state.trouble.items()
    assert trouble.tail == ("\\xff is wrong",)
    assert verified.repo.run("run", "show").code == 0


def test_a_second_try_of_a_job_counts(verified: World) -> None:
    bad = cloned(verified, "bad")
    bad.repo.stage({"src/base/code.txt": "wrong\n"})
    bad.start("base", run=RUN)
    merged(verified, exported(bad, "bad.jsonl"))
    again = cloned(verified, "again")
    merged(again, str(verified.folder / "bad.jsonl"))
    again.start("base", run=RUN)
    (found,) = merged(verified, exported(again, "again.jsonl")).runs
    assert (found.state.status, found.known) == (RunStatus.COMPLETED, 8)


def test_a_job_that_was_killed_is_merged_as_interrupted_and_resumed(
    verified: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = cloned(verified, "worker")

    def stop(self: RunRecord, action: RunAction, about: dict[str, Json]) -> RunState:
        state = write(self, action, about)
        if action is RunAction.BEGAN:
            raise KeyboardInterrupt
        return state

    write = RunRecord.write
    with monkeypatch.context() as patched:
        patched.setattr(RunRecord, "write", stop)
        patched.setattr(start, "this_process", lambda: {"host": "elsewhere", "pid": 1})
        with pytest.raises(KeyboardInterrupt):
            worker.start("base", run=RUN)
    (found,) = merged(verified, exported(worker, "cut.jsonl")).runs
    assert found.state.status is RunStatus.PAUSED
    assert [str(work) for work in found.state.left] == [
        "base (contract)",
        "base (tests)",
        "base (implementation)",
    ]
    assert verified.resume().status is RunStatus.COMPLETED


def test_a_merge_that_was_killed_is_finished_by_the_next_one(
    verified: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = cloned(verified, "worker")
    with monkeypatch.context() as patched:
        patched.setattr(start, "this_process", lambda: {"host": "elsewhere", "pid": 1})
        worker.start("base", run=RUN)
    file = exported(worker, "events.jsonl")
    merged(verified, file)
    ledger = Path(verified.repo.common_dir, "patchgate", "events.jsonl")
    whole = ledger.read_text().splitlines(keepends=True)
    for kept in (3, len(whole) - 1):
        ledger.write_text("".join(whole[:kept]))
        ledger.with_name("events.jsonl.head").unlink(missing_ok=True)
        (found,) = merged(verified, file).runs
        assert found.state.status is RunStatus.COMPLETED
        assert [each.hash for each in events_of(opened(verified.repo), RUN)][:8] == [
            each.hash for each in events_of(opened(worker.repo), RUN)
        ]


def test_a_run_that_is_active_here_is_neither_joined_nor_merged(verified: World) -> None:
    worker = cloned(verified, "worker")
    worker.start("base", run=RUN)
    file = exported(worker, "events.jsonl")
    plan: dict[str, Json] = {"phases": {"left": ["contract"]}, "scheduling": "phased", "jobs": 1}
    record = RunRecord(opened(verified.repo), RUN)
    record.write(
        RunAction.STARTED,
        {**plan, "work_tree": str(verified.repo.path), "owner": this_process()},
    )
    for refused in (lambda: merged(verified, file), lambda: verified.start("base", run=RUN)):
        with pytest.raises(UsageError, match=f"the run {RUN} is active"):
            refused()


def test_nothing_is_merged_while_a_run_is_started_or_resumed(
    verified: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = cloned(verified, "worker")
    worker.start("base", run=RUN)
    file = exported(worker, "events.jsonl")
    monkeypatch.setattr(run_record, "_BEGIN_SECONDS", 0.0)
    with nobody_else_begins(opened(verified.repo)), pytest.raises(UndecidedError):
        merged(verified, file)
    assert merged(verified, file).runs[0].added > 0


def event(at: str, *causes: str) -> OriginalEvent:
    about: dict[str, Json] = {"at": at}
    return OriginalEvent(about, hash_of(canonical_event(about), START), START, causes)


def test_events_are_in_the_order_of_their_causes_and_only_then_of_their_times() -> None:
    early, late = event("2026-01-01T00:00:00Z"), event("2026-01-01T00:00:09Z")
    # The clock of the machine that worked on it afterwards is slow.
    caused = event("2026-01-01T00:00:05Z", late.hash)
    found = in_order({each.hash: each for each in (caused, late, early)})
    assert found == [early, late, caused]
    both = event("2025-01-01T00:00:00Z", early.hash, late.hash)
    assert in_order({each.hash: each for each in (both, late, early)}) == [early, late, both]


def test_a_name_that_no_run_can_have_is_refused(verified: World) -> None:
    answer = verified.repo.run("run", "start", "base", "--run", "$(id)")
    assert (answer.code, answer.err.splitlines()[0]) == (2, "error: $(id) cannot be the id of a run")


# Whose events, and what a file can be.


def test_events_of_another_repository_are_refused_and_nothing_is_merged(
    verified: World, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = World.make(tmp_path / "other", has_author=False, has_code=True, names=("base",))
    other.start("base", run=RUN)
    foreign = exported(other, "foreign.jsonl")
    worker = cloned(verified, "worker")
    worker.start("base", run="r-00000001")
    own = exported(worker, "own.jsonl", "r-00000001")
    answer = verified.repo.run("run", "merge", own, foreign)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines()[0] == f"error: {foreign} has events of another repository"
    assert last_actions(opened(verified.repo)) == {}


def test_a_shallow_clone_needs_the_id_of_the_policy(verified: World) -> None:
    verified.repo.commit({"README.md": "more\n"})
    shallow = cloned(verified, "shallow", "--depth=1")
    shallow.start("base", run=RUN)
    answer = shallow.repo.run("run", "show", "--format", "events")
    assert (answer.code, "this clone is shallow" in answer.err) == (2, True)
    config = (verified.repo.path / "patchgate.toml").read_text()
    verified.repo.policy(config + '[governance]\nid = "4f6c1a52e0f14fd0a3f5b5f1f7a9c2d1"\n')
    verified.repo.commit({"README.md": "still more\n"})
    named = cloned(verified, "named", "--depth=1")
    named.start("base", run=RUN)
    assert merged(verified, exported(named, "named.jsonl")).runs[0].added == 8


def rechained(lines: list[bytes], change: Callable[[list[dict[str, Any]]], None]) -> bytes:
    """Change the records of a file, and write its chain anew, as a forger would."""
    records: list[dict[str, Any]] = [dict(parse_line(line).event) for line in lines]
    change(records)
    previous, written = START, b""
    for each in records:
        previous, line = line_of(canonical_event(each), previous)
        written += line
    return written


def _swap(records: list[dict[str, Any]]) -> None:
    records[2], records[3] = records[3], records[2]


def _forge(records: list[dict[str, Any]]) -> None:
    records[3]["phase"] = "implementation"


def _rename(records: list[dict[str, Any]]) -> None:
    records[0]["run"] = "r-ffffffff"


def _repeat(records: list[dict[str, Any]]) -> None:
    records.insert(3, records[2])
    records[0]["events"] += 1


def _cut(records: list[dict[str, Any]]) -> None:
    records.pop()


def _strip(records: list[dict[str, Any]]) -> None:
    records[1].pop("origin")


def _with_event(change: Callable[[dict[str, Any]], None]) -> Callable[[list[dict[str, Any]]], None]:
    """Change the last event, with a hash that fits."""

    def apply(records: list[dict[str, Any]]) -> None:
        last = records[-1]
        origin = last.pop("origin")
        change(last)
        digest = hash_of(canonical_event(last), origin["previous"])
        last["origin"] = {**origin, "hash": digest}

    return apply


FORGED = {
    "reordered": (_swap, "line 3 comes before an event that it needs"),
    "changed": (_forge, "line 4 is not the event whose hash it has"),
    "of another run": (_rename, "line 2 is not an event of the run r-ffffffff"),
    "repeated": (_repeat, "line 4 has an event that an earlier line has"),
    "cut at a line": (_cut, "has 7 of its 8 events"),
    "without an origin": (_strip, "line 2 has no origin"),
    "an unknown action": (
        _with_event(lambda last: last.update(action="teleported")),
        "line 9 has an action that is not known here",
    ),
    "an unknown phase": (
        _with_event(lambda last: last.update(action="finished", component="base", phase="integration")),
        "line 9 cannot be used: base has no phase integration in this run",
    ),
    "a lone surrogate": (
        _with_event(lambda last: last.update(work_tree="\ud800")),
        "line 9 has text that is not Unicode",
    ),
    "a component that cannot be": (
        _with_event(lambda last: last.update(component="a\x1b[31m")),
        "line 9 names a component that no policy can declare",
    ),
    "an event inside": (
        _with_event(lambda last: last.update(a={"kind": "run", "run": "r-ffffffff"})),
        "line 9 has an event inside an event",
    ),
    "no time": (_with_event(lambda last: last.update(at="soon")), "line 9 has no time"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, list[bytes]]:
    """A repository, and the lines of a file of its events."""
    world = World.make(tmp_path_factory.mktemp("whole"), has_author=False, has_code=True, names=("base",))
    worker = cloned(world, "worker")
    worker.start("base", run=RUN)
    return world, Path(exported(worker, "whole.jsonl")).read_bytes().splitlines()


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_file_is_refused_with_its_line(case: str, whole: tuple[World, list[bytes]]) -> None:
    world, lines = whole
    change, message = FORGED[case]
    file = world.folder / "forged.jsonl"
    file.write_bytes(rechained(lines, change))
    with pytest.raises(UsageError) as refused:
        merged(world, str(file))
    assert refused.value.message.endswith(f"forged.jsonl: {message}".replace(": has", " has"))
    assert last_actions(opened(world.repo)) == {}


def _fifo(place: Path) -> None:
    os.mkfifo(place)


def _large(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(100_000_000)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda place: None, "cannot be read: No such file or directory"),
    "empty": (lambda place: place.write_bytes(b""), "is empty"),
    "a folder": (lambda place: place.mkdir(), "is not a regular file"),
    "a pipe": (_fifo, "is not a regular file"),
    "a link": (lambda place: place.symlink_to("elsewhere"), "cannot be read: it is a symbolic link"),
    "100 MB": (_large, f"has 100,000,000 bytes, and the events of a run have at most {MOST_BYTES:,}"),
    "no JSON": (lambda place: place.write_bytes(b"hello\n"), ": line 1 is not JSON"),
    "bytes": (lambda place: place.write_bytes(b"\xff\xfe\n\n"), ": line 1 is not JSON"),
    "deep": (lambda place: place.write_bytes(b'{"event":' + b"[" * 200_000 + b"\n"), ": line 1 is not JSON"),
    "a long line": (
        lambda place: place.write_bytes(b" " * (1 << 20) + b"\n"),
        ": line 1 is longer than 1048576 bytes",
    ),
    "another chain": (
        lambda place: place.write_bytes(line_of(canonical_event({"kind": "run"}), START)[1]),
        ": line 1 does not begin the events of a run (patchgate.run-events/1)",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_one_sentence(case: str, whole: tuple[World, list[bytes]], tmp_path: Path) -> None:
    world, _ = whole
    make, message = HOSTILE[case]
    place = tmp_path / "hostile.jsonl"
    make(place)
    answer = world.repo.run("run", "merge", str(place))
    assert (answer.code, answer.out) == (2, "")
    error, hint = answer.err.splitlines()
    assert error.removeprefix(f"error: {place}").lstrip() == message.lstrip()
    assert hint.startswith("help: ")


def test_a_torn_file_and_one_with_a_changed_byte_are_refused_with_their_line(
    whole: tuple[World, list[bytes]],
) -> None:
    world, lines = whole
    file = world.folder / "torn.jsonl"
    file.write_bytes(b"\n".join(lines)[:-10])
    with pytest.raises(UsageError, match="line 9 was cut short"):
        merged(world, str(file))
    changed = [line.replace(b"base", b"case") if number == 3 else line for number, line in enumerate(lines)]
    file.write_bytes(b"\n".join(changed) + b"\n")
    with pytest.raises(UsageError, match="line 4 does not have the hash that it names"):
        merged(world, str(file))
    file.write_bytes(b"\n".join([*lines[:3], *lines[4:]]) + b"\n")
    with pytest.raises(UsageError, match="line 4 does not contain the hash of the line before it"):
        merged(world, str(file))


def test_what_two_ledgers_share_has_one_cause(whole: tuple[World, list[bytes]]) -> None:
    world, lines = whole
    file, other = world.folder / "a.jsonl", world.folder / "b.jsonl"
    file.write_bytes(b"\n".join(lines) + b"\n")

    def loosen(records: list[dict[str, Any]]) -> None:
        records[-1]["origin"]["cause"] = []

    other.write_bytes(rechained(lines, loosen))
    with pytest.raises(UsageError, match="the files contradict each other"):
        merged(world, str(file), str(other))


def test_what_was_not_part_of_the_jobs_is_named(verified: World) -> None:
    worker = cloned(verified, "worker")
    worker.start("base", run=RUN)
    file = exported(worker, "events.jsonl")
    verified.repo.write(
        ".patchgate/baselines/base.json", worker.repo.git("show", ":.patchgate/baselines/base.json")
    )
    verified.repo.git("add", "-A")
    answer = verified.repo.run("run", "merge", file)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        f"{RUN}: 8 events merged",
        "not part of it, and not as a baseline records it: `left`",
        f"run {RUN}: completed",
    ]
    assert verified.repo.run("run", "merge", "-q", file).out == ""


def test_the_events_of_a_damaged_ledger_are_not_written(verified: World) -> None:
    worker = cloned(verified, "worker")
    worker.start("base", run=RUN)
    ledger = Path(worker.repo.common_dir, "patchgate", "events.jsonl")
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join([*lines[:2], lines[2].replace(b"base", b"case"), *lines[3:]]))
    answer = worker.repo.run("run", "show", "--format", "events")
    assert (answer.code, answer.out) == (3, "")
    assert f"the run {RUN} is damaged: line 3 of the ledger is damaged" in answer.err
