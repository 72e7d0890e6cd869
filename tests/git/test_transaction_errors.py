"""A transaction that the system refuses at some step: nothing is changed when the call returns.

`PATCHGATE_LONG=1 pytest tests/git/test_transaction_errors.py` takes every pair of errors instead of a sample.
"""

from __future__ import annotations

import resource
import signal
from contextlib import suppress

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.transaction import DirtyWorkspaceError, WriteFailedError, pending_transactions
from tests.amount import IS_LONG, sample
from tests.faults import Fault, Faults, Kind, Operation
from tests.git.test_transaction_kills import names
from tests.git.transaction_world import CASES, FIVE, ONE, Case, expected, in_child, steps_of, text, world

pytestmark = pytest.mark.turns(3)


@pytest.mark.parametrize("case", CASES, ids=names)
@pytest.mark.parametrize("kind", [Kind.ENOSPC, Kind.EIO, Kind.EACCES])
def test_an_error_at_each_step_leaves_everything_as_it_was(case: Case, kind: Kind) -> None:
    new, failed = expected(case), 0
    for step in sample(steps_of(case), 15, f"{case.name} {kind}"):
        with world(case) as here:
            try:
                here.write(Faults([Fault(step, kind)])).finish()
            except WriteFailedError:
                failed += 1
                here.assert_settled(here.old)
            else:
                # A folder that may not be removed stays, empty, as git leaves it.
                folders = {path for path in here.state().keys() - new.keys() if (here.root / path).is_dir()}
                if kind is Kind.EACCES and not here.litter():
                    for path in sorted(folders, reverse=True):
                        (here.root / path).rmdir()
                # In force; what could not be tidied is tidied the next time.
                assert here.state() == new or here.litter()
                here.recover()
                here.assert_settled(new)
    assert failed > (len(case.writes) if IS_LONG else 5)


@pytest.mark.parametrize("case", CASES, ids=names)
@pytest.mark.parametrize("kind", [Kind.EINTR, Kind.SHORT])
def test_an_interruption_at_any_step_changes_nothing(case: Case, kind: Kind) -> None:
    new = expected(case)
    for step in sample(steps_of(case), 15, f"{case.name} {kind}"):
        with world(case) as here:
            here.write(Faults([Fault(step, kind)])).finish()
            here.assert_settled(new)


@pytest.mark.parametrize("case", CASES, ids=names)
def test_a_second_error_on_the_way_back_is_told_and_recovered(case: Case) -> None:
    new, blocked = expected(case), 0
    for first in sample(steps_of(case), 12, case.name):
        for second in sample(60, 6, f"{case.name} {first}"):
            with world(case) as here:
                faults = Faults([Fault(first, Kind.ENOSPC), Fault(first + second, Kind.EIO)])
                try:
                    here.write(faults).finish()
                except DirtyWorkspaceError:
                    blocked += 1
                    assert [each.state for each in pending_transactions(here.repository)] == ["interrupted"]
                except WriteFailedError:
                    assert here.state() == here.old
                here.recover()
                here.assert_settled((here.old, new))
    assert blocked


def test_an_error_names_the_file_what_the_system_said_and_the_next_step() -> None:
    with world(ONE) as here:
        operations: list[Operation] = []
        with world(ONE) as other:
            other.write(Faults(record=operations.append))
        step = next(number for number, each in enumerate(operations, 1) if each.name == "exchange")
        with pytest.raises(WriteFailedError) as caught:
            here.write(Faults([Fault(step, Kind.ENOSPC)]))
        assert "/tree/a: No space left on device" in caught.value.message
        assert here.state() == here.old
        assert "space" in (caught.value.hint or "")


def test_a_real_limit_of_a_files_size_is_told_and_nothing_was_written() -> None:
    large = Case("large", FIVE.before, {**FIVE.after, "a": text("x" * 200_000)})
    with world(large) as here:

        def act() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            with suppress(UndecidedError):
                here.write()
                raise AssertionError("it was written")

        assert in_child(act) == 0
        here.assert_settled(here.old)
