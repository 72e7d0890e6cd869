"""Runs as text and as JSON (`patchgate.run/1`, `patchgate.runs/1`), safe for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.report.json import json_line
from patchgate.report.wording import count, safe
from patchgate.runs.phases import PHASES, Work
from patchgate.runs.resume import ResumeStrategy
from patchgate.runs.run_record import plain_state, status_now
from patchgate.runs.run_state import RunState
from patchgate.storage.record import Json

LIST_SCHEMA = "patchgate.runs/1"


def list_text(states: Sequence[RunState], now: float) -> list[str]:
    """Write the runs as lines, oldest first."""
    if not states:
        return ["no run yet: git patchgate run start"]
    return [_headline(state, now) for state in states]


def _headline(state: RunState, now: float) -> str:
    works = len(state.plan.works)
    line = f"{state.id} {status_now(state, now).value}: {len(state.done)} of {count(works, 'phase')} done"
    return f"{line}, began {state.began}" + (f": {safe(state.reason)}" if state.reason else "")


def show_text(state: RunState, wrong: Sequence[str], now: float) -> list[str]:
    """Write one run: a line for each component with its phases, then what is wrong."""
    lines = [_headline(state, now)]
    for name in sorted(state.plan.phases):
        words = [
            f"{phase.value} {_word(state, Work(name, phase))}"
            for phase in PHASES
            if phase in state.plan.phases[name]
        ]
        lines.append(f"  {safe(name)}: {', '.join(words)}")
        lines += [
            f"    {work.phase.value}: {safe(trouble.reason)}"
            for work, trouble in sorted(state.trouble.items())
            if work.component == name
        ]
    lines += [f"warning: {safe(each)}" for each in (*state.warnings, *wrong)]
    if state.hint is not None:
        lines.append(f"help: {safe(state.hint)}")
    return lines


def _word(state: RunState, work: Work) -> str:
    if work in state.done:
        return "done"
    if work in state.trouble:
        return state.trouble[work].outcome
    return "under way" if work in state.in_flight else "left"


def strategy_lines(strategy: ResumeStrategy) -> list[str]:
    """Say how a run was resumed."""
    plain = strategy.plain()
    done = ", ".join(strategy.completed_components) or "nothing"
    lines = [f"resumed in {plain['resume_phase']}; done already: {done}"]
    if strategy.cleared:
        lines.append(
            "done again, because the disk does not show it: " + ", ".join(map(str, strategy.cleared))
        )
    return lines


def show_json(state: RunState, wrong: Sequence[str], now: float) -> str:
    """Write one run as a JSON document."""
    return json_line(_document(state, wrong, now))


def list_json(states: Sequence[RunState], now: float) -> str:
    """Write the runs as a JSON document."""
    return json_line({"schema": LIST_SCHEMA, "runs": [_document(state, (), now) for state in states]})


def _document(state: RunState, wrong: Sequence[str], now: float) -> dict[str, Json]:
    warnings = [*state.warnings, *wrong]
    return {**plain_state(state), "status": status_now(state, now).value, "warnings": warnings}
