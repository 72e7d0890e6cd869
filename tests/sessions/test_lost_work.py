"""The eight published ways to lose work at a commit: with patchgate nothing is lost, judged unseen or mixed.

The cases are those that `bench/lost_work.py` does to other hook managers too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.lost_work import outcome
from bench.lost_work_cases import CASES, Case
from bench.lost_work_managers import patchgate
from tests.world import EXECUTABLE, server_variables

pytestmark = pytest.mark.turns(8)


def test_there_are_eight_cases() -> None:
    assert [case.number for case in CASES] == list(range(1, 9))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}: {case.what}")
def test_nothing_is_lost_or_judged_unseen_or_mixed(tmp_path: Path, case: Case) -> None:
    variables = {"PYTHONDONTWRITEBYTECODE": "1", **server_variables()}
    done, place = outcome(case, patchgate(EXECUTABLE.parent), tmp_path / "case", **variables)
    assert (done.lost, done.judged, done.mixed) == (0, 0, 0), place.said
    assert set(done.words) <= {"refused first"}, place.said
    assert "Traceback" not in place.said
