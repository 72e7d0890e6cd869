"""A transaction that is killed at any step, and a recovery that is killed too: all old or all new in the end.

`PATCHGATE_LONG=1 pytest tests/git/test_transaction_kills.py` takes every pair of kills instead of a sample.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress

import pytest

from patchgate.git.transaction import WriteFailedError, pending_transactions
from tests.amount import IS_LONG, sample
from tests.faults import Fault, Faults, Kind
from tests.git.transaction_world import (
    CASES,
    FIVE,
    KILLED,
    ONE,
    TWENTY,
    Case,
    World,
    expected,
    in_child,
    steps_of,
    world,
)

pytestmark = pytest.mark.turns(3)

HARMLESS = {Kind.EINTR, Kind.SHORT}


def names(case: Case) -> str:
    return case.name


def killed(here: World, step: int) -> None:
    assert in_child(lambda: here.write(Faults([Fault(step, Kind.KILL)])).finish()) == KILLED


@pytest.mark.parametrize("case", CASES, ids=names)
def test_a_transaction_that_nothing_disturbs_writes_exactly_what_was_asked(case: Case) -> None:
    with world(case) as here:
        written = here.write()
        assert here.state() == expected(case)
        assert [each.state for each in pending_transactions(here.repository)] == ["landed"]
        written.finish()
        here.assert_settled(expected(case))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("case", CASES, ids=names)
def test_a_kill_at_each_step_leaves_all_old_or_all_new(case: Case) -> None:
    new, seen = expected(case), set()
    for step in sample(steps_of(case), 120, case.name):
        with world(case) as here:
            killed(here, step)
            outcomes = here.recover()
            # At the end the transaction's own record is gone, and nothing is left to recover.
            here.assert_settled(
                (here.old, new) if not outcomes else new if "landed" in outcomes else here.old
            )
            seen.add(tuple(outcomes))
    assert seen == {(), ("undone",), ("landed",)}


@pytest.mark.parametrize("case", [ONE, FIVE], ids=names)
def test_a_kill_on_the_way_back_from_a_failed_last_flush_leaves_all_old(case: Case) -> None:
    operations: list[str] = []
    with world(case) as here:
        here.write(Faults(record=lambda each: operations.append(f"{each.name} {each.other}")))
    last = next(number for number, each in enumerate(operations, 1) if each.endswith("/landed")) + 1
    ends = set()
    for step in range(last + 2, last + 60, 1 if IS_LONG else 6):
        with world(case) as here:
            plan = [Fault(last, Kind.EIO), Fault(step, Kind.KILL)]
            ends.add(in_child(lambda: here.write(Faults(plan))))  # noqa: B023
            assert set(here.recover()) <= {"undone"}
            here.assert_settled(here.old)
    assert ends == {KILLED, 1}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("case", CASES, ids=names)
def test_a_kill_while_recovering_and_another_while_recovering_from_that(case: Case) -> None:
    new = expected(case)
    for first in sample(steps_of(case), 4, case.name):
        for second in sample(_steps_of_recovery(case, [first]), 3, f"{case.name} {first}"):
            for third in sample(_steps_of_recovery(case, [first, second]), 2, f"{first} {second}"):
                with world(case) as here:
                    _killed_again(here, [first, second, third])
                    here.recover()
                    here.assert_settled((here.old, new))


def _killed_again(here: World, steps: list[int]) -> None:
    first, *others = steps
    killed(here, first)
    for step in others:
        in_child(lambda step=step: here.recover(Faults([Fault(step, Kind.KILL)])))  # type: ignore[misc]


def _steps_of_recovery(case: Case, kills: list[int]) -> int:
    with world(case) as here:
        _killed_again(here, kills)
        faults = Faults()
        here.recover(faults)
        return faults.steps


@pytest.mark.sweep(3)
@pytest.mark.parametrize("case", CASES, ids=names)
@pytest.mark.parametrize("kind", [Kind.EIO, Kind.ENOSPC, Kind.EINTR])
def test_an_error_while_recovering_is_told_and_the_next_recovery_goes_on(case: Case, kind: Kind) -> None:
    new = expected(case)
    for first in sample(steps_of(case), 4, case.name):
        for second in sample(_steps_of_recovery(case, [first]), 5, f"{case.name} {first}"):
            with world(case) as here:
                killed(here, first)
                with nullcontext() if kind in HARMLESS else suppress(WriteFailedError):
                    here.recover(Faults([Fault(second, kind)]))
                here.recover()
                here.assert_settled((here.old, new))


def test_the_patches_are_as_large_as_they_are_called() -> None:
    assert [len(each.writes) for each in (ONE, FIVE, TWENTY)] == [1, 5, 26]
