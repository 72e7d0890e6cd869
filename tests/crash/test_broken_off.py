"""An apply that is broken off is all old or all new: killed, interrupted, raced, refused by the disk.

Each part is the short sample of the command of `tests/crash/__main__.py`, which has the long form.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.aftermath import Aftermath
from tests.crash.comparer import Kind
from tests.crash.plan import Plan, Task
from tests.crash.programs import GIT, GIT_INDEX, OURS, OURS_INDEX, Program

pytestmark = pytest.mark.turns(3)

SEED = 6
BOTH = pytest.mark.parametrize("program", [OURS, OURS_INDEX], ids=["apply", "apply --index"])


def plan_for(program: Program, folder: Path, part: str) -> Plan:
    """Make a short plan, or skip where the machine cannot do the part."""
    plan = Plan(program, folder, SEED, is_long=False)
    if (reason := plan.why_not(part)) is not None:
        pytest.skip(reason)
    return plan


def broken(plan: Plan, part: str) -> list[str]:
    """Do every task of a part; tell what did not hold, each with what led to it."""
    tasks: list[Task] = list(getattr(plan, part)())
    assert tasks
    told = []
    for task in tasks:
        found = task.do(plan.folder / "broken-off")
        problems = found.failures if isinstance(found, Aftermath) else found or ()
        told += [f"{task.row}, {task.where}: {problem}" for problem in problems]
    return told


@pytest.mark.sweep(1)
@BOTH
def test_a_kill_at_any_call_leaves_all_old_or_all_new_after_recover(tmp_path: Path, program: Program) -> None:
    """hardening, “Apply”: the index with it, no litter, `git fsck` clean, the chain whole."""
    assert broken(plan_for(program, tmp_path, "kill"), "kill") == []


def test_a_git_that_is_killed_while_it_works_for_an_apply_leaves_all_old_or_all_new(tmp_path: Path) -> None:
    assert broken(plan_for(OURS_INDEX, tmp_path, "child"), "child") == []


def test_recover_may_be_killed_itself_and_once_more(tmp_path: Path) -> None:
    assert broken(plan_for(OURS_INDEX, tmp_path, "recover"), "recover") == []


def test_a_signal_at_any_time_finishes_or_undoes_before_the_process_ends(tmp_path: Path) -> None:
    assert broken(plan_for(OURS, tmp_path, "signal"), "signal") == []


def test_applies_at_the_same_time_give_what_some_order_of_the_winners_gives(tmp_path: Path) -> None:
    assert broken(plan_for(OURS_INDEX, tmp_path, "together"), "together") == []


def test_a_commit_that_races_never_takes_half_a_patch_and_a_held_lock_is_respected(tmp_path: Path) -> None:
    assert broken(plan_for(OURS_INDEX, tmp_path, "commit"), "commit") == []


def test_what_an_editor_saves_meanwhile_survives(tmp_path: Path) -> None:
    assert broken(plan_for(OURS, tmp_path, "editor"), "editor") == []


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("part", "program"), [("disk", OURS_INDEX), ("limit", OURS), ("closed", OURS_INDEX)])
def test_a_disk_that_refuses_leaves_all_old(tmp_path: Path, part: str, program: Program) -> None:
    assert broken(plan_for(program, tmp_path, part), part) == []


@pytest.mark.parametrize("program", [GIT, GIT_INDEX], ids=["git apply", "git apply --index"])
def test_the_harness_sees_half_a_patch_where_git_apply_is_killed(tmp_path: Path, program: Program) -> None:
    """hardening, “Measured” 2: git removes every target first, then makes them anew."""
    plan = plan_for(program, tmp_path, "kill")
    found = [task.do(tmp_path / "broken-off") for task in plan.kill()]
    kinds = {each.at_once.kind for each in found if isinstance(each, Aftermath)}
    assert {Kind.OLD, Kind.PARTIAL} <= kinds
    left = [each.left for each in found if isinstance(each, Aftermath) and each.left]
    assert bool(left) == program.index, "a kill leaves index.lock, where git holds it"


def test_the_harness_sees_what_two_git_applies_lose_that_win_the_same_line(tmp_path: Path) -> None:
    """The same check, on a result that is not serial."""
    from tests.crash import writers
    from tests.world import Answer

    case = writers.build(tmp_path / "case")
    place = case.fresh(tmp_path / "work")
    wanted = [writers.Wish(0, {"d0/f0.txt": 20}), writers.Wish(1, {"d0/f0.txt": 20})]
    place.repo.git("apply", "-", stdin=wanted[0].patch())
    both = [Answer(0, "", ""), Answer(0, "", "")]
    assert writers.not_serial(case, place, GIT, wanted[:1], both[:1]) == []
    assert writers.not_serial(case, place, GIT, wanted, both) != []
