"""The work of one phase: the check first, the author while it fails, its answer through apply."""

from __future__ import annotations

from pathlib import Path

from patchgate.runs.phase_task import PhaseOutcome
from tests.runs.phase_world import (
    BASELINE,
    CODE,
    RIGHT,
    Desk,
)

PASSED, FAILED = PhaseOutcome.PASSED, PhaseOutcome.FAILED
FAULT, WAITING = PhaseOutcome.FAULT, PhaseOutcome.WAITING


def test_an_answer_lands_in_the_index_and_the_component_is_captured(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    result = desk.perform()
    assert (result.outcome, result.files) == (PASSED, (CODE,)), result
    assert len(result.attempts) == 1
    assert (desk.staged, desk.intents, len(desk.briefs)) == ([CODE], [], 1)
    assert (desk.repo.path / CODE).read_text() == "right\n"
    assert (desk.repo.path / BASELINE).is_file()
