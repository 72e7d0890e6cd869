"""The power goes out during a transaction, or during a recovery: all old or all new, once it is back.

The operations of real runs are replayed on the model of `tests.storage.power_loss`; each disk that may be
found is written where the transaction was, recovered, and judged. Leaving out any one flush must lead to a
disk that is judged wrong. The long form takes every case and every kill, not a few: `PATCHGATE_LONG=1
pytest tests/git/test_transaction_power_loss.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from patchgate.errors import PatchgateError
from tests.amount import IS_LONG
from tests.faults import Faults, Operation
from tests.git.transaction_world import Case, State, World, expected, link, steps_of, text, world
from tests.storage.power_loss import Disk, Killed, Trial

pytestmark = pytest.mark.turns(3)

CHANGED = Case("changed", {"a": text("old\n")}, {"a": text("new, which is longer\n")})
MODE = Case("mode", {"a": text("old\n")}, {"a": text("new\n", "100755")}, index=b"the new index")
MADE = Case("made", {"a": text("stays\n")}, {"a": text("stays\n"), "b/c": text("new\n")})
GONE = Case("gone", {"a": text("stays\n"), "b/c": text("goes\n")}, {"a": text("stays\n")})
TO_FOLDER = Case("to folder", {"a": text("a file\n")}, {"a/b": text("in a folder\n")})
TO_FILE = Case("to file", {"a/b": text("in a folder\n")}, {"a": text("a file\n")})
SEVERAL = Case(
    "several",
    {"a": text("old\n"), "gone": text("goes\n"), "link": link("a")},
    {"a": text("new\n"), "link": link("b")},
)
INDEX = Case("index", {"a": text("stays\n")}, {"a": text("stays\n")}, index=b"the new index")
CASES = (CHANGED, MADE, GONE, TO_FOLDER, TO_FILE, INDEX, *((MODE, SEVERAL) if IS_LONG else ()))
QUICK = CASES if IS_LONG else (CHANGED, GONE)


Judge = Callable[[Path, bool], bool]


def judging(here: World, right: Callable[[list[str], State, bool], bool]) -> Judge:
    """Recover on each disk; what it says and what stands there then must be right, and nothing be left."""

    def judge(_root: Path, has_returned: bool) -> bool:
        try:
            outcomes = here.recover()
        except PatchgateError:
            return False
        return right(outcomes, here.state(), has_returned) and not here.litter() and here.recover() == []

    return judge


def transaction(here: World, *, finished: bool = False) -> Trial:
    """Record one transaction up to its return; or the whole of one, to the end of its record."""
    new, old = expected(here.case), here.old
    before, operations = Disk.of(here.root), list[Operation]()

    def right(outcomes: list[str], found: State, has_returned: bool) -> bool:
        if finished and has_returned:
            return found == new and outcomes == []
        if outcomes == ["landed"]:
            return found == new
        return (found == old and not has_returned) or (finished and found == new)

    done = here.write(Faults(record=operations.append))
    if finished:
        done.finish()
    return Trial(before, operations, judging(here, right), here.root)


def prepared(here: World) -> None:
    """Make what the first transaction of a repository makes, so that only a transaction itself is tested."""
    (here.git / "patchgate" / "transactions").mkdir(parents=True)
    (here.git / "patchgate" / "apply.lock").touch()


def names(case: Case) -> str:
    return case.name


@pytest.mark.sweep(2)
@pytest.mark.parametrize("case", CASES, ids=names)
def test_a_power_loss_at_any_point_of_a_transaction_leaves_all_old_or_all_new(case: Case) -> None:
    with world(case) as here:
        prepared(here)
        assert transaction(here).failures() == []


@pytest.mark.parametrize("case", [CHANGED, GONE], ids=names)
def test_a_power_loss_while_a_record_is_removed_leaves_all_new(case: Case) -> None:
    with world(case) as here:
        prepared(here)
        assert transaction(here, finished=True).failures() == []


def test_a_power_loss_in_the_very_first_transaction_of_a_repository_leaves_old_or_new() -> None:
    with world(CHANGED) as here:
        assert transaction(here).failures() == []


@pytest.mark.sweep(1)
@pytest.mark.parametrize("case", QUICK, ids=names)
def test_without_any_one_flush_a_transaction_would_not_survive(case: Case) -> None:
    with world(case) as here:
        prepared(here)
        trial = transaction(here)
        count = len(trial.flushes)
        unpinned = [number for number in trial.flushes if not trial.failures(without=number, most=1)]
    # What these lose is litter only, and seen once the record is gone that would have led to it.
    with world(case) as here:
        prepared(here)
        trial = transaction(here, finished=True)
        late = [*unpinned, *trial.flushes[count:]]
        assert [number for number in late if not trial.failures(without=number, most=1)] == []


@pytest.mark.sweep(1)
@pytest.mark.parametrize("case", QUICK, ids=names)
def test_a_power_loss_while_recovering_from_a_kill_leaves_what_the_recovery_says(case: Case) -> None:
    with world(case) as other:
        prepared(other)
        faults = Faults()
        other.write(faults)
        steps = faults.steps
    for killed_at in range(1, steps + 1, 1 if IS_LONG else 6):
        with world(case) as here:
            prepared(here)
            before, operations = Disk.of(here.root), list[Operation]()
            with suppress(PatchgateError):
                here.write(Killed(killed_at, operations.append))
            restart = len(operations)
            here.recover(Faults(record=operations.append))
            judge = judging(here, partial(_as_recovered, expected(case), here.old, here.state()))
            trial = Trial(before, operations, judge, here.root, restart)
            assert trial.failures() == [], killed_at


def _as_recovered(
    new: State, old: State, after: State, outcomes: list[str], found: State, has_returned: bool
) -> bool:
    """A recovery may have removed its record; what it did stays."""
    return found == (new if outcomes == ["landed"] else after if has_returned else found) in (old, new)


def test_the_steps_of_a_transaction_are_all_recorded() -> None:
    with world(SEVERAL) as here:
        assert len(transaction(here, finished=True).operations) == steps_of(SEVERAL)
