"""What a run teaches is read from its events: also of one that failed or was killed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from patchgate.check.vague_phrases import vague_phrases
from patchgate.components.policy_tree import index_tree
from patchgate.git.objects import Objects
from patchgate.ledger.ledger import Event, Ledger
from patchgate.runs import retrospective
from patchgate.runs.author import MOST_ANSWER
from patchgate.runs.retrospective import lessons_of_last_runs, retrospective_of, retrospective_schema
from patchgate.runs.run_state import KIND, RunStatus
from patchgate.runs.triage import OF_WORKER, FaultKind
from patchgate.storage.record import Json
from tests.component_world import contract, opened
from tests.runs.phase_world import new_file
from tests.runs.test_cost import REPORT, made, reporting
from tests.runs.test_runs import World
from tests.schemas import require_valid

pytestmark = pytest.mark.turns(3)

NOW = 4_000_000_000.0
KEY = re.compile(r"`(\[[a-z]+\]( [a-z_]+)?|[a-z_]+)`|contracts/")


def test_a_run_is_summed_up_from_its_events(tmp_path: Path) -> None:
    world = made(tmp_path, "total_cost = 5.0")
    state = world.start("base", "left")
    found = retrospective_of(opened(world.repo), None, NOW)
    assert (found.run, found.status, found.total_cost) == (state.id, RunStatus.COMPLETED, 0.5)
    assert (found.components, found.done, found.plan_revisions) == (2, 2, 0)
    assert found.cost_by_phase == {"implementation": 0.5}
    assert (found.failure_patterns, found.lessons) == ((), ())
    shown = world.repo.cli("run", "retro", state.id).out.splitlines()
    assert shown[0].startswith(f"{state.id} completed: 2 of 2 components done in ")
    assert shown[1:] == ["  implementation: 0.50"]


def test_a_failed_run_has_one_too_and_its_lesson_names_a_file(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/left/code.txt": "wrong\n"})
    state = world.start("base", "left")
    document = json.loads(world.repo.cli("run", "retro", "--format", "json").out)
    require_valid(document, retrospective_schema())
    assert (document["run"], document["status"], document["done"]) == (state.id, "paused", 1)
    (pattern,) = document["failure_patterns"]
    assert (pattern["fault"], pattern["times"], pattern["components"]) == ("tests-failed", 1, ["left"])
    assert document["lessons"] == ["tests failed for `left`: compare them with contracts/left/interface.json"]


def test_refused_answers_are_counted_by_rule(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    (tmp_path / "answer").write_bytes(new_file("notes.txt", "the same\n"))
    (tmp_path / "author.sh").write_text(f"cat {tmp_path}/answer")
    world.start("base")
    found = retrospective_of(opened(world.repo), None, NOW)
    rules = {each.subject: each.times for each in found.failure_patterns if each.fault == "patch-refused"}
    assert sum(rules.values()) == 5
    assert any(each.startswith(f"`{next(iter(rules))}` refused answers for `base`") for each in found.lessons)


def test_the_next_run_begins_with_the_lessons_of_the_last(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"src/left/code.txt": "wrong\n"})
    first = world.repo.cli("run", "start", "left")
    second = world.repo.cli("run", "start", "left")
    third = world.repo.cli("run", "start", "left")
    lesson = "of the last run: tests failed for `left`"
    assert [lesson in each.out for each in (first, second, third)] == [False, True, True]
    assert "(so in 2 of the last 2 runs)" in third.out
    world.repo.commit({"src/left/code.txt": "right\n"})
    assert world.repo.cli("run", "start", "left").code == 0
    assert lessons_of_last_runs(opened(world.repo), NOW) == []


def test_the_largest_suite_and_the_most_error_cases_are_named(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    text = json.loads(contract("left"))
    text["functions"][0]["error_cases"] = [
        {"error": "ValueError", "condition": f"width is below {number}", "inputs": []} for number in range(3)
    ]
    state = world.start("base", "left")
    world.repo.stage({"contracts/left/interface.json": json.dumps(text)})
    ledger = Ledger(world.repo.common_dir)
    for name, passed in (("base", 4), ("left", 9)):
        counts = {"passed": passed, "failed": 0}
        ledger.record(
            KIND,
            {
                "run": state.id,
                "action": "finished",
                "component": name,
                "phase": "implementation",
                "counts": counts,
            },
        )
    found = retrospective_of(opened(world.repo), None, NOW)
    assert (found.largest_test_suite, found.most_error_cases) == (("left", 9), ("left", 3))


def test_pauses_and_the_time_after_a_kill_are_no_work() -> None:
    def event(action: str, second: int) -> Event:
        return Event(
            KIND, {"run": "r-1", "action": action}, at=f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"
        )

    steps = [("started", 0), ("began", 10), ("paused", 30), ("resumed", 900), ("began", 905)]
    killed = [event(*each) for each in steps]
    assert retrospective._seconds(killed) == 35
    after = [event("spent", 2000), event("resumed", 3000), event("completed", 3001)]
    assert retrospective._seconds([*killed, *after]) == 36


def lessons_in(world: World) -> list[str]:
    found: list[str] = json.loads(world.repo.cli("run", "retro", "--format", "json").out)["lessons"]
    return found


def faulted(
    world: World, run: str, kind: str, phase: str = "implementation", outcome: str = "failed", of: str = ""
) -> None:
    """Record a fault as the loop of a run does."""
    about: dict[str, Json] = {"run": run, "action": "faulted", "component": "base", "phase": phase}
    signature = f"{kind}:{of}" if of else kind
    ledger = Ledger(world.repo.common_dir)
    ledger.record(KIND, {**about, "outcome": outcome, "fault": kind, "signature": signature, "cost": 0.0})


@pytest.mark.parametrize("kind", FaultKind)
@pytest.mark.parametrize("of", ["", "ruff", "its process"])
def test_a_finished_lesson_is_not_vague_and_names_what_to_change(
    tmp_path_factory: pytest.TempPathFactory, kind: FaultKind, of: str
) -> None:
    world = with_code(tmp_path_factory)
    about: dict[str, Json] = {"action": "faulted", "component": "base", "phase": "contract"}
    signature = f"{kind}:{of}" if of else kind.value
    events = [Event(KIND, {**about, "outcome": "failed", "fault": kind.value, "signature": signature})]
    with Objects(opened(world.repo)) as objects:
        content = index_tree(opened(world.repo), objects)
        lessons = retrospective._lessons(content, retrospective._patterns(events, []))
    assert lessons or kind in WITHOUT_LESSON
    for lesson in lessons:
        assert list(vague_phrases(lesson)) == []
        assert KEY.search(lesson)
        assert "{" not in lesson


_WORLDS: list[World] = []


def with_code(factory: pytest.TempPathFactory) -> World:
    """A repository that no test changes."""
    if not _WORLDS:
        _WORLDS.append(World.make(factory.mktemp("lessons"), has_author=False, has_code=True))
    return _WORLDS[0]


WITHOUT_LESSON = {FaultKind.LOCKED, FaultKind.CONFIG, FaultKind.MISSING_FILE, FaultKind.DISK_FULL}


def test_every_fault_that_the_config_may_cause_has_a_lesson() -> None:
    assert {*retrospective._LESSONS} == {*FaultKind} - WITHOUT_LESSON


def test_answers_that_landed_while_the_tests_still_failed_are_tests_that_failed(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    script = tmp_path / "author.sh"
    # Each answer is another one, so all land, and none is right.
    number = f"n=$(ls {tmp_path} | wc -l); touch {tmp_path}/call-$n"
    first = f"test -e src/base/code.txt || {{ cat {tmp_path}/first; exit; }}"
    change = "printf '%s\\n' 'diff --git a/src/base/code.txt b/src/base/code.txt' '--- a/src/base/code.txt' "
    change += '\'+++ b/src/base/code.txt\' "@@ -1 +1 @@" "-$(cat src/base/code.txt)" "+wrong $n"'
    (tmp_path / "first").write_bytes(new_file("src/base/code.txt", "wrong\n"))
    script.write_text(f"{reporting(REPORT)}\n{number}\n{first}\n{change}\n")
    state = world.start("base")
    assert "did not pass" in next(iter(state.trouble.values())).reason
    found = retrospective_of(opened(world.repo), None, NOW)
    assert [(each.fault, each.times) for each in found.failure_patterns] == [("tests-failed", 1)]
    assert found.lessons == ("tests failed for `base`: compare them with contracts/base/interface.json",)
    assert found.total_cost == pytest.approx(0.25 * len(list(tmp_path.glob("call-*"))))


def test_answers_that_are_no_patches_say_so(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    (tmp_path / "author.sh").write_text(f"yes | head -c {MOST_ANSWER + 1}")
    world.start("base")
    (lesson,) = lessons_in(world)
    assert lesson.startswith("the answers of an author for `base` were no patches")


def test_the_lesson_of_a_contract_that_is_not_valid_names_the_contract(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.repo.commit({"contracts/base/interface.json": "{}\n"})
    world.start("base")
    assert lessons_in(world) == ["the contract of `base` is not valid: correct contracts/base/interface.json"]


def test_a_work_that_waits_for_a_person_is_no_failure(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    world.repo.write("src/base/code.txt", "mine, and not staged\n")
    state = world.start("base")
    assert "not as it is in the index" in next(iter(state.trouble.values())).reason
    found = retrospective_of(opened(world.repo), None, NOW)
    assert (found.failure_patterns, found.lessons) == ((), ())


def test_of_a_check_that_could_not_be_made_nothing_is_learned(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    run = world.start("base").id
    faulted(world, run, "check-failed", "contract", outcome="fault")
    faulted(world, run, "check-failed", "integration")
    found = retrospective_of(opened(world.repo), None, NOW)
    assert {each.subject for each in found.failure_patterns} == {"", "integration"}
    assert found.lessons == ()


@pytest.mark.parametrize("kind", ["temporary", "time-out"])
def test_a_process_that_was_killed_has_its_own_lesson(tmp_path: Path, kind: str) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    faulted(world, world.start("base").id, kind, of=OF_WORKER)
    (lesson,) = lessons_in(world)
    assert lesson.startswith("the process that worked on `base` ended without a result")
    assert "`[run] max_concurrent`" in lesson


def test_a_policy_that_cannot_be_read_costs_only_the_lessons(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base")
    world.repo.stage({"patchgate.toml": "[broken\n"})
    answer = world.repo.cli("run", "retro")
    assert (answer.code, "lesson" in answer.out) == (0, False)
